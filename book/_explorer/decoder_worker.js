// Runs the decoder beside the page, so that the page never waits for it.

import { CausalLM } from "./causal_lm.js";
import { parsed, unpacked } from "./decoder_file.js";
import { nameOf } from "./decoder_text.js";
import { loadModel } from "./model_file.js";
import { byProbability } from "./sampling.js";
import { Tokenizer } from "./tokenizer.js";

const TURN = 30; // milliseconds of reading, after which the worker checks whether something else was asked
const AT_ONCE = 8; // tokens that are read in one pass, which takes about one turn

/** @type {any} the model, its tokenizer, and which tokens its cache holds */
let decoder = null;
let newest = 0; // the number of the newest question

/** Make the decoder from its file, or from what the page has already read. */
function take(file) {
  const { config, weights, merges } = unpacked(file instanceof Uint8Array ? parsed(file) : file);
  const newModel = () => new CausalLM(config, weights);
  decoder = { newModel, model: newModel(), tokenizer: new Tokenizer(merges), tokens: [], equal: false };
  const { bytes } = decoder.tokenizer;
  return { config, bytes, names: bytes.map(nameOf) };
}

/** Read a prompt and what was written after it, and answer with what is found at each token that is new. */
async function answer({ asked, text, written, equal }) {
  const { model, tokenizer } = decoder;
  const prompt = tokenizer.encode(text);
  const tokens = [...prompt, ...written];
  if (!prompt.length || tokens.length > model.config.context) return postMessage({ asked, refused: prompt.length });
  const same = equal === decoder.equal ? sameAtFirst(tokens, decoder.tokens) : 0;
  model.truncate(same);
  Object.assign(decoder, { equal, tokens: tokens.slice(0, same) });
  postMessage({ asked, tokens, prompt: prompt.length, same, more: true });
  const isWhole = await readAll(model, tokens, equal, asked, (found) => {
    decoder.tokens.push(found.token);
    postMessage({ asked, found, more: true });
  });
  if (isWhole) postMessage({ asked, done: true });
}

/** Read all cached tokens again, without the cache. */
async function answerWithoutCache({ asked }) {
  let work = 0, milliseconds = 0, last = null;
  const isWhole = await readAll(decoder.newModel(), decoder.tokens, decoder.equal, asked, (found) => {
    work += found.work;
    milliseconds += found.milliseconds;
    last = found.logits;
    postMessage({ asked, more: true });
  });
  if (isWhole) postMessage({ asked, again: { work, milliseconds, logits: last } });
}

/** Have a model read the tokens that it has not yet read; return false if something else was asked meanwhile. */
async function readAll(model, tokens, equal, asked, each) {
  let turn = performance.now();
  while (model.length < tokens.length) {
    const place = model.length, start = performance.now();
    const found = model.read(tokens.slice(place, place + AT_ONCE), equal);
    const milliseconds = (performance.now() - start) / found.length;
    found.forEach((one, n) => {
      each({ ...one, order: byProbability(one.logits), token: tokens[place + n], place: place + n, milliseconds });
    });
    if (performance.now() - turn < TURN) continue;
    await new Promise((next) => setTimeout(next));
    if (newest !== asked) return false;
    turn = performance.now();
  }
  return true;
}

function sameAtFirst(tokens, others) {
  const differs = tokens.findIndex((token, n) => token !== others[n]);
  return differs < 0 ? tokens.length : differs;
}

addEventListener("message", ({ data }) => {
  newest = data.asked ?? newest;
  if (data.load) loadModel(data.load, take);
  else if (data.again) answerWithoutCache(data);
  else if (decoder) answer(data); // otherwise the page asks again, once it is loaded
});
