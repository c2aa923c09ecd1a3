// What the models with megabytes of weights share: how such a model is loaded, and what is said when something fails.

import { Drawing } from "./drawing.js";
import { ModelWorker } from "./model_worker.js";
import { copyAddress } from "./share.js";
import { configuration, h } from "./table.js";

const LOADING_SAID = {
  loading: "Loading the model…",
  cut: "Only part of the model arrived, so it was not started.",
  lost: "The model could not be loaded. Check your connection.",
  unkept:
    "Your browser could not store the model, because its storage is full or blocked. Everything works, but the model has to be loaded again next time.",
};

export class ModelElement extends HTMLElement {
  progress = h("progress", { max: "1", value: "0", "aria-label": "Loading the model" });
  loading = h("div", { class: "attn-loading" });
  group = h("div", { class: "attn", role: "group", tabindex: -1 });
  svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  drawing = new Drawing(this.svg);

  /** @type {any} */
  config = null;
  /** @type {any} the sizes of the model, see CausalLM and Bert; null until it is loaded */
  sizes = null;
  /** @type {any} a ModelWorker */
  worker = null;
  /** @type {any} what the reader sets, once there is a model: it can complain, and has a note */
  controls = null;
  stoppedText = ""; // what is said when the worker has stopped

  /** Take the place of the offer, and load the model. */
  begin(/** @type {ModelScript} */ { worker }, stoppedText) {
    this.config = configuration(this);
    this.stoppedText = stoppedText;
    this.group.setAttribute("aria-label", this.config.caption);
    const offer = this.querySelector(".attn-offer");
    const hadFocus = offer?.contains(document.activeElement);
    offer?.remove();
    this.append(this.group);
    if (hadFocus) this.group.focus({ preventScroll: true });
    const hear = (said, isNewest) => this.hear(said, isNewest);
    this.worker = new ModelWorker(worker, () => ({ load: this.file() }), hear, () => this.stopped());
    this.load();
  }

  /** Where the file of the model is, and under which name the browser keeps it. */
  file() {
    const { weights, length } = this.dataset;
    return { address: new URL(weights ?? "", location.href).href, length: Number(length), store: this.localName };
  }

  load() {
    this.progress.value = 0;
    this.loading.replaceChildren(this.progress, h("p", { role: "status" }, LOADING_SAID.loading));
    this.group.prepend(this.loading);
    this.startWorker();
  }

  startWorker() {
    this.worker.start();
  }

  /** Show why there is no model, and offer to try again. */
  failed(why) {
    this.worker.end();
    const again = h("button", { type: "button", click: () => this.load() }, "Try again");
    this.loading.replaceChildren(h("p", { role: "status" }, why), again);
  }

  stopped() {
    if (this.controls) this.controls.complain(this.stoppedText, true);
    else this.failed(this.stoppedText);
  }

  hear(said, isNewest) {
    if (said.progress !== undefined) this.progress.value = said.progress;
    else if (said.failed) this.failed(LOADING_SAID[said.failed]);
    else if (said.config) this.loaded(said);
    else this.answered(said, isNewest);
  }

  /** The model has been loaded, for the first time or again. */
  loaded(said) {
    this.loading.remove();
    this.setSizes(said);
    if (this.controls) return this.resume();
    const hadFocus = this.group.contains(document.activeElement);
    this.build();
    if (hadFocus) this.group.focus({ preventScroll: true });
    if (said.kept === false) this.controls.note.textContent = LOADING_SAID.unkept;
    this.open();
  }

  // ---- the address of the page

  /** Show what the address asks for, and return whether it asks for anything. */
  restore(fragment = location.hash) {
    const asked = this.fromAddress(fragment);
    if (!asked) return false;
    asked.layer = Math.min(this.sizes.layers - 1, asked.layer);
    asked.head = Math.min(this.sizes.heads - 1, asked.head);
    this.controls.field.value = asked.text;
    this.ask(asked);
    this.scrollIntoView({ block: "center" });
    return true;
  }

  writeAddress() {
    history.replaceState(history.state, "", this.address);
  }

  async copyLink() {
    this.writeAddress();
    this.controls.linked.textContent = await copyAddress();
  }

  // ---- what each model does in its own way

  /** Keep what the worker says about the model. */
  setSizes(_said) {}

  /** Make what the reader sees, with the controls. */
  build() {}

  /** Show something for the first time. */
  open() {}

  /** Have a text read, or say why it cannot be read. */
  ask(_asked) {}

  /** Read what an address asks for; null if it asks for nothing. */
  fromAddress(_fragment) {
    return /** @type {any} */ (null);
  }

  /** The address of what is shown. */
  get address() {
    return "";
  }

  /** Ask again what was asked before the worker stopped. */
  resume() {}

  /** Take the worker's answer to a question. */
  answered(_said, _isNewest) {}
}
