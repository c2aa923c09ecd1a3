// One word's attention, step by step: the numbers of each stage, and the formula of each cell. It needs no DOM.
//
// T words, d numbers a query or key. A step is a stage and a place in it: a key, or a component of a vector.

import { brief, quoted, shown } from "./table.js";

/** @typedef {"project" | "dot" | "scale" | "mask" | "softmax" | "weigh" | "add"} Stage */
/** @typedef {{ stage: Stage, at: number }} Step */
/**
 * A piece of a formula: what it says, whose colour it has, and to which term it belongs.
 *
 * @typedef {{ text: string, kind?: "query" | "key" | "value" | "score" | "word", term?: number }} Piece
 */

/** A vector in a formula. */
const vector = (numbers) => `(${numbers.map(brief).join(", ")})`;

/** Put pieces between pieces: joined([[a], [b]], " + ") -> [a, " + ", b]. */
const joined = (groups, between) =>
  groups.flatMap((group, n) => (n ? [{ text: between, term: group[0].term }, ...group] : group));

/** A number whose sign has to be told from the operator before it. */
const signed = (x, isFirst) => (x < 0 && !isFirst ? `(${brief(x)})` : brief(x));

/** Terms a·b + c·d, each with its place. */
const products = (a, b, kinds) =>
  joined(
    a.map((x, term) => [
      { text: signed(x, term === 0), kind: kinds[0], term },
      { text: "·", term },
      { text: signed(b[term], false), kind: kinds[1], term },
    ]),
    " + ",
  );

/**
 * The numbers of one query in one head.
 *
 * @param {any} state as for explore, with its words
 * @param {any} result what explore returned for it
 * @param {number} query the row that is looked at
 * @param {number} head
 */
export function lookOf(state, result, query, head) {
  const part = (table) => {
    const width = table[0].length / result.heads.length;
    return table.map((row) => row.slice(head * width, (head + 1) * width));
  };
  const [queries, keys, values, q0, k0] = [result.q, result.k, result.v, result.unturned.q, result.unturned.k].map(
    part,
  );
  const { similarities, scores, masked, weights, context } = result.heads[head];
  return {
    ...{ state, query, head, keys, values, q: queries[query], words: state.words, x: state.tables.x?.[query] ?? null },
    ...{ similar: similarities[query], scores: scores[query], masked: masked[query], weights: weights[query] },
    ...{
      unturned: { q: q0[query], keys: k0 },
      all: result.heads,
      context: context[query],
      projected: Boolean(state.tables.wq),
      allowed: result.heads[head].allowed[query],
    },
  };
}

/** Which stages these settings have. */
export function stagesOf({ tables, similarity, temperature, mask, positions, paintable }) {
  const has = {
    project: Boolean(tables.x),
    scale: similarity === "scaled_dot" || temperature !== 1,
    mask: mask !== "none" || positions === "alibi" || paintable,
  };
  return /** @type {Stage[]} */ (["project", "dot", "scale", "mask", "softmax", "weigh", "add"]).filter((stage) =>
    has[stage] ?? true
  );
}

/** All steps, in order. */
export function stepsOf(look) {
  const places = { project: look.projected ? look.q.length : 1, add: look.context.length };
  return stagesOf(look.state).flatMap((stage) =>
    Array.from({ length: places[stage] ?? look.words.length }, (_, at) => ({ stage, at }))
  );
}

/** What a stage is called with these settings. */
export function stageName(stage, { similarity }) {
  const scoring = { cosine: "Cosine", gaussian: "Distance" }[similarity] ?? "Dot product";
  const names = { project: "Project", scale: "Scale", mask: "Mask", softmax: "Softmax", weigh: "Weigh", add: "Add" };
  return names[stage] ?? scoring;
}

const equals = (value, kind) => [{ text: " = " }, { text: value, kind }];

const FORMULAS = {
  project(look, at) {
    const { x, q, state, head, projected } = look;
    if (!projected) {
      const turned = { sinusoidal: "its vector plus its position", rope: "its vector, turned by its position" };
      const source = turned[state.positions] ?? "its own vector";
      return [{ text: "query", kind: "query" }, { text: ` of “${look.words[look.query]}” = ${source} = ` }, {
        text: vector(q),
        kind: "query",
      }];
    }
    const column = head * q.length + at;
    return [
      ...[{ text: `query, component ${at + 1}:  ` }],
      ...products(x, state.tables.wq.map((row) => row[column]), ["word", undefined]),
      ...equals(brief(q[at]), "query"),
    ];
  },
  dot(look, at) {
    const { q, keys, state, similar } = look;
    const total = equals(brief(similar[at]), "score");
    const terms = products(q, keys[at], ["query", "key"]);
    const length = (row) => brief(Math.sqrt(row.reduce((sum, x) => sum + x * x, 0)));
    if (state.similarity === "gaussian") return [...distances(q, keys[at], state.bandwidth), ...total];
    if (state.similarity !== "cosine") return [...terms, ...total];
    return [{ text: "(" }, ...terms, { text: `) / (${length(q)} · ${length(keys[at])})` }, ...total];
  },
  scale({ q, state, similar, scores }, at) {
    const { similarity, scale, temperature } = state;
    const factor = similarity !== "scaled_dot" ? "" : scale === null ? ` / √${q.length}` : ` · ${brief(scale)}`;
    const cooled = temperature === 1 ? "" : ` / ${brief(temperature)}`;
    return [
      { text: brief(similar[at]), kind: "score" },
      { text: factor + cooled },
      ...equals(brief(scores[at]), "score"),
    ];
  },
  mask({ words, query, scores, masked, allowed }, at) {
    if (!allowed[at]) {
      return [{ text: brief(scores[at]), kind: "score" }, { text: " − ∞ = −∞:  " }, {
        text: `${quoted([words[at]])} is hidden from ${quoted([words[query]])}`,
      }];
    }
    const cost = scores[at] - masked[at];
    const lowered = cost ? ` − ${shown(cost)}` : " + 0";
    return [{ text: brief(scores[at]), kind: "score" }, { text: lowered }, ...equals(brief(masked[at]), "score")];
  },
  softmax({ masked, weights }, at) {
    const top = Math.max(...masked);
    if (top === -Infinity) return [{ text: "every score is −∞, so every weight is 0" }];
    const terms = masked.map((s, term) => [{ text: shown(Math.exp(s - top)), kind: "score", term }]);
    return [
      { text: `e^(${brief(masked[at])} − ${signed(top, false)})`, kind: "score", term: at },
      { text: " / (" },
      ...joined(terms, " + "),
      { text: ")" },
      ...equals(shown(weights[at]), "score"),
    ];
  },
  weigh({ weights, values }, at) {
    const weighed = values[at].map((v) => v * weights[at]);
    return [
      { text: shown(weights[at]), kind: "score" },
      { text: " · " },
      { text: vector(values[at]), kind: "value" },
      ...equals(vector(weighed), "value"),
    ];
  },
  add({ weights, values, context }, at) {
    const column = values.map((row) => row[at]);
    return [...products(weights, column, ["score", "value"]), ...equals(brief(context[at]), "value")];
  },
};

function distances(q, k, bandwidth) {
  const terms = q.map((x, term) => [
    { text: "(", term },
    { text: brief(x), kind: "query", term },
    { text: " − ", term },
    { text: signed(k[term], false), kind: "key", term },
    { text: ")²", term },
  ]);
  return [{ text: "−½ · (" }, ...joined(terms, " + "), { text: `) / ${brief(bandwidth)}²` }];
}

/**
 * The formula of a step, with the numbers of its cell.
 *
 * @returns {Piece[]}
 */
export const formulaOf = (look, { stage, at }) => FORMULAS[stage](look, at);

/** One sentence about a step. */
export function sentenceOf(look, step) {
  const { words, query, state } = look;
  const name = stageName(step.stage, state);
  const formula = formulaOf(look, step).map(({ text }) => text).join("").replace(/\s+/g, " ").trim();
  if (step.stage === "project") return `${name} “${words[query]}”: ${formula}.`;
  if (step.stage === "add") {
    return `${name} up component ${step.at + 1} of the context of “${words[query]}”: ${formula}.`;
  }
  return `${name} for “${words[query]}” and “${words[step.at]}”: ${formula}.`;
}
