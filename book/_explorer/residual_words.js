// The formulas of the drawing of the residual stream, with their numbers, and its sentences. It needs no DOM.

import { lengthOf, momentsOf } from "./transformer_block.js";

export const PARTS_IN_WORDS = { attention: "attention", feed_forward: "the feed-forward layer" };
const ERASED = "All components of a sum were equal, so the norm leaves only zeros.";
const UPDATES = { attention: "a", feed_forward: "f" };

/**
 * @typedef {object} Passage how one word passes through the block
 * @property {import("./residual_address.js").Settings} settings
 * @property {import("./transformer_block.js").Stage[]} stages
 * @property {string[]} words
 * @property {number} word the one that is followed
 * @property {Record<string, any>} params
 */

export const hundredths = (x) => Math.round(x * 100) / 100 || 0; // not −0

/** A number, with at most two decimals. */
export const rounded = (x) => hundredths(x).toString().replace("-", "−");

export const vectorText = (row) => `(${row.map(rounded).join(", ")})`;

/** The terms of a sum, joined by their signs. */
const summed = (terms) =>
  terms.map((term, n) => n ? (term.startsWith("−") ? ` − ${term.slice(1)}` : ` + ${term}`) : term).join("");

const rowAt = (passage, n) => passage.stages[n].rows[passage.word];

/** The last stage before stage n whose rows are the stream. */
export const streamBefore = ({ stages }, n) => stages.slice(0, n).findLastIndex(({ isStream }) => isStream);

/** What the rows of a stage are called in the formulas. */
export function symbolOf({ stages, settings }, n) {
  const { kind, part, isStream } = stages[n];
  if (kind === "input") return "x";
  const [before, after] = part === "attention" ? ["x", "x′"] : ["x′", "y"];
  if (kind === "update") return UPDATES[part];
  if (kind === "norm") return isStream ? after : `norm(${before})`;
  return settings.norm === "pre" ? after : `${before} + ${UPDATES[part]}`;
}

/**
 * The formula of a stage, in pieces. The term of a piece is the stage whose rows it shows.
 *
 * @param {Passage} passage
 * @param {number} n which stage
 * @returns {import("./steps.js").Piece[]}
 */
export function residualFormula(passage, n) {
  const { kind, part } = passage.stages[n];
  const row = (at) => ({ text: vectorText(rowAt(passage, at)), kind: colourOf(passage.stages[at]), term: at });
  const start = { text: `${symbolOf(passage, n)} = ` };
  const end = [{ text: " = " }, row(n)];
  if (kind === "input") return [start, row(n)];
  if (kind === "norm") return [start, { text: "(" }, row(n - 1), { text: normed(rowAt(passage, n - 1)) }, ...end];
  if (kind === "sum") return [start, row(streamBefore(passage, n)), { text: " + " }, row(n - 1), ...end];
  if (part && passage.settings.off.includes(part)) return [start, row(n)];
  return [start, ...(part === "attention" ? weighted(passage, n) : transformed(passage, n)), ...end];
}

/** The colour of what a stage computes: that of the part whose update it is, or else the stream's. */
export function colourOf({ kind, part }) {
  return kind !== "update" ? "word" : part === "attention" ? "score" : "value";
}

/** What a norm does with a row: "− 3) / 2". */
function normed(row) {
  const { mean, deviation } = momentsOf(row);
  const divisor = rounded(deviation);
  return ` ${mean < 0 ? "+" : "−"} ${rounded(Math.abs(mean))}) / ${divisor === "0" ? "√ε" : divisor}`;
}

/** What attention adds up: "1 · (1, 1, −1, −1) + 0 · (−1, −1, 1, 1)". */
function weighted({ stages, word, words }, n) {
  const { weights, handed } = stages[n];
  return words.flatMap((_, j) => [
    { text: `${j ? " + " : ""}${rounded(weights[word][j])} · ` },
    { text: vectorText(handed[j]), kind: /** @type {const} */ ("word") },
  ]);
}

/** What the feed-forward layer computes: "max(0, 1 + 1) · (1, 0, 0, 0)". */
function transformed(passage, n) {
  const { params, stages, word } = passage;
  const read = stages[n - 1].rows[word];
  const hidden = params["linear1.weight"].map((weights, f) => {
    const terms = weights.flatMap((w, e) =>
      w ? [w === 1 ? rounded(read[e]) : `${rounded(w)} · ${rounded(read[e])}`] : []
    );
    const column = params["linear2.weight"].map((to) => to[f]);
    return `max(0, ${summed(terms)}) · ${vectorText(column)}`;
  });
  return [{ text: hidden.join(" + ") }];
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const lengthAt = (passage, n) => rounded(lengthOf(rowAt(passage, n)));

/** One or two sentences about each kind of stage. */
const SENTENCES = {
  input: (passage) =>
    `The row of “${passage.words[passage.word]}” enters the stream. Its length is ${lengthAt(passage, 0)}.`,
  norm(passage, n) {
    const { isStream, part } = passage.stages[n];
    if (!isStream) {
      return `The norm makes a copy of the stream for ${PARTS_IN_WORDS[part]} to read. The stream stays as it is.`;
    }
    const lengths = `Its length was ${lengthAt(passage, n - 1)}, and is now ${lengthAt(passage, n)}.`;
    return `The norm replaces the stream. ${lengthAt(passage, n) === "0" ? ERASED : lengths}`;
  },
  update(passage, n) {
    const { part, weights, hidden } = passage.stages[n];
    const name = capital(PARTS_IN_WORDS[part]);
    if (passage.settings.off.includes(part)) return `${name} is switched off: its update is 0.`;
    const makes = `This makes an update of length ${lengthAt(passage, n)}.`;
    if (part === "feed_forward") {
      const units = hidden[passage.word].map(rounded).join(", ");
      return `${name} reads this row alone. Its hidden unit has the value ${units}. ${makes}`;
    }
    const looks = passage.words.map((word, j) => `${rounded(weights[passage.word][j])} to “${word}”`);
    return `${name} reads the rows of all words, and gives a weight of ${looks.join(" and ")}. ${makes}`;
  },
  sum(passage, n) {
    const [before, after] = [lengthAt(passage, streamBefore(passage, n)), lengthAt(passage, n)];
    return lengthAt(passage, n - 1) === "0"
      ? `The update is 0, so the stream stays as it was, with a length of ${after}.`
      : `The update is added to the stream, whose length goes from ${before} to ${after}.`;
  },
};

/**
 * What happens at a stage, in words.
 *
 * @param {Passage} passage
 * @param {number} n which stage
 */
export const stageInWords = (passage, n) => SENTENCES[passage.stages[n].kind](passage, n);

/**
 * What leaves the block, and what contributed to it.
 *
 * @param {Passage} passage
 */
export function outputInWords(passage) {
  const { stages, words, word, settings } = passage;
  const last = stages.length - 1;
  const start = `“${words[word]}” leaves the block as ${vectorText(rowAt(passage, last))}`;
  if (settings.norm === "post") {
    const isErased = stages.some(({ kind }, n) => kind === "norm" && lengthAt(passage, n) === "0");
    return `${start}. Each sum went through a norm, so the input is no longer a term of the output.${
      isErased ? ` ${ERASED}` : ""
    }`;
  }
  const updates = stages.flatMap(({ kind, part }, n) =>
    kind === "update" && lengthAt(passage, n) !== "0"
      ? [`an update of length ${lengthAt(passage, n)} from ${PARTS_IN_WORDS[part]}`]
      : []
  );
  return updates.length
    ? `${start}: its input, plus ${updates.join(" and ")}.`
    : `${start}, just as it came in: both updates are 0.`;
}
