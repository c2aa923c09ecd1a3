// The weights of a model, packed into 8 bits for each number of a matrix. It needs no DOM.

/** @typedef {{ rows: number, width: number, numbers: Float32Array }} Matrix */

/** The scales of groups of numbers, each given as the upper half of a float32. */
export const scalesOf = (halves) => new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);

/** The numbers that the bytes stand for: each group is multiplied by its scale. */
export function scaled(bytes, scales, group) {
  const numbers = Float32Array.from(bytes);
  for (let n = 0, g = 0; n < numbers.length; g++) {
    for (const end = n + group; n < end; n++) numbers[n] *= scales[g];
  }
  return numbers;
}

/**
 * The matrices of a model by their names. Those of one row are not packed.
 *
 * @param {Record<string, [number, number]>} shapes rows and width of each, in the order in which they are packed
 * @param {Float32Array} numbers of all matrices of several rows
 * @param {Float32Array} vectors all others
 * @returns {Record<string, Matrix>}
 */
export function matrices(shapes, numbers, vectors) {
  let at = 0, vectorAt = 0;
  const matrix = ([rows, width]) => ({
    rows,
    width,
    numbers: rows === 1 ? vectors.subarray(vectorAt, vectorAt += width) : numbers.subarray(at, at += rows * width),
  });
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, matrix(shape)]));
}
