// What is said about a head of all-MiniLM-L6-v2 on a sentence, and about a sentence that cannot be read.

import { best, inWords, shown } from "./table.js";

const MOST_CHARACTERS = 5_000;

const { format: whole } = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

/** Say what is wrong with a typed sentence, and what to do; null if the model may be able to read it. */
export function wrongSentence(text, context) {
  if (text.length <= MOST_CHARACTERS) return null;
  return `The text has ${
    whole(text.length)
  } characters, but a sentence may have at most ${context} tokens here. Shorten it.`;
}

/** Say why a sentence of this many tokens cannot be read. */
export const wrongTokens = (count, context) =>
  count <= 2
    ? "There is no word to look from. Type a sentence, or choose an example."
    : `The sentence has ${whole(count)} tokens, but the page shows at most ${context}. Shorten it.`;

/** Say where a head looks from one token, in one sentence. */
export function headInWords({ words, token, weights, layer, head, random }) {
  const said = inWords(words[token], Array.from(weights), words).replace(/\.$/, "");
  const equal = `an equal share would be ${shown(1 / words.length)}`;
  return `${random ? "Random parameters, layer" : "Layer"} ${layer}, head ${head}: ${said}; ${equal}.`;
}

/** Compare what a head gives to the token at which it looks most, in the trained model and with random parameters. */
export function controlInWords({ words, own, control, random }) {
  const [most] = best(Array.from(own));
  if (random) return `With its trained parameters, this head gives the most to “${words[most]}”: ${shown(own[most])}.`;
  return `With random parameters, this head gives “${words[most]}” ${shown(control[most])}, and no token more than ${
    shown(Math.max(...control))
  }.`;
}

export const SAID = {
  control: "Computing the same heads with random parameters…",
  stopped: "The model has stopped responding. Start it again; your sentence is still there.",
  file:
    "A page that was opened as a file cannot read the model. Run `make serve` in the folder of the course, and open the page at the address that it prints.",
};
