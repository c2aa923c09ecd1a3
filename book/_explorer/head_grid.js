// Small pictures of the weights of all heads of a model; the reader can choose one head.

import { habit } from "./habits.js";
import { h } from "./table.js";

// The colour of the small pictures; a smaller weight is more transparent, which works on light and on dark pages.
const SHADE = [59, 130, 196];
const MOST_PIXELS = 24; // on each side, as in explorer.css

/** A table with a row for each layer and a column for each head. */
export class HeadGrid {
  /**
   * @param {object} options
   * @param {number} options.layers
   * @param {number} options.heads
   * @param {(layer: number, head: number) => void} options.choose called with the head that is chosen
   */
  constructor({ layers, heads, choose }) {
    this.layers = layers;
    this.heads = heads;
    const button = (layer, head) =>
      h(
        "button",
        {
          ...{ type: "button", class: "attn-small", tabindex: -1 },
          ...{ click: () => choose(layer, head), focus: () => choose(layer, head) },
        },
        h("canvas", { "aria-hidden": "true" }),
      );
    this.buttons = Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, n) => button(l, n)));
    this.element = this.arranged();
  }

  arranged() {
    const rows = this.buttons.map((row, l) =>
      h("tr", {}, h("th", { scope: "row" }, String(l)), ...row.map((one) => h("td", {}, one)))
    );
    const names = Array.from({ length: this.heads }, (_, n) => h("th", { scope: "col" }, String(n)));
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
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ??
      [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const layer = this.buttons.findIndex((row) => row.includes(event.target));
    const head = this.buttons[layer].indexOf(event.target);
    this.buttons[layer + down]?.[head + right]?.focus();
  }

  /** Name a head and draw its small picture. */
  draw(layer, head, weights) {
    const button = this.buttons[layer][head];
    const name = `Layer ${layer}, head ${head}: ${habit(weights)}`;
    Object.assign(button, { ariaLabel: name, title: name });
    const pixels = pictureOf(weights);
    const { width, height } = pixels;
    const canvas = Object.assign(/** @type {HTMLCanvasElement} */ (button.firstChild), { width, height });
    // Not on the GPU, which would be slower for 72 small pictures.
    canvas.getContext("2d", { willReadFrequently: true })?.putImageData(pixels, 0, 0);
  }

  /** Mark the head that is chosen; the Tab key leads to it. */
  mark(layer, head) {
    this.buttons.flat().forEach((button) => Object.assign(button, { tabIndex: -1, ariaPressed: "false" }));
    Object.assign(this.buttons[layer][head], { tabIndex: 0, ariaPressed: "true" });
  }
}

/** One pixel for each weight; if there is no room for that, a pixel shows the largest of several. */
function pictureOf(weights) {
  const size = weights.length;
  const side = Math.min(size, MOST_PIXELS);
  const { data } = new ImageData(side, side);
  for (let at = 0; at < data.length; at += 4) data.set(SHADE, at);
  const place = (i) => Math.floor(i * side / size);
  weights.forEach((row, i) =>
    row.forEach((w, j) => {
      const at = 4 * (place(i) * side + place(j)) + 3;
      data[at] = Math.max(data[at], 255 * w);
    })
  );
  return new ImageData(data, side, side);
}
