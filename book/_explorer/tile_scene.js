// What the drawing of attention in tiles consists of: shapes, each known by its key. It needs no DOM.

import { COLOURS } from "./colours.js";
import { label, shape } from "./shapes.js";
import { allows, heldBy, isPartial, movedBy } from "./tile_traffic.js";
import { heldInWords, megabytes } from "./tile_words.js";

const LARGEST = 290; // pixels of the table
const STRIP = 15; // how thick Q, K, V and O are drawn
const TOP = 76; // where the table begins
const BAR = 22;
const PARTS = { Q: COLOURS.query, K: COLOURS.key, V: COLOURS.value, O: COLOURS.value, tile: COLOURS.score };

/** @typedef {import("./shapes.js").Shape} Shape */

/**
 * Everything that is drawn.
 *
 * @param {object} view
 * @param {import("./tile_traffic.js").Settings} view.settings
 * @param {import("./tile_traffic.js").Head} view.head
 * @param {import("./tile_traffic.js").Step[]} view.steps those of the method that is shown
 * @param {number} view.step the number of the one that is computed
 * @param {Record<"tiles" | "table", number>} view.totals bytes that each method moves
 * @param {number} view.room how wide the drawing may be
 * @returns {{ shapes: Shape[], width: number, height: number }}
 */
export function tileScene(view) {
  const { settings, head, steps, step, room } = view;
  const side = Math.min(LARGEST, room - 110);
  const v = {
    ...{ ...view, side, left: (room - side) / 2, now: steps[step] },
    rowAt: (row) => TOP + side * row * settings.rows / head.words,
    columnAt: (column) => (room - side) / 2 + side * column * settings.columns / head.words,
    high: side * settings.rows / head.words,
    wide: side * settings.columns / head.words,
  };
  const bottom = TOP + side + 20;
  const shapes = [...slowMemory(v, bottom), ...table(v), ...strips(v), ...fastMemory(v, bottom), ...traffic(v, bottom)];
  return { shapes, width: room, height: bottom + 150 };
}

function slowMemory({ room, side, left, settings }, bottom) {
  const frame = { x: 1, y: 1, width: room - 2, height: bottom - 6, rx: 8, fill: "none", stroke: COLOURS.word };
  const isTable = settings.method === "table";
  const stored = isTable ? "Q, K, V, O and the table" : "Q, K, V and O";
  return [
    shape("slow", "rect", frame),
    label("slow-name", 12, 18, `Slow memory: ${stored}`, { "text-anchor": "start", "font-weight": 600 }),
    label("key-axis", left + side / 2, 34, "key →", { "fill-opacity": 0.8 }),
    label("query-axis", left - 44, TOP + side / 2, "← query", {
      ...{ "fill-opacity": 0.8, transform: `rotate(-90 ${left - 44} ${TOP + side / 2})` },
    }),
  ];
}

/** The tiles of the table: those that are computed, and with the whole table also those that are kept. */
function table(v) {
  const { settings, head, steps, step, now } = v;
  const done = new Map(steps.slice(0, step).map((one) => [`${one.row} ${one.column}`, one.pass]));
  const cells = [];
  for (let row = 0; row < head.words / settings.rows; row++) {
    for (let column = 0; column < head.words / settings.columns; column++) {
      cells.push(cellOf(v, row, column, done.get(`${row} ${column}`)));
    }
  }
  const place = { x: v.columnAt(now.column), y: v.rowAt(now.row), width: v.wide, height: v.high };
  return [...cells, shape("now", "rect", { ...place, fill: COLOURS.score, stroke: "currentColor", "stroke-width": 2 })];
}

function cellOf(v, row, column, pass) {
  const { settings } = v;
  const isSkipped = settings.method === "tiles" && !allows(settings, row, column);
  const kept = { scores: COLOURS.score, softmax: COLOURS.query, values: COLOURS.query }[pass];
  const half = isPartial(settings, row, column) ? 0.5 : 1; // some of its pairs are masked
  return shape(`cell-${row}-${column}`, "rect", {
    ...{ x: v.columnAt(column) + 0.5, y: v.rowAt(row) + 0.5, width: v.wide - 1, height: v.high - 1 },
    ...{ fill: kept ?? COLOURS.score, "fill-opacity": kept ? 0.5 * half : pass ? 0.14 * half : 0 },
    ...{ stroke: COLOURS.word, "stroke-opacity": isSkipped ? 0.15 : 0.6 },
  });
}

/** The matrices beside the table, with what is read or written now. */
function strips(v) {
  const { side, left, now, settings } = v;
  const across = (name, y, at, thick) => ({
    whole: { x: left, y, width: side, height: STRIP },
    part: { x: at, y, width: thick, height: STRIP },
    ...{ name, label: [left - 12, y + 12] },
  });
  const along = (name, x) => ({
    whole: { x, y: TOP, width: STRIP, height: side },
    part: { x, y: v.rowAt(now.row), width: STRIP, height: v.high },
    ...{ name, label: [x + STRIP / 2, TOP + side + 13] },
  });
  const parts = [
    across("K", TOP - 38, v.columnAt(now.column), v.wide),
    across("V", TOP - 20, v.columnAt(now.column), v.wide),
    along("Q", left - STRIP - 4),
    along("O", left + side + 4),
  ];
  return parts.flatMap(({ name, whole, part, label: [x, y] }) => {
    const isMoved = now.read.includes(name) || now.written.includes(name);
    const isHeld = settings.method === "tiles" && (name === "Q" || name === "O");
    return [
      shape(`strip-${name}`, "rect", { ...whole, fill: PARTS[name], "fill-opacity": 0.12, stroke: PARTS[name] }),
      shape(`part-${name}`, "rect", {
        ...{ ...part, fill: PARTS[name], "fill-opacity": isMoved ? 1 : isHeld ? 0.45 : 0 },
      }),
      label(`strip-name-${name}`, x, y, name, { "font-weight": isMoved ? 700 : 400 }),
    ];
  });
}

/** What is held on the chip, compared with its capacity. */
function fastMemory({ settings, head, now, room }, bottom) {
  const held = heldBy(settings, head, now.pass);
  const all = held.reduce((sum, { bytes }) => sum + bytes, 0);
  const scale = (room - 24) / Math.max(all, head.capacity);
  const y = bottom + 26;
  let x = 12;
  const segments = held.flatMap(({ part, bytes }) => {
    const width = bytes * scale;
    const at = x;
    x += width;
    const name = width > 9 * part.length + 4 ? part : "";
    return [
      shape(`held-${part}`, "rect", {
        ...{ x: at, y, width, height: BAR, fill: PARTS[part] ?? COLOURS.word, "fill-opacity": 0.45 },
        ...{ stroke: PARTS[part] ?? COLOURS.word },
      }),
      label(`held-name-${part}`, at + width / 2, y + 15.5, name),
    ];
  });
  const limit = 12 + head.capacity * scale;
  return [
    label("fast-name", 12, y - 8, heldInWords(settings, head, now.pass), {
      ...{ "text-anchor": "start", "font-weight": 600 },
    }),
    ...segments,
    shape("limit", "path", { d: `M ${limit} ${y - 4} V ${y + BAR + 4}`, stroke: "currentColor", "stroke-width": 3 }),
  ];
}

/** The bytes that each method moves: the bar is filled up to those moved so far. */
function traffic({ settings, steps, step, totals, room }, bottom) {
  const y = bottom + 82;
  const scale = (room - 24) / Math.max(...Object.values(totals));
  const soFar = movedBy(steps.slice(0, step + 1));
  const title = label("moved-name", 12, y - 8, "Bytes moved", { "text-anchor": "start", "font-weight": 600 });
  const bars = ["tiles", "table"].flatMap((method, n) => {
    const top = y + 32 * n;
    const moved = method === settings.method ? soFar : 0;
    const name = `${method === "tiles" ? "in tiles" : "whole table"}: ${
      moved && moved < totals[method] ? `${megabytes(moved)} of ` : ""
    }${megabytes(totals[method])}`;
    const box = { x: 12, y: top, height: BAR, rx: 3 };
    return [
      shape(`moved-${method}`, "rect", { ...box, width: moved * scale, fill: COLOURS.score, "fill-opacity": 0.45 }),
      shape(`total-${method}`, "rect", { ...box, width: totals[method] * scale, fill: "none", stroke: COLOURS.score }),
      label(`moved-text-${method}`, 18, top + 15.5, name, { "text-anchor": "start" }),
    ];
  });
  return [title, ...bars];
}
