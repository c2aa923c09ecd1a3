// The plane: two components of the queries and keys as arrows that the reader can drag. It needs no DOM.

import { angle } from "./attention.js";
import { COLOURS } from "./colours.js";
import { clipped } from "./shapes.js";

export const SIDE = 168; // how wide and how high it is
// A finger on it does not scroll the page. Browsers ignore touch-action on inline elements, and shapes are inline.
const GRIP_STYLE = "display: block; touch-action: none; cursor: move";
const GRIP = 9; // the radius of the handle that the reader drags
const NICE = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8]; // and these times a power of ten
const HEAD = 8; // of an arrow

/** How far the plane reaches: a round number, above all components that it shows. */
export function reachOf({ q, keys }, axes) {
  const most = Math.max(0.8, ...[q, ...keys].flatMap((vector) => axes.map((axis) => Math.abs(vector[axis]))));
  const power = 10 ** Math.floor(Math.log10(most));
  return (NICE.find((nice) => nice * power >= 1.02 * most) ?? 10) * power;
}

/** Where a point of the plane is in the drawing. */
const onScreen = ({ plane, reach }, [x, y]) => {
  const unit = (SIDE / 2 - 6) / reach;
  return [plane.x + SIDE / 2 + x * unit, plane.y + SIDE / 2 - y * unit];
};

/** Which point of the plane a place in the drawing is. */
export function inPlane({ plane, reach }, /** @type {number[]} */ [x, y]) {
  const unit = (SIDE / 2 - 6) / reach;
  const within = (value) => Math.max(-reach, Math.min(reach, value));
  return [within((x - plane.x - SIDE / 2) / unit), within((plane.y + SIDE / 2 - y) / unit)];
}

/**
 * The plane and its arrows.
 *
 * @param {any} v the view with its layout
 * @returns {import("./shapes.js").Shape[]}
 */
export function planeShapes(v) {
  if (!v.plane) return [];
  const { words, query, keys, q } = v.look;
  const arrows = [
    ...keys.map((key, j) => ({ of: "key", word: j, at: v.axes.map((axis) => key[axis]) })),
    { of: "query", word: query, at: v.axes.map((axis) => q[axis]) },
  ];
  return [
    ...frame(v),
    ...shadow(v),
    ...dial(v),
    ...arrows.flatMap((arrow) => arrowShapes(v, arrow, words[arrow.word])),
  ];
}

function frame(v) {
  const { x, y } = v.plane;
  const middle = SIDE / 2;
  const line = (key, d) => ({
    ...{
      key,
      tag: "path",
      attributes: { d, fill: "none", stroke: COLOURS.word, "stroke-width": 1, "stroke-opacity": 0.6 },
    },
  });
  const paper = { x, y, width: SIDE, height: SIDE, rx: 6, fill: COLOURS.word, "fill-opacity": 0.06 };
  return [
    { key: "plane", tag: "rect", attributes: paper },
    line("plane-across", `M ${x} ${y + middle} L ${x + SIDE} ${y + middle}`),
    line("plane-up", `M ${x + middle} ${y} L ${x + middle} ${y + SIDE}`),
    ...axisShapes(v, 0, x + SIDE - 12, y + middle + 14),
    ...axisShapes(v, 1, x + middle - 12, y + 13),
  ];
}

/** The number of the component along an axis; another one is chosen there. */
function axisShapes(v, axis, x, y) {
  const more = v.look.q.length > 2;
  const component = v.axes[axis] + 1;
  const label = `${axis ? "Up" : "Across"}: component ${component}. Choose another`;
  const box = { x: x - 9, y: y - 12, width: 18, height: 16, rx: 4, fill: COLOURS.word, "fill-opacity": more ? 0.2 : 0 };
  const name = { x, y, fill: "currentColor", "text-anchor": "middle", "font-size": 11.5 };
  return [
    { key: `axis-${axis}`, tag: "rect", attributes: box, cell: more ? { kind: "axis", word: axis, label } : undefined },
    { key: `axis-${axis}-name`, tag: "text", attributes: name, text: String(component) },
  ];
}

/** How much of the key that is looked at lies along the query: with two components, the dot product over its length. */
function shadow(v) {
  if (v.active?.stage !== "dot") return [];
  const [q, k] = [v.look.q, v.look.keys[v.active.at]].map((vector) => v.axes.map((axis) => vector[axis]));
  const square = q[0] ** 2 + q[1] ** 2;
  if (square === 0) return [];
  const share = (q[0] * k[0] + q[1] * k[1]) / square;
  const [from, foot, tip] = [[0, 0], q.map((x) => x * share), k].map((point) => onScreen(v, point).join(" "));
  const line = (key, d, more) => ({
    ...{ key, tag: "path", attributes: { d, fill: "none", stroke: COLOURS.score, "stroke-linecap": "round", ...more } },
  });
  return [
    line("shadow", `M ${from} L ${foot}`, { "stroke-width": 7, "stroke-opacity": 0.45 }),
    line("shadow-edge", `M ${tip} L ${foot}`, { "stroke-width": 1.2, "stroke-dasharray": "3 3" }),
  ];
}

/** The components that the plane shows. RoPE turns pairs, and the plane shows one of them. */
export function axesOf({ q, state }, /** @type {number[]} */ [across, up]) {
  const last = q.length - 1;
  if (state.positions !== "rope") return Math.max(across, up) > last ? [0, Math.min(1, last)] : [across, up];
  const half = q.length / 2;
  return [across % half, (across % half) + half];
}

/** How far RoPE has turned the query, and the key that is looked at. */
function dial(v) {
  const { state, query, unturned, words } = v.look;
  if (state.positions !== "rope") return [];
  const key = v.active?.stage === "dot" ? v.active.at : words.length - 1;
  return [
    ...hand(v, { of: "query", position: query, vector: unturned.q, far: 0.55, row: 20 }),
    ...hand(v, { of: "key", position: key, vector: unturned.keys[key], far: 0.4, row: 6 }),
  ];
}

/** Where a vector was before it was turned, and its way from there. */
function hand(v, { of, position, vector, far, row }) {
  const turned = position * angle(1, v.axes[0], v.look.q.length);
  const start = v.axes.map((axis) => vector[axis]);
  const [from, to] = [[0, 0], start].map((point) => onScreen(v, point).join(" "));
  const line = { fill: "none", stroke: COLOURS[of], "stroke-width": 1.5 };
  const said = { x: v.plane.x + 6, y: v.plane.y + SIDE - row, fill: "currentColor", "font-size": 10.5 };
  const degrees = Math.round((turned * 180) / Math.PI);
  return [
    { key: `dial-${of}`, tag: "path", attributes: { ...line, d: `M ${from} L ${to}`, "stroke-dasharray": "2 3" } },
    { key: `dial-${of}-arc`, tag: "path", attributes: { ...line, d: arc(v, start, turned, far) } },
    { key: `dial-${of}-angle`, tag: "text", attributes: said, text: `${of} at position ${position}: ${degrees}°` },
  ];
}

/** A turn about the middle, as a polyline: an SVG arc cannot be animated smoothly. */
function arc(v, [x, y], turned, far) {
  const start = Math.atan2(y, x);
  const points = Array.from({ length: 25 }, (_, n) => {
    const now = start + (turned * n) / 24;
    return onScreen(v, [far * v.reach * Math.cos(now), far * v.reach * Math.sin(now)]).join(" ");
  });
  return `M ${points.join(" L ")}`;
}

function arrowShapes(v, { of, word, at }, name) {
  const [x0, y0] = onScreen(v, [0, 0]);
  const [x, y] = onScreen(v, at);
  const length = Math.hypot(x - x0, y - y0);
  const [right, down] = length ? [(x - x0) / length, (y - y0) / length] : [1, 0];
  const back = Math.min(HEAD, length);
  const side = (turn) =>
    `${x - back * right - turn * back * 0.5 * down} ${y - back * down + turn * back * 0.5 * right}`;
  const looked = of === "query" || (v.active?.stage === "dot" && v.active.at === word);
  const line = { d: `M ${x0} ${y0} L ${x} ${y}`, fill: "none", stroke: COLOURS[of], "stroke-width": looked ? 3 : 1.8 };
  const tip = { d: `M ${x} ${y} L ${side(1)} L ${side(-1)} Z`, fill: COLOURS[of] };
  const place = at.map((value) => Math.round(value * 100) / 100).join(", ");
  const label = `${
    of === "query" ? "Query" : "Key"
  } of “${name}” at ${place}. Drag it, or hold Shift and use the arrow keys`;
  const grip = { x: x - GRIP, y: y - GRIP, width: 2 * GRIP, height: 2 * GRIP, rx: GRIP, fill: COLOURS[of] };
  const nearEdge = x > v.plane.x + SIDE - 46;
  const beside = nearEdge
    ? [x, y + (down > 0.3 ? 20 : -12)]
    : [x + 12 * (right < -0.1 ? right : Math.max(0.8, right)), y + 12 * down + 4];
  const anchor = nearEdge || right < -0.1 ? "end" : "start";
  const written = { x: beside[0], y: beside[1], fill: "currentColor", "font-size": 10.5 };
  return [
    { key: `arrow-${of}-${word}`, tag: "path", attributes: line },
    { key: `arrow-${of}-${word}-tip`, tag: "path", attributes: tip },
    {
      ...{ key: `arrow-${of}-${word}-name`, tag: "text", attributes: { ...written, "text-anchor": anchor } },
      text: of === "query" || length < 2 ? "" : clipped(name, 46, 10.5),
    },
    {
      ...{ key: `arrow-${of}-${word}-grip`, tag: "rect", cell: { kind: "arrow", of, word, label } },
      attributes: { ...grip, "fill-opacity": v.hiding ? 0 : 0.18, style: GRIP_STYLE },
    },
  ];
}

/**
 * What has to be changed so that two components of a query or a key become these; null where that is impossible.
 *
 * A component that is given is set. One that is made from the word's vector by a matrix is reached by the smallest change of
 * that vector.
 *
 * @param {any} look see lookOf
 * @param {{ of: "query" | "key", word: number }} arrow
 * @param {number[]} axes the two components
 * @param {number[]} wanted what they become
 * @returns {{ table: string, row: number, column: number, value: number }[] | null}
 */
export function editsFor(look, { of, word }, axes, wanted) {
  const { tables, positions } = look.state;
  if (positions === "rope") return null;
  const now = of === "query" ? look.q : look.keys[word];
  const columns = axes.map((axis) => look.head * look.q.length + axis);
  const shifts = axes.map((axis, n) => wanted[n] - now[axis]);
  const letter = of === "query" ? "q" : "k";
  if (tables[`w${letter}`]) return throughMatrix(tables.x[word], tables[`w${letter}`], columns, shifts, word);
  const table = tables[letter] ? letter : "x";
  return columns.map((column, n) => ({
    table,
    row: word,
    column,
    value: tenths(tables[table][word][column] + shifts[n]),
  }));
}

const tenths = (x) => Math.round(x * 10) / 10;

/**
 * The smallest change of x for which two columns of x W change by these shifts.
 *
 * @param {number[]} x
 * @param {number[][]} w
 * @param {number[]} columns
 * @param {number[]} shifts
 * @param {number} row
 */
function throughMatrix(x, w, [a, b], [shiftA, shiftB], row) {
  const dot = (one, other) => w.reduce((sum, line) => sum + line[one] * line[other], 0);
  const [aa, ab, bb] = [dot(a, a), dot(a, b), dot(b, b)];
  const determinant = aa * bb - ab * ab;
  if (determinant <= 1e-9 * aa * bb) return null;
  const alongA = (bb * shiftA - ab * shiftB) / determinant;
  const alongB = (aa * shiftB - ab * shiftA) / determinant;
  return x.map((value, column) => {
    const moved = value + alongA * w[column][a] + alongB * w[column][b];
    return { table: "x", row, column, value: Math.round(moved * 1000) / 1000 };
  });
}
