// What the decoder says in words: what it read or wrote, how it was done, and what is wrong with a prompt.

import { shown } from "./table.js";

const MOST_CHARACTERS = 20_000;

const { format: whole } = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
export const counted = (count) => `${whole(count)} ${count === 1 ? "token" : "tokens"}`;
const inQuotes = (name) => `“\u2068${name}\u2069”`;

/** Say what is wrong with a prompt that came, and what to do; null if the model may be able to read it. */
export function wrongPrompt(text, context) {
  if (!text) return "There is nothing to continue. Type the beginning of a program, or choose an example.";
  if (text.length <= MOST_CHARACTERS) return null;
  return `The prompt has ${whole(text.length)} characters, but the model reads at most ${context} tokens, about ${
    whole(100 * Math.round(0.036 * context))
  } characters. Shorten it.`;
}

/** Say that a text has more tokens than the model reads. */
export function tooLong(prompt, written, context) {
  const count = `The prompt has ${counted(prompt)}${written ? ` and its continuation ${whole(written)}` : ""}`;
  return `${count}, but the model reads at most ${context}. Shorten it.`;
}

/** Say where a head looks. */
function looksAt(names, weights) {
  const places = [...weights.keys()].sort((i, j) => weights[j] - weights[i]);
  if (places.length > 1 && weights[places[0]] - weights[places.at(-1)] < 1e-6) return "looks at all tokens equally";
  const most = places.slice(0, 2).filter((j, n) => weights[j] >= 0.05 || n === 0);
  return `looks most at ${most.map((j) => `${inQuotes(names[j])} (token ${j + 1}), ${shown(weights[j])}`).join("; ")}`;
}

/**
 * Say what a token is, and where a head looks from it.
 *
 * @param {object} token
 * @param {string[]} token.names of all tokens that are shown
 * @param {number} token.place
 * @param {number | null} token.given the probability that the model gave it; null for the first token
 * @param {ArrayLike<number>} token.weights of the head
 * @param {number} token.layer
 * @param {number} token.head
 */
export function tokenInWords({ names, place, given, weights, layer, head }) {
  const probability = given === null ? "" : `, to which the model gave a probability of ${shown(given)}`;
  return `Token ${place + 1} of ${names.length} is ${inQuotes(names[place])}${probability}. ` +
    `From there, head ${head} of layer ${layer} ${looksAt(names, Float64Array.from(weights))}.`;
}

/** Say what was written, at the end of a run. */
export function resultInWords({ text, count, rate, equal, own }) {
  const speed = rate ? `, ${whole(rate)} a second` : "";
  const control = own ? `; with its own weights, it wrote ${inQuotes(beginning(own))}` : "";
  if (equal) return `With equal weights, the model wrote ${inQuotes(beginning(text))}${control}.`;
  return `The model has written ${counted(count)}${speed}: ${inQuotes(beginning(text))}.`;
}

/** The beginning of a text, as it can be read aloud. */
function beginning(text) {
  const plain = text.replace(/\s+/g, " ").trim();
  return plain.length > 160 ? `${plain.slice(0, 160)}…` : plain;
}

const million = (number) => `${(number / 1e6).toFixed(number < 1e7 ? 1 : 0)} million`;

/** Say what the newest token cost with the cache. */
export const workInWords = ({ work, milliseconds }, count) =>
  `Reading token ${count} with the cache took ${million(work)} multiplications and ${milliseconds.toFixed(1)} ms.`;

/** Compare that with reading everything again. */
export function againInWords({ work, milliseconds }, cached, difference) {
  const equal = difference < 1e-4 ? "gives the same logits" : `changes the logits by up to ${shown(difference)}`;
  return `Reading everything again ${equal}, but takes ${million(work)} multiplications and ${
    milliseconds.toFixed(0)
  } ms: ${whole(work / cached.work)} times as many multiplications.`;
}

/** How much the cache takes. */
export const bytesInWords = (count, bytes) =>
  `cache: ${count} tokens × ${whole(bytes / 1024)} KiB = ${whole(count * bytes / 1024)} KiB`;

export const SAID = {
  full: (context) => `The context is full: the model reads no more than ${context} tokens.`,
  end: "The model has ended its text here. Step back, or sample other tokens.",
  again: "Reading everything again…",
  stopped: "The model has stopped responding. Start it again; your prompt and the text so far are still there.",
};
