// Attention, step by step, as attnlib computes it. Pure mathematics: it needs no DOM, and Node runs it too.
//
// A table is an array of rows. T words, D numbers a word, H heads; row = query, column = key.

const BASE = 10000;

/** Rows of one table by columns of another. (T, D) and (D, E) -> (T, E) */
export function product(a, b) {
  return a.map((row) => b[0].map((_, e) => row.reduce((sum, x, d) => sum + x * b[d][e], 0)));
}

export const inner = (a, b) => a.reduce((sum, x, d) => sum + x * b[d], 0);

// Divide by the largest component first, because squares of large numbers would overflow. Zeros stay zeros.
function unit(x) {
  const largest = Math.max(...x.map(Math.abs)) || 1;
  const scaled = x.map((value) => value / largest);
  const length = Math.sqrt(inner(scaled, scaled)) || 1;
  return scaled.map((value) => value / length);
}

const pairs = (query, key, score) => query.map((q) => key.map((k) => score(q, k)));

/** (T, D) and (S, D) -> scores (T, S). A scale of null is 1/sqrt(D). */
export const SIMILARITIES = {
  dot: (query, key) => pairs(query, key, inner),
  scaled_dot(query, key, { scale = null }) {
    const factor = scale ?? 1 / Math.sqrt(query[0].length);
    return pairs(query, key, (q, k) => factor * inner(q, k));
  },
  cosine: (query, key) => pairs(query.map(unit), key.map(unit), inner),
  gaussian: (query, key, { bandwidth = 1 }) =>
    pairs(query, key, (q, k) => -0.5 * q.reduce((sum, x, d) => sum + ((x - k[d]) / bandwidth) ** 2, 0)),
};

/** Softmax of a row of scores; all 0 where every score is minus infinity. */
export function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const positive = scores.map((s) => Math.exp(s - top));
  const total = positive.reduce((sum, e) => sum + e, 0);
  return positive.map((e) => e / total);
}

/** May query i attend to key j? */
export const MASKS = {
  none: () => true,
  causal: (i, j) => j <= i,
  padding: (_i, j, length) => j < length,
  both: (i, j, length) => j <= i && j < length,
};

/** What can tell the words where they are. */
export const POSITIONS = ["none", "sinusoidal", "rope", "alibi"];

/** The angle of position i in pair k: i / BASE^(2k/D). */
export const angle = (i, k, width) => i * BASE ** ((-2 * k) / width);

/** (T, D): sines in the even columns, cosines in the odd ones. */
export function sinusoidal(length, width) {
  const wave = (i, d) => (d % 2 ? Math.cos : Math.sin)(angle(i, d >> 1, width));
  return Array.from({ length }, (_, i) => Array.from({ length: width }, (_, d) => wave(i, d)));
}

/** Turn the rows of one head by their positions; component k is paired with k + D/2. (T, D) -> (T, D) */
export function rope(x) {
  const half = x[0].length / 2;
  return x.map((row, i) =>
    row.map((value, d) => {
      const t = angle(i, d % half, row.length);
      return value * Math.cos(t) + (d < half ? -row[d + half] : row[d - half]) * Math.sin(t);
    })
  );
}

/** The H slopes of ALiBi: 2^(-8h/H) for a power of two, else filled up from the next higher power. */
export function alibiSlopes(heads) {
  const n = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, h) => 2 ** ((-8 * (h < n ? h + 1 : h - n + 0.5)) / n));
}

/** Head h has the columns hD to (h+1)D - 1. (T, H*D) -> H tables (T, D) */
export function split(x, heads) {
  const width = x[0].length / heads;
  return Array.from({ length: heads }, (_, h) => x.map((row) => row.slice(h * width, (h + 1) * width)));
}

/** The inverse of split. H tables (T, D) -> (T, H*D) */
export const merge = (tables) => tables[0].map((_, t) => tables.flatMap((table) => table[t]));

/**
 * Why these settings cannot be computed, in words; null where they can.
 *
 * @param {object} state as for explore
 */
export function problem({ tables, heads = 1, positions = "none" }) {
  const width = (name) => (tables[`w${name}`] ?? tables[name] ?? tables.x)[0].length;
  const uneven = [...new Set(["q", "v"].map(width))].find((n) => n % heads);
  if (uneven) {
    return `${heads} heads cannot share ${uneven} columns evenly: choose a number of heads that divides ${uneven}`;
  }
  if (positions === "sinusoidal" && tables.x[0].length % 2) {
    return `The vectors have ${
      tables.x[0].length
    } numbers, but sines and cosines come in pairs: choose an even number, or another option under “Positions”`;
  }
  if (positions === "rope" && (width("q") / heads) % 2) {
    return `Each head is ${
      width("q") / heads
    } wide, but RoPE rotates pairs of components: choose an even width, or another option under “Positions”`;
  }
  return null;
}

/**
 * Every step of attention.
 *
 * @param {object} state
 *   tables: {x} or {x, wq, wk, wv} or {q, k, v}; words are rows, x is (T, D), wq is (D, H*d)
 *   similarity, scale, bandwidth: see SIMILARITIES
 *   temperature: the number by which the scores are divided, before a mask or ALiBi
 *   heads: H
 *   mask, length: see MASKS; length is how many words are not padding
 *   flips: pairs of query and key for which the mask is flipped
 *   positions: none, sinusoidal (added to x), rope (turns queries and keys), alibi (subtracted from the scores)
 * @returns {object} q, k, v (T, H*d) as the heads see them, unturned q and k from before RoPE, context (T, H*d), and heads: for each of them similarities (not
 *   yet scaled), scores, allowed (by the mask), masked and weights (T, T)
 */
export function explore(state) {
  const { tables, similarity = "scaled_dot", heads = 1, mask = "none", length = Infinity, positions = "none" } = state;
  const { temperature = 1, flips = [] } = state;
  const flipped = new Set(flips.map(String));
  const [q, k, v] = projected(tables, positions).map((table) => split(table, heads));
  const [queries, keys] = [q, k].map((each) => (positions === "rope" ? each.map(rope) : each));
  const slopes = alibiSlopes(heads);
  const steps = queries.map((query, h) => {
    const similarities = SIMILARITIES[similarity === "scaled_dot" ? "dot" : similarity](query, keys[h], state);
    const scores = SIMILARITIES[similarity](query, keys[h], state).map((row) => row.map((s) => s / temperature));
    const slope = positions === "alibi" ? slopes[h] : 0;
    const allowed = scores.map((row, i) => row.map((_, j) => MASKS[mask](i, j, length) !== flipped.has(`${i},${j}`)));
    const masked = scores.map((row, i) => row.map((s, j) => allowed[i][j] ? s - slope * Math.abs(i - j) : -Infinity));
    const weights = masked.map(softmax);
    return { similarities, scores, allowed, masked, weights, context: product(weights, v[h]) };
  });
  return {
    q: merge(queries),
    k: merge(keys),
    unturned: { q: merge(q), k: merge(k) },
    v: merge(v),
    heads: steps,
    context: merge(steps.map((one) => one.context)),
  };
}

/** Queries, keys and values: given, or made from x by its three matrices, or x itself. */
function projected({ x, wq, wk, wv, ...given }, positions) {
  if (!x) return [given.q, given.k, given.v];
  const clocks = positions === "sinusoidal" ? sinusoidal(x.length, x[0].length) : null;
  const placed = clocks ? x.map((row, i) => row.map((value, d) => value + clocks[i][d])) : x;
  return [wq, wk, wv].map((w) => (w ? product(placed, w) : placed));
}
