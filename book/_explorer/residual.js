// <attention-residual>: one word on its way through a transformer block. Its configuration is written by
// book/_tools/residual.py.

import { fromResidualAddress, PREFIX, residualAddress } from "./residual_address.js";
import { residualScene } from "./residual_scene.js";
import { outputInWords, stageInWords } from "./residual_words.js";
import { SteppedDrawing } from "./stepped_drawing.js";
import { configuration, labelled, selectOf, switchOf } from "./table.js";
import { blockStages, PARTS } from "./transformer_block.js";

const PACE = { move: 600, between: 1800 }; // milliseconds of a step, and from one step to the next

class AttentionResidual extends HTMLElement {
  /** @type {any} */
  config = null;
  /** @type {any} controls by the setting that they choose */
  controls = {};
  /** @type {import("./residual_words.js").Passage | null} */
  passage = null;
  /** @type {SteppedDrawing | null} */
  view = null;

  connectedCallback() {
    if (this.config) return;
    this.config = configuration(this);
    const { caption, words, follow } = this.config;
    this.view = new SteppedDrawing({
      ...{ host: this, caption, controls: this.build(words), stepName: "Step", file: "residual-stream" },
      ...{ prefix: PREFIX, count: () => this.passage?.stages.length ?? 0, pace: () => PACE },
      scene: (step, room) => residualScene(this.shown, step, room),
      said: (step, isWhole) => isWhole ? outputInWords(this.shown) : stageInWords(this.shown, step),
      address: (step) => residualAddress({ ...this.shown.settings, step }, follow),
      restore: (fragment) => this.choose(fromResidualAddress(fragment, words, follow)),
    });
    if (!this.view.restore()) this.choose({ follow, norm: "pre", off: [], step: null });
  }

  // ---- what the reader chooses

  build(words) {
    const select = (name, text, options) => {
      this.controls[name] = selectOf(options, () => this.chosen());
      return labelled(text, this.controls[name], {});
    };
    const onOff = (name, text) => {
      this.controls[name] = switchOf(() => this.chosen());
      return labelled(text, this.controls[name], { class: "attn-field attn-switch" });
    };
    return [
      select("follow", "Follow", Object.fromEntries(words.map((word) => [word, word]))),
      select("norm", "Norm", { pre: "before each part (pre-norm)", post: "after each sum (post-norm)" }),
      onOff("attention", "Attention"),
      onOff("feed_forward", "Feed-forward layer"),
    ];
  }

  chosen() {
    const { follow, norm } = this.controls;
    const off = PARTS.filter((part) => !this.controls[part].checked);
    this.choose({ follow: follow.value, norm: norm.value, off, step: null });
  }

  /**
   * @param {import("./residual_address.js").Shown | null} shown
   * @returns whether anything was asked for
   */
  choose(shown) {
    if (!shown) return false;
    const { step, ...settings } = shown;
    const { words, rows, params } = this.config;
    for (const name of ["follow", "norm"]) this.controls[name].value = settings[name];
    for (const part of PARTS) this.controls[part].checked = !settings.off.includes(part);
    this.passage = {
      ...{ settings, words, word: words.indexOf(settings.follow), params },
      stages: blockStages(rows, params, settings),
    };
    this.view?.open(step);
    return true;
  }

  /** How the word that is followed passes through the block. */
  get shown() {
    return /** @type {import("./residual_words.js").Passage} */ (this.passage);
  }
}

customElements.define("attention-residual", AttentionResidual);
