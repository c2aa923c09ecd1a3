// What a reader types into the explorer: numbers, tables of numbers, and the messages about what is wrong with them.

import { MOST_WORDS } from "./options.js";
import { h } from "./table.js";

export const LIMIT = 1000; // of a number
const MOST_LETTERS = 40; // of a word

let messages = 0; // how many there are on the page so far

/** The fields that hold something wrong, and a message that says what. Their last good values stay in force. */
export class FieldErrors {
  constructor() {
    this.element = h("p", { class: "attn-message", id: `attn-message-${messages++}`, "aria-live": "polite" });
    /** @type {Map<HTMLElement, string>} */
    this.wrong = new Map();
  }

  /** Say what is wrong with a field; null means that nothing is. */
  set(field, message) {
    if (message) this.wrong.set(field, message);
    else if (!this.wrong.delete(field)) return;
    this.mark(field, Boolean(message));
    this.element.textContent = [...this.wrong.values()].join(" ");
  }

  clear() {
    for (const field of [...this.wrong.keys()]) this.set(field, null);
  }

  mark(field, wrong) {
    for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", this.element.id]]) {
      if (wrong) field.setAttribute(name, value);
      else field.removeAttribute(name);
    }
  }
}

/** Read a number between two limits: {value}, or {message} that says what came and what is needed. */
export function number(text, low = -LIMIT, high = LIMIT) {
  const plain = text.trim().replace("−", "-");
  const value = plain === "" ? NaN : Number(plain);
  if (value >= low && value <= high) return { value };
  const came = plain === "" ? "Nothing" : `“${text.trim()}”`;
  const needed = `a number from ${String(low).replace("-", "−")} to ${high} is needed${
    plain.includes(",") ? ", with a decimal point, not a comma" : ""
  }`;
  return { message: `${came} was given, but ${needed}. Until then, the last valid number is used.` };
}

/** Say what is wrong with the words of a sentence; null if they can be used. */
export function wrongWords(words) {
  if (words.length < 1 || words.length > MOST_WORDS) {
    return `The sentence has ${words.length} words, but it must have 1 to ${MOST_WORDS}.`;
  }
  const longest = Math.max(...words.map((word) => word.length));
  return longest > MOST_LETTERS ? `One word has ${longest} letters, but at most ${MOST_LETTERS} are allowed.` : null;
}

const written = (x) => String(Number(x.toFixed(4)));

/** A table of numbers to edit. The Tab key leads to one of them, and the arrow keys from there to the others. */
export class NumberTable {
  /**
   * @param {object} options
   * @param {string} options.title
   * @param {string} options.rows what the rows are: "word"
   * @param {string} options.columns what the columns are: "component"
   * @param {FieldErrors} options.errors
   * @param {(row: number, column: number, value: number) => void} options.changed called with each new number
   */
  constructor({ title, rows, columns, errors, changed }) {
    this.rowKind = rows;
    this.columnKind = columns;
    this.errors = errors;
    this.changed = changed;
    /** @type {HTMLInputElement[][]} */
    this.fields = [];
    /** @type {HTMLTableCellElement[]} */
    this.names = [];
    this.head = h("tr");
    this.body = h("tbody", {
      input: (event) => this.read(event.target),
      keydown: (event) => this.move(event),
      focusin: (event) => this.stopAt(event.target),
    });
    const table = h(
      "table",
      { class: "attn-table attn-numbers" },
      h("caption", {}, title),
      h("thead", {}, this.head),
      this.body,
    );
    this.element = h("div", { class: "attn-scroll" }, table);
  }

  /** Show numbers, under their labels. */
  show(values, rows, columns) {
    if (this.fields.length !== values.length || this.fields[0].length !== values[0].length) {
      this.rebuild(values.length, columns);
    }
    values.forEach((row, i) => {
      this.names[i].textContent = rows[i];
      row.forEach((value, j) => {
        const field = this.fields[i][j];
        this.errors.set(field, null);
        field.setAttribute("aria-label", `${rows[i]}, ${this.columnKind} ${columns[j]}`);
        field.value = written(value);
      });
    });
  }

  rebuild(rows, columns) {
    this.fields.flat().forEach((field) => this.errors.set(field, null));
    this.fields = Array.from(
      { length: rows },
      () => columns.map(() => h("input", { type: "text", autocomplete: "off", spellcheck: "false" })),
    );
    this.stopAt(this.fields[0][0]);
    this.names = this.fields.map(() => h("th", { scope: "row" }));
    this.head.replaceChildren(
      h("td", {}, `${this.rowKind} ↓`),
      ...columns.map((name) => h("th", { scope: "col" }, name)),
    );
    this.body.replaceChildren(
      ...this.fields.map((row, i) => h("tr", {}, this.names[i], ...row.map((field) => h("td", {}, field)))),
    );
  }

  /** Let the Tab key lead to one field. */
  stopAt(field) {
    for (const one of this.fields.flat()) one.tabIndex = one === field ? 0 : -1;
  }

  /** Go to a neighbour: up and down always, to the side where the cursor is at the end of the number, or all is selected. */
  move(event) {
    const field = event.target;
    const { selectionStart: start, selectionEnd: end, value } = field;
    const all = start === 0 && end === value.length;
    const across = { ArrowLeft: all || end === 0 ? -1 : 0, ArrowRight: all || start === value.length ? 1 : 0 };
    const [down, right] = [{ ArrowUp: -1, ArrowDown: 1 }[event.key] ?? 0, across[event.key] ?? 0];
    const i = this.fields.findIndex((row) => row.includes(field));
    const next = this.fields[i + down]?.[this.fields[i].indexOf(field) + right];
    if ((!down && !right) || !next) return;
    event.preventDefault();
    next.focus();
    next.select();
  }

  read(field) {
    const { value, message } = number(field.value);
    this.errors.set(field, message && `${field.getAttribute("aria-label")}: ${message}`);
    if (value === undefined) return;
    const i = this.fields.findIndex((row) => row.includes(field));
    this.changed(i, this.fields[i].indexOf(field), value);
  }
}
