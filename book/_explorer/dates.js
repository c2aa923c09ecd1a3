// <attention-dates>: the date translator of the chapter on context vectors, on dates that the reader types.
// Its configuration is written by book/_tools/date_translator.py. The translator itself runs in a worker.

import { dateAddress, fromDateAddress, PREFIX } from "./date_address.js";
import { Drawing, mayMove, onWidth } from "./drawing.js";
import { ModelWorker } from "./model_worker.js";
import { Player } from "./player.js";
import { copyAddress, onFragment, savePicture } from "./share.js";
import { h, labelled, Summary, switchOf } from "./table.js";
import { translationScene } from "./translation_scene.js";
import { TranslationTable } from "./translation_table.js";
import { differences, resultInWords, stepInWords, verdict, written, wrongText } from "./translation_words.js";
import { LENGTH } from "./translator.js";

const MOVE = 350; // milliseconds of a step
const PLAY = 800; // milliseconds from one step to the next
const STOPPED = "The translator has stopped responding. Start it again; what you have typed is still there.";

/** What the worker of the translator starts with. */
function model() {
  const { shapes, numbers, reads, writes } = DATE_TRANSLATOR.config;
  const bytes = Uint8Array.from(atob(numbers), (byte) => byte.charCodeAt(0));
  return { shapes, numbers: new Float32Array(bytes.buffer), reads, writes };
}

class AttentionDates extends HTMLElement {
  summary = new Summary();
  message = new Summary();
  again = h("button", { type: "button", hidden: true, click: () => this.restart() }, "Start it again");
  field = h("input", {
    ...{ type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false" },
    ...{ "aria-describedby": "attn-dates-message", input: () => this.typed(), change: () => this.doneTyping() },
  });
  equal = switchOf(() => this.weigh());
  svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  drawing = new Drawing(this.svg);
  canvas = h("div", { class: "attn-canvas" }, this.svg);
  player = new Player("Characters written", (count) => this.go(count), () => this.start());
  table = new TranslationTable((place) => place !== this.chosen && this.look(place));
  form = h("form", { class: "attn-guess", hidden: true, submit: (event) => this.guessed(event) });
  verdict = h("p", { class: "attn-verdict", "aria-live": "polite" });
  linked = h("output", { class: "attn-linked" });

  /** @type {any} */
  config = null;
  /** @type {any} a ModelWorker */
  translator = null;
  /** @type {any} what is to be shown when its translation is there */
  asked = {};
  text = "";
  /** @type {any} the steps with the weights of the model, and those with equal ones */
  results = null;
  count = LENGTH;
  chosen = LENGTH - 1;
  /** @type {number[] | null} what the last change of the text has changed */
  changed = null;
  isLooking = false; // whether the reader has chosen a step
  /** @type {string | null} */
  guess = null;
  /** @type {number | undefined} */
  writing = undefined;

  connectedCallback() {
    if (this.config) return;
    this.config = DATE_TRANSLATOR.config;
    const hadFocus = this.contains(document.activeElement);
    this.build();
    this.listen();
    const hear = (result, isNewest) => isNewest && this.show(result);
    this.translator = new ModelWorker(DATE_TRANSLATOR.worker, model, hear, () => this.complain(STOPPED, true));
    if (!this.restore()) this.choose(this.config.examples[0]);
    if (hadFocus) /** @type {HTMLElement} */ (this.lastElementChild).focus({ preventScroll: true });
  }

  // ---- what it is made of

  build() {
    const { caption, examples, surprise } = this.config;
    const button = (text, click) => h("button", { type: "button", click }, text);
    const group = h(
      "div",
      { class: "attn", role: "group", "aria-label": caption, tabindex: -1 },
      h(
        "div",
        { class: "attn-controls" },
        labelled("A date, as people write it", this.field, { class: "attn-field attn-sentence" }),
      ),
      h(
        "div",
        { class: "attn-buttons", role: "group", "aria-label": "Examples" },
        ...examples.map((text) => button(text, () => this.choose(text))),
        button(`${surprise}: predict first`, () => this.choose(surprise)),
      ),
      h("div", {}, this.message.element, this.again),
      this.form,
      this.canvas,
      this.player.element,
      this.summary.element,
      this.verdict,
      this.table.element,
      h(
        "div",
        { class: "attn-controls" },
        labelled("Equal weights, as a control", this.equal, { class: "attn-field attn-switch" }),
        button("Copy link", () => this.copyLink()),
        button("Save picture", () => savePicture(this.svg, "translation")),
        this.linked,
      ),
    );
    Object.assign(this.message.element, { className: "attn-message", id: "attn-dates-message" });
    this.form.append(...this.question());
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "What is written, and where it looks");
    this.querySelector(".attn-offer")?.remove();
    this.append(group);
  }

  /** Ask where it will look, before anything is shown. */
  question() {
    const { surprise } = this.config;
    const option = (value) =>
      h("label", {}, h("input", { type: "radio", name: "attn-dates-guess", value, required: true }), value);
    const legend =
      `The model has never seen a date in this order. Where will it look most while it writes the year of “${surprise}”?`;
    const choices = h("div", { class: "attn-choices" }, ...surprise.split(" ").map(option));
    return [h("fieldset", {}, h("legend", {}, legend), choices), h("button", { type: "submit" }, "Let it write")];
  }

  listen() {
    this.svg.addEventListener("click", ({ target }) => {
      const cell = this.drawing.shapeOf(target)?.cell;
      if (cell) this.look(cell.word);
    });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    onFragment((fragment) => this.restore(fragment));
    onWidth(this.canvas, () => this.draw(0));
  }

  // ---- texts

  /** Show an example: it writes character by character, unless its result is to be predicted. */
  choose(text) {
    const isSurprise = text === this.config.surprise;
    const count = isSurprise ? 0 : mayMove() ? 1 : LENGTH;
    this.field.value = text;
    if (isSurprise) this.equal.checked = false;
    this.ask(text, { count, chosen: count - 1, plays: count === 1 });
  }

  typed() {
    this.summary.typed();
    this.message.typed();
    const text = this.field.value;
    this.ask(text, { count: LENGTH, chosen: this.count === LENGTH ? this.chosen : LENGTH - 1, isEdit: true });
  }

  doneTyping() {
    this.summary.done();
    this.message.done();
  }

  /** Have a text translated, and then show as much of it; or say why that cannot be. */
  ask(text, asked) {
    const wrong = wrongText(text, this.config.reads);
    this.complain(wrong && `${wrong} Until then, the drawing shows “${this.text || this.config.examples[0]}”.`);
    if (!wrong) this.request(text, asked);
    else if (!this.text) this.request(this.config.examples[0], { count: LENGTH, chosen: LENGTH - 1 });
  }

  request(text, asked) {
    this.player.pause();
    this.asked = { text, ...asked };
    this.translator.ask({ text });
  }

  complain(text, hasStopped = false) {
    this.message.say(text ?? "");
    this.again.hidden = !hasStopped;
    this.field.setAttribute("aria-invalid", String(Boolean(text) && !hasStopped));
  }

  restart() {
    this.field.focus();
    this.complain(null);
    this.request(this.asked.text, this.asked);
  }

  /** Show a translation. */
  show(results) {
    const { text, count, chosen, isEdit = false, plays = false } = this.asked;
    const before = isEdit && this.results && this.steps;
    Object.assign(this, { results, text, count, chosen, isLooking: false, guess: null });
    this.changed = before ? differences(before, this.steps) : null;
    if (!this.again.hidden) this.complain(null);
    this.form.hidden = count > 0;
    this.update(isEdit ? 0 : MOVE);
    if (plays) this.start();
  }

  get steps() {
    return this.equal.checked ? this.results.equal : this.results.own;
  }

  weigh() {
    this.changed = null;
    this.update();
  }

  guessed(event) {
    event.preventDefault();
    this.guess = String(new FormData(this.form).get("attn-dates-guess"));
    this.form.hidden = true;
    this.take(mayMove() ? 1 : LENGTH);
    if (mayMove()) this.start();
  }

  // ---- steps

  update(duration = MOVE) {
    if (!this.results) return;
    const { count } = this;
    const said = `${count} of ${LENGTH}: ${written(this.steps.slice(0, count))}`;
    this.player.show(count, [1, LENGTH], said, count === 0);
    this.equal.disabled = count === 0;
    this.draw(duration);
    this.table.show({ text: this.text, steps: this.steps.slice(0, count), chosen: this.chosen });
    this.tell();
    clearTimeout(this.writing);
    if (count > 0 && !this.player.isPlaying) this.writing = setTimeout(() => this.writeAddress(), 400);
  }

  /** Have as many characters written, and look from the last one. */
  take(count) {
    this.count = Math.max(1, Math.min(LENGTH, count));
    this.chosen = this.count - 1;
    this.update();
  }

  go(count) {
    this.player.pause();
    this.isLooking = true;
    this.take(count);
  }

  /** Look from a character that is written. */
  look(place) {
    this.player.pause();
    Object.assign(this, { isLooking: true, chosen: Math.max(0, Math.min(this.count - 1, place)) });
    this.update();
  }

  start() {
    this.isLooking = false;
    if (this.count === LENGTH) this.take(1);
    this.player.run(() => {
      if (this.count === LENGTH - 1) this.player.pause();
      this.take(this.count + 1);
    }, PLAY);
    this.tell();
  }

  key(event) {
    const to = { ArrowLeft: this.chosen - 1, ArrowRight: this.chosen + 1, Home: 0, End: this.count - 1 }[event.key] ??
      (event.key === "Enter" || event.key === " " ? this.chosen : null);
    if (to === null) return;
    event.preventDefault();
    this.look(to);
    this.drawing.element(`written-${this.chosen}`)?.focus();
  }

  // ---- what is shown

  draw(duration) {
    const room = this.canvas.clientWidth;
    if (!this.results || !room) return;
    const { text, steps, count, chosen } = this;
    const { shapes, width, height } = translationScene({
      text,
      steps,
      count,
      chosen,
      changed: this.changed ?? [],
      room,
    });
    this.drawing.fit(width, height);
    this.canvas.classList.toggle("attn-wide", width > room);
    this.drawing.show(shapes, duration);
    shapes.filter(({ key }) => /^written-\d/.test(key)).forEach((one) => this.name(one));
  }

  /** Make a written character a button; the Tab key leads to the one that is chosen. */
  name(/** @type {import("./shapes.js").Shape} */ { key, cell }) {
    const element = this.drawing.element(key);
    const attributes = { role: "button", "aria-label": cell?.label, "aria-pressed": cell?.pressed };
    for (const [name, value] of Object.entries({ ...attributes, tabindex: cell?.pressed ? 0 : -1 })) {
      if (cell) element?.setAttribute(name, String(value));
      else element?.removeAttribute(name);
    }
  }

  /** Say one sentence about what is shown; while it plays, only the last one is read aloud. */
  tell() {
    const { text, steps, count, chosen } = this;
    const isWhole = count === LENGTH && !this.isLooking;
    let said = "You will see the translation after your prediction.";
    if (isWhole) said = resultInWords(text, this.results, this.equal.checked, this.changed);
    else if (count > 0) said = stepInWords(text, steps[chosen], chosen);
    this.summary.say(said, !this.player.isPlaying);
    this.verdict.textContent = count === LENGTH && this.guess ? verdict(text, this.results.own, this.guess) : "";
  }

  // ---- the address of the page

  /** Show what the address asks for, and return whether it asks for anything. */
  restore(fragment = location.hash) {
    const asked = fromDateAddress(fragment, this.config.examples[0]);
    if (!asked) return false;
    this.field.value = asked.text;
    this.equal.checked = asked.equal;
    this.ask(asked.text, asked);
    this.scrollIntoView({ block: "center" });
    return true;
  }

  writeAddress() {
    const { text, count, chosen } = this;
    const address = dateAddress({ text, count, chosen, equal: this.equal.checked }, this.config.examples[0]);
    if (address || location.hash.startsWith(PREFIX)) {
      history.replaceState(history.state, "", address || location.pathname + location.search);
    }
  }

  async copyLink() {
    this.writeAddress();
    this.linked.textContent = await copyAddress();
  }
}

customElements.define("attention-dates", AttentionDates);
