// The file of all-MiniLM-L6-v2, as book/_tools/minilm.py packs it, is unpacked here. It needs no DOM.

import { matrices, scaled, scalesOf } from "./packed_weights.js";

/** The bytes that were compressed. */
export function decompressed(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/**
 * The parts of the file: its head with the configuration and the vocabulary, a function that returns the vector of
 * a word as floats, and the other weights.
 *
 * @param {ArrayBuffer} file decompressed
 */
export function unpackedMinilm(file) {
  let at = 4 + new Uint32Array(file, 0, 1)[0];
  const { config, shapes, group, vocabulary } = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 4, at - 4)));
  const { width } = config;
  const sizes = Object.values(shapes).map(([rows, columns]) => ({ rows, count: rows * columns }));
  const countOf = (some) => some.reduce((all, { count }) => all + count, 0);
  const vectors = new Float32Array(file, at, countOf(sizes.filter(({ rows }) => rows === 1)));
  const words = vocabulary.length * width;
  const count = words + countOf(sizes.filter(({ rows }) => rows > 1));
  const scales = scalesOf(new Uint16Array(file, at += vectors.byteLength, count / group));
  const bytes = new Int8Array(file, at + 2 * scales.length, count);
  const part = (from, to) => scaled(bytes.subarray(from, to), scales.subarray(from / group), group);
  const wordOf = (token) => part(token * width, (token + 1) * width);
  return { config, vocabulary, wordOf, weights: matrices(shapes, part(words, count), vectors) };
}
