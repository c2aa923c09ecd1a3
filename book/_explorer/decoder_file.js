// The file of the decoder, unpacked. It needs no DOM.

import { matrices, scaled, scalesOf } from "./packed_weights.js";

const BEFORE = /^[^{]*/; // the file is a script, because a page that was opened as a file can read nothing else
const AFTER = /;\s*$/;

/** Parse the bytes of the file. */
export const parsed = (bytes) => JSON.parse(new TextDecoder().decode(bytes).replace(BEFORE, "").replace(AFTER, ""));

/**
 * The matrices of a parsed file, and the merges of the tokenizer.
 *
 * The numbers of a matrix are bytes, each times the scale of its group; a scale is the upper half of a float32. Norms
 * are floats.
 */
export function unpacked({ config, shapes, group, numbers, scales, norms, merges }) {
  const all = scaled(new Int8Array(buffer(numbers)), scalesOf(new Uint16Array(buffer(scales))), group);
  const weights = matrices(shapes, all, new Float32Array(buffer(norms)));
  return { config, weights, merges: new Uint16Array(buffer(merges)) };
}

const buffer = (base64) => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
  return bytes.buffer;
};
