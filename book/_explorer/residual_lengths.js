// How long the rows of the stream and the updates are, as bars. It needs no DOM.

import { COLOURS } from "./colours.js";
import { colourOf, rounded, streamBefore } from "./residual_words.js";
import { label, shape } from "./shapes.js";
import { lengthOf } from "./transformer_block.js";

const BAR = 14;
const BAR_STEP = 42; // from one bar to the next
const TITLES = { attention: "attention adds", feed_forward: "feed-forward adds" };

/**
 * A bar for the row that enters the stream, one for each update, and one for the stream as it is now.
 *
 * @param {import("./residual_words.js").Passage} passage
 * @param {number} step the stage that is computed
 * @param {{ x: number, y: number, width: number }} place
 * @returns {{ shapes: import("./shapes.js").Shape[], end: number }} end is where they end
 */
export function lengthBars(passage, step, { x, y, width }) {
  const { stages, word } = passage;
  const lengths = stages.map(({ rows }) => lengthOf(rows[word]));
  const scale = width / Math.max(...lengths);
  const updates = stages.flatMap(({ kind, part }, n) =>
    kind === "update" ? [{ key: part, title: TITLES[part], n }] : []
  );
  const bars = [
    { key: "input", title: "input", n: 0 },
    ...updates,
    { key: "now", title: "stream now", n: streamBefore(passage, step + 1) },
  ];
  const shapes = bars.flatMap(({ key, title, n }, k) => {
    const top = y + 26 + k * BAR_STEP;
    const isKnown = n <= step;
    const colour = COLOURS[colourOf(stages[n])];
    return [
      label(`length-name-${key}`, x, top - 5, `${title}: ${isKnown ? rounded(lengths[n]) : "not yet known"}`, {
        "text-anchor": "start",
      }),
      shape(`length-${key}`, "rect", {
        ...{ x, y: top, width: isKnown ? Math.max(1, lengths[n] * scale) : 1, height: BAR, rx: 2 },
        ...{ fill: colour, "fill-opacity": 0.45, stroke: colour },
      }),
    ];
  });
  const title = label("lengths", x, y, "Lengths", { "text-anchor": "start", "font-weight": 600 });
  return { shapes: [title, ...shapes], end: y + 26 + (bars.length - 1) * BAR_STEP + BAR };
}
