// <attention-minilm>: all heads of all-MiniLM-L6-v2 on a sentence that the reader types.
// Its configuration is written by book/_tools/minilm.py. The model itself runs in a worker.

import { onWidth } from "./drawing.js";
import { habit } from "./habits.js";
import { fromMinilmAddress, minilmAddress } from "./minilm_address.js";
import { MinilmControls } from "./minilm_controls.js";
import { headScene } from "./minilm_scene.js";
import { controlInWords, headInWords, SAID, wrongSentence, wrongTokens } from "./minilm_words.js";
import { ModelElement } from "./model_element.js";
import { onFragment, savePicture } from "./share.js";
import { distinct } from "./table.js";

const MOVE = 250; // milliseconds that the arcs take to change to another head

class AttentionMinilm extends ModelElement {
  /** @type {any} what is shown at first, see minilm_address.js */
  defaults = null;
  /** @type {any} what is shown, and what is to be shown once the worker has read it */
  shown = null;
  /** @type {any} */
  asked = null;
  /** @type {any} the words that are shown, and the weights of all heads by layers: those of the model, and the control's */
  results = null;
  /** @type {any} the same for what is asked, while the worker reads it */
  coming = null;
  room = 0; // how wide the drawing may be
  isNew = false; // whether the token that looks has yet to be scrolled into view
  /** @type {number | undefined} */
  writing = undefined;

  connectedCallback() {
    if (this.config) return;
    this.begin(MINILM, SAID.stopped);
    this.defaults = { ...this.config.examples[0], random: false };
  }

  /** @override */
  startWorker() {
    if (location.protocol === "file:") this.failed(SAID.file);
    else super.startWorker();
  }

  // ---- the model

  /** @override */
  setSizes({ config }) {
    this.sizes = config;
  }

  /** @override */
  build() {
    this.controls = new MinilmControls(this);
    this.group.append(...this.controls.elements);
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "One token looks at all tokens");
    this.svg.addEventListener("click", (event) => this.pick(this.drawing.shapeOf(event.target)?.cell));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    onFragment((fragment) => this.restore(fragment));
    onWidth(this.controls.canvas, (width) => {
      this.room = width;
      this.draw(0);
    });
  }

  /** @override */
  open() {
    if (!this.restore()) this.choose(this.config.examples[0]);
  }

  /** @override */
  resume() {
    this.request(this.asked);
  }

  /** Start the model again after it has stopped. */
  restart() {
    this.controls.field.focus();
    this.controls.complain("");
    this.request(this.asked);
  }

  /** Take the weights of one layer after another, first those of the model, then those of the control. @override */
  answered(said, isNewest) {
    if (!isNewest) return;
    if (said.refused !== undefined) this.complain(wrongTokens(said.refused, this.sizes.context));
    if (said.words) this.coming = { words: distinct(said.words), own: [], random: [] };
    if (!said.weights) return;
    this.coming[said.kind].push(headsOf(said.weights, this.sizes.heads, this.coming.words.length));
    if (this.coming[said.kind].length < this.sizes.layers) return;
    if (said.kind === "own") this.accept();
    else this.compare();
  }

  /** The sentence has been read: show it from now on. */
  accept() {
    const { asked, coming } = this;
    const token = Math.min(asked.token, coming.words.length - 1);
    this.results = coming;
    this.shown = this.asked = { ...asked, token };
    this.isNew = true;
    if (this.controls.field.value === asked.text) this.controls.complain("");
    this.update(true);
  }

  /** The control has been computed as well. */
  compare() {
    this.update(this.shown.random);
  }

  // ---- sentences

  /** Show an example, with the head and the token that belong to it. */
  choose(example) {
    this.controls.field.value = example.text;
    this.ask({ ...(this.shown ?? this.defaults), ...example });
  }

  typed() {
    this.controls.typed();
    this.ask({ ...(this.shown ?? this.defaults), text: this.controls.field.value });
  }

  /** Have a sentence read, or say why it cannot be read. @override */
  ask(asked) {
    const wrong = wrongSentence(asked.text, this.sizes.context);
    if (wrong) this.complain(wrong);
    else this.request(asked);
  }

  request(asked) {
    this.asked = asked;
    if (!this.worker.worker) return this.load(); // which asks again
    this.worker.ask({ text: asked.text });
  }

  /** Say what is wrong; what was shown before stays. */
  complain(why) {
    const { shown } = this;
    this.controls.complain(shown ? `${why} Until then, the drawing shows “${shown.text.trim()}”.` : why);
    const isIdle = shown && this.hasControl && this.asked.text === shown.text;
    if (isIdle) this.asked = shown;
    else this.request(shown ?? { ...this.defaults }); // so that no answer about another sentence arrives
  }

  // ---- what the reader points at

  /** Look at another head or from another token; a sentence that is still being read will be shown in the same way. */
  look(at) {
    if (!this.shown) return;
    const { token: _, ...elsewhere } = at;
    this.asked = { ...this.asked, ...(this.asked.text === this.shown.text ? at : elsewhere) };
    this.shown = { ...this.shown, ...at };
    this.update(at.random !== undefined);
  }

  pick(cell) {
    if (cell?.kind === "chip") this.look({ token: cell.word });
  }

  key(event) {
    const { token } = this.shown;
    const last = this.results.words.length - 1;
    const to = { ArrowLeft: token - 1, ArrowRight: token + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.look({ token: Math.max(0, Math.min(last, to)) });
    this.drawing.element(`chip-${this.shown.token}`)?.focus();
  }

  // ---- what is shown

  /** The weights of all heads that are shown: those of the model, or the control's once they are there. */
  get heads() {
    const { own, random } = this.results;
    return this.shown.random && this.hasControl ? random : own;
  }

  get hasControl() {
    return this.results.random.length === this.sizes.layers;
  }

  /** The weights (T, T) of the head that is looked at. */
  headOf(all) {
    return all[this.shown.layer][this.shown.head];
  }

  /** Show what has changed, and say one sentence about it. */
  update(redraw = false) {
    const { layer, head, random } = this.shown;
    if (redraw) this.drawGrid();
    this.controls.grid.mark(layer, head);
    this.controls.random.checked = random;
    this.controls.name.textContent = `Layer ${layer}, head ${head}: ${habit(this.headOf(this.heads))}.`;
    this.draw(MOVE);
    this.tell();
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddress(), 400);
  }

  /** Draw all small pictures, one layer after another, so that nothing else on the page has to wait. */
  async drawGrid() {
    const { heads } = this;
    for (let layer = 0; layer < heads.length && this.heads === heads; layer++) {
      heads[layer].forEach((weights, head) => this.controls.grid.draw(layer, head, weights));
      await new Promise((next) => setTimeout(next));
    }
  }

  draw(duration) {
    if (!this.results || !this.room) return;
    const { room, results: { words, random }, shown: { token } } = this;
    const control = this.hasControl && !this.shown.random ? this.headOf(random)[token] : null;
    const scene = headScene({ words, token, weights: this.headOf(this.heads)[token], control, room });
    this.drawing.fit(scene.width, scene.height);
    this.controls.canvas.classList.toggle("attn-wide", scene.width > room);
    this.drawing.show(scene.shapes, duration);
    scene.shapes.forEach((one) => one.cell && this.name(one));
    if (this.isNew) this.controls.canvas.scrollLeft = scene.middle - room / 2;
    this.isNew = false;
  }

  /** Make a word a button; the Tab key leads to the one that looks. */
  name(/** @type {import("./shapes.js").Shape} */ { key, cell }) {
    const named = { role: "button", "aria-label": cell?.label, "aria-pressed": cell?.pressed };
    for (const [name, value] of Object.entries({ ...named, tabindex: cell?.pressed ? 0 : -1 })) {
      this.drawing.element(key)?.setAttribute(name, String(value));
    }
  }

  tell() {
    const { results: { words, own, random }, shown: { token, layer, head } } = this;
    const isControl = this.heads === random;
    const weights = this.headOf(this.heads)[token];
    this.controls.summary.say(headInWords({ words, token, weights, layer, head, random: isControl }));
    this.controls.control.textContent = this.hasControl
      ? controlInWords({
        words,
        own: this.headOf(own)[token],
        control: this.headOf(random)[token],
        random: isControl,
      })
      : SAID.control;
  }

  // ---- the address of the page

  /** @override */
  fromAddress(fragment) {
    return fromMinilmAddress(fragment, this.defaults);
  }

  /** @override */
  get address() {
    return minilmAddress(this.shown, this.defaults);
  }

  save() {
    savePicture(this.svg, "attention");
  }
}

/** The weights (H, T, T) of a layer as a table for each head. */
function headsOf(weights, heads, size) {
  const row = (n) => weights.subarray(n * size, (n + 1) * size);
  return Array.from({ length: heads }, (_, h) => Array.from({ length: size }, (_, i) => row(h * size + i)));
}

customElements.define("attention-minilm", AttentionMinilm);
