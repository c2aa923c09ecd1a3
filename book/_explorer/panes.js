// The weights of all queries in miniature, a pane for each head; a pair that the mask hides is crossed out.

import { COLOURS } from "./colours.js";
import { shown } from "./table.js";

const TITLE = 22;

/** How wide the panes are, and where each begins. */
function paneAt({ panes }, heads, head) {
  const across = heads > 1 ? 2 : 1;
  const side = Math.min(panes.width / across - (across - 1) * 5, panes.height / Math.ceil(heads / across) - TITLE);
  const column = head % across;
  const row = Math.floor(head / across);
  return { side, x: panes.x + column * (panes.width / 2 + 5), y: panes.y + TITLE - 4 + row * (side + TITLE) };
}

/**
 * The panes. While the weights are not yet known, they are empty.
 *
 * @param {any} v the view with its layout
 * @returns {import("./shapes.js").Shape[]}
 */
export function paneShapes(v) {
  if (!v.panes) return [];
  const known = v.reached("softmax", v.look.words.length - 1);
  return v.look.all.flatMap((one, head) => pane(v, one, head, known));
}

function pane(v, { weights, allowed }, head, known) {
  const { words, query, all } = v.look;
  const { side, x, y } = paneAt(v, all.length, head);
  const cell = side / words.length;
  const several = all.length > 1;
  const chosen = several && head === v.look.head;
  const name = several ? `head ${head}` : v.look.state.paintable ? "all queries: paint a mask" : "all queries";
  const title = { x, y: y - 5, fill: "currentColor", "font-size": 11.5, "font-weight": chosen ? 700 : 400 };
  const cells = weights.flatMap((row, i) =>
    row.map((w, j) => ({
      ...{ key: `pane-${head}-${i}-${j}`, tag: "rect" },
      attributes: {
        ...{ x: x + j * cell + 0.5, y: y + i * cell + 0.5, width: cell - 1, height: cell - 1, rx: 2 },
        ...{ fill: known ? COLOURS.score : COLOURS.word, "fill-opacity": known ? 0.06 + 0.85 * w : 0.08 },
        ...{ stroke: COLOURS.word, "stroke-width": allowed[i][j] ? 0 : 1, "stroke-dasharray": "2 2" },
      },
      cell: { kind: "pane", head, query: i, word: j, label: paneLabel(v, head, i, j, known ? w : NaN) },
    }))
  );
  const outline = { x: x - 1, y: y + query * cell - 0.5, width: side + 2, height: cell + 1, rx: 3, fill: "none" };
  const stroke = { stroke: COLOURS.query, "stroke-width": 2, "stroke-opacity": several && !chosen ? 0.4 : 1 };
  return [
    { key: `pane-${head}-name`, tag: "text", attributes: title, text: name },
    ...cells,
    { key: `pane-${head}-row`, tag: "rect", attributes: { ...outline, ...stroke, "pointer-events": "none" } },
  ];
}

function paneLabel({ look }, head, i, j, w) {
  const which = look.all.length > 1 ? `Head ${head}: ` : "";
  const hidden = look.all[head].allowed[i][j] ? "" : ", hidden by the mask";
  const weight = Number.isNaN(w) ? "not yet known" : shown(w);
  return `${which}“${look.words[i]}” looks at “${look.words[j]}”: ${weight}${hidden}`;
}
