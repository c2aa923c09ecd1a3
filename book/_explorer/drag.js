// What the pointer does in the drawing: it drags an arrow or a word, paints a mask, or swipes to another stage.

const SWIPE = 40; // pixels
const STILL = 8; // the most pixels that a finger may move in a tap

/**
 * @param {SVGSVGElement} svg
 * @param {object} options
 * @param {(element: Element | null) => any} options.cellOf what the reader finds at an element; null for nothing
 * @param {(cell: any, place: number[]) => void} options.drag called with an arrow and where the pointer is
 * @param {(cell: any, isFirst: boolean) => void} options.paint called with each cell of a pane that the pointer comes to
 * @param {() => void} options.end called when the pointer has let go
 * @param {(cell: any, place: number[]) => number} options.carry called with a word and where the pointer is; returns its place
 * @param {(forwards: boolean) => void} options.swipe
 */
export function listenToPointer(svg, { cellOf, drag, paint, end, carry, swipe }) {
  /** @type {{ cell: any, x: number, y: number, isTouch: boolean, last: any } | null} */
  let start = null;
  /** @type {PointerEvent | null} */
  let latest = null;

  const place = ({ clientX, clientY }) => {
    const box = svg.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  };
  const move = () => {
    if (!start || !latest) return;
    const event = latest;
    latest = null;
    if (start.cell?.kind === "arrow") return drag(start.cell, place(event));
    if (start.cell?.kind === "chip") {
      if (Math.abs(event.clientX - start.x) > STILL) {
        start.cell = { ...start.cell, word: carry(start.cell, place(event)) };
      }
      return;
    }
    const cell = cellOf(document.elementFromPoint(event.clientX, event.clientY));
    const known = start.last && cell?.query === start.last.query && cell?.word === start.last.word;
    if (cell?.kind !== "pane" || known || cell.head !== start.cell?.head) return;
    paint(cell, false);
    start.last = cell;
  };

  svg.addEventListener("pointerdown", (event) => {
    const cell = cellOf(/** @type {Element} */ (event.target));
    start = { cell, x: event.clientX, y: event.clientY, isTouch: event.pointerType !== "mouse", last: cell };
    if (cell?.kind === "pane") paint(cell, true);
    if (["arrow", "chip"].includes(cell?.kind) && event.isTrusted) svg.setPointerCapture(event.pointerId);
  });
  // A frame is drawn once, however often the pointer reports.
  svg.addEventListener("pointermove", (event) => {
    if (start && !latest) requestAnimationFrame(move);
    if (start) latest = event;
  });
  const stop = (event) => {
    if (!start) return;
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    const { cell, isTouch } = start;
    start = null;
    if (["arrow", "pane"].includes(cell?.kind)) end();
    else if (cell?.kind !== "chip" && isTouch && Math.abs(dx) > SWIPE && Math.abs(dx) > 2 * Math.abs(dy)) swipe(dx < 0);
  };
  svg.addEventListener("pointerup", stop);
  svg.addEventListener("pointercancel", () => (start = null));
}
