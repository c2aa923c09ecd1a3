// What the reader sets: the prompt, how tokens are drawn, how fast, and which head is shown.

import { workInWords } from "./decoder_words.js";
import { mayMove } from "./drawing.js";
import { Player } from "./player.js";
import { button, ModelControls } from "./model_controls.js";
import { h, labelled, shown } from "./table.js";

const HOW =
  "Point at a head’s number, or at a row of the cache, to see where that head looks. Click to keep it selected.";
const SPEEDS = [["slowly", 700], ["8 tokens a second", 125], ["as fast as possible", 4]];

/**
 * @typedef {object} Decoder what the element does, see decoder.js
 * @property {any} config
 * @property {any} sizes
 * @property {SVGSVGElement} svg
 * @property {(text: string) => void} choose
 * @property {() => void} typed
 * @property {(count: number) => void} go
 * @property {() => void} start
 * @property {() => void} stop
 * @property {() => void} changeSpeed
 * @property {(settings: any) => void} set
 * @property {(at: any) => void} look
 * @property {(settings: any) => void} again
 * @property {() => void} anew
 * @property {() => void} measure
 * @property {() => void} restart
 * @property {() => void} copyLink
 * @property {() => void} save
 */

export class DecoderControls extends ModelControls {
  verdict = h("p", { class: "attn-verdict", "aria-live": "polite" });
  work = h("p", { class: "attn-work" });

  /** @param {Decoder} decoder */
  constructor(decoder) {
    super(decoder, "attn-decoder-message");
    this.field = h("textarea", {
      ...{ rows: "3", autocomplete: "off", autocapitalize: "off", spellcheck: "false" },
      ...{ "aria-describedby": "attn-decoder-message", input: () => decoder.typed(), change: () => this.done() },
    });
    const go = (count) => decoder.go(count);
    this.player = new Player("Tokens written", go, () => decoder.start(), () => decoder.stop());
    this.temperature = slider(0, 2, (value) => decoder.set({ temperature: value }));
    this.topP = slider(0.05, 1, (value) => decoder.set({ topP: value }));
    this.speed = h(
      "select",
      { change: () => decoder.changeSpeed() },
      ...SPEEDS.map(([name, pause]) => h("option", { value: pause }, String(name))),
    );
    this.speed.value = String(mayMove() ? SPEEDS[1][1] : SPEEDS[2][1]);
    this.layer = numbers(decoder.sizes.layers, (layer) => decoder.look({ layer }));
    this.head = numbers(decoder.sizes.heads, (head) => decoder.look({ head }));
    this.equal = h("input", {
      type: "checkbox",
      role: "switch",
      change: () => decoder.again({ equal: this.equal.checked }),
    });
    this.elements = this.arranged(decoder);
  }

  arranged(decoder) {
    const row = (...controls) => h("div", { class: "attn-controls" }, ...controls);
    const examples = decoder.config.examples.map((text) => button(text.split("\n").at(-1), () => decoder.choose(text)));
    return [
      row(labelled("A prompt: the beginning of a program", this.field, { class: "attn-field attn-sentence" })),
      h("div", { class: "attn-buttons", role: "group", "aria-label": "Examples" }, ...examples),
      h("div", {}, this.message.element, this.restart, this.note),
      this.canvas,
      h("p", {}, HOW),
      this.player.element,
      row(
        this.temperature.element("Temperature"),
        this.topP.element("Top-p"),
        labelled("Layer", this.layer),
        labelled("Head", this.head),
        labelled("Speed", this.speed),
      ),
      this.summary.element,
      row(
        button("Sample other tokens", () => decoder.anew()),
        labelled("Equal weights, as a control", this.equal, { class: "attn-field attn-switch" }),
        button("Read everything again, without the cache", () => decoder.measure()),
      ),
      this.work,
      this.verdict,
      row(button("Copy link", () => decoder.copyLink()), button("Save picture", () => decoder.save()), this.linked),
    ];
  }

  /** Milliseconds from one token to the next. */
  get pause() {
    return Number(this.speed.value);
  }

  /** Show the settings that the drawing has. */
  set({ temperature, topP, layer, head, equal }) {
    this.temperature.set(temperature);
    this.topP.set(topP);
    Object.assign(this.layer, { value: String(layer) });
    Object.assign(this.head, { value: String(head) });
    this.equal.checked = equal;
  }

  /** Say a sentence; while it plays, only the last one is read aloud. */
  say(sentence, newest, count) {
    this.summary.say(sentence, !this.player.isPlaying);
    this.work.textContent = workInWords(newest, count);
  }
}

/** A choice among the first whole numbers. */
function numbers(count, choose) {
  const options = Array.from({ length: count }, (_, n) => h("option", { value: n }, String(n)));
  return h("select", { change: ({ target }) => choose(Number(target.value)) }, ...options);
}

/** A slider that shows its number. */
function slider(min, max, choose) {
  const output = h("output", {});
  const input = h("input", {
    ...{ type: "range", min, max, step: 0.05 },
    input: () => {
      output.value = shown(Number(input.value));
      choose(Number(input.value));
    },
  });
  return {
    set: (value) => {
      input.value = String(value);
      output.value = shown(value);
    },
    element: (name) => {
      const field = labelled(name, input);
      field.firstElementChild?.append(" ", output);
      return field;
    },
  };
}
