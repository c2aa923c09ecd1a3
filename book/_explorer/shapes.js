// What the parts of the drawing share: shapes, and numbers that fit.

import { brief } from "./table.js";

export const CHIP_TOP = 80; // where the words are, below the arcs
export const THICKEST = 12; // an arc of weight 1

/**
 * A shape: an element of SVG. Its numbers and its path move from where they were, or from where it says.
 *
 * @typedef {object} Shape
 * @property {string} key by which it is known from one drawing to the next
 * @property {string} tag
 * @property {Record<string, string | number>} attributes
 * @property {string} [text]
 * @property {Record<string, number>} [from] where it comes from, when it is new
 * @property {Cell} [cell] what the reader finds there
 * @property {number} [term] that of the formula
 *
 * @typedef {object} Cell
 * @property {string} kind "chip", "word", "query", "key", "value", "dot", "scale", "mask", "softmax", "add" or "context"
 * @property {number} word the row or column that it belongs to
 * @property {number} [component]
 * @property {string} label what a screen reader says
 * @property {boolean} [pressed] whether it is the word that asks
 * @property {"query" | "key"} [of] what an arrow is
 * @property {number} [head] that of a pane
 * @property {number} [query] the row of a pane
 *
 * @typedef {object} View
 * @property {any} look see lookOf
 * @property {import("./steps.js").Step[]} steps
 * @property {number} step how many of them have been taken, less one
 * @property {Focus | null} focus what the reader points at
 * @property {boolean} hiding whether scores and weights are hidden
 * @property {number} room how wide the drawing may be
 * @property {boolean} narrow whether one stage is shown at a time
 * @property {number[]} axes the two components that the plane shows
 * @property {number} reach how far the plane reaches
 *
 * @typedef {import("./steps.js").Step & { term?: number }} Focus
 */

/** @returns {Shape} */
export const shape = (key, tag, attributes, more = {}) => ({ key, tag, attributes, ...more });

export const label = (key, x, y, content, attributes = {}) =>
  shape(key, "text", { x, y, fill: "currentColor", "text-anchor": "middle", "font-size": 12, ...attributes }, {
    text: content,
  });

export const said = (x) => Number.isNaN(x) ? "not yet known" : brief(x);

const LETTER = 0.58; // how wide one is, on average, in its own height
const SMALLEST = 9; // letters of a number

/** Write numbers into cells, with two decimals or with one, in the largest letters for which there is room. */
export function fitted(numbers, width, size) {
  const tenths = (x) => Number.isFinite(x) ? Number(x.toFixed(1)).toString().replace("-", "−") : brief(x);
  const texts = [brief, tenths, () => ""].map((write) => numbers.map((x) => Number.isNaN(x) ? "" : write(x)));
  const room = (one) => (width + 3) / (LETTER * Math.max(1, ...one.map(({ length }) => length)));
  const chosen = texts.find((one) => Math.min(size, room(one)) >= SMALLEST) ?? texts[2];
  return { texts: chosen, size: Math.min(size, room(chosen)) };
}

/** Shorten a word that does not fit. */
export function clipped(word, width, size) {
  const room = Math.max(1, Math.floor(width / (LETTER * size)));
  const letters = [...word];
  return letters.length <= room ? word : `${letters.slice(0, Math.max(1, room - 1)).join("")}…`;
}

/** Whether all weights of the row are known by now. */
export const weightsKnown = (v) => v.reached("softmax", v.look.words.length - 1);
