// Predict first: scores and weights stay hidden until the reader has said where most of them will go.

import { best, h, quoted, shown } from "./table.js";

let guesses = 0; // how many there are on the page so far

export class Guess {
  /**
   * @param {object} options
   * @param {boolean} [options.nothing] whether "no word" may be the answer
   * @param {(guess: number | null) => void} options.reveal called with a guess
   * @param {() => void} options.again called for the next one
   */
  constructor({ nothing = false, reveal, again }) {
    this.nothing = nothing;
    this.name = `attn-guess-${guesses++}`;
    this.legend = h("legend");
    this.choices = h("div", { class: "attn-choices" });
    this.submit = h("button", { type: "submit" }, "Show the weights");
    const fields = h("fieldset", {}, this.legend, this.choices);
    this.form = h("form", { submit: (event) => (event.preventDefault(), reveal(this.guess())) }, fields, this.submit);
    this.verdict = h("p", { class: "attn-verdict", "aria-live": "polite" });
    this.next = h("button", { type: "button", click: again }, "Hide them, and ask about the next word");
    this.element = h("div", { class: "attn-guess" }, this.form, this.verdict, this.next);
  }

  /** Return the place that was chosen: -1 for no word, null where nothing was chosen yet. */
  guess() {
    /** @type {HTMLInputElement | null} */
    const chosen = this.form.querySelector("input:checked");
    return chosen && Number(chosen.value);
  }

  ask(word, words, head) {
    this.legend.textContent = `Which word will “${word}” give the most weight${
      head === null ? "" : ` in head ${head}`
    }?`;
    const option = (text, value) => h("label", {}, h("input", { type: "radio", name: this.name, value }), text);
    this.choices.replaceChildren(
      ...words.map(option),
      ...(this.nothing ? [option("none: there is nothing it can attend to", -1)] : []),
    );
    this.say("", true);
  }

  say(text, asking) {
    this.verdict.textContent = text;
    this.form.hidden = !asking;
    this.next.hidden = asking;
  }
}

/** Say whether a guess was right, and why, in numbers. The scores are those that the softmax gets. */
export function verdict(guess, word, { weights, scores, words }) {
  const places = weights.some((w) => w > 0) ? best(weights) : [];
  if (!places.length) {
    return `${
      guess === -1 ? "Right" : "No"
    }: every score of “${word}” is −∞, so there is nothing it can attend to, and all its weights are 0.`;
  }
  const [top] = places;
  const name = (j) => `“${words[j]}”`;
  const winner = `${quoted(places.map((j) => words[j]))} ${places.length > 1 ? "get" : "gets"} ${shown(weights[top])}`;
  if (places.includes(guess)) return `Right: ${winner}. ${lead(top, places, scores, words)}`;
  if (guess === -1) return `No: ${winner}, because at least one score is not −∞.`;
  const yours = `${name(guess)} gets ${shown(weights[guess])}`;
  if (scores[guess] === -Infinity) {
    return `No: ${name(guess)} is masked. Its score is −∞, so its weight is 0; ${winner}.`;
  }
  return `No: ${yours}, and ${winner}. ${factor(scores[top], scores[guess])}`;
}

function lead(top, places, scores, words) {
  const others = scores.map((score, j) => (places.includes(j) ? -Infinity : score));
  const next = best(others);
  if (others[next[0]] === -Infinity) return "There is nothing else to attend to.";
  const named = quoted(next.map((j) => words[j]));
  return `The next ${next.length > 1 ? "are" : "is"} ${named}. ${factor(scores[top], scores[next[0]])}`;
}

const MOST = 11; // of a difference of scores, for which the factor is still written out

function factor(one, other) {
  const difference = one - other;
  const times = difference > MOST
    ? `more than 10^${whole(difference / Math.LN10)} times as large`
    : `e^${shown(difference)} = ${shown(Math.exp(difference))} times as large`;
  return `The scores are ${inText(one)} and ${inText(other)}; the difference of ${
    inText(difference)
  } makes one weight ${times} as the other.`;
}

const whole = (x) => Math.trunc(x).toLocaleString("en").replace("-", "−");

/** A number within a sentence: large ones are not written as powers of ten beside powers of e. */
const inText = (x) => (Math.abs(x) >= 1e5 ? whole(x) : shown(x));
