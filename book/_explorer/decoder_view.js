// Turns what the model computed into what is drawn and said about one token. It needs no DOM.

import { bytesInWords, tokenInWords } from "./decoder_words.js";
import { samplingProbabilities } from "./sampling.js";
import { pieces } from "./tokenizer.js";

const BARS = 8;

/**
 * @typedef {object} State
 * @property {any[]} found what the worker found at each token that is shown
 * @property {number[]} tokens
 * @property {number} prompt how many of them are the prompt
 * @property {number} place the one that looks
 * @property {import("./decoder_address.js").Shown} shown
 * @property {any} sizes
 * @property {number[][]} bytes of each token of the vocabulary
 * @property {string[]} names of each token of the vocabulary
 * @property {number} room
 * @property {number} top
 */

/** What the drawing needs, see decoder_scene.js. */
export function viewOf(/** @type {State} */ state) {
  const { found, tokens, prompt, place, shown, sizes, bytes, names, room, top } = state;
  const name = names[tokens[place]];
  const { layer, head } = shown;
  return {
    ...{ room, top, prompt, place, sizes, at: { layer, head }, weights: weightsOf(state) },
    pieces: pieces(tokens.map((token) => bytes[token])),
    pictures: found.map(({ picture }) => picture),
    bars: barsOf(state),
    barsTitle: `after “${name}”, token ${place + 1}`,
    weightsTitle: `layer ${layer}, head ${head}: where “${name}” looks`,
    cacheTitle: bytesInWords(tokens.length, found[0].kept.byteLength),
  };
}

/** The weights (place + 1,) of the head that is chosen. */
function weightsOf({ found, place, shown, sizes }) {
  const row = shown.layer * sizes.heads + shown.head;
  return found[place].weights.subarray(row * (place + 1), (row + 1) * (place + 1));
}

/** The most probable tokens, with the one that comes next, and all others together. */
function barsOf({ found, tokens, prompt, place, shown, names }) {
  const { logits, order } = found[place];
  const p = samplingProbabilities(logits, shown.temperature, shown.topP, order);
  const uncut = samplingProbabilities(logits, shown.temperature, 1, order);
  const next = tokens[place + 1];
  const first = [...order.subarray(0, BARS)];
  if (next !== undefined && !first.includes(next)) first[BARS - 1] = next;
  const bars = first.map((token) => ({
    ...{ token, name: names[token], probability: p[token] || uncut[token], isKept: p[token] > 0 },
    ...{ isNext: token === next, canTake: place >= prompt - 1 },
  }));
  const probability = Math.max(0, 1 - first.reduce((sum, token) => sum + p[token], 0));
  const others = { token: null, name: `${p.length - first.length} others`, isNext: false, canTake: false };
  return [...bars, { ...others, probability, isKept: true }];
}

/** What is said of the token that looks. */
export function sentenceOf(/** @type {State} */ state) {
  const { found, tokens, place, shown } = state;
  const names = tokens.map((token) => state.names[token]);
  const before = found[place - 1];
  const given = before ? samplingProbabilities(before.logits, 1, 1, before.order)[tokens[place]] : null;
  return tokenInWords({ names, place, given, weights: weightsOf(state), layer: shown.layer, head: shown.head });
}
