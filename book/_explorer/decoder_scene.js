// What the drawing of a decoder consists of: shapes, each known by its key. It needs no DOM.
//
// At the top are the text and what may come next, below them the weights of one head, and then the cache: a column
// for each token, with the keys and values of each layer.

import { COLOURS } from "./colours.js";
import { PICTURE } from "./decoder_picture.js";
import { linesOf } from "./decoder_text.js";
import { clipped, label, shape } from "./shapes.js";

const LETTER_WIDTH = 8.4; // how wide a letter of the text is
const LINE = 20;
const LINES = 10;
const TEXT = LINES * LINE;
const BESIDE = 600; // how wide the drawing has to be for the bars beside the text
const BAR_ROW = 20;
const BAR_NAME = 104;
const MARGIN = 84; // room for the names of the layers and the numbers of their heads
const WEIGHT = 56; // how high the bar of a weight of 1 is
const UNIT = 2; // the height of a number in the cache
const BAND = UNIT * PICTURE.layer; // the height of a layer in the cache
const HEADS = MARGIN - 16; // the width of the row of head numbers
const FIRST_COLUMNS = 64; // that there is room for at first

/** @typedef {import("./shapes.js").Shape} Shape */

/**
 * @typedef {object} View
 * @property {number} room how wide the drawing may be
 * @property {string[]} pieces the text of each token that is shown
 * @property {number} prompt how many of them are the prompt
 * @property {string[]} pictures of what the cache keeps of each
 * @property {number} place the token that looks
 * @property {ArrayLike<number>} weights (place + 1,) with which it looks
 * @property {{ layer: number, head: number }} at
 * @property {{ layers: number, heads: number, kvHeads: number, context: number }} sizes
 * @property {Bar[]} bars what may come after the token
 * @property {string} barsTitle
 * @property {string} weightsTitle
 * @property {string} cacheTitle
 * @property {number} top the first line of the text that is shown
 *
 * @typedef {object} Bar
 * @property {string} name
 * @property {number | null} token null for all others together
 * @property {number} probability
 * @property {boolean} isKept whether it can be drawn
 * @property {boolean} isNext whether it is what the text continues with
 * @property {boolean} canTake whether the reader can choose it
 */

/**
 * Everything that is drawn, and which line of the text is the first one that is shown.
 *
 * @param {View} view
 * @returns {{ shapes: Shape[], width: number, height: number, top: number }}
 */
export function decoderScene(view) {
  const { room } = view;
  const isBeside = room >= BESIDE;
  const textWidth = Math.floor(isBeside ? 0.58 * room : room);
  const bars = isBeside ? { x: textWidth + 20, y: 0 } : { x: 0, y: TEXT + 14 };
  const above = (isBeside ? TEXT : bars.y + BAR_ROW * (view.bars.length + 1)) + 34;
  const columns = columnsFor(view.pieces.length, view.sizes.context);
  const v = {
    ...{ ...view, textWidth, above, column: (room - MARGIN - 2) / columns, cache: above + WEIGHT + 8 },
    ...{ barsAt: { ...bars, width: room - bars.x }, below: BAND * view.sizes.layers },
  };
  const { shapes, top } = text(v);
  return {
    shapes: [...shapes, ...barShapes(v), ...weightShapes(v), ...cacheShapes(v), ...looking(v)],
    ...{ width: room, height: v.cache + v.below + 26, top },
  };
}

/** How many columns there is room for: twice as many whenever they are full. */
function columnsFor(count, context) {
  let columns = FIRST_COLUMNS;
  while (columns < count) columns *= 2;
  return Math.min(columns, context);
}

/** Which column of the cache is at a place of the drawing; for an empty column, the last full one. */
export function columnAt(x, room, count, context) {
  const column = (room - MARGIN - 2) / columnsFor(count, context);
  return Math.max(0, Math.min(count - 1, Math.floor((x - MARGIN) / column)));
}

/**
 * The layer and the head that reads the row at height y of the cache; null above and below the cache. Of the heads that
 * share these keys, it is the one with the same position in its group as the selected head.
 *
 * @returns {{ layer: number, head: number } | null}
 */
export function headAt(y, { layers, heads, kvHeads }, head) {
  const layer = Math.floor(y / BAND);
  if (layer < 0 || layer >= layers) return null;
  const row = Math.floor((y - BAND * layer) / (UNIT * PICTURE.rows));
  const group = heads / kvHeads;
  return { layer, head: row < 2 * kvHeads ? row % kvHeads * group + head % group : head };
}

/** Text in a monospaced font, stretched to a width if one is given. */
const letters = (key, x, y, content, width, more) =>
  label(key, x, y, content, {
    ...{ "text-anchor": "start", "font-size": 14, "font-family": "ui-monospace, Menlo, Consolas, monospace" },
    ...(width ? { textLength: width, lengthAdjust: "spacingAndGlyphs" } : {}),
    ...{ style: "white-space: pre", ...more },
  });

/** The text so far, each token as strongly coloured as the weight with which it is looked at. */
function text(v) {
  const { segments, lines, column } = linesOf(v.pieces, Math.floor((v.textWidth - 6) / LETTER_WIDTH));
  const at = segments.findLast(({ place }) => place <= v.place)?.line ?? 0;
  const top = Math.max(0, Math.min(lines - LINES, Math.max(at - LINES + 1, Math.min(at, v.top))));
  const seen = segments.filter(({ line }) => line >= top && line < top + LINES);
  const caret = { x: 3 + LETTER_WIDTH * column, y: (lines - 1 - top) * LINE + 3, width: 2, height: LINE - 5 };
  const shapes = [
    shape("text-paper", "rect", { ...frame(0, 0, v.textWidth, TEXT), rx: 4, "stroke-opacity": 0.3 }),
    ...seen.flatMap((one) => tokenOf(v, one, top)),
    ...(lines - top <= LINES ? [shape("text-caret", "rect", { ...caret, fill: COLOURS.query })] : []),
  ];
  return { shapes, top };
}

function tokenOf(v, { place, line, column, text: content }, top) {
  const [x, y] = [3 + LETTER_WIDTH * column, (line - top) * LINE];
  const width = LETTER_WIDTH * [...content].length;
  const weight = v.weights[place] ?? 0;
  const isLooking = place === v.place;
  const box = {
    ...{ x, y: y + 1.5, width, height: LINE - 3, rx: 3, fill: COLOURS.score, "fill-opacity": 0.75 * weight },
    ...{ stroke: isLooking ? COLOURS.query : "none", "stroke-width": 2, "pointer-events": "all" },
  };
  const key = `${place}-${line}`;
  return [
    shape(`token-${key}`, "rect", box, { cell: { kind: "token", word: place, label: "" } }),
    letters(`letters-${key}`, x, y + 14.5, content, width, {
      "font-weight": place < v.prompt ? 400 : 700,
      "fill-opacity": content === "⏎" ? 0.5 : 1,
    }),
  ];
}

const frame = (x, y, width, height) => ({ x, y, width, height, fill: "none", stroke: COLOURS.word });

const title = (key, x, y, content) => label(key, x, y, content, { "text-anchor": "start", "font-weight": 600 });

/** What may come next. */
function barShapes({ bars, barsTitle, barsAt: { x, y, width } }) {
  const full = width - BAR_NAME - 46;
  return [
    title("bars-title", x, y + 13, barsTitle),
    ...bars.flatMap((bar, n) => {
      const at = y + BAR_ROW * (n + 1);
      const colour = bar.isNext ? COLOURS.query : COLOURS.word;
      const size = {
        ...{ x: x + BAR_NAME, y: at + 3, width: Math.max(1, full * bar.probability), height: BAR_ROW - 6, rx: 2 },
        ...{ fill: colour, "fill-opacity": bar.isKept ? 0.75 : 0, stroke: colour },
        "stroke-dasharray": bar.isKept ? "none" : "2 3",
      };
      const isWhole = bar.probability > 0.995 && bar.isKept ? "1.00" : bar.probability.toFixed(3).slice(1);
      return [
        shape(`bar-hit-${n}`, "rect", { ...hit(x, at, width), rx: 3 }, bar.canTake ? { cell: cellOf(bar) } : {}),
        letters(`bar-name-${n}`, x + 4, at + 14.5, clipped(bar.name, BAR_NAME - 8, 13), 0, {
          "font-size": 13,
          "font-weight": bar.isNext ? 700 : 400,
        }),
        shape(`bar-${n}`, "rect", { ...size, "pointer-events": "none" }),
        label(
          `bar-number-${n}`,
          x + BAR_NAME + full * bar.probability + 6,
          at + 14.5,
          bar.isKept ? isWhole : "cut off",
          {
            "text-anchor": "start",
          },
        ),
      ];
    }),
  ];
}

const hit = (x, y, width) => ({ x, y: y + 0.5, width, height: BAR_ROW - 1, fill: "none", "pointer-events": "all" });

const cellOf = ({ name, token, probability, isKept, isNext }) => ({
  kind: "bar",
  word: token,
  label: `Continue with ${name}, ${isKept ? `probability ${probability.toFixed(3)}` : "cut off by top-p"}`,
  pressed: isNext,
});

/** The weights of one head, above the columns of the tokens that it looks at. */
function weightShapes(v) {
  const base = v.above + WEIGHT;
  const bars = Array.from(v.weights, (weight, j) => {
    const height = Math.max(0.5, WEIGHT * weight);
    const place = { x: MARGIN + v.column * j + 0.1 * v.column, y: base - height, width: 0.8 * v.column, height };
    return weight < 0.002 ? null : shape(`weight-${j}`, "rect", { ...place, fill: COLOURS.score });
  });
  const line = { x1: MARGIN, x2: v.room - 2, y1: base, y2: base, stroke: COLOURS.word, "stroke-opacity": 0.6 };
  return [
    title("weights-title", 0, v.above - 12, v.weightsTitle),
    label("weights-1", MARGIN - 6, v.above + 8, "1", { "text-anchor": "end", "font-size": 11 }),
    label("weights-0", MARGIN - 6, base + 3, "0", { "text-anchor": "end", "font-size": 11 }),
    shape("weights-line", "line", line),
    ...bars.filter((one) => one !== null),
  ];
}

/** What is kept of each token, and room for more. */
function cacheShapes(v) {
  const width = v.room - MARGIN - 2;
  const half = BAND / 2 - UNIT / 2;
  const layers = Array.from({ length: v.sizes.layers }, (_, layer) => {
    const y = v.cache + BAND * layer;
    const isLooking = layer === v.at.layer;
    const heavy = { "font-weight": isLooking ? 700 : 400, "font-size": 11, "text-anchor": "start" };
    const empty = { ...frame(MARGIN, y, width, BAND - 2 * UNIT), "stroke-opacity": 0.35, "stroke-dasharray": "2 3" };
    return [
      shape(`layer-${layer}`, "rect", empty),
      label(`layer-name-${layer}`, 0, y + 10, `layer ${layer}`, heavy),
      ...headNumbers(v, layer, y + 15),
      label(`layer-k-${layer}`, MARGIN - 12, y + half - 4, "K", { ...heavy, fill: COLOURS.key, "font-weight": 700 }),
      label(`layer-v-${layer}`, MARGIN - 12, y + BAND - 6, "V", { ...heavy, fill: COLOURS.value, "font-weight": 700 }),
    ];
  });
  const columns = v.pictures.map((href, j) =>
    shape(`kept-${j}`, "image", {
      ...{ href, x: MARGIN + v.column * j, y: v.cache, width: Math.max(0.5, v.column - (v.column > 5 ? 1 : 0)) },
      ...{ height: v.below, preserveAspectRatio: "none", style: "image-rendering: pixelated", opacity: 1 },
    }, { from: { y: v.cache - 26, opacity: 0 } })
  );
  const foot = v.cache + v.below;
  const mark = (key, from, count, fill) =>
    shape(key, "rect", { x: MARGIN + v.column * from, y: foot, width: v.column * count, height: 3, fill });
  const read = Math.min(v.prompt, v.pieces.length);
  const marks = [
    mark("prompt", 0, read, COLOURS.word),
    mark("written", read, v.pieces.length - read, COLOURS.query),
  ];
  return [...layers.flat(), ...columns, ...marks, title("cache-title", 0, foot + 18, v.cacheTitle)];
}

/** The numbers of a layer's heads; the selected one is coloured. */
function headNumbers({ at, sizes: { heads } }, layer, y) {
  const width = HEADS / heads;
  return Array.from({ length: heads }, (_, head) => {
    const isLooking = layer === at.layer && head === at.head;
    const box = { ...frame(width * head + 0.5, y, width - 1, 16), rx: 2, "pointer-events": "all", cursor: "pointer" };
    const fill = { fill: COLOURS.score, "fill-opacity": isLooking ? 0.45 : 0, "stroke-opacity": 0.5 };
    return [
      shape(`head-${layer}-${head}`, "rect", { ...box, ...fill }, {
        cell: { kind: "head", word: head, layer, label: "" },
      }),
      label(`head-name-${layer}-${head}`, width * (head + 0.5), y + 12, String(head), {
        ...{ "font-size": 10, "font-weight": isLooking ? 700 : 400 },
        "aria-hidden": "true", // screen readers have the select for heads
      }),
    ];
  }).flat();
}

/** The token that looks, and the keys and values that its head reads. */
function looking(v) {
  const { layers: _, heads, kvHeads } = v.sizes;
  const group = Math.floor(v.at.head * kvHeads / heads);
  const width = v.column * (v.place + 1);
  const row = UNIT * PICTURE.rows;
  const top = v.cache + BAND * v.at.layer + row * group;
  const rows = ["keys", "values"].map((name, n) => {
    const place = frame(MARGIN - 1, top + n * row * kvHeads - 1, width + 1, row + 2);
    return shape(`read-${name}`, "rect", { ...place, stroke: "currentColor", "stroke-width": 1.5 });
  });
  const x = MARGIN + v.column * v.place;
  const column = frame(x - 1, v.above - 4, Math.max(4, v.column + 1), v.cache + v.below - v.above + 4);
  const all = { x: MARGIN, y: v.above - 4, width: v.room - MARGIN, height: v.cache + v.below - v.above + 8 };
  return [
    ...rows,
    shape("field", "rect", { ...all, fill: "none", "pointer-events": "all" }, {
      cell: { kind: "field", word: v.place, cache: v.cache, label: "" },
    }),
    shape("looking", "rect", { ...column, stroke: COLOURS.query, "stroke-width": 2, "pointer-events": "none" }),
  ];
}
