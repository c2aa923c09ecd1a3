// A decoder of the Llama family, computed as attnlib's CausalLM computes it. It needs no DOM.
//
// E width of the vectors, H query heads, K heads of keys and values, D width of a head, F hidden width, L layers,
// V tokens in the vocabulary, T tokens that are read, S tokens up to one of them. Matrices have a row for each output.

import { softmaxInplace } from "./softmax_inplace.js";

const TOGETHER = 4; // vectors that a matrix is multiplied by at the same time

/**
 * @typedef {object} Config
 * @property {number} layers L
 * @property {number} heads H
 * @property {number} kvHeads K
 * @property {number} headDim D
 * @property {number} context the most tokens that can be read
 * @property {number} eps what the norms add to the mean square
 * @property {number} base of the rotary positions
 *
 * What reading a token gives.
 *
 * @typedef {object} Read
 * @property {Float32Array} logits (V,) of the token that comes next
 * @property {Float32Array} weights (L, H, S) with which this token looks at those before it and at itself
 * @property {Float32Array} kept (L, 2, K, D) its keys and values, which the cache keeps
 * @property {number} work how many multiplications it took
 */

export class CausalLM {
  /** @param {Config} config @param {Record<string, import("./packed_weights.js").Matrix>} weights */
  constructor(config, weights) {
    this.config = config;
    this.w = weights;
    this.length = 0; // S
    this.work = 0;
    const cacheOf = () => new Float32Array(config.context * config.kvHeads * config.headDim); // (context, K, D)
    /** @type {{ keys: Float32Array, values: Float32Array }[]} */
    this.cache = Array.from({ length: config.layers }, () => ({ keys: cacheOf(), values: cacheOf() }));
  }

  /** Forget all tokens after the first ones. */
  truncate(length) {
    this.length = Math.min(this.length, length);
  }

  /**
   * Read the tokens that follow, all of them in one pass.
   *
   * @param {number[]} tokens (T,)
   * @param {boolean} equal whether all weights of a head are made equal: it then averages over the tokens so far
   * @returns {Read[]}
   */
  read(tokens, equal = false) {
    const { layers, heads, kvHeads, headDim } = this.config;
    const { numbers, width } = this.w.embed;
    this.work = 0;
    const seen = tokens.map((_, t) => ({
      weights: new Float32Array(layers * heads * (this.length + t + 1)),
      kept: new Float32Array(layers * 2 * kvHeads * headDim),
    }));
    let x = tokens.map((token) => numbers.slice(token * width, (token + 1) * width)); // (T, E)
    for (let layer = 0; layer < layers; layer++) {
      const part = (all) => all.subarray(layer * all.length / layers, (layer + 1) * all.length / layers);
      const places = seen.map(({ weights, kept }) => ({ weights: part(weights), kept: part(kept) }));
      x = added(x, this.attend(layer, this.norm(`${layer}.norm1`, x), places, equal));
      x = added(x, this.transform(layer, this.norm(`${layer}.norm2`, x)));
    }
    const logits = this.times("embed", this.norm("norm", x)); // (T, V)
    this.length += tokens.length;
    return seen.map((one, t) => ({
      ...{ ...one, logits: logits[t] },
      work: this.work + 2 * layers * heads * headDim * (this.length - tokens.length + t + 1),
    }));
  }

  /** What the heads of a layer add (T, E); weights (H, S) and what is kept (2, K, D) are written into their places. */
  attend(layer, x, places, equal) {
    const { kvHeads, headDim: D } = this.config;
    const queries = this.rotated(this.times(`${layer}.q`, x)); // (T, H * D)
    const { keys, values } = this.cache[layer];
    const newKeys = this.rotated(this.times(`${layer}.k`, x)); // (T, K * D)
    const newValues = this.times(`${layer}.v`, x);
    places.forEach(({ kept }, t) => {
      keys.set(newKeys[t], (this.length + t) * kvHeads * D);
      values.set(newValues[t], (this.length + t) * kvHeads * D);
      kept.set(newKeys[t]);
      kept.set(newValues[t], kvHeads * D);
    });
    const contexts = queries.map((query, t) => this.contextOf(query, this.cache[layer], places[t].weights, equal));
    return this.times(`${layer}.out`, contexts);
  }

  /** The contexts of all heads for one token (H * D,), which attends to as many tokens as a head has weights. */
  contextOf(query, { keys, values }, weights, equal) {
    const { heads, kvHeads, headDim: D } = this.config;
    const S = weights.length / heads;
    const contexts = new Float32Array(heads * D);
    for (let h = 0; h < heads; h++) {
      const at = Math.floor(h * kvHeads / heads) * D; // where its key head begins
      const row = weights.subarray(h * S, (h + 1) * S);
      for (let j = 0; j < S; j++) {
        let dot = 0;
        const from = j * kvHeads * D + at;
        for (let d = 0; d < D; d++) dot += query[h * D + d] * keys[from + d];
        row[j] = equal ? 0 : dot / Math.sqrt(D);
      }
      softmaxInplace(row);
      for (let j = 0; j < S; j++) {
        const from = j * kvHeads * D + at;
        for (let d = 0; d < D; d++) contexts[h * D + d] += row[j] * values[from + d];
      }
    }
    return contexts;
  }

  /** The feed-forward layer, SwiGLU (T, E). */
  transform(layer, x) {
    const gate = this.times(`${layer}.gate`, x); // (T, F)
    const up = this.times(`${layer}.up`, x);
    return this.times(`${layer}.down`, gate.map((row, t) => row.map((g, f) => g / (1 + Math.exp(-g)) * up[t][f])));
  }

  norm(name, x) {
    const { numbers } = this.w[name];
    return x.map((row) => {
      const mean = row.reduce((sum, one) => sum + one * one, 0) / row.length;
      return row.map((one, e) => numbers[e] * one / Math.sqrt(mean + this.config.eps));
    });
  }

  /** A matrix times each of these vectors (T, E); counts the multiplications for a single vector. */
  times(name, x) {
    const { rows, width } = this.w[name];
    this.work += rows * width;
    const y = x.map(() => new Float32Array(rows));
    const whole = x.length - x.length % TOGETHER;
    for (let t = 0; t < whole; t += TOGETHER) timesFour(this.w[name], x.slice(t, t + TOGETHER), y.slice(t));
    for (let t = whole; t < x.length; t++) timesOne(this.w[name], x[t], y[t]);
    return y;
  }

  /** Rotate the pairs (d, d + D / 2) of each head by the position. */
  rotated(x) {
    const { headDim: D, base } = this.config;
    return x.map((row, t) => {
      const y = new Float32Array(row.length);
      for (let d = 0; d < D / 2; d++) {
        const angle = (this.length + t) * base ** (-2 * d / D);
        const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
        for (let at = d; at < row.length; at += D) {
          const other = at + D / 2;
          y[at] = row[at] * cos - row[other] * sin;
          y[other] = row[other] * cos + row[at] * sin;
        }
      }
      return y;
    });
  }
}

const added = (a, b) => a.map((row, t) => row.map((x, e) => x + b[t][e]));

/** A matrix times a vector, written into y. Widths are multiples of 4, so four sums can be computed side by side. */
function timesOne({ rows, width, numbers }, x, y) {
  for (let r = 0, at = 0; r < rows; r++) {
    let a = 0, b = 0, c = 0, d = 0;
    for (let e = 0; e < width; e += 4, at += 4) {
      a += numbers[at] * x[e];
      b += numbers[at + 1] * x[e + 1];
      c += numbers[at + 2] * x[e + 2];
      d += numbers[at + 3] * x[e + 3];
    }
    y[r] = a + b + (c + d);
  }
}

/** The same for four vectors: each number of the matrix is read once for all of them, which takes less than half the time. */
function timesFour({ rows, width, numbers }, x, y) {
  const mixed = new Float64Array(TOGETHER * width); // (E, TOGETHER)
  for (let t = 0; t < TOGETHER; t++) {
    for (let e = 0; e < width; e++) mixed[e * TOGETHER + t] = x[t][e];
  }
  const [y0, y1, y2, y3] = y;
  for (let r = 0, at = 0; r < rows; r++) {
    let a = 0, b = 0, c = 0, d = 0;
    for (let e = 0; e < mixed.length; e += TOGETHER, at++) {
      const w = numbers[at];
      a += w * mixed[e];
      b += w * mixed[e + 1];
      c += w * mixed[e + 2];
      d += w * mixed[e + 3];
    }
    y0[r] = a;
    y1[r] = b;
    y2[r] = c;
    y3[r] = d;
  }
}
