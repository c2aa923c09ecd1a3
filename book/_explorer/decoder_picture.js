// The picture of what the cache keeps of one token: a pixel for each number, keys and values of all layers.

import { COLOURS } from "./colours.js";

export const PICTURE = { width: 8, rows: 4, layer: 18 }; // a key or a value is 8 by 4 numbers; a layer has 4 of them
const COLOUR = [COLOURS.key, COLOURS.value].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const STRONGEST = 2; // times the root mean square

/**
 * The pixels, four bytes each. The larger the absolute value of a number, the stronger its colour.
 *
 * @param {Float32Array} kept (L, 2, K, D)
 * @param {{ layers: number, kvHeads: number, headDim: number }} sizes
 */
export function pixelsOf(kept, { layers, kvHeads, headDim }) {
  const pixels = new Uint8ClampedArray(4 * PICTURE.width * PICTURE.layer * layers);
  const size = kvHeads * headDim;
  for (let part = 0; part < 2 * layers; part++) {
    const numbers = kept.subarray(part * size, (part + 1) * size);
    const mean = Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / size) || 1;
    const from = (Math.floor(part / 2) * PICTURE.layer + part % 2 * PICTURE.rows * kvHeads) * PICTURE.width;
    const [red, green, blue] = COLOUR[part % 2];
    for (let n = 0, at = 4 * from; n < size; n++) {
      pixels[at++] = red;
      pixels[at++] = green;
      pixels[at++] = blue;
      pixels[at++] = 255 * Math.abs(numbers[n]) / (STRONGEST * mean);
    }
  }
  return pixels;
}

/** @type {HTMLCanvasElement | null} on which all pictures are made */
let canvas = null;

/** The same as an image that a drawing can hold. */
export function pictureOf(kept, sizes) {
  canvas ??= document.createElement("canvas");
  Object.assign(canvas, { width: PICTURE.width, height: PICTURE.layer * sizes.layers });
  const image = new ImageData(pixelsOf(kept, sizes), canvas.width, canvas.height);
  canvas.getContext("2d", { willReadFrequently: true })?.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
