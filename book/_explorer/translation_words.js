// What the date translator says in words: what it did, and what is wrong with a text that it cannot read.

import { shown } from "./table.js";
import { LENGTH } from "./translator.js";

const MOST = 40; // characters that it reads

/** Say what is wrong with a text that came, and what to do; null if it can be translated. */
export function wrongText(text, reads) {
  const characters = [...text];
  if (!text.trim()) return "There is nothing to read. Type a date such as 3 may 1972, or choose an example.";
  if (characters.length > MOST) {
    return `The text has ${characters.length} characters, but the model reads at most ${MOST}. Shorten the text to a single date.`;
  }
  const unknown = [...new Set(characters.filter((character) => reads.indexOf(character) < 1))]; // the first one only pads
  if (!unknown.length) return null;
  const named = unknown.slice(0, 3).map((character) => `“\u2068${character}\u2069”`).join(", ");
  const more = unknown.length > 3 ? ` and ${unknown.length - 3} more` : "";
  return `The model has never seen ${named}${more}: it reads digits, spaces, commas, dots and the letters of English ` +
    "dates. Remove what it does not know.";
}

/** Name a character and its place: “N” (character 9). */
const named = (text, j) => `${text[j] === " " ? "the space" : `“${text[j]}”`} (character ${j + 1})`;

/** Say where a step looks. */
function looksAt(text, weights) {
  const places = weights.map((_, j) => j).sort((i, j) => weights[j] - weights[i]);
  if (weights[places[0]] - weights[places.at(-1)] < 1e-9) return "It looks at all characters equally.";
  const most = places.slice(0, 3).filter((j) => weights[j] >= 0.05 || j === places[0]);
  return `It looks most at ${most.map((j) => `${named(text, j)}, ${shown(weights[j])}`).join("; ")}.`;
}

/** Say what the translator did to write one character. */
export function stepInWords(text, { character, weights, probabilities }, t) {
  const sure = shown(Math.max(...probabilities));
  return `Character ${t + 1} of ${LENGTH} is “${character}”, with a probability of ${sure}. ${looksAt(text, weights)}`;
}

/** What it wrote. */
export const written = (steps) => steps.map(({ character }) => character).join("");

/** At which places two translations differ. */
export const differences = (one, other) =>
  one.flatMap(({ character }, t) => (character === other[t].character ? [] : [t]));

/**
 * Say what the translator wrote.
 *
 * @param {string} text
 * @param {{ own: any[], equal: any[] }} results with the weights of the model, and with equal ones
 * @param {boolean} isEqual which of them is shown
 * @param {number[] | null} changed places that changed with the last edit; null if the text was not edited
 */
export function resultInWords(text, { own, equal }, isEqual, changed) {
  if (isEqual) return `With equal weights, “${text}” becomes ${written(equal)}; with its own weights, ${written(own)}.`;
  const count = changed?.length ? `${changed.length} of ${LENGTH} characters` : "no characters";
  return `“${text}” becomes ${written(own)}${changed ? `; ${count} changed` : ""}.`;
}

/** Say how the prediction of where it looks for the year compares with where it looked. */
export function verdict(text, steps, guess) {
  const year = steps.slice(0, 4);
  let at = 0;
  const shares = text.split(" ").map((word) => {
    const from = text.indexOf(word, at);
    at = from + word.length;
    const share = ({ weights }) => weights.slice(from, at).reduce((a, b) => a + b);
    return { word, share: year.map(share).reduce((a, b) => a + b) / year.length };
  });
  const top = shares.reduce((a, b) => (b.share > a.share ? b : a)).word;
  const each = shares.map(({ word, share }, n) =>
    `${Math.round(100 * share)}%${n ? "" : " of its weight"} to “${word}”`
  );
  const all = `${each.slice(0, -1).join(", ")} and ${each.at(-1)}`;
  return `${guess === top ? "Right" : "No"}: while it writes the year, it gives ${all}.`;
}
