// How far the decoder's model has come, and what to do if it does not arrive.

import { SAID } from "./decoder_words.js";
import { h } from "./table.js";

export class DecoderLoading {
  progress = h("progress", { max: "1", value: "0", "aria-label": "Loading the model" });
  element = h("div", { class: "attn-loading" });

  /**
   * @param {DOMStringMap} data of the element: where the file of the model is, and how long it is
   * @param {() => void} start called when the worker can begin to load
   */
  constructor(data, start) {
    this.data = data;
    this.start = start;
  }

  /** Where the file of the model is; or the file, in a page that was opened as a file and can fetch nothing. */
  file() {
    const { weights, length } = this.data;
    if (location.protocol === "file:") return { file: globalThis.DECODER_FILE };
    return { address: new URL(weights ?? "", location.href).href, length: Number(length) };
  }

  begin() {
    this.progress.value = 0;
    this.element.replaceChildren(this.progress, h("p", { role: "status" }, SAID.loading));
    if (location.protocol !== "file:" || globalThis.DECODER_FILE) return this.start();
    const script = h("script", { src: this.data.weights });
    script.onload = () => this.start();
    script.onerror = () => this.failed("lost");
    document.head.append(script);
  }

  /** Show why there is no model, and offer to try again. */
  failed(why) {
    const again = h("button", { type: "button", click: () => this.begin() }, "Try again");
    this.element.replaceChildren(h("p", { role: "status" }, SAID[why]), again);
  }
}
