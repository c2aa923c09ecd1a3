// What the step-by-step drawings have in common: the steps are played or chosen, each is described in words, and what
// is shown is kept in the page's address.

import { Drawing, mayMove, onWidth } from "./drawing.js";
import { Player } from "./player.js";
import { copyAddress, onFragment, savePicture } from "./share.js";
import { h, Summary } from "./table.js";

export class SteppedDrawing {
  summary = new Summary();
  svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  drawing = new Drawing(this.svg);
  canvas = h("div", { class: "attn-canvas" }, this.svg);
  linked = h("output", { class: "attn-linked" });

  step = 0;
  isLooking = false; // whether the reader has chosen a step
  /** @type {number | undefined} */
  writing = undefined;

  /**
   * @param {object} of what is drawn
   * @param {HTMLElement} of.host the element that it fills
   * @param {string} of.caption
   * @param {HTMLElement[]} of.controls what the reader can choose, apart from the step
   * @param {string} of.stepName what the slider chooses
   * @param {string} of.file the name of a saved picture
   * @param {string} of.prefix how the page's address begins if it is about this drawing
   * @param {(isMoving: boolean) => { move: number, between: number }} of.pace milliseconds of a step, and from one step to
   *   the next while it plays
   * @param {() => number} of.count how many steps there are
   * @param {(step: number, room: number) => { shapes: import("./shapes.js").Shape[], width: number, height: number }} of.scene
   * @param {(step: number, isWhole: boolean) => string} of.said one step in words, or all of them
   * @param {(step: number | null) => string} of.address the address of this step, or of the end; empty for the example
   * @param {(fragment: string) => boolean} of.restore show what an address asks for, and say whether it asks for anything
   */
  constructor(of) {
    this.of = of;
    this.player = new Player(of.stepName, (step) => this.go(step), () => this.start());
    this.svg.setAttribute("role", "img");
    of.host.replaceChildren(this.framed());
    onFragment((fragment) => this.restore(fragment));
    onWidth(this.canvas, () => this.draw(0));
  }

  framed() {
    const { caption, controls, file } = this.of;
    return h(
      "div",
      { class: "attn", role: "group", "aria-label": caption, tabindex: -1 },
      h("div", { class: "attn-controls" }, ...controls),
      this.canvas,
      this.player.element,
      this.summary.element,
      h(
        "div",
        { class: "attn-buttons" },
        h("button", { type: "button", click: () => this.copyLink() }, "Copy link"),
        h("button", { type: "button", click: () => savePicture(this.svg, file) }, "Save picture"),
        this.linked,
      ),
    );
  }

  // ---- steps

  /** Begin anew, at a step or at the end. */
  open(/** @type {number | null} */ step) {
    this.player.pause();
    this.isLooking = step !== null;
    this.take(step ?? this.of.count() - 1, 0);
  }

  /** Show a step, and all that comes before it. */
  take(step, duration = this.of.pace(false).move) {
    this.step = Math.max(0, Math.min(this.of.count() - 1, step));
    this.draw(duration);
    this.tell();
    clearTimeout(this.writing);
    if (!this.player.isPlaying) this.writing = setTimeout(() => this.writeAddress(), 400);
  }

  go(step) {
    this.player.pause();
    this.isLooking = true;
    this.take(step);
  }

  start() {
    this.isLooking = false;
    const { move, between } = this.of.pace(mayMove());
    if (this.step === this.of.count() - 1) this.take(0, 0);
    this.player.run(() => {
      if (this.step >= this.of.count() - 2) this.player.pause();
      this.take(this.step + 1, move);
    }, between);
    this.tell();
  }

  // ---- what is shown

  draw(duration) {
    const room = this.canvas.clientWidth;
    if (!room || !this.of.count()) return;
    const { shapes, width, height } = this.of.scene(this.step, room);
    this.drawing.fit(width, height);
    this.drawing.show(shapes, duration);
  }

  /** Say what is shown; while it plays, only the last step is read aloud. */
  tell() {
    const { step, of: { caption, count } } = this;
    const said = this.of.said(step, step === count() - 1 && !this.isLooking);
    this.player.show(step, [0, count() - 1], `${step + 1} of ${count()}`, false);
    this.summary.say(said, !this.player.isPlaying);
    this.svg.setAttribute("aria-label", `${caption}. ${said}`);
  }

  // ---- the address of the page

  /** Show what the address asks for, and return whether it asks for anything. */
  restore(fragment = location.hash) {
    const isAsked = this.of.restore(fragment);
    if (isAsked) this.of.host.scrollIntoView({ block: "center" });
    return isAsked;
  }

  writeAddress() {
    const address = this.of.address(this.step === this.of.count() - 1 ? null : this.step);
    if (address || location.hash.startsWith(this.of.prefix)) {
      history.replaceState(history.state, "", address || location.pathname + location.search);
    }
  }

  async copyLink() {
    this.writeAddress();
    this.linked.textContent = await copyAddress();
  }
}
