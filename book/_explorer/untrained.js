// The parameters of a model that has learned nothing, drawn as attnlib draws them. It needs no DOM.

/** Random numbers between 0 and 1, by the generator mulberry32. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let x = Math.imul(state ^ state >>> 15, 1 | state);
    x = x + Math.imul(x ^ x >>> 7, 61 | x) ^ x;
    return ((x ^ x >>> 14) >>> 0) / 2 ** 32;
  };
}

/** Numbers of a normal distribution, by the method of Box and Muller. */
function normal(count, deviation, seed) {
  const random = randomFrom(seed);
  return Float32Array.from(
    { length: count },
    () => deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

function uniform(count, limit, seed) {
  const random = randomFrom(seed);
  const numbers = new Float32Array(count);
  for (let n = 0; n < count; n++) numbers[n] = (2 * random() - 1) * limit;
  return numbers;
}

const POSITION = 0.02; // the standard deviation of the positions

/**
 * Random parameters in the shapes of a BERT's: linear layers are uniform within ±1/√(number of inputs),
 * words and types have a standard normal distribution, and norms change nothing.
 *
 * @param {Record<string, import("./packed_weights.js").Matrix>} weights those of the trained model
 * @param {number} seed
 */
export function untrained(weights, seed) {
  const names = Object.keys(weights);
  const draw = (name, own) => {
    const { rows, width } = weights[name];
    if (name === "position" || name === "token_type") {
      return normal(rows * width, name === "position" ? POSITION : 1, own);
    }
    if (/norm\d?$/.test(name)) return new Float32Array(width).fill(1);
    if (/norm\d?\.bias$/.test(name)) return new Float32Array(width);
    return uniform(rows * width, weights[name.replace(".bias", "")].width ** -0.5, own);
  };
  const drawn = names.map((name, n) => [name, { ...weights[name], numbers: draw(name, seed + n) }]);
  const { width } = weights.norm;
  return {
    weights: Object.fromEntries(drawn),
    wordOf: (token) => normal(width, 1, seed + names.length + token),
  };
}
