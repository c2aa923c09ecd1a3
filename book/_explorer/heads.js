// <attention-heads>: what every head of a real model attends to. The weights were computed while the book was built.

import { habit } from "./habits.js";
import { HeadGrid } from "./head_grid.js";
import { configuration, distinct, h, HeatTable, inWords, labelled, Summary } from "./table.js";

/** Read weights stored as whole numbers of steps, with nothing for 0: the heads of each layer, (L, H, T, T). */
export function unpacked(text, { layers, heads, steps }, size) {
  const numbers = text.split(" ").map((n) => Number(n) / steps);
  const row = (start) => numbers.slice(start, start + size);
  const table = (n) => Array.from({ length: size }, (_, i) => row((n * size + i) * size));
  return Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, n) => table(l * heads + n)));
}

class AttentionHeads extends HTMLElement {
  /** @type {any} what Python wrote into the element */
  config = null;
  /** @type {string[][]} the tokens of each sentence */
  words = [];
  /** @type {number[][][][][]} the weights of the sentences that were shown so far */
  decoded = [];
  selected = { sentence: 0, layer: 0, head: 0 };
  picked = 1;
  /** @type {number | null} the row under the pointer */
  over = null;
  /** @type {number[][]} of the head that is shown */
  weights = [];
  /** @type {any} a HeadGrid */
  grid = null;
  table = new HeatTable({ rows: "query", columns: "key", total: true, look: (i, how) => this.look(i, how) });
  summary = new Summary();
  label = h("p", { class: "attn-name" });

  connectedCallback() {
    if (this.config) return;
    this.config = configuration(this);
    this.words = this.config.sentences.map(({ tokens }) => distinct(tokens));
    this.selected = { sentence: 0, layer: this.config.layer, head: this.config.head };
    const { layers, heads } = this.config;
    this.grid = new HeadGrid({ layers, heads, choose: (layer, head) => this.choose({ layer, head }) });
    this.replaceChildren(
      h(
        "div",
        { class: "attn", role: "group", "aria-label": this.config.caption },
        h("div", { class: "attn-controls" }, this.chooser()),
        this.grid.element,
        this.label,
        this.table.element,
        this.summary.element,
      ),
    );
    this.draw();
    this.choose({});
  }

  /** Return the weights of all heads on the sentence that is shown, (L, H, T, T). */
  get heads() {
    const { tokens, weights } = this.config.sentences[this.selected.sentence];
    return (this.decoded[this.selected.sentence] ??= unpacked(weights, this.config, tokens.length));
  }

  chooser() {
    const options = this.config.sentences.map(({ sentence }, n) => h("option", { value: n }, sentence));
    const change = (event) => {
      Object.assign(this, { picked: 1, over: null });
      this.choose({ sentence: Number(event.target.value) });
      this.draw();
    };
    return labelled("Sentence", h("select", { change }, ...options));
  }

  /** Name all heads and draw their small pictures. */
  draw() {
    this.heads.forEach((row, layer) => row.forEach((weights, head) => this.grid.draw(layer, head, weights)));
  }

  choose(chosen) {
    Object.assign(this.selected, chosen);
    const { sentence, layer, head } = this.selected;
    const tokens = this.words[sentence];
    this.weights = this.heads[layer][head];
    this.grid.mark(layer, head);
    this.label.textContent = `Layer ${layer}, head ${head}: ${habit(this.weights)}.`;
    this.table.caption.textContent = `Weights of layer ${layer}, head ${head}`;
    this.table.label(tokens, tokens);
    this.table.fill(this.weights, 1);
    this.tell();
  }

  look(row, how) {
    if (how === "pick") this.picked = row;
    this.over = how === "pick" ? null : row;
    this.tell();
  }

  tell() {
    const tokens = this.words[this.selected.sentence];
    const row = this.over ?? this.picked;
    this.table.mark(row, this.picked);
    this.summary.say(
      `Layer ${this.selected.layer}, head ${this.selected.head}: ${inWords(tokens[row], this.weights[row], tokens)}`,
    );
  }
}

customElements.define("attention-heads", AttentionHeads);
