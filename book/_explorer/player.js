// Buttons and a slider that lead through the steps of a drawing, and play them.

import { h } from "./table.js";

export class Player {
  /** @type {number | undefined} */
  timer = undefined;
  step = 0;

  /**
   * @param {string} name what the slider chooses
   * @param {(step: number) => void} go called with the step that the reader wants
   * @param {() => void} start called when the reader wants to see all steps
   * @param {() => void} stop called when the reader presses Pause; by default, goes to the step that is shown
   */
  constructor(name, go, start, stop = () => go(this.step)) {
    this.play = h("button", { type: "button", click: () => this.isPlaying ? stop() : start() }, "Play");
    this.back = h("button", { type: "button", "aria-label": "Step back", click: () => go(this.step - 1) }, "◀");
    this.next = h("button", { type: "button", "aria-label": "Step forwards", click: () => go(this.step + 1) }, "▶");
    this.slider = h("input", { type: "range", "aria-label": name, input: () => go(Number(this.slider.value)) });
    this.element = h("div", { class: "attn-player" }, this.play, this.back, this.next, this.slider);
  }

  /** Show which step it is, of those from the first to the last, and what a screen reader says of it. */
  show(step, [first, last], said, frozen) {
    this.step = step;
    Object.assign(this.slider, { min: String(first), max: String(last), value: String(step) });
    this.slider.setAttribute("aria-valuetext", said);
    for (const control of [this.play, this.back, this.next, this.slider]) control.disabled = frozen;
    this.back.disabled ||= step === first;
    this.next.disabled ||= step === last;
  }

  get isPlaying() {
    return this.timer !== undefined;
  }

  /** Take a step every so many milliseconds, until it is paused. */
  run(tick, milliseconds) {
    this.pause();
    this.play.textContent = "Pause";
    this.timer = setInterval(tick, milliseconds);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.play.textContent = "Play";
  }
}
