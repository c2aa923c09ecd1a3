// Watch one word look: the drawing of its attention, step by step, and what the reader can do with it.

import { listenToPointer } from "./drag.js";
import { Drawing, onWidth } from "./drawing.js";
import { number } from "./inputs.js";
import { axesOf, editsFor, inPlane, reachOf } from "./plane.js";
import { Player } from "./player.js";
import { activeOf, sceneOf } from "./scene.js";
import { sentenceOf, stageName, stagesOf, stepsOf } from "./steps.js";
import { h } from "./table.js";

const NARROW = 560; // pixels: below, one stage is shown at a time
const MOVE = 420; // milliseconds of a step
const PLAY = 15000; // milliseconds of all steps, about
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Where the number of a cell can be changed; null where it is computed.
 *
 * @returns {{ table: string, row: number, column: number } | null}
 */
export function sourceOf({ tables, positions }, { kind, word, component }, { head, width }) {
  if (kind === "word") return { table: "x", row: word, column: component };
  const name = { query: "q", key: "k", value: "v" }[kind];
  const turned = positions === "rope" && kind !== "value";
  if (!name || turned || (positions === "sinusoidal" && tables.x) || tables.wq) return null;
  return { table: tables[name] ? name : "x", row: word, column: head * width + component };
}

/** What a cell says about the steps: which one it belongs to, and which term of its formula. */
export function focusOf({ kind, word, component }, active) {
  const at = active?.stage === "dot" ? active.at : 0;
  const found = {
    word: { stage: "project", at: active?.stage === "project" ? active.at : 0, term: component },
    query: { stage: "dot", at, term: component },
    key: { stage: "dot", at: word, term: component },
    value: { stage: "add", at: component, term: word },
    add: { stage: "add", at: component, term: word },
    context: { stage: "add", at: component },
    softmax: { stage: "softmax", at: word, term: word },
  };
  return ["chip", "arrow", "axis", "pane"].includes(kind) ? null : found[kind] ?? { stage: kind, at: word };
}

export class WordWatch {
  svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  drawing = new Drawing(this.svg);
  editor = h("input", { type: "text", autocomplete: "off", class: "attn-editor", hidden: true });
  player = new Player("Step", (step) => this.go(step), () => this.start());
  stages = h("div", { class: "attn-stages", role: "group", "aria-label": "Stages" });
  canvas = h("div", { class: "attn-canvas" });
  element = h("div", { class: "attn-watch" });

  /** @type {any} see lookOf */
  look = null;
  /** @type {import("./steps.js").Step[]} */
  steps = [];
  step = Infinity;
  hiding = false;
  axes = [0, 1];
  reach = 1;
  dragging = false;
  painting = false;
  /** @type {import("./shapes.js").Focus | null} */
  focus = null;
  current = "";
  /** @type {any} where the plane is, and how far it reaches */
  framed = null;
  /** @type {{ table: string, row: number, column: number } | null} */
  edited = null;

  /**
   * @param {object} options
   * @param {string} options.caption
   * @param {import("./inputs.js").FieldErrors} options.errors
   * @param {(row: number) => void} options.pick called with the word that becomes the query
   * @param {(edits: { table: string, row: number, column: number, value: number }[], isDone: boolean) => void} options.edit
   *   called with the numbers that the reader has changed; not done while an arrow is being dragged
   * @param {(query: number, key: number, allowed: boolean) => void} options.paint called with a pair that the mask is to allow
   *   or to hide
   * @param {(head: number) => void} options.pickHead
   * @param {(from: number, to: number) => void} options.moveWord called with a word that is to have another place
   * @param {() => void} options.moved called after a step
   */
  constructor({ caption, errors, pick, edit, paint, pickHead, moveWord, moved }) {
    this.errors = errors;
    this.pick = pick;
    this.edit = edit;
    this.paint = paint;
    this.pickHead = pickHead;
    this.moveWord = moveWord;
    this.moved = moved;
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", `${caption}: one word looks at all words`);
    this.canvas.append(this.svg, this.editor);
    this.element.append(this.canvas, this.stages, this.player.element);
    this.listen();
    onWidth(this.canvas, () => this.draw(0));
  }

  // ---- what is shown

  /** Show a look. */
  show(look, hiding) {
    const wasLast = this.step >= this.steps.length - 1;
    const now = this.steps[this.step];
    this.look = look;
    this.hiding = hiding;
    this.steps = stepsOf(look);
    const same = this.steps.findIndex(({ stage, at }) => stage === now?.stage && at === now.at);
    this.step = wasLast || same < 0 ? this.steps.length - 1 : same;
    if (hiding) this.player.pause();
    this.showPlayer();
    this.draw(0);
  }

  showPlayer() {
    const { stage } = this.steps[this.step];
    const stages = stagesOf(this.look.state);
    if (this.stages.children.length !== stages.length) {
      this.stages.replaceChildren(
        ...stages.map((_, n) => h("button", { type: "button", click: () => this.goTo(n) }, "")),
      );
    }
    stages.forEach((one, n) => {
      const button = this.stages.children[n];
      button.textContent = stageName(one, this.look.state);
      if (one === stage && !this.hiding) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    for (const button of this.stages.querySelectorAll("button")) button.disabled = this.hiding;
    const said = `${this.step + 1} of ${this.steps.length}: ${stageName(stage, this.look.state)}`;
    this.player.show(this.step, [0, this.steps.length - 1], said, this.hiding);
  }

  draw(duration) {
    const room = this.canvas.clientWidth;
    if (!this.look || !room) return;
    const narrow = room < NARROW;
    this.axes = axesOf(this.look, this.axes);
    if (!this.dragging) this.reach = reachOf(this.look, this.axes);
    const scene = sceneOf({ ...this, room, narrow });
    this.framed = { plane: scene.plane, left: scene.left, column: scene.column, reach: this.reach };
    this.drawing.fit(scene.width, scene.height);
    this.canvas.classList.toggle("attn-wide", scene.width > room);
    this.drawing.show(scene.shapes, duration);
    this.name(scene.shapes.filter(({ cell }) => cell));
  }

  /** Say what the cells are, and let the Tab key lead to one of them. */
  name(cells) {
    if (!cells.some(({ key }) => key === this.current)) this.current = `chip-${this.look.query}`;
    for (const { key, cell } of cells) {
      const element = this.drawing.element(key);
      const attributes = { role: "button", "aria-label": cell.label, tabindex: key === this.current ? 0 : -1 };
      for (const [name, value] of Object.entries(attributes)) element?.setAttribute(name, String(value));
      if (cell.kind === "chip") element?.setAttribute("aria-pressed", String(cell.pressed));
    }
  }

  /** How far the steps have come; null at the end. */
  place() {
    return this.step === this.steps.length - 1 ? null : this.step;
  }

  /** What the drawing says, in one sentence; null at the end, where all of it is shown. */
  sentence() {
    return this.place() === null || this.hiding ? null : sentenceOf(this.look, this.steps[this.step]);
  }

  // ---- steps

  /** Show everything again, and let the Tab key lead to the word that asks. */
  reset() {
    this.player.pause();
    Object.assign(this, { step: Infinity, focus: null, current: "" });
  }

  go(step) {
    this.player.pause();
    this.take(step);
    this.moved();
  }

  take(step) {
    this.step = Math.max(0, Math.min(this.steps.length - 1, step));
    this.focus = null;
    this.showPlayer();
    this.draw(MOVE);
  }

  /** Go to the end of a stage. */
  goTo(place) {
    const stage = stagesOf(this.look.state)[Math.max(0, place)];
    const last = this.steps.findLastIndex((step) => step.stage === stage);
    if (last >= 0) this.go(last);
  }

  start() {
    if (this.step === this.steps.length - 1) this.take(0);
    this.player.run(() => this.tick(), Math.max(300, Math.min(1000, PLAY / this.steps.length)));
    this.moved();
  }

  /** Take one step; a stage is announced when it begins, but not each of its steps. */
  tick() {
    const { stage } = this.steps[this.step];
    this.take(this.step + 1);
    if (this.step === this.steps.length - 1) this.player.pause();
    if (this.steps[this.step].stage !== stage || !this.player.isPlaying) this.moved();
  }

  // ---- pointer and keys

  listen() {
    const { svg, editor } = this;
    svg.addEventListener("pointerover", (event) => this.pointAt(this.drawing.shapeOf(event.target)));
    svg.addEventListener("pointerleave", () => this.pointAt(null));
    svg.addEventListener("focusin", (event) => this.focusOn(this.drawing.shapeOf(event.target)));
    svg.addEventListener("focusout", () => this.pointAt(null));
    svg.addEventListener("click", (event) => this.use(this.drawing.shapeOf(event.target)));
    svg.addEventListener("keydown", (event) => this.key(event));
    editor.addEventListener("keydown", (event) => this.editorKey(event));
    editor.addEventListener("blur", () => this.commit() || this.close());
    listenToPointer(svg, {
      cellOf: (element) => this.drawing.shapeOf(element)?.cell ?? null,
      drag: (cell, place) => this.dragTo(cell, inPlane(this.framed, place)),
      paint: (cell, isFirst) => this.paintAt(cell, isFirst),
      end: () => this.letGo(),
      carry: (cell, place) => this.carry(cell, place),
      swipe: (forwards) => this.swipe(forwards),
    });
  }

  swipe(forwards) {
    if (this.hiding) return;
    this.goTo(stagesOf(this.look.state).indexOf(this.steps[this.step].stage) + (forwards ? 1 : -1));
  }

  // ---- arrows, axes and panes

  /** Change two components of a query or a key, as far as they can be changed. */
  dragTo(cell, wanted) {
    if (this.hiding) return;
    this.player.pause();
    this.dragging = true;
    const edits = editsFor(this.look, cell, this.axes, wanted);
    if (edits) this.edit(edits, false);
  }

  letGo() {
    if (!this.dragging) return;
    this.dragging = false;
    this.edit([], true);
  }

  /** Bring a word to where the pointer is, and return its place. */
  carry(/** @type {any} */ { word }, /** @type {number[]} */ [x]) {
    const last = this.look.words.length - 1;
    const to = Math.max(0, Math.min(last, Math.floor((x - this.framed.left) / this.framed.column)));
    return this.shift(word, to);
  }

  /** Give a word another place, and keep the focus on it. */
  shift(from, to) {
    if (from === to || to < 0 || to >= this.look.words.length) return from;
    this.current = `chip-${to}`;
    this.moveWord(from, to);
    return to;
  }

  /** Move an arrow by a key. */
  nudge(cell, [right, down]) {
    const now = cell.of === "query" ? this.look.q : this.look.keys[cell.word];
    const step = Math.max(0.1, this.reach / 20);
    const [across, up] = this.axes.map((axis) => now[axis]);
    this.dragTo(cell, [across + right * step, up - down * step]);
    this.letGo();
  }

  /** Let an axis show the next component that the other one does not show. */
  turnAxis(axis) {
    const count = this.look.q.length;
    const next = (this.axes[axis] + 1) % count;
    const axes = [...this.axes];
    axes[axis] = next === axes[1 - axis] ? (next + 1) % count : next;
    this.axes = axes;
    this.draw(0);
  }

  /** Hide a pair or allow it; all cells that the pointer comes to until it lets go are treated like the first one. */
  paintAt(/** @type {any} */ { head, query, word }, isFirst) {
    if (this.hiding || !this.look.state.paintable || head !== this.look.head) return;
    const { allowed } = this.look.all[head];
    if (isFirst) this.painting = !allowed[query][word];
    if (allowed[query][word] !== this.painting) this.paint(query, word, this.painting);
  }

  /** Choose the head of a pane, or else the query of a row. */
  usePane({ head, query }) {
    if (head !== this.look.head) this.pickHead(head);
    else if (!this.look.state.paintable) this.pick(query);
  }

  pointAt(shape) {
    if (this.player.isPlaying) return;
    const active = activeOf(this);
    const isTerm = active && shape?.term !== undefined;
    const focus = shape?.cell ? focusOf(shape.cell, active) : isTerm ? { ...active, term: shape.term } : null;
    const possible = focus && this.steps.some(({ stage, at }) => stage === focus.stage && at === focus.at);
    const next = possible ? focus : null;
    if (JSON.stringify(next) === JSON.stringify(this.focus)) return;
    this.focus = next;
    this.draw(0);
  }

  focusOn(shape) {
    if (!shape?.cell) return;
    this.current = shape.key;
    this.pointAt(shape);
  }

  /** Choose a word, change a number, or go to the step of a cell. */
  use(shape) {
    if (!shape?.cell) return;
    const { cell, key } = shape;
    this.current = key;
    if (cell.kind === "chip") this.pick(cell.word);
    else if (cell.kind === "axis") this.turnAxis(cell.word);
    else if (cell.kind === "pane") this.usePane(cell);
    else if (cell.kind !== "arrow" && !this.open(cell, key) && !this.hiding) {
      const focus = focusOf(cell, activeOf(this));
      const step = this.steps.findIndex(({ stage, at }) => stage === focus.stage && at === focus.at);
      if (step >= 0) this.go(step);
    }
  }

  key(event) {
    const shape = this.drawing.shapeOf(event.target);
    if (!shape?.cell) return;
    if (event.key in ARROWS && event.shiftKey && ["arrow", "chip"].includes(shape.cell.kind)) {
      event.preventDefault();
      this.push(shape.cell, ARROWS[event.key]);
    } else if (event.key in ARROWS) {
      event.preventDefault();
      this.nearest(shape, ARROWS[event.key])?.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (shape.cell.kind === "pane") this.paintAt(shape.cell, true);
      this.use(shape);
    } else if (/^[-−.\d]$/.test(event.key) && this.open(shape.cell, shape.key)) {
      event.preventDefault();
      this.editor.value = event.key;
    }
  }

  /** Move an arrow or a word by a key. */
  push(cell, direction) {
    if (cell.kind === "arrow") this.nudge(cell, direction);
    else this.drawing.element(`chip-${this.shift(cell.word, cell.word + direction[0])}`)?.focus();
  }

  /** The next cell in a direction. */
  nearest({ key, attributes }, [right, down]) {
    const middle = (
      /** @type {Record<string, any>} */ { x, y, width, height },
    ) => [Number(x) + Number(width) / 2, Number(y) + Number(height) / 2];
    const [x0, y0] = middle(attributes);
    let found = null;
    let least = Infinity;
    for (const { shape, element } of this.drawing.drawn.values()) {
      if (!shape.cell || shape.key === key) continue;
      const [x, y] = middle(shape.attributes);
      const [ahead, aside] = right ? [right * (x - x0), Math.abs(y - y0)] : [down * (y - y0), Math.abs(x - x0)];
      if (ahead > 1 && ahead + 4 * aside < least) [least, found] = [ahead + 4 * aside, element];
    }
    return found;
  }

  // ---- numbers in their places

  /** Let the reader type over a number, if it is not computed. */
  open(cell, key) {
    const width = cell.kind === "value" ? this.look.context.length : this.look.q.length;
    const source = sourceOf(this.look.state, cell, { head: this.look.head, width });
    if (!source) return false;
    const { x, y, width: wide, height } = this.drawing.drawn.get(key)?.values ?? {};
    const room = Math.max(wide, 72); // wide enough for -1.2345 in the larger letters on a phone
    this.edited = source;
    this.editor.hidden = false;
    this.editor.setAttribute("aria-label", cell.label.replace(/:[^:]*$/, ""));
    this.editor.value = String(this.look.state.tables[source.table][source.row][source.column]);
    this.editor.style.cssText = `left: ${x + wide / 2 - room / 2}px; top: ${y + height / 2 - 15}px; width: ${room}px`;
    this.editor.focus();
    this.editor.select();
    return true;
  }

  editorKey(event) {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Escape") this.close();
    else if (!this.commit()) return;
    this.drawing.element(this.current)?.focus();
  }

  /** Take the number that was typed, and return whether it is one; else say what is wrong with it. */
  commit() {
    const { edited } = this;
    if (!edited) return true;
    const { value, message } = number(this.editor.value);
    this.errors.set(this.editor, message && `${this.editor.getAttribute("aria-label")}: ${message}`);
    if (value === undefined) return false;
    this.close();
    this.edit([{ ...edited, value }], true);
    return true;
  }

  close() {
    this.errors.set(this.editor, null);
    this.edited = null;
    this.editor.hidden = true;
  }
}
