// One transformer block with a single head, part by part, as attnlib's TransformerBlock computes it. It needs no DOM.
//
// T words, E width of the rows, F hidden units. Parameters have torch's names, and a matrix has a row for each output.

import { inner, product, SIMILARITIES, softmax } from "./attention.js";

const EPS = 1e-5; // what the norms add to the variance

/**
 * @typedef {"attention" | "feed_forward"} Part
 *
 * @typedef {object} Stage
 * @property {"input" | "norm" | "update" | "sum"} kind
 * @property {Part | null} part the one that the stage belongs to; null for the input
 * @property {boolean} isStream whether the rows are the stream: in pre-norm, a norm makes only a copy
 * @property {number[][]} rows (T, E)
 * @property {number[][]} [weights] (T, T) of attention
 * @property {number[][]} [handed] (T, E) what a word gives to a word that attends to it with weight 1, without the bias
 * @property {number[][]} [hidden] (T, F) of the feed-forward layer
 */

/** (T, E) -> (T, O) */
function linear(x, p, name) {
  const [weight, bias] = [p[`${name}.weight`], p[`${name}.bias`]];
  return x.map((row) => weight.map((to, o) => inner(row, to) + bias[o]));
}

/** The mean of a row, and its standard deviation, with EPS. */
export function momentsOf(row) {
  const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
  const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / row.length;
  return { mean, deviation: Math.sqrt(variance + EPS) };
}

function layerNorm(x, p, name) {
  const [gain, shift] = [p[`${name}.weight`], p[`${name}.bias`]];
  return x.map((row) => {
    const { mean, deviation } = momentsOf(row);
    return row.map((one, e) => gain[e] * (one - mean) / deviation + shift[e]);
  });
}

function attend(x, p) {
  const [q, k, v] = ["q", "k", "v"].map((name) => linear(x, p, `self_attn.${name}_proj`));
  const weights = SIMILARITIES.scaled_dot(q, k, {}).map(softmax);
  const handed = v.map((row) => p["self_attn.out_proj.weight"].map((to) => inner(row, to)));
  const bias = p["self_attn.out_proj.bias"];
  return { rows: product(weights, handed).map((row) => row.map((one, e) => one + bias[e])), weights, handed };
}

function feedForward(x, p) {
  const hidden = linear(x, p, "linear1").map((row) => row.map((one) => Math.max(0, one)));
  return { rows: linear(hidden, p, "linear2"), hidden };
}

/** @type {Part[]} */
export const PARTS = ["attention", "feed_forward"];

const HALVES = [ // of a block
  { part: PARTS[0], norm: "norm1", compute: attend },
  { part: PARTS[1], norm: "norm2", compute: feedForward },
];

/**
 * Everything that a block computes, in order.
 *
 * @param {number[][]} x (T, E)
 * @param {Record<string, any>} p
 * @param {{ norm: "pre" | "post", off: Part[] }} settings the update of a part that is off is 0
 * @returns {Stage[]} the last one is the output
 */
export function blockStages(x, p, { norm, off }) {
  /** @type {Stage[]} */
  const stages = [{ kind: "input", part: null, isStream: true, rows: x }];
  let stream = x;
  for (const { part, norm: name, compute } of HALVES) {
    const read = norm === "pre" ? layerNorm(stream, p, name) : stream;
    if (norm === "pre") stages.push({ kind: "norm", part, isStream: false, rows: read });
    const update = off.includes(part) ? { rows: x.map((row) => row.map(() => 0)) } : compute(read, p);
    stages.push({ kind: "update", part, isStream: false, ...update });
    stream = stream.map((row, t) => row.map((one, e) => one + update.rows[t][e]));
    stages.push({ kind: "sum", part, isStream: true, rows: stream });
    if (norm === "pre") continue;
    stream = layerNorm(stream, p, name);
    stages.push({ kind: "norm", part, isStream: true, rows: stream });
  }
  return stages;
}

/** How long a row is. */
export const lengthOf = (row) => Math.hypot(...row);
