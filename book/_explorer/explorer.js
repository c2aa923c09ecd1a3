// <attention-explorer>: attention on one sentence, every step of it, with numbers that the reader can change.
// Its configuration is written by book/_tools/explorer.py. What a reader enters is kept in the address of the page alone.

import { addressOf, fromAddress, PREFIX, settable } from "./address.js";
import { explore, problem } from "./attention.js";
import { Guess, verdict } from "./guess.js";
import { FieldErrors, LIMIT, number, NumberTable, wrongWords } from "./inputs.js";
import { checkedSettings, CONTROLS, FIELDS, named } from "./options.js";
import { copyAddress, onFragment, savePicture } from "./share.js";
import { lookOf } from "./steps.js";
import {
  configuration,
  container,
  distinct,
  h,
  HeatTable,
  inWords,
  labelled,
  optionsOf,
  shown,
  Summary,
  switchOf,
} from "./table.js";
import { WordWatch } from "./word_watch.js";

const TABLES = {
  x: ["Word vectors X", "word"],
  wq: ["Matrix W_Q", "row"],
  wk: ["Matrix W_K", "row"],
  wv: ["Matrix W_V", "row"],
  q: ["Queries", "word"],
  k: ["Keys", "word"],
  v: ["Values", "word"],
};
const PER_WORD = ["x", "q", "k", "v"];

// What positions change in the words before they are scored.
const PLACED = {
  sinusoidal: "Words plus positions, X + P: queries, keys and values",
  rope: "Words turned by their positions: queries and keys",
};

const counted = (n) => Array.from({ length: n }, (_, d) => String(d + 1));

/** Make a number from -2 to 2 out of the letters of a word that is not in the example: always the same one. */
export function fromLetters(word, table, column) {
  let hash = 2166136261;
  for (const letter of `${table}${column}${word}`) hash = Math.imul(hash ^ Number(letter.codePointAt(0)), 16777619);
  return (((hash >>> 13) % 9) - 4) / 2;
}

/** Tell equal words apart by how many came before: the, train, the -> "the 0", "train 0", "the 1". */
const told = (words) => words.map((word, i) => `${word} ${words.slice(0, i).filter((other) => other === word).length}`);

class AttentionExplorer extends HTMLElement {
  // Sentence and controls have one message, the tables of numbers another.
  settingErrors = new FieldErrors();
  numberErrors = new FieldErrors();
  summary = new Summary();
  guess = new Guess({ reveal: (guess) => this.reveal(guess), again: () => this.again() });
  sentence = h("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    input: () => this.readSentence(),
  });
  predict = switchOf(() => this.update());
  /** @type {Record<string, HTMLSelectElement>} */
  choices = {};
  /** @type {Record<string, HTMLInputElement>} */
  fields = {};
  /** @type {Record<string, NumberTable>} */
  editors = {};
  /** @type {Record<string, HeatTable>} */
  panels = {};
  /** @type {Record<string, HTMLInputElement>} */
  sliders = {};
  /** @type {any} a WordWatch, made when it is known what it shows */
  watch = null;
  /** @type {number | null} */
  writing = null;
  linked = h("output", { class: "attn-linked" });

  /** @type {any} what Python wrote into the element */
  config = null;
  /** @type {any} what attention is computed from: words, tables, and the settings of the controls and fields */
  state = {};
  /** @type {any} the steps that attention.js computed from it */
  result = {};
  /** @type {Map<string, number[][]>} the numbers of words that the sentence has, or had, by word and how many came before */
  known = new Map();
  /** @type {number | null} how many words the reader wants to be real; null for all of them */
  real = null;
  head = 0;
  picked = 0;
  pickedWord = "";
  /** @type {number | null} the row under the pointer */
  over = null;
  hiding = false;

  connectedCallback() {
    if (this.config) return;
    const config = configuration(this);
    checkedSettings(config.settings);
    this.config = config;
    this.build();
    this.restore();
    onFragment((fragment) => this.restore(fragment));
  }

  /** Show what the address asks for, or else the page's example. */
  restore(fragment = location.hash) {
    const found = fromAddress(fragment, this.onScreen(this.config), this.config.controls);
    if (!found && this.state.words) return; // the fragment points to another part of the page
    this.reset();
    if (!found) return;
    const { asked, problems } = found;
    if (asked.words) this.reshape(asked.words, null);
    this.state = { ...this.state, flips: asked.flips ?? [], tables: { ...this.state.tables, ...asked.tables } };
    const wrong = problem({ ...this.state, ...asked.settings });
    if (wrong) problems.push(`${wrong}.`);
    else Object.assign(this.state, asked.settings);
    this.real = asked.settings?.length ?? this.config.settings.length;
    this.head = Math.min(asked.head ?? 0, this.state.heads - 1);
    this.pick(asked.query ?? Math.min(this.picked, this.state.words.length - 1));
    this.predict.checked = Boolean(asked.predict ?? this.config.predict);
    this.sentence.value = this.state.words.join(" ");
    this.countReal();
    this.showAll();
    this.watch.go(asked.step ?? Infinity);
    this.settingErrors.set(
      this.linked,
      problems.length ? `The address is not quite right. ${problems.join(" ")}` : null,
    );
    this.scrollIntoView({ block: "center" });
  }

  /** What the address has to hold. */
  onScreen({ words, tables, settings, query, predict, flips = [], head = 0, step = null }) {
    const names = settable(this.config.controls);
    const chosen = Object.fromEntries(names.map((name) => [name, settings[name]]));
    if ("length" in chosen) chosen.length = settings.length ?? words.length;
    return { words, tables, settings: chosen, query, predict, flips, head, step };
  }

  /** Write what is on the screen into the address, once the reader has paused. */
  writeAddress() {
    if (this.writing) clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddressNow(), 400);
  }

  writeAddressNow() {
    if (location.protocol === "about:") return; // a page without an address, as in the benchmark
    const { words, tables, ...settings } = this.state;
    const { flips } = this.state;
    const here = { words, tables, settings, flips, query: this.picked, predict: this.hiding, head: this.head };
    const now = this.onScreen({ ...here, step: this.watch.place() });
    const address = addressOf(now, this.onScreen(this.config));
    const old = location.hash.startsWith(PREFIX);
    if (address ? location.hash !== address : old) {
      history.replaceState(history.state, "", address || location.pathname + location.search);
    }
  }

  async copyLink() {
    this.writeAddressNow();
    this.linked.textContent = await copyAddress();
  }

  /** Go back to the page's example. */
  reset() {
    const { words, tables, settings, query, predict } = structuredClone(this.config);
    this.known = new Map();
    this.settingErrors.clear();
    this.numberErrors.clear();
    this.watch.reset();
    this.state = { ...settings, words, tables, flips: [], paintable: this.config.controls.includes("mask") };
    Object.assign(this, { real: settings.length, head: 0 });
    this.pick(query);
    this.countReal();
    this.predict.checked = predict;
    this.sentence.value = words.join(" ");
    this.showAll();
  }

  showAll() {
    this.showSettings();
    this.showTables();
    this.update();
  }

  // ---- what it is made of

  build() {
    this.guess.nothing = this.config.controls.includes("mask");
    this.panels = this.makePanels();
    this.watch = new WordWatch({
      caption: this.config.caption,
      errors: this.numberErrors,
      pick: (row) => this.look(row, "pick"),
      edit: (edits, isDone) => this.editInPlace(edits, isDone),
      paint: (query, key, allowed) => this.paint(query, key, allowed),
      pickHead: (head) => this.pickHead(head),
      moveWord: (from, to) => this.moveWord(from, to),
      moved: () => this.say(),
    });
    this.replaceChildren(
      h(
        "div",
        { class: "attn", role: "group", "aria-label": this.config.caption },
        this.guess.element,
        this.watch.element,
        this.summary.element,
        this.numberErrors.element,
        h("div", { class: "attn-controls" }, this.makeSentence(), ...this.makeControls(), this.makeSwitch()),
        this.settingErrors.element,
        this.makeButtons(),
        this.makeTables(),
        this.makeSteps(),
      ),
    );
    this.addEventListener("input", () => this.summary.typed());
    this.addEventListener("change", () => this.summary.done());
  }

  makeButtons() {
    const button = (text, click) => h("button", { type: "button", click }, text);
    return h(
      "div",
      { class: "attn-buttons" },
      button("Reset", () => this.reset()),
      button("Copy link", () => this.copyLink()),
      button("Save picture", () => savePicture(this.watch.svg, "attention")),
      this.linked,
    );
  }

  makeSteps() {
    const panels = h("div", { class: "attn-panels" }, ...Object.values(this.panels).map((panel) => panel.element));
    return h("details", { class: "attn-vectors" }, h("summary", {}, "Every step as a table, for all queries"), panels);
  }

  makeSentence() {
    return labelled("Sentence", this.sentence, { class: "attn-field attn-sentence" });
  }

  makeControls() {
    return this.config.controls.flatMap((name) =>
      name in FIELDS ? [this.makeField(name)] : [
        this.makeChoice(name, CONTROLS[name].label, named(CONTROLS[name])),
        ...Object.keys(FIELDS).filter((field) => FIELDS[field].control === name).map((field) => this.makeField(field)),
        ...(name === "heads" ? [this.makeChoice("head", "Head shown", {})] : []),
      ]
    );
  }

  makeChoice(name, label, options) {
    const select = h("select", { change: () => this.readChoice(name) });
    this.choices[name] = select;
    this.offer(select, options);
    return labelled(label, select);
  }

  offer(select, options) {
    select.replaceChildren(...optionsOf(options));
  }

  makeField(name) {
    const { label, lowest, placeholder } = FIELDS[name];
    this.fields[name] = h("input", {
      type: "text",
      inputmode: lowest < 0 ? "text" : "decimal", // the decimal keypad of iOS has no minus
      autocomplete: "off",
      size: 6,
      placeholder,
      input: () => this.readField(name),
    });
    return h("div", { class: "attn-field" }, labelled(label, this.fields[name]), ...this.makeSlider(name));
  }

  /** A slider beside a field. */
  makeSlider(name) {
    const { label, slider } = FIELDS[name];
    if (!slider) return [];
    const [min, max] = slider;
    const drag = () => {
      this.fields[name].value = this.sliders[name].value;
      this.readField(name);
    };
    this.sliders[name] = h("input", {
      type: "range",
      min,
      max,
      step: 0.05,
      input: drag,
      "aria-label": `${label}, as a slider`,
    });
    return [this.sliders[name]];
  }

  makeSwitch() {
    return labelled("Predict first", this.predict, { class: "attn-field attn-switch" });
  }

  makeTables() {
    this.editors = Object.fromEntries(
      Object.keys(this.config.tables).map((name) => [name, this.makeEditor(name)]),
    );
    return h(
      "details",
      { class: "attn-vectors" },
      h("summary", {}, "All numbers as tables: change any of them"),
      h("div", { class: "attn-panels" }, ...Object.values(this.editors).map((editor) => editor.element)),
      h("p", {}, "A word that is not in the example gets numbers made from its letters, always the same ones."),
    );
  }

  makeEditor(name) {
    const changed = (i, j, value) => {
      this.state.tables[name][i][j] = value;
      this.update();
    };
    const [title, rows] = TABLES[name];
    return new NumberTable({ title, rows, columns: "component", errors: this.numberErrors, changed });
  }

  makePanels() {
    const look = (row, how) => this.look(row, how);
    const heat = (columns, total = false) => new HeatTable({ rows: "query", columns, total, look });
    const perWord = () => new HeatTable({ rows: "word", columns: "component", look });
    const { controls, tables } = this.config;
    return {
      ...(tables.wq ? { q: perWord(), k: perWord(), v: perWord() } : {}),
      ...(tables.x && controls.includes("positions") ? { placed: perWord() } : {}),
      scores: heat("key"),
      ...(controls.includes("mask") || controls.includes("positions") ? { masked: heat("key") } : {}),
      weights: heat("key", true),
      context: heat("component"),
    };
  }

  // ---- what the reader does

  /** Take numbers that were changed in the drawing; the fields of the tables follow when it is done. */
  editInPlace(edits, isDone) {
    for (const { table, row, column, value } of edits) {
      this.state.tables[table][row][column] = Math.max(-LIMIT, Math.min(LIMIT, value));
    }
    if (isDone) this.showTables();
    this.update();
  }

  /** Flip the mask for a pair, unless it has the wanted value already. */
  paint(query, key, allowed) {
    if (this.result.heads[this.head].allowed[query][key] === allowed) return;
    const { flips } = this.state;
    const others = flips.filter(([i, j]) => i !== query || j !== key);
    this.state.flips = others.length < flips.length ? others : [...flips, [query, key]];
    this.update();
  }

  /** Give a word another place in the sentence; its numbers go with it, and the mask stays. */
  moveWord(from, to) {
    const { words, tables } = this.state;
    const moved = (list) => list.toSpliced(from, 1).toSpliced(to, 0, list[from]);
    const perWord = PER_WORD.filter((name) => tables[name]).map((name) => [name, moved(tables[name])]);
    const query = moved(words.map((_, i) => i)).indexOf(this.picked);
    this.state = { ...this.state, words: moved(words), tables: { ...tables, ...Object.fromEntries(perWord) } };
    this.sentence.value = this.state.words.join(" ");
    this.pick(query);
    this.showAll();
  }

  pickHead(head) {
    this.head = head;
    this.showSettings();
    this.update();
  }

  /** Take new settings if they can be computed with; else say at the field why not, and keep the old ones. */
  take(field, change) {
    const state = { ...this.state, ...change };
    const message = problem(state);
    this.settingErrors.set(field, message && `${message}.`);
    if (!message) this.state = state;
    return !message;
  }

  readSentence() {
    const words = this.sentence.value.split(/\s+/).filter(Boolean);
    const message = wrongWords(words);
    this.settingErrors.set(this.sentence, message);
    if (message) return;
    this.reshape(words, null);
    this.countReal();
    const same = told(words).indexOf(this.pickedWord); // it may come back as the reader goes on typing
    Object.assign(this, { picked: same < 0 ? Math.min(this.picked, words.length - 1) : same, over: null });
    this.showSettings();
    this.showTables();
    this.update();
    if (this.settingErrors.wrong.has(this.fields.length)) this.readField("length", true);
  }

  countReal() {
    const all = this.state.words.length;
    this.state.length = Math.min(this.real ?? all, all);
  }

  pick(row) {
    Object.assign(this, { picked: row, pickedWord: told(this.state.words)[row], over: null });
  }

  /** Give the sentence other words, or the vectors another width; what is known of a word stays with it. */
  reshape(words, width) {
    const { tables } = this.state;
    const perWord = PER_WORD.filter((name) => tables[name]);
    told(this.state.words).forEach((key, i) => this.remember(key, perWord.map((name) => tables[name][i])));
    const keys = told(words);
    const row = (table, name, word, i) => {
      const rows = this.known.get(keys[i]) ?? this.known.get(`${word} 0`);
      return Array.from(
        { length: width ?? tables[name][0].length },
        (_, d) => rows?.[table][d] ?? fromLetters(word, name, d),
      );
    };
    const renewed = perWord.map((name, table) => [name, words.map((word, i) => row(table, name, word, i))]);
    const flips = this.state.flips.filter((pair) => Math.max(...pair) < words.length);
    this.state = { ...this.state, words, flips, tables: { ...tables, ...Object.fromEntries(renewed) } };
  }

  /** Keep the numbers of a word; columns that were cut off come back when the vectors are made wider again. */
  remember(key, rows) {
    const before = this.known.get(key);
    this.known.set(key, rows.map((row, n) => [...row, ...(before?.[n].slice(row.length) ?? [])]));
  }

  readChoice(name) {
    this.choose(name);
    for (const [other, select] of Object.entries(this.choices)) {
      if (other !== name && this.settingErrors.wrong.has(select)) this.choose(other); // the conflict may be gone
    }
    this.showSettings();
    this.update();
  }

  choose(name) {
    const select = this.choices[name];
    const value = /^\d+$/.test(select.value) ? Number(select.value) : select.value;
    if (name === "head") this.head = Number(value);
    else if (name === "width") this.readWidth(select, value);
    else if (this.take(select, { [name]: value })) this.head = Math.min(this.head, this.state.heads - 1);
  }

  readWidth(select, width) {
    const before = this.state;
    this.reshape(before.words, width);
    const after = this.state;
    this.state = before;
    if (this.take(select, { tables: after.tables })) this.showTables();
  }

  /** Take the number of a field; again if it was refused, and the sentence has changed since. */
  readField(name, again = false) {
    const { label, lowest, placeholder } = FIELDS[name];
    const highest = FIELDS[name].highest ?? this.state.words.length;
    const field = this.fields[name];
    const { value, message } = placeholder && field.value.trim() === ""
      ? { value: null }
      : number(field.value, lowest, highest);
    const whole = name === "length" && value !== undefined && !Number.isInteger(value);
    const wrong = whole
      ? `“${field.value}” was given, but a whole number is needed. Until then, the last valid number is used.`
      : message;
    this.settingErrors.set(field, wrong && `${label}: ${wrong}`);
    if (wrong || value === undefined) return;
    if (name === "length") this.real = again || Number(value) < this.state.words.length ? value : null;
    this.state[name] = value;
    this.update();
  }

  look(row, how) {
    const asked = this.hiding && how === "pick" && row !== this.picked;
    if (how === "pick") this.pick(row);
    else this.over = row;
    if (asked) this.ask();
    this.tell();
  }

  // ---- predict first

  ask() {
    const words = distinct(this.state.words);
    this.guess.ask(words[this.picked], words, this.state.heads > 1 ? this.head : null);
  }

  reveal(guess) {
    if (guess === null) {
      this.guess.say("Choose a word first.", true);
      return;
    }
    const { weights, masked } = this.result.heads[this.head];
    const words = distinct(this.state.words);
    this.hide(false);
    const row = { weights: weights[this.picked], scores: masked[this.picked], words };
    this.guess.say(verdict(guess, words[this.picked], row), false);
    this.guess.next.focus();
    this.tell();
  }

  again() {
    this.pick((this.picked + 1) % this.state.words.length);
    this.update();
    this.guess.choices.querySelector("input")?.focus();
  }

  hide(hiding) {
    this.hiding = hiding;
    const { mask, positions, flips } = this.state;
    const needless = {
      masked: mask === "none" && positions !== "alibi" && !flips.length,
      placed: !(positions in PLACED),
    };
    for (const [name, panel] of Object.entries(this.panels)) {
      panel.element.hidden = needless[name] || (hiding && ["scores", "masked", "weights", "context"].includes(name));
    }
  }

  // ---- what is shown

  showSettings() {
    const { heads, tables } = this.state;
    if (this.choices.head) {
      this.offer(this.choices.head, Object.fromEntries(Array.from({ length: heads }, (_, n) => [n, String(n)])));
    }
    const values = { ...this.state, head: this.head, width: tables.x?.[0].length };
    for (const [name, select] of Object.entries(this.choices)) {
      if (!this.settingErrors.wrong.has(select)) select.value = String(values[name]);
    }
    if (this.choices.head) container(this.choices.head).hidden = heads === 1;
    for (const [name, field] of Object.entries(this.fields)) {
      const { control, when } = FIELDS[name];
      const box = container(container(field));
      box.hidden = control !== null && !when.includes(values[control]);
      if (box.hidden) this.settingErrors.set(field, null);
      if (!this.settingErrors.wrong.has(field)) field.value = values[name] ?? "";
    }
  }

  /** Put the sliders where the numbers are. They wait until the reader has guessed. */
  showSliders() {
    const width = this.result.q[0].length / this.state.heads;
    for (const [name, slider] of Object.entries(this.sliders)) {
      slider.value = String(this.state[name] ?? 1 / Math.sqrt(width));
      slider.disabled = this.hiding;
    }
  }

  showTables() {
    const { tables, words } = this.state;
    for (const [name, editor] of Object.entries(this.editors)) {
      const rows = PER_WORD.includes(name) ? distinct(words) : counted(tables[name].length);
      editor.show(tables[name], rows, counted(tables[name][0].length));
    }
  }

  /** Compute everything, and write what has changed. */
  update() {
    const words = distinct(this.state.words);
    this.result = explore(this.state);
    const { q, k, v, context, heads } = this.result;
    const placed = this.state.positions === "rope" ? q : v;
    // A reader who predicts one head does not see the other heads yet.
    const tables = { q, k, v, placed, ...heads[this.head], ...(this.alone() ? {} : { context }) };
    for (const [name, panel] of Object.entries(this.panels)) {
      const across = panel.columnKind === "key" ? words : this.components(name, tables[name]);
      panel.caption.textContent = this.captionOf(name);
      panel.label(words, across);
      panel.fill(tables[name], name === "weights" ? 1 : undefined);
    }
    this.guess.element.hidden = !this.predict.checked;
    this.hide(this.predict.checked);
    if (this.hiding) this.ask();
    this.tell();
  }

  /** Whether one head of several is shown without the others. */
  alone() {
    return this.predict.checked && this.state.heads > 1;
  }

  components(name, [row]) {
    const { heads } = this.state;
    const [first, shownHeads] = name === "context" && this.alone() ? [this.head, 1] : [0, heads];
    const width = row.length / shownHeads;
    return row.map((_, n) => (heads > 1 ? `${first + Math.floor(n / width)}:${(n % width) + 1}` : `${n + 1}`));
  }

  captionOf(name) {
    const { heads, similarity, positions, mask, scale, flips } = this.state;
    const head = heads > 1 ? ` of head ${this.head}` : "";
    const width = this.result.q[0].length / heads;
    const formula = {
      dot: "dot products",
      scaled_dot: `dot products times ${scale === null ? `1/\u2060√${width}` : shown(scale)}`,
      cosine: "cosines",
      gaussian: "minus the squared distance, over twice the squared bandwidth",
    }[similarity];
    const values = positions === "sinusoidal" && this.panels.placed ? "words plus positions" : "values";
    const clock =
      { sinusoidal: ", positions added to the words", rope: ", queries and keys turned by RoPE" }[positions] ?? "";
    const applied = [positions === "alibi" && "ALiBi", (mask !== "none" || flips.length) && "the mask"].filter(Boolean)
      .join(" and ");
    const split = heads > 1 ? "; 1:2 is component 2 of head 1" : "";
    return {
      q: "Queries, X times W_Q",
      k: "Keys, X times W_K",
      v: "Values, X times W_V",
      scores: `Scores${head}: ${formula}${clock}`,
      placed: PLACED[positions],
      masked: `Scores${head} after ${applied}`,
      weights: `Weights${head}: softmax of each row`,
      context: `Context${this.alone() ? head : ""}: weights times ${values}${split}`,
    }[name];
  }

  tell() {
    const words = distinct(this.state.words);
    const row = this.over ?? this.picked;
    Object.values(this.panels).forEach((panel) => panel.mark(row, this.picked));
    this.watch.show(lookOf({ ...this.state, words }, this.result, row, this.head), this.hiding);
    this.showSliders();
    this.say(words, row);
  }

  /** Say in words what the drawing shows. */
  say(words = distinct(this.state.words), row = this.over ?? this.picked) {
    this.writeAddress();
    const step = this.watch.sentence();
    if (step !== null) {
      this.summary.say(step);
      return;
    }
    if (this.hiding) {
      this.summary.say(`The scores and weights of “${words[row]}” are hidden until you have guessed.`);
      return;
    }
    const { heads } = this.result;
    const each = heads.map(({ weights }, n) =>
      (heads.length > 1 ? `Head ${n}: ` : "") + inWords(words[row], weights[row], words)
    );
    this.summary.say(this.alone() ? each[this.head] : each.join(" "));
  }
}

customElements.define("attention-explorer", AttentionExplorer);
