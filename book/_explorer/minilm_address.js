// What the heads of all-MiniLM-L6-v2 show, as a part of the page's address. It needs no DOM.

import { numberWithin } from "./address_number.js";

export const PREFIX = "#minilm?";

/**
 * @typedef {object} Shown
 * @property {string} text
 * @property {number} layer
 * @property {number} head
 * @property {number} token the one that looks, counted from 0
 * @property {boolean} random whether the parameters are random
 */

/** @type {Record<string, [number, number]>} */
const LIMITS = { layer: [0, 99], head: [0, 99], token: [0, 999] };

/** Write what is shown: "#minilm?text=My+own+sentence&layer=3"; what equals its default is left out. */
export function minilmAddress(/** @type {Shown} */ shown, /** @type {Shown} */ defaults) {
  const parts = new URLSearchParams();
  for (const name of ["text", ...Object.keys(LIMITS)]) {
    if (shown[name] !== defaults[name]) parts.set(name, String(shown[name]));
  }
  if (shown.random) parts.set("random", "1");
  return PREFIX + parts;
}

/**
 * Read what an address asks for; null if it asks for nothing. An invalid value becomes its default.
 *
 * @param {string} address
 * @param {Shown} defaults
 * @returns {Shown | null}
 */
export function fromMinilmAddress(address, defaults) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  const numbers = Object.entries(LIMITS).map(([name, limits]) => [
    name,
    Math.round(numberWithin(parts.get(name), limits, defaults[name])),
  ]);
  return /** @type {Shown} */ ({
    ...Object.fromEntries(numbers),
    text: parts.get("text") ?? defaults.text,
    random: parts.get("random") === "1",
  });
}
