// What attention moves between a large, slow memory and a small, fast one: in tiles, or with the whole table. It needs
// no DOM. The text of the chapter counts in the same way (book/tiles-and-the-gpu.md).

/**
 * @typedef {object} Settings
 * @property {"tiles" | "table"} method
 * @property {number} rows queries of a tile
 * @property {number} columns keys of a tile
 * @property {boolean} causal
 *
 * @typedef {object} Head what the page has: a number takes two bytes in slow memory, and four as a running sum
 * @property {number} words queries, and as many keys and values
 * @property {number} width of a query, a key and a value
 * @property {number} capacity bytes of the fast memory
 *
 * @typedef {object} Step one tile: what is read for it and written after it
 * @property {"tiles" | "scores" | "softmax" | "values"} pass tiles take one pass, and the whole table takes three
 * @property {number} row of the tile
 * @property {number} column of the tile
 * @property {string[]} read parts that come from slow memory: "Q", "K", "V", "S" (scores) or "P" (weights)
 * @property {string[]} written parts that go there: "S", "P" or "O"
 * @property {number} moved bytes
 */

const STORED = 2; // bytes of a number
const SUMMED = 4; // bytes of a running sum

/** Whether the causal mask leaves any pair of a tile unmasked. */
export const allows = ({ rows, columns, causal }, row, column) => !causal || column * columns < (row + 1) * rows;

/** Whether the causal mask hides some pairs of a tile, but not all. */
export const isPartial = (settings, row, column) =>
  settings.causal && allows(settings, row, column) && (column + 1) * settings.columns - 1 > row * settings.rows;

/**
 * All tiles in the order in which they are computed.
 *
 * @param {Settings} settings
 * @param {Head} head
 * @returns {Step[]}
 */
export function stepsOf(settings, head) {
  return settings.method === "tiles" ? inTiles(settings, head) : withTable(settings, head);
}

/** Every tile of the table, row by row. */
function* places({ rows, columns }, { words }) {
  for (let row = 0; row < words / rows; row++) {
    for (let column = 0; column < words / columns; column++) yield { row, column };
  }
}

function inTiles(settings, head) {
  const { rows, columns } = settings;
  const all = [...places(settings, head)].filter(({ row, column }) => allows(settings, row, column));
  return all.map(({ row, column }, n) => {
    const isLast = all[n + 1]?.row !== row;
    const read = [...(column === 0 ? ["Q"] : []), "K", "V"];
    const written = isLast ? ["O"] : [];
    const numbers = head.width * ((column === 0 ? rows : 0) + 2 * columns + (isLast ? rows : 0));
    return { pass: /** @type {const} */ ("tiles"), row, column, read, written, moved: STORED * numbers };
  });
}

/** Three passes over the table, which is in slow memory between them. At best, as here, Q, K and V are read once. */
function withTable(settings, head) {
  const { rows, columns } = settings;
  const lastColumn = head.words / columns - 1;
  const all = [...places(settings, head)];
  const pass = (name, read, written, table, own) =>
    all.map(({ row, column }) => {
      const moves = own({ row, column });
      const numbers = table * rows * columns + head.width * moves.reduce((sum, [, length]) => sum + length, 0);
      const isWritten = ([part]) => part === "O";
      return {
        ...{ pass: name, row, column, moved: STORED * numbers },
        read: [...read, ...moves.filter((one) => !isWritten(one)).map(([part]) => part)],
        written: [...written, ...moves.filter(isWritten).map(([part]) => part)],
      };
    });
  return [
    ...pass("scores", [], ["S"], 1, ({ row, column }) => [
      ...(column === 0 ? [["Q", rows]] : []),
      ...(row === 0 ? [["K", columns]] : []),
    ]),
    ...pass("softmax", ["S"], ["P"], 2, () => []),
    ...pass("values", ["P"], [], 1, ({ row, column }) => [
      ...(row === 0 ? [["V", columns]] : []),
      ...(column === lastColumn ? [["O", rows]] : []),
    ]),
  ];
}

/** The bytes that are moved in all. */
export const movedBy = (steps) => steps.reduce((sum, { moved }) => sum + moved, 0);

const HELD = {
  tiles: ["Q", "K", "V", "tile", "O", "m, l"],
  scores: ["Q", "K", "tile"],
  softmax: ["tile"],
  values: ["V", "tile", "O"],
};

/**
 * What has to be in fast memory at one time, in bytes.
 *
 * @param {Settings} settings
 * @param {Head} head
 * @param {Step["pass"]} pass
 * @returns {{ part: string, bytes: number }[]}
 */
export function heldBy({ rows, columns }, { width }, pass) {
  const bytes = {
    ...{ Q: STORED * rows * width, K: STORED * columns * width, V: STORED * columns * width },
    ...{ tile: SUMMED * rows * columns, O: SUMMED * rows * width, "m, l": SUMMED * 2 * rows },
  };
  return HELD[pass].map((part) => ({ part, bytes: bytes[part] }));
}
