// Runs all-MiniLM-L6-v2 beside the page, so that the page never waits for it.

import { Bert } from "./bert.js";
import { decompressed, unpackedMinilm } from "./minilm_file.js";
import { loadModel } from "./model_file.js";
import { untrained } from "./untrained.js";
import { WordPiece } from "./word_piece.js";

const SEED = 1; // of the random parameters

/** @type {any} the tokenizer, the model, and how to make the one with random parameters */
let minilm = null;
let newest = 0; // the number of the newest question

/** Make the model from its file. */
async function take(file) {
  const { config, vocabulary, wordOf, weights } = unpackedMinilm(await decompressed(file));
  const control = () => {
    const random = untrained(weights, SEED);
    return new Bert(config, random.weights, random.wordOf);
  };
  minilm = { config, control, tokenizer: new WordPiece(vocabulary), own: new Bert(config, weights, wordOf) };
  return { config };
}

/** Read a sentence, and answer with the weights of each layer; then the same with random parameters. */
async function answer({ asked, text }) {
  const { config, tokenizer, own } = minilm;
  const tokens = tokenizer.encode(text);
  if (tokens.length <= 2 || tokens.length > config.context) return postMessage({ asked, refused: tokens.length });
  postMessage({ asked, words: tokens.map((token) => tokenizer.vocabulary[token]), more: true });
  if (await readAll(own, "own", tokens, asked)) {
    minilm.random ??= minilm.control();
    if (await readAll(minilm.random, "random", tokens, asked)) postMessage({ asked, done: true });
  }
}

/** Read a sentence; return false if something else was asked meanwhile. */
async function readAll(model, kind, tokens, asked) {
  for (const weights of model.read(tokens)) {
    postMessage({ asked, kind, weights, more: true }, { transfer: [weights.buffer] });
    await new Promise((next) => setTimeout(next));
    if (newest !== asked) return false;
  }
  return true;
}

addEventListener("message", ({ data }) => {
  newest = data.asked ?? newest;
  if (data.load) loadModel(data.load, take);
  else if (minilm) answer(data); // otherwise the page asks again, once it is loaded
});
