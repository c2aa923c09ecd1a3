// What the drawing of the residual stream consists of: shapes, each known by its key. It is read upwards, and needs no DOM.

import { COLOURS } from "./colours.js";
import { formulaShapes } from "./formula.js";
import { lengthBars } from "./residual_lengths.js";
import { wires } from "./residual_wires.js";
import { colourOf, hundredths, residualFormula, streamBefore, symbolOf } from "./residual_words.js";
import { fitted, label, shape } from "./shapes.js";

const NARROW = 560; // pixels: if there is less room, the lengths are under the block
const BESIDE = 220; // how wide they are beside it
const WIDEST = 46; // pixels of a cell
const HIGH = 24; // pixels of a row of cells
const ROW_STEP = 58; // from one row to the next
const TOP = 24; // where the highest row begins
const ROWS = 24; // where the rows of the stream begin; the thick line is to their left
const GAP = 16; // between them and what is beside the stream
const SHORT_NAMES = { attention: "attention", feed_forward: "feed-forward" };

/** @typedef {import("./shapes.js").Shape} Shape */

/**
 * Everything that is drawn.
 *
 * @param {import("./residual_words.js").Passage} passage
 * @param {number} step the stage that is computed
 * @param {number} room how wide the drawing may be
 * @returns {{ shapes: Shape[], width: number, height: number }}
 */
export function residualScene(passage, step, room) {
  const narrow = room < NARROW;
  const v = { ...layout(passage, narrow ? room : room - BESIDE - GAP), step, room, narrow };
  const bottom = v.topOf(0) + HIGH;
  const bars = lengthBars(
    passage,
    step,
    narrow ? { x: 2, y: bottom + 30, width: room - 4 } : { x: room - BESIDE, y: TOP + ROW_STEP, width: BESIDE - 2 },
  );
  const end = (narrow ? bars.end : bottom) + 28;
  const formula = formulaShapes(residualFormula(passage, step), {
    ...{ width: room, room, narrow, end, least: narrow ? 3 : 1, active: { stage: `row ${step}`, at: passage.word } },
    origin: ({ term }) =>
      term === undefined ? undefined : { x: v.leftOf(term) + v.wide / 2, y: v.topOf(term) + HIGH / 2 },
  });
  const rows = passage.stages.flatMap((_, n) => [...nameOf(v, n), ...cells(v, n)]);
  return {
    shapes: [...wires(v), ...rows, ...bars.shapes, ...formula.shapes],
    width: room,
    height: end + formula.height,
  };
}

/** Where the rows are: the first one is at the bottom. */
function layout(passage, room) {
  const { stages, word } = passage;
  const count = stages[0].rows[word].length;
  const cell = Math.min(WIDEST, (room - ROWS - GAP - 2) / (2 * count));
  const wide = cell * count;
  return {
    ...{ passage, stages, cell, wide, high: HIGH, rows: stages.map((stage) => stage.rows[word]) },
    topOf: (n) => TOP + (stages.length - 1 - n) * ROW_STEP,
    leftOf: (n) => stages[n].isStream ? ROWS : ROWS + wide + GAP,
    before: (n) => streamBefore(passage, n),
  };
}

const isCopy = ({ kind, isStream }) => kind === "norm" && !isStream;

function nameOf({ passage, stages, step, topOf, leftOf }, n) {
  const { kind, part } = stages[n];
  const name = isCopy(stages[n]) ? "norm" : kind === "update" ? SHORT_NAMES[part] : symbolOf(passage, n);
  const look = { "text-anchor": "start", "font-weight": n === step ? 700 : 400 };
  return [label(`name-${n}`, leftOf(n) + 1, topOf(n) - 5, name, look)];
}

/** The cells of a stage. When its numbers are computed, they move here from the stage before. */
function cells({ stages, rows, cell, step, topOf, leftOf }, n) {
  const colour = COLOURS[colourOf(stages[n])];
  const { texts, size } = fitted(rows[n].map(hundredths), cell - 4, 13);
  const full = Math.max(...rows.flat().map(Math.abs));
  return rows[n].flatMap((x, e) => {
    const [left, y] = [leftOf(n) + e * cell, topOf(n)];
    const middle = (at) => ({ x: leftOf(at) + (e + 0.5) * cell, y: topOf(at) + HIGH / 2 + 0.36 * size });
    const box = shape(`cell-${n}-${e}`, "rect", {
      ...{ x: left + 1, y, width: cell - 2, height: HIGH, rx: 3, fill: colour, stroke: colour },
      ...{ "fill-opacity": n > step ? 0.03 : 0.1 + 0.3 * Math.abs(x) / full, "stroke-width": n === step ? 2.5 : 0.8 },
      "stroke-dasharray": isCopy(stages[n]) ? "3 2" : "none",
    });
    if (n > step) return [box];
    const number = label(`number-${n}-${e}`, middle(n).x, middle(n).y, texts[e], { "font-size": size });
    return [box, { ...number, from: middle(Math.max(0, n - 1)) }];
  });
}
