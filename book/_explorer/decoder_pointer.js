// What the reader points at in the decoder's drawing, and chooses there, by pointer or by key.

import { columnAt, headAt } from "./decoder_scene.js";

export class DecoderPointer {
  /** @param {any} decoder the element, see decoder.js */
  constructor(decoder) {
    this.decoder = decoder;
    const { svg } = decoder;
    svg.addEventListener("pointermove", (event) => this.point(this.placeAt(event), this.headAt(event)));
    svg.addEventListener("pointerleave", () => this.point(null, null));
    svg.addEventListener("click", (event) => this.pick(event));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  cellAt({ target }) {
    return this.decoder.drawing.shapeOf(target)?.cell;
  }

  point(over, overHead) {
    const { decoder } = this;
    const isSame = over === decoder.over && overHead?.layer === decoder.overHead?.layer &&
      overHead?.head === decoder.overHead?.head;
    if (isSame || decoder.controls.player.isPlaying) return;
    Object.assign(decoder, { over, overHead });
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

  /** The head under the pointer: the one with this number, or one that reads this row of the cache. */
  headAt(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "head") return { layer: cell.layer, head: cell.word };
    if (cell?.kind !== "field") return null;
    const { svg, sizes, shown } = this.decoder;
    return headAt(event.clientY - svg.getBoundingClientRect().top - cell.cache, sizes, shown.head);
  }

  pick(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "bar") return this.decoder.takeBar(cell.word);
    const place = this.placeAt(event);
    if (cell) this.decoder.look({ ...(place === null ? {} : { chosen: place }), ...this.headAt(event) });
  }

  key(event) {
    const cell = this.cellAt(event);
    if (cell?.kind === "bar") return this.keyOnBar(event, cell);
    const { place, count } = this.decoder;
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: count - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
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
