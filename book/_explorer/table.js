// What the explorer and the head view share: tables of shaded numbers, whose rows can be looked at and are put into words.

// The colours of attnlib.plotting.heatmap. Text on the strongest shade has a contrast above 4.5:1, in light and in dark.
const POSITIVE = "59 130 196";
const NEGATIVE = "200 100 28";
const MAX_SHADE = 0.65;
const TYPING = 1000; // milliseconds without a key, after which a number is taken as typed

/**
 * Make an element: h("th", {scope: "row"}, "text", child). An attribute that is a function becomes a listener.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} attributes
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Put a control under its label. Its number is one that no other script of the page has given. */
export function labelled(text, control, attributes = {}) {
  globalThis.attentionFields = (globalThis.attentionFields ?? 0) + 1;
  control.id = `attn-field-${globalThis.attentionFields}`;
  return h("div", { class: "attn-field", ...attributes }, h("label", { for: control.id }, text), control);
}

/** What a control offers: texts by their values. */
export const optionsOf = (options) => Object.entries(options).map(([value, text]) => h("option", { value }, text));

export const selectOf = (options, change) => h("select", { change }, ...optionsOf(options));

export const switchOf = (change) => h("input", { type: "checkbox", role: "switch", change });

/** Return what holds a control and its label. */
export const container = (control) => /** @type {HTMLElement} */ (control.parentElement);

/** Return the JSON that Python wrote into an element. */
export const configuration = (element) =>
  JSON.parse(element.querySelector('script[type="application/json"]').textContent);

/** Write a number for a cell: with two decimals, or as a power of ten where that would not fit. */
export function shown(x) {
  if (x === -Infinity) return "−∞";
  const text = Math.abs(x) >= 1e5 ? x.toExponential(1) : x.toFixed(2);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** Write a number of a formula: a whole number without decimals. */
export const brief = (x) =>
  Number.isInteger(x) && Math.abs(x) < 1e5 ? String(x).replace("-", "−").replace("−0", x === 0 ? "0" : "−0") : shown(x);

/** Return the text node that an element ends with. Writing into it is quicker than replacing it. */
const textOf = (element) => /** @type {Text} */ (element.lastChild);

const hidden = (text) => h("span", { class: "attn-hidden" }, text);

/** A table of shaded numbers whose rows can be looked at. Its cells are made anew only when its size changes. */
export class HeatTable {
  /**
   * @param {object} options
   * @param {string} options.rows what the rows are: "query"
   * @param {string} options.columns what the columns are: "key"
   * @param {boolean} [options.total] whether a last column has the sums
   * @param {(row: number | null, how: "pick" | "over") => void} options.look called when a row is picked, when the
   *   pointer is over it, and with null when the pointer has left
   */
  constructor({ rows, columns, total = false, look }) {
    this.rowKind = rows;
    this.columnKind = columns;
    this.total = total;
    this.look = look;
    this.row = 0;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
    /** @type {Text[]} */
    this.names = [];
    /** @type {HTMLTableRowElement[]} */
    this.lines = [];
    /** @type {HTMLTableCellElement[][]} */
    this.cells = [];
    /** @type {HTMLTableCellElement[]} */
    this.sums = [];
    /** @type {string[][]} */
    this.written = [];
    this.caption = h("caption");
    this.head = h("tr");
    this.body = h("tbody");
    const table = h("table", { class: "attn-table" }, this.caption, h("thead", {}, this.head), this.body);
    this.scroll = h("div", { class: "attn-scroll" }, table);
    this.element = h("div", { class: "attn-panel" }, this.scroll);
    this.listen();
  }

  listen() {
    const row = (event) => event.target.closest("tbody tr")?.sectionRowIndex;
    this.body.addEventListener("pointerover", (event) => this.look(row(event) ?? null, "over"));
    this.body.addEventListener("pointerleave", () => this.look(null, "over"));
    this.body.addEventListener("click", (event) => row(event) !== undefined && this.look(row(event), "pick"));
    this.body.addEventListener("focusin", (event) => this.look(row(event), "pick"));
    this.body.addEventListener("keydown", (event) => this.move(event));
  }

  move(event) {
    const last = this.buttons.length - 1;
    const to = { ArrowUp: this.row - 1, ArrowDown: this.row + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.buttons[Math.max(0, Math.min(last, to))].focus();
  }

  /** Give the table its rows and columns. */
  label(rows, columns) {
    if (this.buttons.length !== rows.length || this.names.length !== columns.length) {
      this.rebuild(rows.length, columns.length);
    }
    this.buttons.forEach((button, i) => (textOf(button).data = rows[i]));
    this.names.forEach((name, j) => (name.data = columns[j]));
  }

  rebuild(rows, columns) {
    this.buttons = Array.from(
      { length: rows },
      () => h("button", { type: "button", tabindex: -1, "aria-pressed": "false" }, hidden(`${this.rowKind}: `), ""),
    );
    this.names = Array.from({ length: columns }, () => document.createTextNode(""));
    this.cells = this.buttons.map(() => Array.from({ length: columns }, () => h("td", {}, "")));
    this.sums = this.total ? this.buttons.map(() => h("td", { class: "attn-sum" }, "")) : [];
    this.written = this.cells.map((row) => row.map(() => ""));
    this.head.replaceChildren(
      h("td", {}, `${this.rowKind} ↓ ${this.columnKind} →`),
      ...this.names.map((name) => h("th", { scope: "col" }, hidden(`${this.columnKind}: `), name)),
      ...(this.total ? [h("th", { scope: "col" }, "sum")] : []),
    );
    this.lines = this.buttons.map((button, i) =>
      h("tr", {}, h("th", { scope: "row" }, button), ...this.cells[i], ...this.sums.slice(i, i + 1))
    );
    this.body.replaceChildren(...this.lines);
  }

  /** Write the numbers. A cell is shaded by its share of full, by default of the largest number. */
  fill(values, full = largest(values)) {
    values.forEach((row, i) => {
      row.forEach((value, j) => this.write(i, j, value, full));
      if (this.total) textOf(this.sums[i]).data = shown(row.reduce((sum, w) => sum + w, 0));
    });
  }

  write(i, j, value, full) {
    const text = shown(value);
    const share = Number.isFinite(value) && full ? Math.min(1, Math.abs(value) / full) : 0;
    const shade = `rgb(${value < 0 ? NEGATIVE : POSITIVE} / ${(MAX_SHADE * share).toFixed(2)})`;
    if (this.written[i][j] === text + shade) return;
    this.written[i][j] = text + shade;
    textOf(this.cells[i][j]).data = text;
    this.cells[i][j].style.backgroundColor = shade;
  }

  /** Set apart the row that is looked at. The Tab key leads to the one that was picked. */
  mark(looked, picked) {
    this.row = picked;
    this.lines.forEach((line, i) => line.classList.toggle("attn-looked", i === looked));
    this.buttons.forEach((button, i) => {
      button.tabIndex = i === picked ? 0 : -1;
      button.setAttribute("aria-pressed", String(i === picked));
    });
  }
}

const largest = (values) => Math.max(0, ...values.flat().filter(Number.isFinite).map(Math.abs));

export const quoted = (words) => new Intl.ListFormat("en-GB").format(words.map((word) => `“${word}”`));

/** Number words that occur more than once, so that they can be told apart: the, train, the -> the₁, train, the₂. */
export function distinct(words) {
  const seen = new Map();
  return words.map((word) => {
    seen.set(word, (seen.get(word) ?? 0) + 1);
    const digits = [...String(seen.get(word))].map((digit) => String.fromCodePoint(0x2080 + Number(digit)));
    return words.indexOf(word) === words.lastIndexOf(word) ? word : word + digits.join("");
  });
}

/** Return the places of the largest number: several where numbers are equal but for rounding. */
export function best(numbers) {
  const top = Math.max(...numbers);
  return numbers.flatMap((x, j) => (top - x <= 1e-9 ? [j] : []));
}

/** Say in words what a row of weights does. */
export function inWords(word, weights, words) {
  const places = best(weights);
  if (weights[places[0]] === 0) {
    return `There is nothing “${word}” can attend to: all its weights are 0, and so is its context.`;
  }
  const first = quoted(places.map((j) => words[j]));
  const each = places.length > 1 ? "equally at " : "most at ";
  const rest = weights.map((w, j) => [w, words[j], j]).filter(([w, , j]) => !places.includes(j) && w >= 0.005);
  rest.sort((a, b) => b[0] - a[0]);
  const then = rest.slice(0, 2).map(([w, other]) => `“${other}” ${shown(w)}`);
  return `“${word}” looks ${each}${first}, with a weight of ${shown(weights[places[0]])}${
    places.length > 1 ? " each" : ""
  }${then.length ? `, then ${then.join(", ")}` : ""}.`;
}

/** A line that is read aloud when it changes, but no more than a few times a second, and not while the reader types. */
export class Summary {
  constructor() {
    this.next = "";
    this.isUnread = false; // whether the text may be there already, but was never read aloud
    /** @type {number | null} */
    this.waiting = null;
    this.quietUntil = 0;
    this.element = h("p", { class: "attn-summary", "aria-live": "polite" });
  }

  /**
   * Show a text after a short delay; an empty text clears the line at once.
   *
   * @param {string} text
   * @param {boolean} aloud whether screen readers read it; if not, the next text that they do read may be the same
   */
  say(text, aloud = true) {
    this.next = text;
    this.isUnread ||= aloud && this.element.ariaLive === "off";
    this.element.ariaLive = aloud ? "polite" : "off";
    if (!text) this.element.textContent = "";
    this.waiting ??= setTimeout(() => this.write(), 300);
  }

  write() {
    const left = this.quietUntil - performance.now();
    this.waiting = left > 0 ? setTimeout(() => this.write(), left) : null;
    if (left > 0 || (this.element.textContent === this.next && !this.isUnread)) return;
    this.element.textContent = this.next;
    this.isUnread = false;
  }

  /** Wait until the reader has stopped typing. */
  typed() {
    this.quietUntil = performance.now() + TYPING;
  }

  /** The reader has left the field, or pressed Enter. */
  done() {
    this.quietUntil = 0;
  }
}
