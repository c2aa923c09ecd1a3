// The weights of a translation as a table: for readers who want the numbers, or who hear them.

import { distinct, h, HeatTable } from "./table.js";
import { written } from "./translation_words.js";

/** A character as the name of a row or a column. */
const nameOfCharacter = (character) => character === " " ? "␣" : character;

export class TranslationTable {
  /** @type {any} what is shown: the text, the steps so far, and the chosen one */
  shown = null;

  /** @param {(place: number) => void} look called with the written character that the reader chooses */
  constructor(look) {
    this.table = new HeatTable({
      ...{ rows: "written", columns: "read" },
      look: (place, how) => how === "pick" && place !== null && look(place),
    });
    this.element = h(
      "details",
      { toggle: () => this.write() },
      h("summary", {}, "Weights as a table"),
      this.table.element,
    );
  }

  show(shown) {
    this.shown = shown;
    this.write();
  }

  /** Write the numbers, if anyone can see them. */
  write() {
    if (!this.element.open || !this.shown) return;
    const { text, steps, chosen } = this.shown;
    this.table.caption.textContent = `Weights while “${text}” becomes ${written(steps)}`;
    this.table.label(distinct(steps.map(({ character }) => character)), distinct([...text].map(nameOfCharacter)));
    this.table.fill(steps.map(({ weights }) => weights), 1);
    this.table.mark(chosen, chosen);
  }
}
