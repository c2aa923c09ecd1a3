// Translates dates beside the page, so that the page never waits for it.

import { matrices, translate } from "./translator.js";

/** @type {any} */
let model = null;

addEventListener("message", ({ data }) => {
  if (data.shapes) model = { ...data, weights: matrices(data.shapes, data.numbers) };
  else {
    const [own, equal] = [false, true].map((isEqual) => translate(model, data.text, isEqual));
    postMessage({ asked: data.asked, own, equal });
  }
});
