// The words at the top of the drawing, and arcs from the one that asks to all of them.

import { COLOURS } from "./colours.js";
import { CHIP_TOP } from "./layout.js";
import { clipped, label, shape, THICKEST, weightsKnown } from "./shapes.js";

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

export function chips(v) {
  const { words, query } = v.look;
  const width = Math.min(v.column - 4, 110);
  const paired = pairOf(v);
  return words.flatMap((word, j) => {
    const asks = j === query;
    const attributes = {
      ...{ x: v.middle(j) - width / 2, y: CHIP_TOP, width, height: 26, rx: 13 },
      ...{ fill: asks ? COLOURS.query : COLOURS.word, "fill-opacity": asks ? 0.28 : 0.12 },
      stroke: asks ? COLOURS.query : paired === j ? COLOURS.key : COLOURS.word,
      "stroke-width": asks || paired === j ? 2.5 : 1,
    };
    const cell = {
      kind: "chip",
      word: j,
      label: `Look from “${word}”; hold Shift and use the arrow keys to move it`,
      pressed: asks,
    };
    const size = clipped(word, width - 8, 13) === word ? 13 : 11;
    return [
      shape(`chip-${j}`, "rect", attributes, { cell }),
      label(`chip-name-${j}`, v.middle(j), CHIP_TOP + 17.5, clipped(word, width - 8, size), {
        "font-size": size,
        "font-weight": asks ? 700 : 500,
      }),
    ];
  });
}

/** The key of the pair that is looked at. */
function pairOf({ active }) {
  if (!active || active.stage === "project") return null;
  return active.stage === "add" ? active.term ?? null : active.at;
}
