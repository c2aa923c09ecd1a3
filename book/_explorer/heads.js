// <attention-heads>: what every head of a real model attends to. The weights were computed while the book was built.

import { configuration, distinct, h, HeatTable, inWords, labelled, shown, Summary } from "./table.js";

// The colour of the small pictures, as transparent as a weight is small: it reads on a light page and on a dark one.
const SHADE = [59, 130, 196];

/** Read weights stored as whole numbers of steps, with nothing for 0: the heads of each layer, (L, H, T, T). */
export function unpacked(text, { layers, heads, steps }, size) {
  const numbers = text.split(" ").map((n) => Number(n) / steps);
  const row = (start) => numbers.slice(start, start + size);
  const table = (n) => Array.from({ length: size }, (_, i) => row((n * size + i) * size));
  return Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, n) => table(l * heads + n)));
}

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
  /** @type {HTMLButtonElement[][]} */
  buttons = [];
  table = new HeatTable({ rows: "query", columns: "key", total: true, look: (i, how) => this.look(i, how) });
  summary = new Summary();
  label = h("p", { class: "attn-name" });

  connectedCallback() {
    if (this.config) return;
    this.config = configuration(this);
    this.words = this.config.sentences.map(({ tokens }) => distinct(tokens));
    this.selected = { sentence: 0, layer: this.config.layer, head: this.config.head };
    this.replaceChildren(
      h(
        "div",
        { class: "attn", role: "group", "aria-label": this.config.caption },
        h("div", { class: "attn-controls" }, this.chooser()),
        this.overview(),
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

  /** Make the grid of small pictures, with a row for each layer and a column for each head. */
  overview() {
    const { layers, heads } = this.config;
    const button = (layer, head) =>
      h("button", {
        type: "button",
        class: "attn-small",
        tabindex: -1,
        click: () => this.choose({ layer, head }),
        focus: () => this.choose({ layer, head }),
      }, h("canvas", { "aria-hidden": "true" }));
    this.buttons = Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, n) => button(l, n)));
    const rows = this.buttons.map((row, l) =>
      h("tr", {}, h("th", { scope: "row" }, String(l)), ...row.map((one) => h("td", {}, one)))
    );
    const names = Array.from({ length: heads }, (_, n) => h("th", { scope: "col" }, String(n)));
    const table = h(
      "table",
      { class: "attn-overview" },
      h("caption", {}, "All heads"),
      h("thead", {}, h("tr", {}, h("td", {}, "layer\u00a0↓ head\u00a0→"), ...names)),
      h("tbody", { keydown: (event) => this.move(event) }, ...rows),
    );
    const how = h(
      "p",
      {},
      "Use the arrow keys to move from one head to the next. In each picture, rows are queries and columns are keys.",
    );
    return h("div", {}, h("div", { class: "attn-scroll" }, table), how);
  }

  move(event) {
    const { layers, heads } = this.config;
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ??
      [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const [layer, head] = [this.selected.layer + down, this.selected.head + right];
    if (layer >= 0 && layer < layers && head >= 0 && head < heads) this.buttons[layer][head].focus();
  }

  /** Name all heads and draw their small pictures, a pixel a weight. */
  draw() {
    this.heads.forEach((row, l) =>
      row.forEach((weights, n) => {
        const button = this.buttons[l][n];
        const name = `Layer ${l}, head ${n}: ${habit(weights)}`;
        Object.assign(button, { ariaLabel: name, title: name });
        const size = weights.length;
        const pixels = new ImageData(size, size);
        weights.flat().forEach((w, at) => pixels.data.set([...SHADE, 255 * w], 4 * at));
        const canvas = Object.assign(/** @type {HTMLCanvasElement} */ (button.firstChild), {
          width: size,
          height: size,
        });
        // Without a GPU, which would be slower for 72 small pictures.
        canvas.getContext("2d", { willReadFrequently: true })?.putImageData(pixels, 0, 0);
      })
    );
  }

  choose(chosen) {
    Object.assign(this.selected, chosen);
    const { sentence, layer, head } = this.selected;
    const tokens = this.words[sentence];
    this.weights = this.heads[layer][head];
    this.buttons.flat().forEach((button) => Object.assign(button, { tabIndex: -1, ariaPressed: "false" }));
    Object.assign(this.buttons[layer][head], { tabIndex: 0, ariaPressed: "true" });
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
