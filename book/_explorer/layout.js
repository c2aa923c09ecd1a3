// Where everything in the drawing of one word's attention is. It needs no DOM.
//
// A column for each key, under its word: key and value, then scores, weight, and weighted value. The query is on the left,
// and below it the context. On a narrow screen, there are only the rows of one stage.

import { SIDE } from "./plane.js";
import { CHIP_TOP } from "./shapes.js";
import { stagesOf } from "./steps.js";

export const BAR = 54; // how high the bar of a weight of 1 is
const CHIP = 26; // how high the words are
const FIRST_ROW = CHIP_TOP + CHIP + 30;
const STACK = 80; // how high a vector is, at most
const CELL = 20; // how high one of its cells is, at most
const LEAST_COLUMN = 40;
const MOST_COLUMN = 140;
const COLUMN_BESIDE = 44; // the least one beside the plane
const GAP = 26; // between the columns and the plane
const NEXT_ROW = { vectors: STACK + 16, dot: 32, scale: 32, mask: 32, softmax: 94, add: STACK + 46 };
const HIGHEST = 548; // the drawing, without its formula

// Which rows explain a stage.
const ROWS_OF = {
  project: ["vectors"],
  dot: ["vectors", "dot"],
  scale: ["dot", "scale"],
  mask: ["dot", "scale", "mask"],
  softmax: ["dot", "scale", "mask", "softmax"],
  weigh: ["vectors", "add"],
  add: ["softmax", "add"],
};

/** Whether the vector of the word is shown beside its query: where the query is not the same. */
export const showsWord = ({ x, projected, state }) =>
  Boolean(x) && (projected || ["sinusoidal", "rope"].includes(state.positions));

/**
 * The places of everything.
 *
 * @param {any} look see lookOf
 * @param {number} room how wide the drawing may be
 * @param {import("./steps.js").Stage | null} stage the one that is shown, null for all of them
 */
export function layoutOf(look, room, stage) {
  const margin = showsWord(look) ? 120 : 76;
  const words = look.words.length;
  const aside = asideOf(look, room - margin, stage);
  const column = Math.min(MOST_COLUMN, Math.max(LEAST_COLUMN, (room - aside - margin - 4) / words));
  const cell = Math.min(CELL, STACK / Math.max(look.q.length, look.context.length));
  const lane = Math.min(46, column / 2 - 4);
  const score = Math.min(60, column - 20);
  const { rows, end } = rowsOf(look, stage);
  const width = Math.max(room, margin + column * words + 4);
  const spare = Math.max(0, width - aside - margin - column * words);
  const left = margin + (stage ? 0 : Math.min(24, spare / 2));
  const middle = (j) => left + column * (j + 0.5);
  const scoreAt = (j) => Math.max(middle(j) - lane / 2 - 2, middle(j) - column / 2 + 3 + score / 2);
  return {
    ...{ width, left, column, cell, lane, score, rows, middle },
    ...besideOf(look, { width, end, stage, aside }),
    queryAt: left - 14 - 46 / 2,
    wordAt: left - 68 - 46 / 2,
    keyAt: (j) => middle(j) - lane / 2 - 2,
    valueAt: (j) => middle(j) + lane / 2 + 2,
    scoreAt,
    /** Where a value passes the scores on its way down. */
    passAt: (j) => Math.max(middle(j) + lane / 2 + 2, scoreAt(j) + score / 2 + 7),
  };
}

/** Where each row begins, and where the last one ends. */
function rowsOf(look, stage) {
  const stages = stagesOf(look.state);
  const needed = Object.keys(NEXT_ROW).filter((row) =>
    (row === "vectors" || stages.some((one) => one === row)) && (!stage || ROWS_OF[stage].includes(row))
  );
  const used = needed.reduce((sum, row) => sum + NEXT_ROW[row], 0);
  const spare = stage ? 4 : Math.max(0, (HIGHEST - FIRST_ROW - used) / needed.length);
  /** @type {Record<string, number>} */
  const rows = {};
  let y = FIRST_ROW;
  for (const row of needed) {
    rows[row] = y;
    y += NEXT_ROW[row] + spare;
  }
  return { rows, end: y };
}

/** How much room there is for the plane beside the columns. */
const asideOf = (look, room, stage) =>
  !stage && (room - SIDE - GAP) / look.words.length >= COLUMN_BESIDE ? SIDE + GAP : 0;

/** The plane, and below it the panes; on a narrow screen, the plane is below the dot products. */
function besideOf(look, { width, end, stage, aside }) {
  const flat = look.q.length > 1;
  if (stage === "dot" && flat) return { end: end + SIDE + 10, plane: { x: (width - SIDE) / 2, y: end }, panes: null };
  if (!aside) return { end, plane: null, panes: null };
  const x = width - SIDE - 4;
  const y = FIRST_ROW - 14;
  const top = flat ? y + SIDE + 14 : y;
  return { end, plane: flat ? { x, y } : null, panes: { x, y: top, width: SIDE, height: end - top - 8 } };
}
