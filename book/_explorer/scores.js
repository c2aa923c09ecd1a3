// The rows of scores, and the weights as bars.

import { COLOURS } from "./colours.js";
import { BAR } from "./layout.js";
import { fitted, label, said, shape } from "./shapes.js";
import { brief } from "./table.js";
import { best, shown } from "./table.js";

const ROW_NAMES = {
  dot: ({ similarity }) => ({ cosine: "cosine", gaussian: "distance" })[similarity] ?? "q · k",
  scale({ similarity, scale, temperature }, d) {
    const by = similarity !== "scaled_dot" ? "" : scale === null ? `÷ √${d}` : `× ${brief(scale)}`;
    return `${by}${temperature === 1 ? "" : ` ÷ ${brief(temperature)}`}`.trim();
  },
  mask: ({ mask, positions }) => positions !== "alibi" ? "mask" : mask === "none" ? "ALiBi" : "mask, ALiBi",
};

export function scoreRows(v) {
  const { similar, scores, masked, state, q } = v.look;
  const numbers = { dot: similar, scale: scores, mask: masked };
  return ["dot", "scale", "mask"].filter((stage) => stage in v.rows).flatMap((stage) => [
    label(`${stage}-name`, v.left - 12, v.rows[stage] + 16, ROW_NAMES[stage](state, q.length), {
      "text-anchor": "end",
    }),
    ...outlineOfRow(v, stage),
    ...numbers[stage].flatMap((x, j) => scoreCell(v, stage, j, x)),
  ]);
}

/** What stands for a number that is not yet known. */
const unknown = ({ hiding }) => hiding ? "?" : "";

/** The row of the asking word, among all keys. */
function outlineOfRow(v, stage) {
  const width = v.scoreAt(v.look.words.length - 1) - v.scoreAt(0) + v.score + 8;
  const now = v.active?.stage === stage;
  return [shape(`${stage}-row`, "rect", {
    ...{ x: v.scoreAt(0) - v.score / 2 - 4, y: v.rows[stage] - 3, width, height: 30, rx: 6, fill: "none" },
    ...{ stroke: COLOURS.query, "stroke-width": 1.5, "stroke-opacity": now ? 0.9 : 0 },
  })];
}

function scoreCell(v, stage, j, x) {
  const known = v.reached(stage, j);
  const full = Math.max(1e-9, ...v.look.masked.concat(v.look.scores).filter(Number.isFinite).map(Math.abs));
  const share = known && Number.isFinite(x) ? Math.min(1, Math.abs(x) / full) : 0;
  const active = v.active?.stage === stage && v.active.at === j;
  const lost = known && x === -Infinity;
  const attributes = {
    ...{ x: v.scoreAt(j) - v.score / 2, y: v.rows[stage], width: v.score, height: 24, rx: 4 },
    ...{ fill: x < 0 ? COLOURS.key : COLOURS.score, "fill-opacity": 0.04 + 0.4 * share },
    ...{ stroke: active ? COLOURS.query : COLOURS.word, "stroke-width": active ? 3 : 1 },
    "stroke-dasharray": lost ? "3 3" : "none",
  };
  const cell = {
    kind: stage,
    word: j,
    label: `${ROW_NAMES[stage](v.look.state, v.look.q.length)}, “${v.look.words[j]}”: ${said(known ? x : NaN)}`,
  };
  const { texts: [text], size } = fitted([x], v.score, 12.5);
  return [
    shape(`${stage}-${j}`, "rect", attributes, { cell }),
    label(`${stage}-${j}-number`, v.scoreAt(j), v.rows[stage] + 16.5, known ? text : unknown(v), { "font-size": size }),
  ];
}

export function bars(v) {
  const top = v.rows.softmax;
  if (top === undefined) return [];
  const { weights, words } = v.look;
  const width = Math.min(40, v.score);
  const first = weights.some((w) => w > 0) ? best(weights) : [];
  const each = weights.flatMap((w, j) => {
    const known = v.reached("softmax", j);
    const active = v.active?.stage === "softmax" && v.active.at === j;
    const high = known ? Math.max(0.5, BAR * w) : 0;
    const place = { x: v.scoreAt(j) - width / 2, width, rx: 3, fill: COLOURS.score };
    const cell = { kind: "softmax", word: j, label: `weight of “${words[j]}”: ${said(known ? w : NaN)}` };
    const outline = { stroke: active ? COLOURS.query : COLOURS.word, "stroke-width": active ? 3 : 0.8 };
    return [
      shape(`bar-${j}`, "rect", { ...place, y: top + BAR - high, height: high, "fill-opacity": 0.8 }),
      shape(`softmax-${j}`, "rect", { ...place, y: top, height: BAR, "fill-opacity": 0.07, ...outline }, { cell }),
      label(`softmax-${j}-number`, v.scoreAt(j), top + BAR + 16, known ? shown(w) : unknown(v), {
        "font-size": 12.5,
        "font-weight": known && first.includes(j) ? 700 : 400,
      }),
    ];
  });
  return [label("softmax-name", v.left - 12, top + 32, "softmax", { "text-anchor": "end" }), ...each];
}
