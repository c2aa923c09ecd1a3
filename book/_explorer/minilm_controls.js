// What the reader sets: the sentence, the head, and whether the parameters are random.

import { HeadGrid } from "./head_grid.js";
import { button, ModelControls } from "./model_controls.js";
import { h, labelled, switchOf } from "./table.js";

/**
 * @typedef {object} Minilm what the element does, see minilm.js
 * @property {any} config
 * @property {any} sizes
 * @property {SVGSVGElement} svg
 * @property {(example: any) => void} choose
 * @property {() => void} typed
 * @property {(at: any) => void} look
 * @property {() => void} restart
 * @property {() => void} copyLink
 * @property {() => void} save
 */

export class MinilmControls extends ModelControls {
  name = h("p", { class: "attn-name" });
  control = h("p", { class: "attn-work" });

  /** @param {Minilm} minilm */
  constructor(minilm) {
    super(minilm, "attn-minilm-message");
    this.field = h("textarea", {
      ...{ rows: "2", autocomplete: "off", spellcheck: "false", "aria-describedby": "attn-minilm-message" },
      ...{ input: () => minilm.typed(), change: () => this.done() },
    });
    const { layers, heads } = minilm.sizes;
    this.grid = new HeadGrid({ layers, heads, choose: (layer, head) => minilm.look({ layer, head }) });
    this.random = switchOf(() => minilm.look({ random: this.random.checked }));
    this.elements = this.arranged(minilm);
  }

  arranged(minilm) {
    const row = (...controls) => h("div", { class: "attn-controls" }, ...controls);
    const examples = minilm.config.examples.map((one) => button(one.text, () => minilm.choose(one)));
    return [
      row(labelled("A sentence", this.field, { class: "attn-field attn-sentence" })),
      h("div", { class: "attn-buttons", role: "group", "aria-label": "Examples" }, ...examples),
      h("div", {}, this.message.element, this.restart, this.note),
      this.grid.element,
      row(labelled("Random parameters, as a control", this.random, { class: "attn-field attn-switch" })),
      this.name,
      this.canvas,
      this.summary.element,
      this.control,
      row(button("Copy link", () => minilm.copyLink()), button("Save picture", () => minilm.save()), this.linked),
    ];
  }
}
