// WordPiece, as the library tokenizers cuts a text for BERT: without capitals and accents. It needs no DOM.

const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]; // a text may name them
const SPECIAL_PARTS = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/;
const LONGEST = 100; // letters of a word; a longer one is unknown
const REMOVED = /[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu;
const IDEOGRAPH =
  /[\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{f900}-\u{faff}\u{2f800}-\u{2fa1f}]/gu;
const MARKS = /\p{Mn}/gu;
const WORDS = /[!-/:-@[-`{-~\p{P}]|[^\p{White_Space}!-/:-@[-`{-~\p{P}]+/gu; // each punctuation mark is a word

export class WordPiece {
  /** @param {string[]} vocabulary */
  constructor(vocabulary) {
    this.vocabulary = vocabulary;
    this.numbers = new Map(vocabulary.map((piece, token) => [piece, token]));
  }

  /** @returns {number[]} the tokens of a text, between [CLS] and [SEP] */
  encode(text) {
    const pieces = text.split(SPECIAL_PARTS).flatMap((part) =>
      SPECIAL.includes(part) ? [part] : (normalised(part).match(WORDS) ?? []).flatMap((word) => this.cut(word))
    );
    return ["[CLS]", ...pieces, "[SEP]"].map((piece) => Number(this.numbers.get(piece)));
  }

  /** The pieces of a word: from the left, each as long as the vocabulary allows. */
  cut(word) {
    const letters = [...word];
    if (letters.length > LONGEST) return ["[UNK]"];
    const pieces = [];
    for (let start = 0; start < letters.length;) {
      const piece = (end) => (start ? "##" : "") + letters.slice(start, end).join("");
      let end = letters.length;
      while (end > start && !this.numbers.has(piece(end))) end--;
      if (end === start) return ["[UNK]"];
      pieces.push(piece(end));
      start = end;
    }
    return pieces;
  }
}

/** Lower-case a text letter by letter, without accents and control characters, and set ideographs apart. */
function normalised(text) {
  const clean = text.replace(REMOVED, "").replace(IDEOGRAPH, " $& ");
  return [...clean.normalize("NFD").replace(MARKS, "")].map((letter) => letter.toLowerCase()).join("");
}
