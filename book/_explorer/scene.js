// What the drawing of one word's attention consists of: shapes, each known by its key. No page is needed.

import { formulaShapes } from "./formula.js";
import { CHIP_TOP, layoutOf, showsWord } from "./layout.js";
import { brief, formulaOf, stagesOf } from "./steps.js";
import { best, shown } from "./table.js";

// The colours of attnlib.plotting, which are those of all figures.
export const COLOURS = { query: "#9b6bd1", key: "#c8641c", value: "#00967d", score: "#3b82c4", word: "#8a8f98" };
const BAR = 54; // a weight of 1
const THICKEST = 12; // an arc of weight 1

/**
 * A shape: an element of SVG. Its numbers and its path move from where they were, or from where it says.
 *
 * @typedef {object} Shape
 * @property {string} key by which it is known from one drawing to the next
 * @property {string} tag
 * @property {Record<string, string | number>} attributes
 * @property {string} [text]
 * @property {Record<string, number>} [from] where it comes from, when it is new
 * @property {Cell} [cell] what the reader finds there
 *
 * @typedef {object} Cell
 * @property {string} kind "chip", "word", "query", "key", "value", "dot", "scale", "mask", "softmax", "add" or "context"
 * @property {number} word the row or column that it belongs to
 * @property {number} [component]
 * @property {string} label what a screen reader says
 * @property {boolean} [pressed] whether it is the word that asks
 *
 * @typedef {object} View
 * @property {any} look see lookOf
 * @property {import("./steps.js").Step[]} steps
 * @property {number} step how many of them have been taken, less one
 * @property {Focus | null} focus what the reader points at
 * @property {boolean} hiding whether scores and weights are hidden
 * @property {number} room how wide the drawing may be
 * @property {boolean} narrow whether one stage is shown at a time
 *
 * @typedef {import("./steps.js").Step & { term?: number }} Focus
 */

/** @returns {Shape} */
const shape = (key, tag, attributes, more = {}) => ({ key, tag, attributes, ...more });

const label = (key, x, y, content, attributes = {}) =>
  shape(key, "text", { x, y, fill: "currentColor", "text-anchor": "middle", "font-size": 12, ...attributes }, {
    text: content,
  });

const said = (x) => Number.isNaN(x) ? "not yet known" : brief(x);

/** Cut a word that has no room. */
export function clipped(word, width, size) {
  const room = Math.max(1, Math.floor(width / (0.58 * size)));
  const letters = [...word];
  return letters.length <= room ? word : `${letters.slice(0, Math.max(1, room - 1)).join("")}…`;
}

/** Write a number into a cell: with two decimals, with one, or not at all, as there is room. */
function fitted(x, width, size) {
  if (Number.isNaN(x)) return ""; // not yet known
  const fits = (content) => content.length * 0.58 * size <= width + 3;
  return [brief(x), Number.isFinite(x) ? x.toFixed(1).replace("-", "−") : "", ""].find(fits) ?? "";
}

/**
 * Everything that is drawn.
 *
 * @param {View} view
 * @returns {{ shapes: Shape[], width: number, height: number }}
 */
export function sceneOf(view) {
  const active = activeOf(view);
  const stage = view.steps[view.step].stage;
  const layout = layoutOf(view.look, view.room, view.narrow ? stage : null);
  const v = { ...view, ...layout, active, reached: reachedIn(view) };
  const { shapes, height } = formulaShapes(active && formulaOf(view.look, active), v, COLOURS);
  return {
    shapes: [
      ...ribbons(v),
      ...arcs(v),
      ...chips(v),
      ...vectors(v),
      ...scoreRows(v),
      ...bars(v),
      ...weighed(v),
      ...shapes,
    ],
    width: layout.width,
    height: layout.end + height,
  };
}

/** The step whose formula is shown. While scores are hidden, there is none but of the first stage. */
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

// ---- the words

const weightsKnown = (v) => v.reached("softmax", v.look.words.length - 1);

function arcs(v) {
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

function chips(v) {
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
    const cell = { kind: "chip", word: j, label: `Look from “${word}”`, pressed: asks };
    return [
      shape(`chip-${j}`, "rect", attributes, { cell }),
      label(`chip-name-${j}`, v.middle(j), CHIP_TOP + 17.5, clipped(word, width - 10, 13), {
        "font-size": 13,
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

// ---- vectors

/** A vector as a stack of cells, with a name above it. */
function stack(v, { kind, word, numbers, at, top, width = v.lane, name, owner, outlined, strong = 0.3 }) {
  const size = Math.min(12, v.cell - 3);
  const full = Math.max(1e-9, ...numbers.filter(Number.isFinite).map(Math.abs));
  const cells = numbers.flatMap((x, component) => {
    const y = top + component * v.cell;
    const marked = outlined === true || outlined === component;
    const attributes = {
      ...{ x: at - width / 2, y, width, height: v.cell - 2, rx: 3, fill: COLOURS[owner] },
      "fill-opacity": Number.isFinite(x) ? 0.1 + (strong * Math.abs(x)) / full : 0.03,
      ...{ stroke: COLOURS[owner], "stroke-width": marked ? 2.5 : 0.6, "stroke-opacity": marked ? 1 : 0.6 },
    };
    const cell = { kind, word, component, label: `${name} of “${v.look.words[word]}”, ${component + 1}: ${said(x)}` };
    const id = `${kind}-${word}-${component}`;
    return [
      shape(id, "rect", attributes, { cell }),
      label(`${id}-number`, at, y + v.cell / 2 - 1 + size * 0.36, v.cell < 12 ? "" : fitted(x, width, size), {
        "font-size": size,
      }),
    ];
  });
  const fits = name.length * 6.4 <= width + 6;
  return fits ? [label(`${kind}-${word}-name`, at, top - 5, name, { "font-size": 11.5 }), ...cells] : cells;
}

/** Which component of a vector is outlined: one, all (true) or none. */
function outlined({ active }, kind, word) {
  if (!active) return null;
  const { stage, at, term = null } = active;
  const of = {
    word: { project: term ?? true },
    query: { project: at, dot: term ?? true },
    key: { dot: word === at && (term ?? true) },
    value: { weigh: word === at && (term ?? true), add: term === null || term === word ? at : null },
    add: { weigh: word === at && (term ?? true), add: at },
    context: { add: at },
  };
  return of[kind][stage] ?? null;
}

function vectors(v) {
  const top = v.rows.vectors;
  if (top === undefined) return [];
  const { look } = v;
  const one = (kind, name, word, numbers, at, width, owner = kind) =>
    stack(v, { kind, name, word, numbers, at, top, width, owner, outlined: outlined(v, kind, word) });
  const columns = look.words.flatMap((_, j) => [
    ...one("key", "key", j, look.keys[j], v.keyAt(j), v.lane),
    ...one("value", "value", j, look.values[j], v.valueAt(j), v.lane),
  ]);
  const word = showsWord(look) ? one("word", "word", look.query, look.x, v.wordAt, 44) : [];
  return [...word, ...one("query", "query", look.query, look.q, v.queryAt, 46), ...columns];
}

/** The weighted values, and the context that they add up to. */
function weighed(v) {
  const top = v.rows.add;
  if (top === undefined) return [];
  const { values, weights, context, words, query } = v.look;
  const width = Math.min(60, v.column - 8);
  const products = words.flatMap((_, j) => {
    const known = v.reached("weigh", j);
    const numbers = known ? values[j].map((x) => x * weights[j]) : values[j].map(() => NaN);
    const strong = known ? 0.45 * weights[j] : 0;
    const marks = outlined(v, "add", j);
    const named = { kind: "add", word: j, name: "weighted", owner: "value", outlined: marks };
    return stack(v, { ...named, numbers, at: v.middle(j), top, width, strong });
  });
  const numbers = context.map((x, c) => v.reached("add", c) ? x : NaN);
  const sum = stack(v, {
    ...{ kind: "context", word: query, name: "context", owner: "value", numbers, at: v.queryAt, top, width: 52 },
    outlined: outlined(v, "context", query),
  });
  return [...products, ...sum];
}

// ---- scores

const ROW_NAMES = {
  dot: ({ similarity }) => ({ cosine: "cosine", gaussian: "distance" })[similarity] ?? "q · k",
  scale({ similarity, scale, temperature }, d) {
    const by = similarity !== "scaled_dot" ? "" : scale === null ? `÷ √${d}` : `× ${brief(scale)}`;
    return `${by}${temperature === 1 ? "" : ` ÷ ${brief(temperature)}`}`.trim();
  },
  mask: ({ mask, positions }) => mask === "none" ? "ALiBi" : positions === "alibi" ? "mask, ALiBi" : "mask",
};

function scoreRows(v) {
  const { similar, scores, masked, state, q } = v.look;
  const numbers = { dot: similar, scale: scores, mask: masked };
  return ["dot", "scale", "mask"].filter((stage) => stage in v.rows).flatMap((stage) => [
    label(`${stage}-name`, v.left - 12, v.rows[stage] + 16, ROW_NAMES[stage](state, q.length), {
      "text-anchor": "end",
    }),
    ...outlineOfRow(v, stage),
    ...numbers[stage].flatMap((x, j) => scoreCell(v, stage, j, x)),
  ]);
}

/** The row of the asking word, among all keys. */
function outlineOfRow(v, stage) {
  const width = v.scoreAt(v.look.words.length - 1) - v.scoreAt(0) + v.score + 8;
  const now = v.active?.stage === stage;
  return [shape(`${stage}-row`, "rect", {
    ...{ x: v.scoreAt(0) - v.score / 2 - 4, y: v.rows[stage] - 3, width, height: 30, rx: 6, fill: "none" },
    ...{ stroke: COLOURS.query, "stroke-width": 1.5, "stroke-opacity": now ? 0.9 : 0 },
  })];
}

function scoreCell(v, stage, j, x) {
  const known = v.reached(stage, j);
  const full = Math.max(1e-9, ...v.look.masked.concat(v.look.scores).filter(Number.isFinite).map(Math.abs));
  const share = known && Number.isFinite(x) ? Math.min(1, Math.abs(x) / full) : 0;
  const active = v.active?.stage === stage && v.active.at === j;
  const lost = known && x === -Infinity;
  const attributes = {
    ...{ x: v.scoreAt(j) - v.score / 2, y: v.rows[stage], width: v.score, height: 24, rx: 4 },
    ...{ fill: x < 0 ? COLOURS.key : COLOURS.score, "fill-opacity": 0.04 + 0.4 * share },
    ...{ stroke: active ? COLOURS.query : COLOURS.word, "stroke-width": active ? 3 : 1 },
    "stroke-dasharray": lost ? "3 3" : "none",
  };
  const cell = {
    kind: stage,
    word: j,
    label: `${ROW_NAMES[stage](v.look.state, v.look.q.length)}, “${v.look.words[j]}”: ${said(known ? x : NaN)}`,
  };
  return [
    shape(`${stage}-${j}`, "rect", attributes, { cell }),
    label(
      `${stage}-${j}-number`,
      v.scoreAt(j),
      v.rows[stage] + 16.5,
      known ? fitted(x, v.score, 12.5) : v.hiding ? "?" : "",
      {
        "font-size": 12.5,
      },
    ),
  ];
}

function bars(v) {
  const top = v.rows.softmax;
  if (top === undefined) return [];
  const { weights, words } = v.look;
  const width = Math.min(40, v.score);
  const first = weights.some((w) => w > 0) ? best(weights) : [];
  const each = weights.flatMap((w, j) => {
    const known = v.reached("softmax", j);
    const active = v.active?.stage === "softmax" && v.active.at === j;
    const high = known ? Math.max(0.5, BAR * w) : 0;
    const place = { x: v.scoreAt(j) - width / 2, width, rx: 3, fill: COLOURS.score };
    const cell = { kind: "softmax", word: j, label: `weight of “${words[j]}”: ${said(known ? w : NaN)}` };
    const outline = { stroke: active ? COLOURS.query : COLOURS.word, "stroke-width": active ? 3 : 0.8 };
    return [
      shape(`bar-${j}`, "rect", { ...place, y: top + BAR - high, height: high, "fill-opacity": 0.8 }),
      shape(`softmax-${j}`, "rect", { ...place, y: top, height: BAR, "fill-opacity": 0.07, ...outline }, { cell }),
      label(`softmax-${j}-number`, v.scoreAt(j), top + BAR + 16, known ? shown(w) : v.hiding ? "?" : "", {
        "font-size": 12.5,
        "font-weight": known && first.includes(j) ? 700 : 400,
      }),
    ];
  });
  return [label("softmax-name", v.left - 12, top + 32, "softmax", { "text-anchor": "end" }), ...each];
}

// ---- ribbons

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

function ribbons(v) {
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
