// <attention-tiles>: the bytes that attention moves, tile by tile. Its configuration is written by book/_tools/tiles.py.

import { SteppedDrawing } from "./stepped_drawing.js";
import { configuration, labelled, selectOf, switchOf } from "./table.js";
import { EXAMPLE, fromTileAddress, PREFIX, SIZES, tileAddress } from "./tile_address.js";
import { tileScene } from "./tile_scene.js";
import { movedBy, stepsOf } from "./tile_traffic.js";
import { resultInWords, stepInWords } from "./tile_words.js";

const MOVE = 250; // milliseconds of a step
const PLAY = [60, 450]; // milliseconds from one step to the next, at least and at most
const WHOLE = 9000; // milliseconds of all steps, if that is possible

class AttentionTiles extends HTMLElement {
  /** @type {any} */
  config = null;
  /** @type {any} controls by the setting that they choose */
  controls = {};
  /** @type {import("./tile_traffic.js").Settings} */
  settings = EXAMPLE;
  /** @type {Record<"tiles" | "table", import("./tile_traffic.js").Step[]>} the steps of both methods */
  both = { tiles: [], table: [] };
  /** @type {SteppedDrawing | null} */
  view = null;

  connectedCallback() {
    if (this.config) return;
    this.config = configuration(this);
    this.view = new SteppedDrawing({
      ...{ host: this, caption: this.config.caption, controls: this.build(), stepName: "Tile", file: "tiles" },
      ...{ prefix: PREFIX, count: () => this.steps.length, pace: (isMoving) => this.pace(isMoving) },
      scene: (step, room) => this.scene(step, room),
      said: (step, isWhole) => this.said(step, isWhole),
      address: (step) => tileAddress({ ...this.settings, step }),
      restore: (fragment) => this.choose(fromTileAddress(fragment)),
    });
    if (!this.view.restore()) this.choose(EXAMPLE);
  }

  // ---- what the reader chooses

  build() {
    const select = (name, text, options) => {
      this.controls[name] = selectOf(options, () => this.chosen());
      return labelled(text, this.controls[name], {});
    };
    const sizes = (what) => Object.fromEntries(SIZES.map((size) => [size, `${size} ${what}`]));
    this.controls.causal = switchOf(() => this.chosen());
    return [
      select("method", "Attention", { tiles: "in tiles", table: "with the whole table" }),
      select("rows", "Queries per tile", sizes("queries")),
      select("columns", "Keys per tile", sizes("keys")),
      labelled("Causal mask", this.controls.causal, { class: "attn-field attn-switch" }),
    ];
  }

  chosen() {
    const { method, rows, columns, causal } = this.controls;
    this.choose({
      ...{ method: method.value, rows: Number(rows.value), columns: Number(columns.value), causal: causal.checked },
      step: null,
    });
  }

  /**
   * @param {import("./tile_address.js").Shown | null} shown
   * @returns whether anything was asked for
   */
  choose(shown) {
    if (!shown) return false;
    const { step, ...settings } = shown;
    this.settings = settings;
    for (const name of ["method", "rows", "columns"]) this.controls[name].value = String(settings[name]);
    this.controls.causal.checked = settings.causal;
    const { head } = this.config;
    this.both = {
      tiles: stepsOf({ ...settings, method: "tiles" }, head),
      table: stepsOf({ ...settings, method: "table" }, head),
    };
    this.view?.open(step);
    return true;
  }

  // ---- what is shown

  /** The steps of the method that is shown. */
  get steps() {
    return this.both[this.settings.method];
  }

  pace(isMoving) {
    const between = isMoving ? Math.min(PLAY[1], Math.max(PLAY[0], WHOLE / this.steps.length)) : PLAY[1];
    return { move: Math.min(MOVE, 0.8 * between), between };
  }

  scene(step, room) {
    const { settings, steps, both } = this;
    const totals = { tiles: movedBy(both.tiles), table: movedBy(both.table) };
    return tileScene({ settings, head: this.config.head, steps, step, totals, room });
  }

  said(step, isWhole) {
    const { settings, steps, both: { tiles, table } } = this;
    return isWhole ? resultInWords(settings, this.config.head, tiles, table) : stepInWords(settings, steps, step);
  }
}

customElements.define("attention-tiles", AttentionTiles);
