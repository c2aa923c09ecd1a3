// What the drawing of a translation consists of: shapes, each known by its key. It needs no DOM.
//
// S characters are read and T written. The row of a written character has the weights with which it looked at each
// character that was read.

import { COLOURS } from "./colours.js";
import { label, shape, THICKEST } from "./shapes.js";
import { LENGTH } from "./translator.js";

const CHIP = { y: 4, height: 26 };
const WRITTEN = { y: 142, height: 30 };
const NAMES = 192; // the characters above the rows
const ROWS = 198;
const ROW = 18;
const MARGIN = 22;
const COLUMN = [9, 30]; // how wide the column of a character is, at least and at most

/** @typedef {import("./shapes.js").Shape} Shape */

/**
 * @typedef {object} View
 * @property {string} text what is read
 * @property {import("./translator.js").Step[]} steps
 * @property {number} count how many characters are written so far
 * @property {number} chosen the one whose weights are shown
 * @property {number[]} changed those that the last change of the text has changed
 * @property {number} room how wide the drawing may be
 */

/**
 * Everything that is drawn.
 *
 * @param {View} view
 * @returns {{ shapes: Shape[], width: number, height: number }}
 */
export function translationScene(view) {
  const S = view.text.length;
  const column = Math.min(COLUMN[1], Math.max(COLUMN[0], (view.room - MARGIN - 2) / S));
  const width = Math.max(view.room, MARGIN + column * S + 2);
  const left = MARGIN + (width - MARGIN - column * S) / 2;
  const box = Math.min(34, view.room / LENGTH);
  const v = {
    ...{ ...view, column, left, box, width },
    middle: (j) => left + column * (j + 0.5),
    boxAt: (t) => (view.room - box * LENGTH) / 2 + box * t, // in sight, even where the text has to be scrolled
    looking: view.count ? view.steps[view.chosen].weights : null,
  };
  return { shapes: [...arcs(v), ...read(v), ...writing(v), ...rows(v)], width, height: ROWS + ROW * LENGTH + 4 };
}

/** From the character that is written to all that it looks at, as thick as the weights. */
function arcs({ text, looking, middle, boxAt, box, chosen }) {
  if (!looking) return [];
  const from = boxAt(chosen) + box / 2;
  return [...text].map((_, j) => {
    const d = `M ${from} ${WRITTEN.y} C ${from} 86 ${middle(j)} 86 ${middle(j)} ${CHIP.y + CHIP.height}`;
    return shape(`arc-${j}`, "path", {
      ...{ d, fill: "none", stroke: COLOURS.query, "stroke-linecap": "round" },
      "stroke-width": 0.5 + THICKEST * looking[j],
      "stroke-opacity": 0.15 + 0.7 * looking[j],
    });
  });
}

/** The characters that are read. */
function read({ text, looking, middle, column }) {
  const size = Math.min(16, Math.max(11, 0.8 * column));
  return [...text].flatMap((character, j) => {
    const attributes = {
      ...{
        x: middle(j) - column / 2 + 0.5,
        y: CHIP.y,
        width: column - 1,
        height: CHIP.height,
        rx: Math.min(8, column / 4),
      },
      ...{
        fill: COLOURS.key,
        "fill-opacity": 0.08 + 0.6 * (looking?.[j] ?? 0),
        stroke: COLOURS.key,
        "stroke-opacity": 0.5,
      },
    };
    return [
      shape(`read-${j}`, "rect", attributes),
      label(`read-name-${j}`, middle(j), CHIP.y + 18, shownAs(character), { "font-size": size }),
    ];
  });
}

const shownAs = (character) => (character === " " ? "␣" : character);

/** The characters that are written, and room for those that are not written yet. */
function writing(/** @type {any} */ { steps, count, chosen, changed, boxAt, box }) {
  return Array.from({ length: LENGTH }, (_, t) => {
    const isWritten = t < count;
    const isChosen = isWritten && t === chosen;
    const attributes = {
      ...{ x: boxAt(t) + 1, y: WRITTEN.y, width: box - 2, height: WRITTEN.height, rx: 6, fill: COLOURS.query },
      ...{ "fill-opacity": isChosen ? 0.3 : isWritten ? 0.08 : 0, stroke: isWritten ? COLOURS.query : COLOURS.word },
      ...{ "stroke-width": isChosen ? 2.5 : 1, "stroke-dasharray": isWritten ? "none" : "2 4" },
    };
    const character = isWritten ? steps[t].character : "";
    const name = `Character ${t + 1}: ${character}${changed.includes(t) ? ", changed" : ""}`;
    const cell = { kind: "written", word: t, label: name, pressed: isChosen };
    const bar = { x: boxAt(t) + 5, y: WRITTEN.y + WRITTEN.height - 6, width: box - 10, height: 3, fill: COLOURS.value };
    return [
      shape(`written-${t}`, "rect", attributes, isWritten ? { cell } : {}),
      label(`written-name-${t}`, boxAt(t) + box / 2, WRITTEN.y + 20, character, {
        ...{ "font-size": 16, "font-weight": isChosen ? 700 : 500 },
      }),
      ...(isWritten && changed.includes(t) ? [shape(`changed-${t}`, "rect", bar)] : []),
    ];
  }).flat();
}

/** The weights of all characters that are written, a row each: the alignment. */
function rows(/** @type {any} */ { text, steps, count, chosen, left, middle, column }) {
  const names = [...text].map((character, j) =>
    label(`name-${j}`, middle(j), NAMES, shownAs(character), {
      "font-size": Math.min(12, 1.2 * column),
      "fill-opacity": 0.8,
    })
  );
  const lines = Array.from({ length: LENGTH }, (_, t) => {
    const y = ROWS + ROW * t;
    const isChosen = t < count && t === chosen;
    const frame = {
      ...{ x: left, y: y + 0.5, width: column * text.length, height: ROW - 1, fill: "none", "pointer-events": "all" },
      ...{ stroke: isChosen ? COLOURS.query : COLOURS.word, "stroke-width": isChosen ? 2 : 1 },
      "stroke-opacity": isChosen ? 1 : 0.25,
    };
    const cells = t < count
      ? steps[t].weights.map((weight, j) => cellOf(t, j, weight, { x: left + column * j, y, column }))
      : [];
    const name = t < count ? steps[t].character : "";
    return [
      ...cells.filter((one) => one !== null),
      shape(`row-${t}`, "rect", frame, t < count ? { cell: { kind: "row", word: t, label: "" } } : {}),
      label(`row-name-${t}`, left - 11, y + 13, name, { "font-weight": isChosen ? 700 : 400 }),
    ];
  });
  return [...names, ...lines.flat()];
}

/** A weight; one that would not be seen is not drawn. */
const cellOf = (t, j, weight, { x, y, column }) =>
  weight < 0.005 ? null : shape(`cell-${t}-${j}`, "rect", {
    ...{ x, y: y + 1, width: column, height: ROW - 2, fill: COLOURS.score, "fill-opacity": 0.05 + 0.9 * weight },
  });
