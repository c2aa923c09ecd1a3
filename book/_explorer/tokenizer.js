// Byte-level byte-pair encoding, as the library tokenizers does it for our decoder. It needs no DOM.
//
// Token 0 ends a text, the next 256 are bytes, and each other one joins two tokens: the merges, in their order.

export const END = 0;
const END_TEXT = "<|endoftext|>";
const SPACE = "\\p{White_Space}"; // not \s, to which JavaScript adds the byte order mark
const PARTS = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|${SPACE}+(?!\\P{White_Space})|${SPACE}+`,
  "gu",
);

const range = (from, to) => Array.from({ length: to - from }, (_, n) => from + n);
const PRINTABLE = [...range(33, 127), ...range(161, 173), ...range(174, 256)]; // these bytes come first
const BYTES = [...PRINTABLE, ...range(0, 256).filter((byte) => !PRINTABLE.includes(byte))];

export class Tokenizer {
  /** @param {Uint16Array} merges pairs of tokens, one after the other */
  constructor(merges) {
    const tokens = 1 + BYTES.length;
    /** @type {number[][]} the bytes of each token */
    this.bytes = [[...new TextEncoder().encode(END_TEXT)], ...BYTES.map((byte) => [byte])];
    /** @type {Map<number, number>} the token that joins two others, which are one number here */
    this.joined = new Map();
    this.ofByte = Array.from({ length: 256 }, (_, byte) => 1 + BYTES.indexOf(byte));
    for (let n = 0; n < merges.length / 2; n++) {
      const [a, b] = merges.subarray(2 * n, 2 * n + 2);
      this.bytes.push([...this.bytes[a], ...this.bytes[b]]);
      this.joined.set(pair(a, b), tokens + n);
    }
  }

  /** @returns {number[]} the tokens of a text */
  encode(text) {
    const known = new Map(); // what has been cut before
    const cut = (part) => known.get(part) ?? known.set(part, this.merge(part)).get(part);
    return text.split(END_TEXT).flatMap((
      piece,
      n,
    ) => [...(n ? [END] : []), ...(piece.match(PARTS) ?? []).flatMap(cut)]);
  }

  /** Join the bytes of a part, the earliest merge first, until no two neighbours can be joined. */
  merge(part) {
    let tokens = [...new TextEncoder().encode(part)].map((byte) => this.ofByte[byte]);
    for (;;) {
      const pairs = tokens.slice(1).map((token, n) => this.joined.get(pair(tokens[n], token)) ?? Infinity);
      const first = pairs.reduce((a, b) => Math.min(a, b), Infinity);
      if (first === Infinity) return tokens;
      tokens = joinAll(tokens, pairs, first);
    }
  }
}

const pair = (a, b) => a * 65536 + b;

/** Join all neighbours that become this token, from the left. */
function joinAll(tokens, pairs, token) {
  const joined = [];
  for (let n = 0; n < tokens.length; n++) {
    if (pairs[n] !== token) joined.push(tokens[n]);
    else {
      joined.push(token);
      n++;
    }
  }
  return joined;
}

/**
 * The text that each token adds. A character that several tokens make together belongs to the last of them.
 *
 * @param {number[][]} bytes of the tokens of a text
 */
export function pieces(bytes) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return bytes.map((one, n) => decoder.decode(Uint8Array.from(one), { stream: n < bytes.length - 1 }));
}
