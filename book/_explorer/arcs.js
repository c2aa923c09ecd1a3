// The arcs at the top of the drawing, from the query to every word; the larger the weight, the thicker the arc.

import { COLOURS } from "./colours.js";
import { CHIP_TOP, shape, THICKEST, weightsKnown } from "./shapes.js";

export function arcs(v) {
  const { words, query, weights } = v.look;
  const from = v.middle(query);
  return words.map((_, j) => {
    const known = weightsKnown(v);
    const to = v.middle(j);
    const high = Math.min(98, 30 + 0.36 * Math.abs(to - from));
    const d = j === query
      ? `M ${from - 9} ${CHIP_TOP} C ${from - 26} ${CHIP_TOP - 44} ${from + 26} ${CHIP_TOP - 44} ${
        from + 9
      } ${CHIP_TOP}`
      : `M ${from} ${CHIP_TOP} C ${from} ${CHIP_TOP - high} ${to} ${CHIP_TOP - high} ${to} ${CHIP_TOP}`;
    return shape(`arc-${j}`, "path", {
      ...{ d, fill: "none", stroke: COLOURS.query, "stroke-linecap": "round" },
      "stroke-width": known ? 0.5 + THICKEST * weights[j] : 1.2,
      "stroke-opacity": known ? 0.3 + 0.6 * weights[j] : 0.35,
      "stroke-dasharray": known ? "none" : "2 5",
    });
  });
}
