// What a head mostly does on a sentence, measured by its weights. It needs no DOM.

import { shown } from "./table.js";

const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// A habit is the mean weight that tokens give to one place. The first and the last token are [CLS] and [SEP], not words.
const HABITS = {
  "the token itself": (w) => mean(w.map((row, i) => row[i])),
  "the token before": (w) => mean(w.slice(1).map((row, i) => row[i])),
  "the token after": (w) => mean(w.slice(0, -1).map((row, i) => row[i + 1])),
  "the first token": (w) => mean(w.slice(1).map((row) => row[0])),
  "the last token": (w) => mean(w.slice(0, -1).map((row) => row.at(-1))),
};

/** Return the mean number of keys among which a row divides its attention: the exponential of its entropy. */
const spread = (w) => mean(w.map((row) => Math.exp(-row.reduce((sum, p) => sum + (p > 0 ? p * Math.log(p) : 0), 0))));

/** Say what a head mostly does on a sentence: its strongest habit if that takes half of the weight, else its spread. */
export function habit(weights) {
  const { name, share } = Object.entries(HABITS)
    .map(([each, measure]) => ({ name: each, share: measure(weights) }))
    .reduce((a, b) => (b.share > a.share ? b : a));
  return share >= 0.5
    ? `mostly ${name}, with ${shown(share)} of the weight`
    : `spread over ${spread(weights).toFixed(1)} tokens`;
}
