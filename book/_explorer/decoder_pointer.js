// What the reader points at in the decoder's drawing, and chooses there, by pointer or by key.

import { columnAt } from "./decoder_scene.js";

export class DecoderPointer {
  /** @param {any} decoder the element, see decoder.js */
  constructor(decoder) {
    this.decoder = decoder;
    const { svg } = decoder;
    svg.addEventListener("pointermove", (event) => this.point(this.placeAt(event)));
    svg.addEventListener("pointerleave", () => this.point(null));
    svg.addEventListener("click", (event) => this.pick(event));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  cellAt({ target }) {
    return this.decoder.drawing.shapeOf(target)?.cell;
  }

  point(place) {
    const { decoder } = this;
    if (place === decoder.over || decoder.controls.player.isPlaying) return;
    decoder.over = place;
    decoder.soon();
  }

  /** The token at which an event happened. */
  placeAt(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "token") return cell.word;
    if (cell?.kind !== "field") return null;
    const { svg, room, count, sizes } = this.decoder;
    return columnAt(event.clientX - svg.getBoundingClientRect().left, room, count, sizes.context);
  }

  pick(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "bar") this.decoder.takeBar(cell.word);
    else if (cell) this.decoder.look({ chosen: this.placeAt(event) });
  }

  key(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "bar") return this.keyOnBar(event, cell);
    const { place, count } = this.decoder;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: count - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.decoder.over = null;
    this.decoder.look({ chosen: Math.max(0, Math.min(count - 1, to)) });
  }

  keyOnBar(event, { word }) {
    const buttons = /** @type {NodeListOf<SVGElement>} */ (this.decoder.svg.querySelectorAll("[role=button]"));
    const at = [...buttons].indexOf(event.target);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (to === undefined) this.decoder.takeBar(word);
    else buttons[Math.max(0, Math.min(buttons.length - 1, to))].focus();
  }
}
