// The vectors of the drawing: query, keys and values, and the weighted values that add up to the context.

import { COLOURS } from "./colours.js";
import { showsWord } from "./layout.js";
import { fitted, label, said, shape } from "./shapes.js";

/** A vector as a stack of cells, with a name above it. */
function stack(v, { kind, word, numbers, at, top, width = v.lane, name, owner, outlined, strong = 0.3 }) {
  const { texts, size } = fitted(numbers, width, Math.min(12, v.cell - 3));
  const full = Math.max(1e-9, ...numbers.filter(Number.isFinite).map(Math.abs));
  const cells = numbers.flatMap((x, component) => {
    const y = top + component * v.cell;
    const marked = outlined === true || outlined === component;
    const attributes = {
      ...{ x: at - width / 2, y, width, height: v.cell - 2, rx: 3, fill: COLOURS[owner] },
      "fill-opacity": Number.isFinite(x) ? 0.1 + (strong * Math.abs(x)) / full : 0.03,
      ...{ stroke: COLOURS[owner], "stroke-width": marked ? 2.5 : 0.6, "stroke-opacity": marked ? 1 : 0.6 },
    };
    const cell = {
      kind,
      word,
      component,
      label: `${kind === "add" ? "weighted value" : name} of “${v.look.words[word]}”, component ${component + 1}: ${
        said(x)
      }`,
    };
    const id = `${kind}-${word}-${component}`;
    return [
      shape(id, "rect", attributes, { cell }),
      label(`${id}-number`, at, y + v.cell / 2 - 1 + size * 0.36, texts[component], { "font-size": size }),
    ];
  });
  const fits = name.length * 6.4 <= width + 6;
  return fits ? [label(`${kind}-${word}-name`, at, top - 5, name, { "font-size": 11.5 }), ...cells] : cells;
}

/** Which component of a vector is outlined: one, all (true) or none. */
function outlined({ active }, kind, word) {
  if (!active) return null;
  const { stage, at, term = null } = active;
  const of = {
    word: { project: term ?? true },
    query: { project: at, dot: term ?? true },
    key: { dot: word === at && (term ?? true) },
    value: { weigh: word === at && (term ?? true), add: term === null || term === word ? at : null },
    add: { weigh: word === at && (term ?? true), add: at },
    context: { add: at },
  };
  return of[kind][stage] ?? null;
}

export function vectors(v) {
  const top = v.rows.vectors;
  if (top === undefined) return [];
  const { look } = v;
  const one = (kind, name, word, numbers, at, width, owner = kind) =>
    stack(v, { kind, name, word, numbers, at, top, width, owner, outlined: outlined(v, kind, word) });
  const columns = look.words.flatMap((_, j) => [
    ...one("key", "key", j, look.keys[j], v.keyAt(j), v.lane),
    ...one("value", "value", j, look.values[j], v.valueAt(j), v.lane),
  ]);
  const word = showsWord(look) ? one("word", "word", look.query, look.x, v.wordAt, 44) : [];
  return [...word, ...one("query", "query", look.query, look.q, v.queryAt, 46), ...columns];
}

/** The weighted values, and the context that they add up to. */
export function weighed(v) {
  const top = v.rows.add;
  if (top === undefined) return [];
  const { values, weights, context, words, query } = v.look;
  const width = Math.min(60, v.column - 8);
  const products = words.flatMap((_, j) => {
    const known = v.reached("weigh", j);
    const numbers = known ? values[j].map((x) => x * weights[j]) : values[j].map(() => NaN);
    const strong = known ? 0.45 * weights[j] : 0;
    const marks = outlined(v, "add", j);
    const named = { kind: "add", word: j, name: "weighted", owner: "value", outlined: marks };
    return stack(v, { ...named, numbers, at: v.middle(j), top, width, strong });
  });
  const numbers = context.map((x, c) => v.reached("add", c) ? x : NaN);
  const sum = stack(v, {
    ...{ kind: "context", word: query, name: "context", owner: "value", numbers, at: v.queryAt, top, width: 52 },
    outlined: outlined(v, "context", query),
  });
  return [...products, ...sum];
}
