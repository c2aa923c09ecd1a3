// What the decoder shows, as a part of the page's address. It needs no DOM.

import { numberWithin } from "./address_number.js";

export const PREFIX = "#decoder?";
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"; // two of them are one of 4096 tokens

/**
 * @typedef {object} Shown
 * @property {string} text the prompt
 * @property {number[]} written the tokens that the model has written
 * @property {number} count how many of them are shown
 * @property {number | null} chosen the token whose weights are shown; null for the last one
 * @property {number} temperature
 * @property {number} topP
 * @property {number} layer
 * @property {number} head
 * @property {number} seed
 * @property {boolean} equal whether all weights are made equal
 */

/** @type {Record<string, [number, number]>} */
const LIMITS = { temperature: [0, 2], "top-p": [0.05, 1], layer: [0, 99], head: [0, 99], seed: [0, 9999] };

/** Write what is shown: "#decoder?prompt=def+f%28&written=AbCd"; what equals its default is left out. */
export function decoderAddress(/** @type {Shown} */ shown, /** @type {Shown} */ defaults) {
  const parts = new URLSearchParams();
  if (shown.text !== defaults.text) parts.set("prompt", shown.text);
  parts.set("written", shown.written.map((token) => DIGITS[token >> 6] + DIGITS[token & 63]).join(""));
  if (shown.count < shown.written.length) parts.set("shown", String(shown.count));
  if (shown.chosen !== null) parts.set("chosen", String(shown.chosen + 1));
  for (const name of Object.keys(LIMITS)) {
    const value = shown[propertyOf(name)];
    if (value !== defaults[propertyOf(name)]) parts.set(name, String(value));
  }
  if (shown.equal) parts.set("equal", "1");
  return PREFIX + parts;
}

const propertyOf = (name) => (name === "top-p" ? "topP" : name);

/**
 * Read what an address asks for; null if it asks for nothing. An invalid value becomes its default.
 *
 * @param {string} address
 * @param {Shown} defaults
 * @returns {Shown | null}
 */
export function fromDecoderAddress(address, defaults) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  /** @type {string[]} */
  const pairs = (parts.get("written") ?? "").match(/[\w-]{2}/g) ?? [];
  const written = pairs.map((pair) => 64 * DIGITS.indexOf(pair[0]) + DIGITS.indexOf(pair[1]));
  const whole = (name, most, otherwise) => Math.round(numberWithin(parts.get(name), [0, most], otherwise));
  const settings = Object.entries(LIMITS).map(([name, limits]) => {
    const value = numberWithin(parts.get(name), limits, defaults[propertyOf(name)]);
    return [propertyOf(name), limits[1] > 2 ? Math.round(value) : value];
  });
  return /** @type {Shown} */ ({
    ...Object.fromEntries(settings),
    text: parts.get("prompt") ?? defaults.text,
    written,
    count: whole("shown", written.length, written.length),
    chosen: parts.has("chosen") ? Math.max(0, whole("chosen", 9999, 1) - 1) : null,
    equal: parts.get("equal") === "1",
  });
}
