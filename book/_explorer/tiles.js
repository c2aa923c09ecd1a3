// <attention-tiles>: the bytes that attention moves, tile by tile. Its configuration is written by book/_tools/tiles.py.

import { Drawing, mayMove } from "./drawing.js";
import { Player } from "./player.js";
import { copyAddress, onFragment, savePicture } from "./share.js";
import { configuration, h, labelled, Summary } from "./table.js";
import { EXAMPLE, fromTileAddress, PREFIX, SIZES, tileAddress } from "./tile_address.js";
import { tileScene } from "./tile_scene.js";
import { movedBy, stepsOf } from "./tile_traffic.js";
import { resultInWords, stepInWords } from "./tile_words.js";

const MOVE = 250; // milliseconds of a step
const PLAY = [60, 450]; // milliseconds from one step to the next, at least and at most
const WHOLE = 9000; // milliseconds of all steps, if that is possible

class AttentionTiles extends HTMLElement {
  summary = new Summary();
  svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  drawing = new Drawing(this.svg);
  canvas = h("div", { class: "attn-canvas" }, this.svg);
  player = new Player("Tile", (step) => this.go(step), () => this.start());
  linked = h("output", { class: "attn-linked" });

  /** @type {any} */
  config = null;
  /** @type {any} controls by the setting that they choose */
  controls = {};
  /** @type {import("./tile_traffic.js").Settings} */
  settings = EXAMPLE;
  /** @type {Record<"tiles" | "table", import("./tile_traffic.js").Step[]>} the steps of both methods */
  both = { tiles: [], table: [] };
  step = 0;
  isLooking = false; // whether the reader has chosen a step
  /** @type {number | undefined} */
  writing = undefined;

  connectedCallback() {
    if (this.config) return;
    this.config = configuration(this);
    this.build();
    onFragment((fragment) => this.restore(fragment));
    new ResizeObserver(() => this.draw(0)).observe(this.canvas);
    if (!this.restore()) this.choose(EXAMPLE);
  }

  // ---- what it is made of

  build() {
    const select = (name, text, options) => {
      const entries = Object.entries(options).map(([value, said]) => h("option", { value }, said));
      this.controls[name] = h("select", { change: () => this.chosen() }, ...entries);
      return labelled(text, this.controls[name], {});
    };
    const sizes = (what) => Object.fromEntries(SIZES.map((size) => [size, `${size} ${what}`]));
    this.controls.causal = h("input", { type: "checkbox", role: "switch", change: () => this.chosen() });
    this.svg.setAttribute("role", "img");
    const group = h(
      "div",
      { class: "attn", role: "group", "aria-label": this.config.caption, tabindex: -1 },
      h(
        "div",
        { class: "attn-controls" },
        select("method", "Attention", { tiles: "in tiles", table: "with the whole table" }),
        select("rows", "Queries per tile", sizes("queries")),
        select("columns", "Keys per tile", sizes("keys")),
        labelled("Causal mask", this.controls.causal, { class: "attn-field attn-switch" }),
      ),
      this.canvas,
      this.player.element,
      this.summary.element,
      h(
        "div",
        { class: "attn-buttons" },
        h("button", { type: "button", click: () => this.copyLink() }, "Copy link"),
        h("button", { type: "button", click: () => savePicture(this.svg, "tiles") }, "Save picture"),
        this.linked,
      ),
    );
    this.replaceChildren(group);
  }

  // ---- what the reader chooses

  chosen() {
    const { method, rows, columns, causal } = this.controls;
    this.choose({
      ...{ method: method.value, rows: Number(rows.value), columns: Number(columns.value), causal: causal.checked },
      step: null,
    });
  }

  /** @param {import("./tile_address.js").Shown} shown */
  choose({ step, ...settings }) {
    this.player.pause();
    this.settings = settings;
    for (const name of ["method", "rows", "columns"]) this.controls[name].value = String(settings[name]);
    this.controls.causal.checked = settings.causal;
    const { head } = this.config;
    this.both = {
      tiles: stepsOf({ ...settings, method: "tiles" }, head),
      table: stepsOf({ ...settings, method: "table" }, head),
    };
    this.isLooking = step !== null;
    this.take(step ?? this.steps.length - 1, 0);
  }

  /** Show a step, and what has been moved until then. */
  take(step, duration = MOVE) {
    this.step = Math.max(0, Math.min(this.steps.length - 1, step));
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
    const between = Math.min(PLAY[1], Math.max(PLAY[0], WHOLE / this.steps.length));
    if (this.step === this.steps.length - 1) this.take(0, 0);
    this.player.run(() => {
      if (this.step >= this.steps.length - 2) this.player.pause();
      this.take(this.step + 1, Math.min(MOVE, 0.8 * between));
    }, mayMove() ? between : PLAY[1]);
    this.tell();
  }

  // ---- what is shown

  /** The steps of the method that is shown. */
  get steps() {
    return this.both[this.settings.method];
  }

  draw(duration) {
    const room = this.canvas.clientWidth;
    if (!this.steps.length || !room) return;
    const { settings, steps, step, both } = this;
    const { head } = this.config;
    const totals = { tiles: movedBy(both.tiles), table: movedBy(both.table) };
    const { shapes, width, height } = tileScene({ settings, head, steps, step, totals, room });
    this.drawing.fit(width, height);
    this.drawing.show(shapes, duration);
  }

  /** Say one sentence about what is shown; while it plays, only the last one is read aloud. */
  tell() {
    const { settings, steps, step, both: { tiles, table } } = this;
    const isWhole = step === steps.length - 1 && !this.isLooking;
    const place = `${step + 1} of ${steps.length}`;
    const said = isWhole ? resultInWords(settings, this.config.head, tiles, table) : stepInWords(settings, steps, step);
    this.player.show(step, [0, steps.length - 1], place, false);
    this.summary.element.ariaLive = this.player.isPlaying ? "off" : "polite";
    this.summary.say(said);
    this.svg.setAttribute("aria-label", `${this.config.caption}. ${said}`);
  }

  // ---- the address of the page

  /** Show what the address asks for, and return whether it asks for anything. */
  restore(fragment = location.hash) {
    const asked = fromTileAddress(fragment);
    if (!asked) return false;
    this.choose(asked);
    this.scrollIntoView({ block: "center" });
    return true;
  }

  writeAddress() {
    const step = this.step === this.steps.length - 1 ? null : this.step;
    const address = tileAddress({ ...this.settings, step });
    if (address || location.hash.startsWith(PREFIX)) {
      history.replaceState(history.state, "", address || location.pathname + location.search);
    }
  }

  async copyLink() {
    this.writeAddress();
    this.linked.textContent = await copyAddress();
  }
}

customElements.define("attention-tiles", AttentionTiles);
