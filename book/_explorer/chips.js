// The words at the top of the drawing: any of them can be chosen as the query, and each can be moved unless they are fixed.

import { COLOURS } from "./colours.js";
import { CHIP_TOP, clipped, label, shape } from "./shapes.js";

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
      label: `Look from “${word}”${v.isFixed ? "" : "; hold Shift and use the arrow keys to move it"}`,
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
