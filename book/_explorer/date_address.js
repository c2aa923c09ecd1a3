// What the date translator shows, as a part of the page's address. It needs no DOM.

import { LENGTH } from "./translator.js";

export const PREFIX = "#dates?";

/**
 * @typedef {object} Shown
 * @property {string} text
 * @property {number} count how many characters are written
 * @property {number} chosen the one whose weights are shown
 * @property {boolean} equal whether the weights are made equal
 */

/**
 * Write what is shown: "#dates?text=3+may+1972&chosen=5"; nothing where it is all of the example.
 *
 * @param {Shown} shown
 * @param {string} example
 */
export function dateAddress({ text, count, chosen, equal }, example) {
  const parts = new URLSearchParams();
  if (text !== example) parts.set("text", text);
  if (count < LENGTH) parts.set("written", String(count));
  if (chosen !== count - 1) parts.set("chosen", String(chosen + 1));
  if (equal) parts.set("equal", "1");
  return parts.toString() && PREFIX + parts;
}

const whole = (text, most) => (/^\d{1,4}$/.test(text ?? "") ? Math.min(most, Math.max(1, Number(text))) : most);

/**
 * Read what an address asks for; null where it asks for nothing. Numbers that cannot be used are left out.
 *
 * @param {string} address
 * @param {string} example
 * @returns {Shown | null}
 */
export function fromDateAddress(address, example) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  const count = whole(parts.get("written"), LENGTH);
  const chosen = whole(parts.get("chosen"), count) - 1;
  return { text: parts.get("text") ?? example, count, chosen, equal: parts.get("equal") === "1" };
}
