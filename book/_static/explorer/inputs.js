// What a reader types into the explorer: numbers, tables of numbers, and what is said about those that are none.

import { h } from "./table.js";

export const LIMIT = 1000;

let notes = 0; // so far on the page

/** Keeps track of fields that hold something wrong, and says what. Their last good values stay in force. */
export class Notes {
  constructor() {
    this.element = h("p", { class: "attn-message", id: `attn-message-${notes++}`, "aria-live": "polite" });
    this.wrong = new Map();
  }

  /** Set what is wrong with a field; null if nothing is. */
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
  const needed = `a number from ${String(low).replace("-", "−")} to ${high} is needed${plain.includes(",") ? ", its decimals after a point" : ""}`;
  return { message: `${came} came, but ${needed}. Until then the last good one counts.` };
}

const written = (x) => String(Number(x.toFixed(4)));

/** A table of numbers to edit. */
export class NumberTable {
  /** @param {object} options title; rows and columns: what they are; notes: a Notes; changed(i, j, value) */
  constructor({ title, rows, columns, notes, changed }) {
    Object.assign(this, { rowKind: rows, columnKind: columns, notes, changed, fields: [] });
    this.head = h("tr");
    this.body = h("tbody", { input: (event) => this.read(event.target) });
    const table = h("table", { class: "attn-table attn-numbers" }, h("caption", {}, title), h("thead", {}, this.head), this.body);
    this.element = h("div", { class: "attn-scroll" }, table);
  }

  /** Show numbers, under their labels. */
  show(values, rows, columns) {
    if (this.fields.length !== values.length || this.fields[0].length !== values[0].length) this.rebuild(values.length, columns);
    values.forEach((row, i) => {
      this.names[i].textContent = rows[i];
      row.forEach((value, j) => {
        const field = this.fields[i][j];
        this.notes.set(field, null);
        field.setAttribute("aria-label", `${rows[i]}, ${this.columnKind} ${columns[j]}`);
        field.value = written(value);
      });
    });
  }

  rebuild(rows, columns) {
    this.fields.flat().forEach((field) => this.notes.set(field, null));
    this.fields = Array.from({ length: rows }, () =>
      columns.map(() => h("input", { type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: "false" })),
    );
    this.names = this.fields.map(() => h("th", { scope: "row" }));
    this.head.replaceChildren(h("td", {}, `${this.rowKind} ↓`), ...columns.map((name) => h("th", { scope: "col" }, name)));
    this.body.replaceChildren(
      ...this.fields.map((row, i) => h("tr", {}, this.names[i], ...row.map((field) => h("td", {}, field)))),
    );
  }

  read(field) {
    const { value, message } = number(field.value);
    this.notes.set(field, message && `${field.getAttribute("aria-label")}: ${message}`);
    if (message) return;
    const i = this.fields.findIndex((row) => row.includes(field));
    this.changed(i, this.fields[i].indexOf(field), value);
  }
}
