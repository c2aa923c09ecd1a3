// A BERT encoder, computed as attnlib's BertEncoder computes it, for one sentence. It needs no DOM.
//
// T tokens, E width of the vectors, H heads, D width of a head, F width of a product. Matrices have a row for each output.

import { softmaxInplace } from "./softmax_inplace.js";

/**
 * @typedef {object} BertConfig
 * @property {number} layers
 * @property {number} heads H
 * @property {number} width E
 * @property {number} context the largest number of tokens in a sentence
 * @property {number} eps what the norms add to the variance
 */

export class Bert {
  /**
   * @param {BertConfig} config
   * @param {Record<string, import("./packed_weights.js").Matrix>} weights
   * @param {(token: number) => Float32Array} wordOf the vector of a token (E,)
   */
  constructor(config, weights, wordOf) {
    this.config = config;
    this.w = weights;
    this.wordOf = wordOf;
  }

  /**
   * The weights of all heads (H, T, T), one layer at a time, so that the caller can do other work between layers.
   *
   * @param {number[]} tokens
   */
  *read(tokens) {
    let x = this.norm("norm", this.embedded(tokens)); // (T, E)
    for (let layer = 0; layer < this.config.layers; layer++) {
      const { weights, added } = this.attend(layer, x, tokens.length);
      yield weights;
      x = this.norm(`${layer}.norm1`, total(x, added));
      const hidden = this.times(`${layer}.up`, x).map(gelu); // (T, F)
      x = this.norm(`${layer}.norm2`, total(x, this.times(`${layer}.down`, hidden)));
    }
  }

  embedded(tokens) {
    const { width: E } = this.config;
    const [positions, type] = [this.w.position.numbers, this.w.token_type.numbers];
    const x = new Float32Array(tokens.length * E);
    tokens.forEach((token, t) => {
      const word = this.wordOf(token);
      for (let e = 0; e < E; e++) x[t * E + e] = word[e] + type[e] + positions[t * E + e];
    });
    return x;
  }

  /** The weights of a layer's heads (H, T, T), and what they add to the stream (T, E). */
  attend(layer, x, T) {
    const { heads, width: E } = this.config;
    const [q, k, v] = ["q", "k", "v"].map((name) => this.times(`${layer}.${name}`, x)); // (T, E)
    const weights = new Float32Array(heads * T * T);
    const contexts = new Float32Array(T * E);
    for (let h = 0, D = E / heads; h < heads; h++) {
      for (let i = 0; i < T; i++) {
        const row = weights.subarray((h * T + i) * T, (h * T + i + 1) * T);
        const from = i * E + h * D;
        for (let j = 0; j < T; j++) row[j] = dot(q, from, k, j * E + h * D, D) / Math.sqrt(D);
        softmaxInplace(row);
        for (let j = 0; j < T; j++) addTimes(contexts, from, v, j * E + h * D, D, row[j]);
      }
    }
    return { weights, added: this.times(`${layer}.out`, contexts) };
  }

  norm(name, x) {
    const [scale, shift] = [this.w[name].numbers, this.w[`${name}.bias`].numbers];
    const E = scale.length;
    const y = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += E) {
      const row = x.subarray(at, at + E);
      const mean = row.reduce((all, one) => all + one, 0) / E;
      const variance = row.reduce((all, one) => all + (one - mean) ** 2, 0) / E;
      const size = Math.sqrt(variance + this.config.eps);
      for (let e = 0; e < E; e++) y[at + e] = (row[e] - mean) / size * scale[e] + shift[e];
    }
    return y;
  }

  /** A linear layer: (T, F) for (T, E). */
  times(name, x) {
    const { rows, width, numbers } = this.w[name];
    const T = x.length / width;
    const y = new Float32Array(Math.ceil(T / 8) * 8 * rows);
    const eight = new Float64Array(8 * width); // the numbers of eight tokens, side by side
    for (let t = 0; t < T; t += 8) {
      for (let n = 0; n < eight.length; n++) eight[n] = x[(t + n % 8) * width + (n >> 3)] || 0;
      timesEight(numbers, eight, this.w[`${name}.bias`].numbers, y.subarray(t * rows));
    }
    return y.subarray(0, T * rows);
  }
}

/** A matrix times eight vectors at once: each of its numbers is read only once, and no sum has to wait for another. */
function timesEight(matrix, x, bias, y) {
  for (let r = 0, rows = bias.length, at = 0; r < rows; r++) {
    let a = bias[r], b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (let n = 0; n < x.length; n += 8, at++) {
      const w = matrix[at];
      a += w * x[n];
      b += w * x[n + 1];
      c += w * x[n + 2];
      d += w * x[n + 3];
      e += w * x[n + 4];
      f += w * x[n + 5];
      g += w * x[n + 6];
      h += w * x[n + 7];
    }
    for (const [t, sum] of [a, b, c, d, e, f, g, h].entries()) y[t * rows + r] = sum;
  }
}

const total = (a, b) => a.map((one, n) => one + b[n]);

function dot(a, from, b, start, count) {
  let found = 0;
  for (let d = 0; d < count; d++) found += a[from + d] * b[start + d];
  return found;
}

function addTimes(sums, from, vectors, start, count, weight) {
  for (let d = 0; d < count; d++) sums[from + d] += weight * vectors[start + d];
}

/** GELU, with the tail of the normal distribution by formula 7.1.26 of Abramowitz and Stegun (1964). */
function gelu(x) {
  const a = Math.abs(x);
  const t = 1 / (1 + 0.3275911 * a * Math.SQRT1_2);
  const p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.max(x, 0) - a * p / 2 * Math.exp(-a * a / 2);
}
