// What the drawing of the residual stream shows, as a part of the page's address. It needs no DOM.

import { PARTS } from "./transformer_block.js";

export const PREFIX = "#residual?";

/**
 * @typedef {object} Settings
 * @property {string} follow the word that is followed
 * @property {"pre" | "post"} norm
 * @property {import("./transformer_block.js").Part[]} off the parts that are switched off
 *
 * @typedef {Settings & { step: number | null }} Shown the step is null at the end
 */

/**
 * Write what is shown: "#residual?norm=post&step=3"; an empty text for the example.
 *
 * @param {Shown} shown
 * @param {string} example the word that is followed at first
 */
export function residualAddress({ follow, norm, off, step }, example) {
  const parts = new URLSearchParams();
  if (follow !== example) parts.set("follow", follow);
  if (norm !== "pre") parts.set("norm", norm);
  if (off.length) parts.set("off", off.join(" "));
  if (step !== null) parts.set("step", String(step + 1));
  return parts.toString() && PREFIX + parts;
}

/**
 * Read what an address asks for; null if it asks for nothing. An invalid value becomes its default.
 *
 * @param {string} address
 * @param {string[]} words those that can be followed
 * @param {string} example
 * @returns {Shown | null}
 */
export function fromResidualAddress(address, words, example) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  const off = (parts.get("off") ?? "").split(" ");
  const step = parts.get("step") ?? "";
  return {
    follow: words.find((word) => word === parts.get("follow")) ?? example,
    norm: parts.get("norm") === "post" ? "post" : "pre",
    off: PARTS.filter((part) => off.includes(part)),
    step: /^[1-9]\d?$/.test(step) ? Number(step) - 1 : null,
  };
}
