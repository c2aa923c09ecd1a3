// From logits to a token, as attnlib's sampling_probabilities does it. It needs no DOM.

const TOKENS = 65536; // more than any vocabulary here has

/**
 * The distribution (V,) from which the next token is drawn.
 *
 * @param {Float32Array} logits (V,)
 * @param {number} temperature 0 gives all probability to the most probable token
 * @param {number} topP how much probability is kept, of the most probable tokens
 * @param {ArrayLike<number>} order the tokens, see byProbability
 */
export function samplingProbabilities(logits, temperature, topP, order) {
  const most = logits[order[0]];
  const p = new Float64Array(logits.length);
  if (!temperature) p[order[0]] = 1;
  else for (let token = 0; token < p.length; token++) p[token] = Math.exp((logits[token] - most) / temperature);
  normalise(p);
  if (topP < 1) {
    let sum = 0, kept = 0;
    while (kept === 0 || sum < topP) sum += p[order[kept++]];
    for (; kept < order.length; kept++) p[order[kept]] = 0;
    normalise(p);
  }
  return p;
}

/**
 * The tokens (V,), the most probable first; of equally probable ones, that with the lower number.
 *
 * Sorting numbers is many times faster than sorting by a function, so each logit and its token become one number.
 * The bits of a float32 are in the order of the numbers, once the sign is taken care of.
 */
export function byProbability(logits) {
  const bits = new Int32Array(Float32Array.from(logits).buffer);
  const rank = (token) => (bits[token] < 0 ? -(bits[token] & 0x7fffffff) : bits[token]);
  const keys = Float64Array.from(logits, (_, token) => TOKENS * -rank(token) + token).sort();
  return Uint16Array.from(keys, (key) => (key % TOKENS + TOKENS) % TOKENS);
}

function normalise(p) {
  let sum = 0;
  for (let token = 0; token < p.length; token++) sum += p[token];
  for (let token = 0; token < p.length; token++) p[token] /= sum;
}

/** Draw a token: the first one at which the sum of the probabilities exceeds a random number between 0 and 1. */
export function draw(p, random) {
  const sums = p.slice();
  for (let token = 1; token < p.length; token++) sums[token] += sums[token - 1];
  return sums.findIndex((sum) => sum > random * sums[sums.length - 1]);
}

/** A random number between 0 and 1 that belongs to a seed and a place in the text, by the steps of MurmurHash3. */
export function randomAt(seed, place) {
  let x = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(place + 1, 0x85ebca6b);
  x = Math.imul(x ^ x >>> 16, 0x85ebca6b);
  x = Math.imul(x ^ x >>> 13, 0xc2b2ae35);
  return ((x ^ x >>> 16) >>> 0) / 2 ** 32;
}
