// A decoder of the Llama family, computed one token at a time as attnlib's CausalLM computes it. It needs no DOM.
//
// E width of the vectors, H query heads, K heads of keys and values, D width of a head, F hidden width, L layers,
// V tokens in the vocabulary, S tokens so far. Matrices have a row for each output.

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
 * @typedef {{ rows: number, width: number, numbers: Float32Array }} Matrix
 *
 * What reading a token gives.
 *
 * @typedef {object} Read
 * @property {Float32Array} logits (V,) of the token that comes next
 * @property {Float32Array} weights (L, H, S) with which this token looks at those before it and at itself
 * @property {Float32Array} kept (L, 2, K, D) its keys and values, which the cache keeps
 * @property {number} work how many multiplications its matrix products took
 */

export class CausalLM {
  /** @param {Config} config @param {Record<string, Matrix>} weights */
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
   * Read one more token.
   *
   * @param {number} token
   * @param {boolean} equal whether all weights of a head are made equal: it then averages over the tokens so far
   * @returns {Read}
   */
  read(token, equal = false) {
    const { layers, heads, kvHeads, headDim } = this.config;
    const { numbers, width } = this.w.embed;
    this.work = 0;
    const S = this.length + 1;
    const weights = new Float32Array(layers * heads * S);
    const kept = new Float32Array(layers * 2 * kvHeads * headDim);
    let x = numbers.slice(token * width, (token + 1) * width); // (E,)
    for (let layer = 0; layer < layers; layer++) {
      const part = (all) => all.subarray(layer * all.length / layers, (layer + 1) * all.length / layers);
      x = added(x, this.attend(layer, this.norm(`${layer}.norm1`, x), part(weights), part(kept), equal));
      x = added(x, this.transform(layer, this.norm(`${layer}.norm2`, x)));
    }
    this.length = S;
    const logits = this.times("embed", this.norm("norm", x)); // (V,)
    return { logits, weights, kept, work: this.work };
  }

  /** What the heads of a layer add (E,); their weights (H, S) and what is kept (2, K, D) are written where given. */
  attend(layer, x, weights, kept, equal) {
    const { heads, kvHeads, headDim: D } = this.config;
    const query = this.rotated(this.times(`${layer}.q`, x)); // (H * D,)
    const { keys, values } = this.cache[layer];
    const [key, value] = [this.rotated(this.times(`${layer}.k`, x)), this.times(`${layer}.v`, x)]; // (K * D,)
    keys.set(key, this.length * kvHeads * D);
    values.set(value, this.length * kvHeads * D);
    kept.set(key);
    kept.set(value, kvHeads * D);
    const S = this.length + 1;
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
      softmax(row);
      for (let j = 0; j < S; j++) {
        const from = j * kvHeads * D + at;
        for (let d = 0; d < D; d++) contexts[h * D + d] += row[j] * values[from + d];
      }
    }
    this.work += 2 * heads * S * D;
    return this.times(`${layer}.out`, contexts);
  }

  /** The feed-forward layer, SwiGLU (E,). */
  transform(layer, x) {
    const gate = this.times(`${layer}.gate`, x); // (F,)
    const up = this.times(`${layer}.up`, x);
    return this.times(`${layer}.down`, gate.map((g, f) => g / (1 + Math.exp(-g)) * up[f]));
  }

  norm(name, x) {
    const mean = x.reduce((sum, one) => sum + one * one, 0) / x.length;
    const { numbers } = this.w[name];
    return x.map((one, e) => numbers[e] * one / Math.sqrt(mean + this.config.eps));
  }

  /** A matrix times a vector; counts the multiplications. Widths are multiples of 4: four sums need not wait for each other. */
  times(name, x) {
    const { rows, width, numbers } = this.w[name];
    const y = new Float32Array(rows);
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
    this.work += rows * width;
    return y;
  }

  /** Rotate the pairs (d, d + D / 2) of each head by the position. */
  rotated(x) {
    const { headDim: D, base } = this.config;
    const y = new Float32Array(x.length);
    for (let d = 0; d < D / 2; d++) {
      const angle = this.length * base ** (-2 * d / D);
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      for (let at = d; at < x.length; at += D) {
        const other = at + D / 2;
        y[at] = x[at] * cos - x[other] * sin;
        y[other] = x[other] * cos + x[at] * sin;
      }
    }
    return y;
  }
}

const added = (a, b) => a.map((x, i) => x + b[i]);

/** Turn scores into weights, in place. */
function softmax(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b));
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += scores[j] = Math.exp(scores[j] - most);
  for (let j = 0; j < scores.length; j++) scores[j] /= sum;
}
