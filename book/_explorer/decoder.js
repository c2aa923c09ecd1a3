// <attention-decoder>: the course's language model, which continues what the reader types.
// Its configuration is written by book/_tools/decoder.py. The model itself runs in a worker.

import { decoderAddress, fromDecoderAddress } from "./decoder_address.js";
import { DecoderControls } from "./decoder_controls.js";
import { nameShapes } from "./decoder_names.js";
import { pictureOf } from "./decoder_picture.js";
import { DecoderPointer } from "./decoder_pointer.js";
import { decoderScene } from "./decoder_scene.js";
import { sentenceOf, viewOf } from "./decoder_view.js";
import { againInWords, counted, resultInWords, SAID, tooLong, wrongPrompt } from "./decoder_words.js";
import { mayMove, onWidth } from "./drawing.js";
import { ModelElement } from "./model_element.js";
import { draw, randomAt, samplingProbabilities } from "./sampling.js";
import { onFragment, savePicture } from "./share.js";
import { h } from "./table.js";
import { END, pieces } from "./tokenizer.js";

const MOVE = 250; // milliseconds that a new column takes
const REST = 60; // milliseconds between two drawings while the model writes: drawing takes longer than a token
const REST_READING = 300; // the same while it reads a given text
const SHAPES_PER_FRAME = 100; // the first drawing is built up in parts, so that it never blocks the page
const FIRST_RUN = 40; // tokens
const RUN = 100;

class AttentionDecoder extends ModelElement {
  /** @type {any} what is shown at first */
  defaults = null;
  /** @type {number[][]} the bytes of each token of the vocabulary */
  bytes = [];
  /** @type {string[]} their names */
  names = [];
  /** @type {any[]} what the worker found at each token, in the order of the text */
  found = [];
  /** @type {any} what is to be shown when the worker begins to read it; then the same as what is shown */
  asked = {};
  plays = false; // whether the text is continued once it is read
  /** @type {any} what is shown, see decoder_address.js */
  shown = null; // until there is a model
  prompt = 0; // tokens of it
  /** @type {number | null} the token that the pointer is on */
  over = null;
  /** @type {{ layer: number, head: number } | null} the head that the pointer is on */
  overHead = null;
  room = 0; // how wide the drawing may be
  top = 0; // the first line that is in sight
  frame = 0;
  drawn = 0; // when it was last drawn, in milliseconds
  shapeLimit = 0; // how many shapes may be drawn; it grows until the first drawing is complete
  goal = 0; // how many tokens are to be written before it pauses
  own = ""; // what it wrote before its weights were made equal
  isWaiting = false; // whether a token has been written that is not yet read
  isLooking = false; // whether the reader has chosen a token
  /** @type {{ start: number, from: number } | null} when the run began, and at which token */
  run = null;
  rate = 0;
  /** @type {number | undefined} */
  writing = undefined;

  connectedCallback() {
    if (this.config) return;
    this.begin(DECODER, SAID.stopped);
    const { examples, layer, head } = this.config;
    this.defaults = {
      ...{ text: examples[0], written: [], count: 0, chosen: null, temperature: 0.8, topP: 0.9, layer, head, seed: 0 },
      equal: false,
    };
  }

  // ---- the model

  /** Where the file is; or the file itself, in a page that was opened as a file and can fetch nothing. @override */
  file() {
    return location.protocol === "file:" ? { ...super.file(), file: globalThis.DECODER_FILE } : super.file();
  }

  /** @override */
  startWorker() {
    if (location.protocol !== "file:" || globalThis.DECODER_FILE) return super.startWorker();
    const script = h("script", { src: this.dataset.weights });
    script.onload = () => super.startWorker();
    script.onerror = () => this.hear({ failed: "lost" }, true);
    document.head.append(script);
  }

  /** Start the model again after it has stopped. */
  restart() {
    this.controls.field.focus();
    this.controls.complain("");
    this.request(this.asked, this.plays);
  }

  /** @override */
  setSizes({ config, bytes, names }) {
    Object.assign(this, { sizes: config, bytes, names, found: [] });
  }

  /** @override */
  resume() {
    this.request(this.asked, this.plays);
  }

  /** @override */
  open() {
    if (!this.restore()) this.choose(this.config.examples[0]);
  }

  /** @override */
  stopped() {
    this.run = null;
    this.controls?.player.pause();
    super.stopped();
  }

  /** Take what the worker says. What it found is kept in the order of the text, as the worker's cache is. @override */
  answered(said, isNewest) {
    if (said.tokens) this.found.length = said.same;
    if (said.found) this.found.push({ ...said.found, picture: pictureOf(said.found.kept, this.sizes) });
    if (!isNewest) return;
    if (said.refused !== undefined) this.refused(said.refused);
    else if (said.tokens) this.accepted(said);
    else if (said.again) this.compare(said.again);
    if (said.found) this.soon();
    if (said.done) this.finished();
  }

  // ---- texts

  /** @override */
  build() {
    this.shown = this.defaults;
    this.controls = new DecoderControls(this);
    this.group.append(...this.controls.elements);
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "The text, what may come next, and the cache");
    this.listen();
  }

  listen() {
    new DecoderPointer(this);
    onFragment((fragment) => this.restore(fragment));
    onWidth(this.controls.canvas, (width) => {
      this.room = width;
      this.draw(0);
    });
  }

  /** Continue an example, with what has been set. */
  choose(text) {
    this.controls.field.value = text;
    this.ask({ ...this.shown, text, written: [], count: 0, chosen: null }, true);
  }

  typed() {
    this.controls.typed();
    const text = this.controls.field.value;
    this.ask({ ...this.shown, text, written: [], count: 0, chosen: null });
  }

  /** Have a text read, or say why it cannot be read. @override */
  ask(asked, plays = false) {
    const wrong = wrongPrompt(asked.text, this.sizes.context);
    if (wrong) this.complain(wrong);
    else this.request(asked, plays);
    if (wrong && !this.found.length) this.request({ ...this.defaults });
  }

  request(asked, plays = false) {
    this.controls.player.pause();
    Object.assign(this, { asked, plays, run: null });
    if (!this.worker.worker) return this.load(); // which asks again
    this.isWaiting = true;
    this.worker.ask({ text: asked.text, written: asked.written, equal: asked.equal });
  }

  refused(prompt) {
    this.complain(tooLong(prompt, this.asked.written.length, this.sizes.context));
    Object.assign(this, { asked: this.shown, isWaiting: false, plays: false });
    if (!this.found.length) this.request({ ...this.defaults });
  }

  complain(why) {
    this.controls.complain(`${why} Until then, the drawing shows “${this.shown.text.trim()}”.`);
  }

  /** The text is being read: from now on, it is what is shown. */
  accepted({ prompt }) {
    if (this.asked === this.shown) return; // one more token of what is already shown
    const shown = this.asked;
    if (shown.text !== this.shown.text) this.own = "";
    Object.assign(this, { prompt, shown, over: null, overHead: null, rate: 0, isLooking: shown.chosen !== null });
    if (this.controls.field.value === shown.text) this.controls.complain("");
    this.controls.set(shown);
  }

  finished() {
    this.isWaiting = false;
    this.update();
    if (this.plays) this.start(FIRST_RUN);
  }

  // ---- writing

  /** Choose a token after the last one, and have it read. */
  write() {
    const { written, seed } = this.shown;
    const place = this.prompt + written.length;
    if (place >= this.sizes.context) return this.end(SAID.full(this.sizes.context));
    const token = draw(this.chances(place - 1), randomAt(seed, place));
    if (token === END) return this.end(SAID.end);
    this.extend(written, token);
  }

  extend(before, token) {
    const written = [...before, token];
    this.isWaiting = true;
    this.change({ written, count: written.length, chosen: null });
    this.worker.ask({ text: this.shown.text, written, equal: this.shown.equal });
  }

  end(why) {
    this.stop();
    this.controls.verdict.textContent = why;
  }

  /** Continue with a token that the reader has chosen, after the one that looks. */
  takeBar(token) {
    this.pause();
    if (this.isWaiting) return;
    this.isLooking = true;
    this.extend(this.shown.written.slice(0, this.place - this.prompt + 1), token);
  }

  /** The probabilities of what may come after a token. */
  chances(place) {
    const { logits, order } = this.found[place];
    return samplingProbabilities(logits, this.shown.temperature, this.shown.topP, order);
  }

  start(tokens = RUN) {
    Object.assign(this, { plays: false, isLooking: false, over: null, overHead: null });
    this.controls.verdict.textContent = "";
    this.goal = this.shown.count + tokens;
    this.run = { start: performance.now(), from: this.shown.count };
    this.controls.player.run(() => this.tick(), this.controls.pause);
    this.update();
  }

  changeSpeed() {
    if (this.controls.player.isPlaying) this.controls.player.run(() => this.tick(), this.controls.pause);
  }

  tick() {
    if (this.isWaiting) return;
    if (this.shown.count >= this.goal) this.stop();
    else this.take(this.shown.count + 1);
  }

  stop() {
    const { start, from } = this.run ?? { start: 0, from: 0 };
    this.rate = this.run ? 1000 * (this.shown.count - from) / (performance.now() - start) : 0;
    this.run = null;
    this.controls.player.pause();
    this.update();
  }

  /** Show this many of the written tokens; write one more if there are fewer. */
  take(count) {
    if (this.isWaiting) return;
    const { written } = this.shown;
    if (count > written.length) return this.write();
    this.change({ count: Math.max(0, count), chosen: null });
    this.update();
  }

  go(count) {
    this.pause();
    this.isLooking = true;
    this.take(count);
  }

  pause() {
    if (this.controls.player.isPlaying) this.stop();
  }

  /** Forget what was written after the token that is shown last, because other tokens would now be sampled. */
  set(settings) {
    this.pause();
    const { written, count } = this.shown;
    this.change({ written: written.slice(0, count), ...settings });
    this.update();
  }

  /** Show another layer, head or token. */
  look(at) {
    this.pause();
    Object.assign(this, { isLooking: true, over: null, overHead: null });
    this.change(at);
    this.controls.set(this.shown);
    this.update();
  }

  /** Change what is shown of the text that has been read; a pending request stays as it is. */
  change(changes) {
    const isRead = this.asked === this.shown;
    this.shown = { ...this.shown, ...changes };
    if (isRead) this.asked = this.shown;
  }

  /** Continue the prompt again, with different random numbers or weights. */
  again(settings) {
    const { written, equal } = this.shown;
    if (!equal) this.own = this.textOf(written);
    this.ask({ ...this.shown, ...settings, written: [], count: 0, chosen: null }, true);
  }

  /** Draw other tokens. */
  anew() {
    this.again({ seed: (this.shown.seed + 1) % 10_000 });
  }

  measure() {
    this.pause();
    this.controls.verdict.textContent = SAID.again;
    this.worker.ask({ again: true });
  }

  compare(again) {
    const last = this.found.at(-1);
    const difference = again.logits.reduce((most, z, n) => Math.max(most, Math.abs(z - last.logits[n])), 0);
    this.controls.verdict.textContent = againInWords(again, last, difference);
  }

  // ---- what is shown

  /** How many tokens are shown: those that are read, and no more than the reader wants. */
  get count() {
    return Math.min(this.found.length, this.prompt + this.shown.count);
  }

  /** The token that looks. */
  get place() {
    return Math.max(0, Math.min(this.count - 1, this.over ?? this.shown.chosen ?? Infinity));
  }

  textOf(written) {
    return pieces(written.map((token) => this.bytes[token])).join("");
  }

  /** What is shown of the text, see decoder_view.js. */
  get state() {
    const { place, count, prompt, sizes, bytes, names, top, room } = this;
    const shown = { ...this.shown, ...this.overHead };
    const found = this.found.slice(0, count);
    const tokens = found.map(({ token }) => token);
    return { found, tokens, prompt, place, shown, sizes, bytes, names, top, room };
  }

  /** Show what has changed, and say one sentence about it. */
  update() {
    if (!this.count) return;
    const { count, written } = this.shown;
    const canWrite = this.prompt + written.length < this.sizes.context;
    this.controls.player.show(count, [0, written.length + (canWrite ? 1 : 0)], `${counted(count)} written`, false);
    this.soon();
    this.tell();
    clearTimeout(this.writing);
    if (!this.controls.player.isPlaying) this.writing = setTimeout(() => this.writeAddress(), 400);
  }

  /** Draw once, however many changes there were: with the next frame, or later while more changes are coming. */
  soon() {
    if (this.run && !mayMove()) return; // what is written is shown at the end
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0;
      const rest = this.run ? REST : this.isWaiting ? REST_READING : 0;
      if (now - this.drawn < rest) this.soon();
      else this.draw(this.controls.pause > MOVE ? MOVE : 0);
    });
  }

  draw(duration) {
    if (!this.count || !this.room) return;
    const { shapes, width, height, top } = decoderScene(viewOf(this.state));
    this.shapeLimit += SHAPES_PER_FRAME;
    const ready = shapes.slice(0, this.shapeLimit);
    Object.assign(this, { top, drawn: performance.now() });
    this.drawing.fit(width, height);
    this.drawing.show(ready, duration);
    const { place, count } = this;
    nameShapes(this.drawing, ready, { name: this.names[this.found[place].token], place, count });
    if (ready.length < shapes.length) requestAnimationFrame(() => this.draw(duration));
    else this.shapeLimit = Infinity;
  }

  /** Say one sentence about what is shown. */
  tell() {
    const { written, count, equal } = this.shown;
    const isResult = count > 0 && !this.isLooking && !this.controls.player.isPlaying && !this.isWaiting;
    const text = this.textOf(written.slice(0, count));
    const result = { text, count, rate: this.rate, equal, own: this.own };
    const newest = this.found[this.count - 1];
    this.controls.say(isResult ? resultInWords(result) : sentenceOf(this.state), newest, this.count);
  }

  // ---- the address of the page

  /** @override */
  fromAddress(fragment) {
    return fromDecoderAddress(fragment, this.defaults);
  }

  /** @override */
  get address() {
    return decoderAddress(this.shown, this.defaults);
  }

  save() {
    savePicture(this.svg, "decoder");
  }
}

customElements.define("attention-decoder", AttentionDecoder);
