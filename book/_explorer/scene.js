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
  const { shapes, height } = formulaShapes(active && formulaOf(view.look, active), v);
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
