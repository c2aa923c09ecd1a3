// The date translator of the chapter on context vectors, computed as its Python computes it. It needs no DOM.
//
// S characters read, D numbers of a state, E of a character, A inside the score. Matrices have a row for each output.

export const LENGTH = 10; // of what it writes: YYYY-MM-DD

/**
 * What the translator writes at one step, and why.
 *
 * @typedef {object} Step
 * @property {string} character
 * @property {number[]} weights (S,) for the characters that it reads
 * @property {number[]} probabilities of each character that it can write
 */

/**
 * Cut the numbers of a model into its matrices: lists of rows, by name.
 *
 * @param {Record<string, [number, number]>} shapes
 * @param {Float32Array} numbers
 * @returns {Record<string, Float32Array[]>}
 */
export function matrices(shapes, numbers) {
  let at = 0;
  const rows = ([count, width]) => Array.from({ length: count }, () => numbers.subarray(at, at += width));
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, rows(shape)]));
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

const times = (matrix, x) => matrix.map((row) => dot(row, x));
const added = (a, b) => a.map((x, i) => x + b[i]);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/** The next state (D,) of the GRU of this name. */
function gru(w, name, x, h) {
  const fromX = added(times(w[`${name}.w_ih`], x), w[`${name}.b_ih`][0]);
  const fromH = added(times(w[`${name}.w_hh`], h), w[`${name}.b_hh`][0]);
  const D = h.length;
  return h.map((old, i) => {
    const reset = sigmoid(fromX[i] + fromH[i]);
    const update = sigmoid(fromX[D + i] + fromH[D + i]);
    const candidate = Math.tanh(fromX[2 * D + i] + reset * fromH[2 * D + i]);
    return (1 - update) * candidate + update * old;
  });
}

/** The states (S, D) of a GRU that reads characters (S, E). */
function encode(w, name, characters) {
  let h = Array(w[`${name}.w_hh`][0].length).fill(0);
  return characters.map((x) => h = gru(w, name, x, h));
}

/** What the encoder remembers: a row (2D,) for each character, and the last states of both directions (2D,). */
function remember(w, characters) {
  const right = encode(w, "right", characters);
  const left = encode(w, "left", [...characters].reverse()).reverse();
  return { memory: right.map((state, j) => [...state, ...left[j]]), summary: [...right.at(-1), ...left[0]] };
}

/**
 * Translate a text of at least one character, all of them known.
 *
 * @param {{ weights: Record<string, Float32Array[]>, reads: string, writes: string }} model
 * @param {string} text
 * @param {boolean} equal whether all weights of a step are made equal: the context is then the plain average
 * @returns {Step[]}
 */
export function translate({ weights: w, reads, writes }, text, equal) {
  const { memory, summary } = remember(w, [...text].map((character) => w.in[reads.indexOf(character)]));
  const keys = memory.map((row) => times(w["decoder.w_key"], row));
  let state = times(w.start, summary).map(Math.tanh);
  let last = writes.length; // nothing is written yet
  return Array.from({ length: LENGTH }, () => {
    const query = times(w["decoder.w_query"], state);
    const score = (key) => dot(added(key, query).map(Math.tanh), w["decoder.v"][0]);
    const weights = softmax(keys.map((key) => (equal ? 0 : score(key))));
    const context = memory[0].map((_, d) => dot(weights, memory.map((row) => row[d])));
    state = gru(w, "decoder", [...w.out[last], ...context], state);
    const probabilities = softmax(times(w.read, [...state, ...context]));
    last = probabilities.indexOf(Math.max(...probabilities));
    return { character: writes[last], weights, probabilities };
  });
}
