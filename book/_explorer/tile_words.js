// The sentences about attention in tiles and with the whole table. It needs no DOM.

import { heldBy, movedBy } from "./tile_traffic.js";

const PASSES = {
  scores: "Pass 1 of 3, the scores",
  softmax: "Pass 2 of 3, the softmax",
  values: "Pass 3 of 3, the values",
};
const NAMES = { S: "scores", P: "weights", O: "the output" };

export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1)} MB`;
const kilobytes = (bytes) => String(Math.round(bytes / 1024));

/** How much of the fast memory is needed. */
export function heldInWords(settings, head, pass) {
  const bytes = heldBy(settings, head, pass).reduce((sum, one) => sum + one.bytes, 0);
  const of = `${kilobytes(bytes)} of ${kilobytes(head.capacity)} KB`;
  return bytes > head.capacity ? `Fast memory: ${of}, so this does not fit` : `Fast memory: ${of}`;
}

const listed = (parts) => parts.map((part) => NAMES[part] ?? part).join(", ").replace(/, ([^,]*)$/, " and $1");

/** One tile: which words meet, and what is moved. */
export function stepInWords({ rows, columns }, steps, n) {
  const { pass, row, column, read, written, moved } = steps[n];
  const tiles = steps.filter((one) => one.pass === pass).length;
  const place = `tile ${steps.slice(0, n + 1).filter((one) => one.pass === pass).length} of ${tiles}`;
  const start = PASSES[pass] ? `${PASSES[pass]}, ${place}` : place.replace("tile", "Tile");
  const first = row * rows + 1, key = column * columns + 1;
  const moves = [read.length ? `reads ${listed(read)}` : "", written.length ? `writes ${listed(written)}` : ""];
  return `${start}: queries ${first} to ${first + rows - 1} and keys ${key} to ${key + columns - 1}. ` +
    `It ${moves.filter(Boolean).join(" and ")} (${kilobytes(moved)} KB).`;
}

/** How many bytes each method moves in total. */
export function resultInWords(settings, head, tiles, table) {
  const times = (movedBy(table) / movedBy(tiles)).toFixed(1);
  const fits = heldInWords(settings, head, "tiles").endsWith("fit");
  return `In tiles, attention moves ${megabytes(movedBy(tiles))}; with the whole table, ${
    megabytes(movedBy(table))
  }, ` +
    `which is ${times} times as much.` +
    (fits ? " But these tiles do not fit into the fast memory: choose smaller ones." : "");
}
