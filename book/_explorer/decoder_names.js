// What a screen reader says about the decoder's drawing, and where the Tab key leads in it.

/**
 * Turn the token that looks into a slider and the next tokens into buttons; Tab reaches one of the buttons.
 *
 * @param {import("./drawing.js").Drawing} drawing
 * @param {import("./shapes.js").Shape[]} shapes
 * @param {{ name: string, place: number, count: number }} token the one that looks, among those that are shown
 */
export function nameShapes(drawing, shapes, { name, place, count }) {
  const looking = { role: "slider", tabindex: 0, "aria-label": "The token that looks", "aria-valuetext": `“${name}”` };
  setAll(drawing.element("looking"), { ...looking, ...valuesOf(1, count, place + 1) });
  const bars = shapes.filter(({ key }) => key.startsWith("bar-hit-"));
  const focused = bars.findIndex(({ key }) => drawing.element(key) === document.activeElement);
  bars.forEach(({ key, cell }, n) => {
    const named = { role: "button", "aria-label": cell?.label, "aria-pressed": cell?.pressed };
    const first = n === Math.max(0, focused);
    setAll(drawing.element(key), cell ? { ...named, tabindex: first ? 0 : -1 } : absent(named));
  });
}

const valuesOf = (min, max, now) => ({ "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": now });
const absent = (attributes) => ({
  ...Object.fromEntries(Object.keys(attributes).map((name) => [name, null])),
  tabindex: null,
});

function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) element?.removeAttribute(name);
    else element?.setAttribute(name, String(value));
  }
}
