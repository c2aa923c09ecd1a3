// The ribbons that join the stages, and the query on its way across the keys.

import { COLOURS } from "./colours.js";
import { BAR } from "./layout.js";
import { shape, THICKEST, weightsKnown } from "./shapes.js";

/**
 * A band from one place down to another, which may grow wider or narrower.
 *
 * @param {number[]} from x, y and width
 * @param {number[]} to
 */
function band([x0, y0, w0], [x1, y1, w1]) {
  const y = (y0 + y1) / 2;
  const [a, b, c, d] = [x0 - w0 / 2, x1 - w1 / 2, x1 + w1 / 2, x0 + w0 / 2];
  return `M ${a} ${y0} C ${a} ${y} ${b} ${y} ${b} ${y1} L ${c} ${y1} C ${c} ${y} ${d} ${y} ${d} ${y0} Z`;
}

const ribbon = (key, d, fill, strength) => shape(key, "path", { d, fill, "fill-opacity": strength });

export function ribbons(v) {
  const { words, weights, keys, values, context } = v.look;
  const { vectors: top, add, softmax } = v.rows;
  const stages = ["dot", "scale", "mask", "softmax"].filter((row) => row in v.rows);
  const known = weightsKnown(v);
  const found = words.flatMap((_, j) => {
    const thick = known ? Math.max(1.5, v.lane * weights[j]) : 6;
    const list = [];
    if (top !== undefined && stages.length && stages[0] !== "softmax") {
      const start = [v.keyAt(j), top + keys[j].length * v.cell, v.lane * 0.8];
      list.push(
        ribbon(`key-ribbon-${j}`, band(start, [v.scoreAt(j), v.rows[stages[0]], v.score * 0.5]), COLOURS.key, 0.16),
      );
    }
    stages.slice(1).forEach((stage, n) => {
      const above = v.rows[stages[n]] + 24;
      const strength = v.reached(stage, j) ? 0.18 : 0.06;
      const d = band([v.scoreAt(j), above, v.score * 0.5], [v.scoreAt(j), v.rows[stage], v.score * 0.5]);
      list.push(ribbon(`${stage}-ribbon-${j}`, d, COLOURS.score, strength));
    });
    if (top !== undefined && add !== undefined) {
      const from = [v.valueAt(j), top + values[j].length * v.cell, v.lane * 0.6];
      const through = [v.passAt(j), top + values[j].length * v.cell + 28, 8];
      const to = [v.passAt(j), add - 44, 8];
      list.push(
        ribbon(
          `value-ribbon-${j}`,
          `${band(from, through)} ${band(through, to)} ${band(to, [v.middle(j), add - 16, thick])}`,
          COLOURS.value,
          0.16,
        ),
      );
    }
    if (softmax !== undefined && add !== undefined) {
      const weight = [v.scoreAt(j), softmax + BAR + 20, known ? Math.max(1.5, v.score * 0.6 * weights[j]) : 4];
      list.push(ribbon(`weight-ribbon-${j}`, band(weight, [v.middle(j), add - 16, thick]), COLOURS.score, 0.2));
    }
    return add === undefined ? list : [...list, wayBack(v, j, add + context.length * v.cell)];
  });
  return [...acrossKeys(v), ...found];
}

/** The arc that brings a weighted value back to the asking word, as thick as its weight. */
function wayBack(v, j, y) {
  const known = v.reached("add", 0);
  const low = y + Math.min(44, 22 + 0.05 * (v.middle(j) - v.queryAt));
  return shape(`back-${j}`, "path", {
    d: `M ${v.middle(j)} ${y} C ${v.middle(j)} ${low} ${v.queryAt} ${low} ${v.queryAt} ${y}`,
    ...{ fill: "none", stroke: COLOURS.value, "stroke-linecap": "round" },
    "stroke-width": known ? 0.5 + THICKEST * 0.8 * v.look.weights[j] : 1,
    "stroke-opacity": known ? 0.25 + 0.5 * v.look.weights[j] : 0.15,
  });
}

/** The query on its way across the keys. */
function acrossKeys(v) {
  const top = v.rows.vectors;
  if (v.active?.stage !== "dot" || top === undefined) return [];
  const right = v.keyAt(v.active.at) + v.lane / 2 + 4;
  return [shape("across", "rect", {
    ...{ x: v.queryAt - 27, y: top - 4, width: right - v.queryAt + 27, height: v.look.q.length * v.cell + 6, rx: 6 },
    ...{ fill: COLOURS.query, "fill-opacity": 0.12, stroke: COLOURS.query, "stroke-width": 1.5, "stroke-opacity": 0.7 },
  }, { from: { width: 54 } })];
}
