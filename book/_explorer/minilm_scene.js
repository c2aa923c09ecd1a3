// What the drawing of one head consists of: arcs from one word to all, the words, and their weights in numbers.

import { arcs } from "./arcs.js";
import { chips } from "./chips.js";
import { COLOURS } from "./colours.js";
import { CHIP_TOP, label, shape } from "./shapes.js";
import { shown } from "./table.js";

const LEAST_COLUMN = 46;
const MOST_COLUMN = 112;
const BAR = 54; // how high the bar of a weight of 1 is
const FOOT = CHIP_TOP + 26 + 12 + BAR; // where the bars stand

/**
 * The shapes, the size of the drawing, and where the token that looks is.
 *
 * @param {object} view
 * @param {string[]} view.words
 * @param {number} view.token the one that looks
 * @param {ArrayLike<number>} view.weights (T,)
 * @param {ArrayLike<number> | null} view.control (T,) the weights with random parameters, once they are known
 * @param {number} view.room how wide the drawing may be
 */
export function headScene({ words, token, weights, control, room }) {
  const column = Math.min(MOST_COLUMN, Math.max(LEAST_COLUMN, room / words.length));
  const width = Math.max(room, column * words.length);
  const left = (width - column * words.length) / 2;
  const middle = (j) => left + column * (j + 0.5);
  const look = { words, query: token, weights };
  const v = { look, column, middle, reached: () => true, active: null, isFixed: true };
  const shapes = [...arcs(v), ...chips(v), ...bars(v, control)];
  return { shapes, width, height: FOOT + 26, middle: middle(token) };
}

/** The weight of each word as a bar, and a line at the height that it has with random parameters. */
function bars({ look, column, middle }, control) {
  const width = Math.min(30, column - 16);
  return look.words.flatMap((_, j) => {
    const high = BAR * look.weights[j];
    const bar = { x: middle(j) - width / 2, y: FOOT - high, width, height: high, fill: COLOURS.score };
    const known = control ? [line(`control-${j}`, middle(j), FOOT - BAR * control[j], width + 10)] : [];
    const number = label(`number-${j}`, middle(j), FOOT + 16, shown(look.weights[j]));
    return [shape(`bar-${j}`, "rect", bar), line(`foot-${j}`, middle(j), FOOT, column - 6, 0.4), ...known, number];
  });
}

const line = (key, x, y, width, opacity = 1) =>
  shape(key, "path", {
    ...{ d: `M ${x - width / 2} ${y} H ${x + width / 2}`, stroke: "currentColor", "stroke-opacity": opacity },
    ...{ "stroke-width": opacity < 1 ? 1 : 1.5, "stroke-dasharray": opacity < 1 ? "none" : "3 2" },
  });
