// The controls that the models with megabytes of weights share: the text, what is said about it, and the link.

import { h, Summary } from "./table.js";

export const button = (text, click) => h("button", { type: "button", click }, text);

export class ModelControls {
  summary = new Summary();
  message = new Summary();
  note = h("p", { role: "status" });
  linked = h("output", { class: "attn-linked" });
  /** @type {any} where the reader writes */
  field = null;

  /**
   * @param {{ svg: SVGSVGElement, restart: () => void }} element
   * @param {string} id of the message
   */
  constructor(element, id) {
    this.restart = h("button", { type: "button", hidden: true, click: () => element.restart() }, "Start it again");
    this.canvas = h("div", { class: "attn-canvas" }, element.svg);
    Object.assign(this.message.element, { className: "attn-message", id });
  }

  typed() {
    this.summary.typed();
    this.message.typed();
  }

  done() {
    this.summary.done();
    this.message.done();
  }

  /** Say what is wrong, or that nothing is. */
  complain(text, hasStopped = false) {
    this.message.say(text);
    this.restart.hidden = !hasStopped;
    this.field.setAttribute("aria-invalid", String(Boolean(text) && !hasStopped));
  }
}
