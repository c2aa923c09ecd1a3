// Lays out the tokens of a text in lines of a monospaced font. It needs no DOM.

const TAB = "    ";

/**
 * A part of a token on one line.
 *
 * @typedef {object} Segment
 * @property {number} place the token's place in the text
 * @property {number} line
 * @property {number} column where it begins
 * @property {string} text
 */

/**
 * Lay out the pieces of a text. A line break is shown, because it is a part of a token.
 *
 * @param {string[]} pieces the text of each token
 * @param {number} width how many letters fit on a line
 * @returns {{ segments: Segment[], lines: number, column: number }} with the column where the next token begins
 */
export function linesOf(pieces, width) {
  /** @type {Segment[]} */
  const segments = [];
  let line = 0, column = 0;
  const add = (place, letter) => {
    const last = segments.at(-1);
    if (last && last.place === place && last.line === line) last.text += letter;
    else segments.push({ place, line, column, text: letter });
    column += 1;
  };
  pieces.forEach((piece, place) => {
    for (const letter of visible(piece)) {
      if (column === width) [line, column] = [line + 1, 0];
      add(place, letter === "\n" ? "⏎" : letter);
      if (letter === "\n") [line, column] = [line + 1, 0];
    }
  });
  return { segments, lines: line + 1, column };
}

/** A text without control characters, which a picture cannot hold. */
const visible = (text) =>
  // deno-lint-ignore no-control-regex
  text.replaceAll("\r", "").replaceAll("\t", TAB).replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "�");

/** A token as a name: spaces and line breaks are shown. Bytes that are not UTF-8 are written in hexadecimal. */
export function nameOf(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    const indented = /^(\n+)( +)$/.exec(text);
    if (indented) return `${"⏎".repeat(indented[1].length)}+${indented[2].length}`;
    return visible(text).replaceAll(" ", "␣").replaceAll("\n", "⏎");
  } catch {
    return `⟨${bytes.map((byte) => byte.toString(16).toUpperCase()).join(" ")}⟩`;
  }
}
