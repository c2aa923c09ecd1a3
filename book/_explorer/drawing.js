// Draws shapes as SVG. A shape that stays is moved to its new place, where that is wanted; nothing moves by itself.

const SVG = "http://www.w3.org/2000/svg";
const NUMBERS = /-?\d+(?:\.\d+)?(?:e-?\d+)?/g;

const eased = (t) => (t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2);

/** Whether the reader wants things to move. */
export const mayMove = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

/** A value on its way from one to another: a number, or a text with numbers in it, such as a path. */
export function between(from, to, t) {
  if (typeof to === "number") return from + (to - from) * t;
  const starts = String(from).match(NUMBERS) ?? [];
  if (starts.length !== (to.match(NUMBERS) ?? []).length) return to;
  let n = 0;
  return to.replace(NUMBERS, (end) => String(Number(starts[n]) + (Number(end) - Number(starts[n++])) * t));
}

const moves = (name, from, to) => from !== undefined && from !== to && (typeof to === "number" || name === "d");

/** Write a text, if it is another one: otherwise the browser lays it out again. */
function setText(node, text) {
  if (node.data !== text) node.data = text;
}

export class Drawing {
  /** @param {SVGSVGElement} svg */
  constructor(svg) {
    this.svg = svg;
    /** @type {Map<string, { element: SVGElement, values: Record<string, any>, shape: import("./shapes.js").Shape }>} */
    this.drawn = new Map();
    this.frame = 0;
  }

  /** Set the size in pixels, but only if it has changed: setting it makes the browser lay out every text again. */
  fit(width, height) {
    const viewBox = `0 0 ${width} ${height}`;
    if (this.svg.getAttribute("viewBox") === viewBox) return;
    for (const [name, value] of Object.entries({ width, height, viewBox })) this.svg.setAttribute(name, String(value));
  }

  /**
   * Draw shapes, in the given order.
   *
   * @param {import("./shapes.js").Shape[]} shapes
   * @param {number} duration how many milliseconds they move; 0 for not at all
   */
  show(shapes, duration) {
    cancelAnimationFrame(this.frame);
    const before = new Map(shapes.map((shape) => [shape.key, this.startOf(shape)]));
    this.arrange(shapes);
    if (!duration || !mayMove()) {
      shapes.forEach((shape) => this.write(shape, {}, 1));
      return;
    }
    const start = performance.now();
    const next = (now) => {
      const t = Math.min(1, Math.max(0, (now - start) / duration));
      shapes.forEach((shape) => this.write(shape, before.get(shape.key), eased(t)));
      if (t < 1) this.frame = requestAnimationFrame(next);
    };
    next(start);
  }

  /** @param {import("./shapes.js").Shape} shape */
  startOf({ key, from }) {
    return { ...(this.drawn.get(key)?.values ?? from) };
  }

  /** Make what is missing, take away what is no longer there, and put the rest in order; what has the focus stays. */
  arrange(shapes) {
    const keys = new Set(shapes.map(({ key }) => key));
    for (const [key, { element }] of this.drawn) {
      if (!keys.has(key)) {
        element.remove();
        this.drawn.delete(key);
      }
    }
    let place = this.svg.firstChild;
    for (const shape of shapes) {
      const { element } = this.drawn.get(shape.key) ?? this.make(shape);
      if (place && element === place) place = place.nextSibling;
      else this.svg.insertBefore(element, place);
    }
  }

  make(shape) {
    const element = document.createElementNS(SVG, shape.tag);
    if (shape.tag === "text") element.append("");
    const one = { element, values: {}, shape };
    this.drawn.set(shape.key, one);
    return one;
  }

  write(shape, from, t) {
    const one = /** @type {NonNullable<ReturnType<typeof this.make>>} */ (this.drawn.get(shape.key));
    one.shape = shape;
    for (const [name, to] of Object.entries(shape.attributes)) {
      const value = t < 1 && moves(name, from[name], to) ? between(from[name], to, t) : to;
      if (one.values[name] === value) continue;
      one.values[name] = value;
      one.element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
    }
    if (shape.tag === "text") setText(/** @type {Text} */ (one.element.firstChild), shape.text ?? "");
  }

  /** The shape that was drawn as an element. */
  shapeOf(element) {
    return [...this.drawn.values()].find((one) => one.element === element)?.shape ?? null;
  }

  element(key) {
    return this.drawn.get(key)?.element ?? null;
  }
}

/**
 * Report the width of an element, now and whenever it changes. Changes in height are ignored: a drawing that changes
 * its own height would otherwise be drawn twice in one frame, which would cut its animation short.
 *
 * @param {Element} element
 * @param {(width: number) => void} tell
 */
export function onWidth(element, tell) {
  let known = -1;
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (width === known) return;
    known = width;
    tell(width);
  }).observe(element);
}

/** Return the drawing as a file of its own, with the colours that it has on the page. */
export function asFile(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const style = getComputedStyle(svg);
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("style", `color: ${style.color}; background: ${paper}; font-family: ${style.fontFamily}`);
  for (const one of copy.querySelectorAll("*")) {
    for (const name of ["tabindex", "role", "aria-label", "aria-pressed"]) one.removeAttribute(name);
  }
  return new XMLSerializer().serializeToString(copy);
}
