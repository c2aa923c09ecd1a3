// What the drawing of one word's attention consists of: shapes, each known by its key. It needs no DOM.

import { arcs } from "./arcs.js";
import { chips } from "./chips.js";
import { formulaShapes } from "./formula.js";
import { layoutOf } from "./layout.js";
import { paneShapes } from "./panes.js";
import { planeShapes } from "./plane.js";
import { ribbons } from "./ribbons.js";
import { bars, scoreRows } from "./scores.js";
import { formulaOf, stagesOf } from "./steps.js";
import { vectors, weighed } from "./vectors.js";

/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./shapes.js").View} View */

/**
 * Everything that is drawn.
 *
 * @param {View} view
 * @returns {{
 *   shapes: Shape[], width: number, height: number, left: number, column: number, plane: { x: number, y: number } | null,
 * }}
 */
export function sceneOf(view) {
  const active = activeOf(view);
  const stage = view.steps[view.step].stage;
  const layout = layoutOf(view.look, view.room, view.narrow ? stage : null);
  const v = { ...view, ...layout, active, reached: reachedIn(view) };
  const least = view.narrow ? 3 : view.look.words.length > 4 ? 2 : 1;
  const { shapes, height } = formulaShapes(active && formulaOf(view.look, active), {
    ...{ ...v, least, origin: (piece) => originOf(v, piece) },
  });
  return {
    shapes: [
      ...ribbons(v),
      ...arcs(v),
      ...chips(v),
      ...vectors(v),
      ...scoreRows(v),
      ...bars(v),
      ...weighed(v),
      ...planeShapes(v),
      ...paneShapes(v),
      ...shapes,
    ],
    plane: layout.plane,
    left: layout.left,
    column: layout.column,
    width: layout.width,
    height: layout.end + height,
  };
}

/** The step whose formula is shown. While scores are hidden, only the first stage has one. */
export function activeOf({ steps, step, focus, hiding }) {
  const active = focus ?? steps[step];
  return hiding && active.stage !== "project" ? null : active;
}

/** Whether a stage has come to a place. */
function reachedIn({ steps, step, look, hiding }) {
  const stages = stagesOf(look.state);
  const now = steps[step];
  return (stage, at = 0) => {
    const [one, other] = [stages.indexOf(stage), stages.indexOf(now.stage)];
    return (!hiding || stage === "project") && (one < other || (one === other && at <= now.at));
  };
}

/** Where a number of a formula comes from: the cell that holds it. */
function originOf(v, /** @type {import("./steps.js").Piece} */ { kind = "word", term }) {
  const { stage, at } = v.active;
  if (stage === "add" && term === undefined) return undefined; // the sum
  const row = (name, offset) => v.rows[name] === undefined ? null : v.rows[name] + offset;
  const cellY = (component) => row("vectors", component * v.cell + v.cell / 2);
  const places = {
    query: () => [v.queryAt, cellY(term ?? at)],
    word: () => [v.wordAt, cellY(term)],
    key: () => [v.keyAt(at), cellY(term)],
    value: () => stage === "add" ? [v.valueAt(term), cellY(at)] : [v.valueAt(at), cellY(0)],
    score: () => {
      const from = { weigh: "softmax", add: "softmax", softmax: v.rows.mask ? "mask" : v.rows.scale ? "scale" : "dot" };
      return [v.scoreAt(stage === "add" || stage === "softmax" ? term ?? at : at), row(from[stage] ?? "dot", 12)];
    },
  };
  const [x, y] = places[kind]();
  return y === null ? undefined : { x, y };
}
