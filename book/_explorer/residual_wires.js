// The residual stream as a thick line, and the paths that lead from it through each part and back. It needs no DOM.

import { label, shape } from "./shapes.js";

const STREAM_AT = 10; // where the stream is
const OUT = 22; // how far above a row a path leaves the stream
const RADIUS = 9; // of a plus sign
const LOOK = { fill: "none", stroke: "currentColor" };

/** A line with an arrowhead, which points left or up. */
const pointsLeft = (x) => `H ${x} m 7 -4 l -7 4 l 7 4`;
const pointsUp = (y) => `V ${y} m -4 7 l 4 -7 l 4 7`;

export function wires(v) {
  return v.stages.flatMap(({ kind, isStream }, n) => {
    if (kind === "update") return way(v, n);
    return isStream && n > 0 ? stream(v, n) : [];
  });
}

/** The stream between two of its rows; a plus sign interrupts it. */
function stream({ stages, step, topOf, before, high }, n) {
  const [from, to] = [before(n), n].map((at) => topOf(at) + high / 2);
  const plus = topOf(n) + high + OUT / 2;
  const gap = stages[n].kind === "sum" ? `V ${plus + RADIUS} M ${STREAM_AT} ${plus - RADIUS} ` : "";
  const look = { ...LOOK, "stroke-width": 6, "stroke-opacity": n <= step ? 0.9 : 0.25 };
  return [shape(`stream-${n}`, "path", { d: `M ${STREAM_AT} ${from} ${gap}V ${to}`, ...look })];
}

/** The path from the stream to an update, and on to the plus sign. */
function way({ passage, stages, step, topOf, before, high, leftOf, wide }, n) {
  const { part } = stages[n];
  const [start, right] = [before(n), leftOf(n) + wide - 12];
  const plus = topOf(n + 1) + high + OUT / 2;
  const steps = stages.slice(start + 1, n + 1).map((_, k) => pointsUp(topOf(start + 1 + k) + high));
  const reads = steps.join(` M ${right} ${topOf(start + 1)} `);
  const look = (at) => ({
    ...{ ...LOOK, "stroke-width": 1.5, "stroke-opacity": at <= step ? 1 : 0.3 },
    "stroke-dasharray": passage.settings.off.includes(part) ? "2 4" : "none",
  });
  return [
    shape(`reads-${part}`, "path", {
      d: `M ${STREAM_AT} ${topOf(start) - OUT} H ${right} ${reads}`,
      ...look(start + 1),
    }),
    shape(`adds-${part}`, "path", {
      d: `M ${right} ${topOf(n)} V ${plus} ${pointsLeft(STREAM_AT + RADIUS)}`,
      ...look(n + 1),
    }),
    shape(`plus-${part}`, "circle", { cx: STREAM_AT, cy: plus, r: RADIUS, ...LOOK, "stroke-width": 1.5 }),
    label(`plus-sign-${part}`, STREAM_AT, plus + 4.5, "+", { "font-weight": 700, "font-size": 14 }),
  ];
}
