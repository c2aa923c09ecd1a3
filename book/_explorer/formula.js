// The formula below the drawing: its numbers fly in from the cells that contain them.

import { COLOURS } from "./colours.js";

const PADDING = 4; // of a coloured number
const LINE = 28;

/** About how wide a text is. */
function widthOf(text, size) {
  const em = [...text].reduce(
    (sum, letter) => sum + (/[ .,()·|il’']/.test(letter) ? 0.32 : /[A-ZmwM−∞]/.test(letter) ? 0.72 : 0.58),
    0,
  );
  return em * size;
}

/**
 * Break pieces into lines that fit, before an operator, and place them.
 *
 * @param {import("./steps.js").Piece[]} pieces
 */
function placed(pieces, width, size) {
  /** @type {{ piece: import("./steps.js").Piece, x: number, wide: number }[][]} */
  const lines = [[]];
  let x = 0;
  for (const term of terms(pieces)) {
    const sized = term.map((piece) => ({ piece, wide: widthOf(piece.text, size) + (piece.kind ? 2 * PADDING : 0) }));
    if (x && x + sized.reduce((sum, { wide }) => sum + wide, 0) > width) {
      lines.push([]);
      x = 0;
    }
    for (const one of sized) {
      lines[lines.length - 1].push({ ...one, x });
      x += one.wide;
    }
  }
  return lines;
}

/** Pieces that stay together: each part begins with an operator. */
function terms(pieces) {
  const starts = pieces.flatMap(({ text }, n) => (n === 0 || text.startsWith(" ") ? [n] : []));
  return starts.map((start, n) => pieces.slice(start, starts[n + 1]));
}

/**
 * The shapes of a formula, and how high it is.
 *
 * @param {import("./steps.js").Piece[] | null} pieces
 * @param {object} v
 * @param {number} v.width of the drawing
 * @param {number} v.room how wide it may be
 * @param {number} v.end where the formula begins
 * @param {number} v.least how many lines it takes at least, so that little moves from one formula to the next
 * @param {boolean} v.narrow
 * @param {any} v.active the step
 * @param {(piece: import("./steps.js").Piece) => { x: number, y: number } | undefined} v.origin where a number comes from
 */
export function formulaShapes(pieces, v) {
  const width = Math.min(v.width, v.room) - 12;
  const size = v.narrow ? 15 : 17;
  const lines = placed(pieces ?? [], width, size);
  const shapes = lines.flatMap((line, n) => {
    const total = line.length ? line[line.length - 1].x + line[line.length - 1].wide : 0;
    const left = 6 + (width - total) / 2;
    return line.flatMap((one, k) => pieceShapes(one, left, v.end + 8 + n * LINE, { v, size, id: `${n}-${k}` }));
  });
  return { shapes, height: Math.max(v.least, lines.length) * LINE + 12 };
}

function pieceShapes({ piece, x, wide }, left, y, { v, size, id }) {
  const { stage, at } = v.active;
  const key = `formula-${stage}-${at}-${id}`;
  const centre = left + x + wide / 2;
  const marked = piece.term !== undefined && piece.term === v.active.term;
  const from = piece.kind && v.origin(piece);
  const attributes = { x: centre, y, fill: "currentColor", "text-anchor": "middle", "font-size": size };
  const text = {
    ...{ key, tag: "text", attributes: { ...attributes, "font-weight": marked ? 700 : 400, "xml:space": "preserve" } },
    ...{ text: piece.text, from },
  };
  if (!piece.kind) return [text];
  const box = { x: left + x + 1, y: y - size * 0.95, width: wide - 2, height: size * 1.35, rx: 4 };
  const pill = {
    ...{ key: `${key}-pill`, tag: "rect", term: piece.term, from: from && { x: from.x - wide / 2, y: from.y - size } },
    attributes: {
      ...{ ...box, fill: COLOURS[piece.kind], "fill-opacity": 0.25, stroke: COLOURS[piece.kind] },
      "stroke-width": marked ? 2.5 : 0,
    },
  };
  return [pill, text];
}
