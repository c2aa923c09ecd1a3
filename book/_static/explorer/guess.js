// Predict first: the weights stay hidden until the reader has said where most of them will go.

import { best, h, shown } from "./table.js";

let guesses = 0; // so far on the page

export class Guess {
  /** @param {object} options nothing: whether "no word" may be the answer; reveal: called with a guess; again: called for the next one */
  constructor({ nothing, reveal, again }) {
    Object.assign(this, { nothing, name: `attn-guess-${guesses++}` });
    this.legend = h("legend");
    this.choices = h("div", { class: "attn-choices" });
    this.submit = h("button", { type: "submit" }, "Show the weights");
    const fields = h("fieldset", {}, this.legend, this.choices);
    this.form = h("form", { submit: (event) => (event.preventDefault(), reveal(this.guess())) }, fields, this.submit);
    this.verdict = h("p", { class: "attn-verdict", "aria-live": "polite" });
    this.next = h("button", { type: "button", click: again }, "Hide them, and ask about the next word");
    this.element = h("div", { class: "attn-guess" }, this.form, this.verdict, this.next);
  }

  /** The place that was chosen: -1 for no word, null where nothing was chosen yet. */
  guess() {
    const chosen = this.form.querySelector("input:checked");
    return chosen && Number(chosen.value);
  }

  ask(word, words, head) {
    this.legend.textContent = `Which word will “${word}” give the most weight${head === null ? "" : ` in head ${head}`}?`;
    const option = (text, value) =>
      h("label", {}, h("input", { type: "radio", name: this.name, value }), text);
    this.choices.replaceChildren(...words.map(option), ...(this.nothing ? [option("none: it may attend to nothing", -1)] : []));
    this.say("", true);
  }

  say(text, asking) {
    this.verdict.textContent = text;
    this.form.hidden = !asking;
    this.next.hidden = asking;
  }
}

/** Whether a guess was right, and why, in numbers. The scores are those that the softmax gets. */
export function verdict(guess, word, { weights, scores, words }) {
  const places = weights.some((w) => w > 0) ? best(weights) : [];
  if (!places.length) {
    return `${guess === -1 ? "Right" : "Not so"}: every score of “${word}” is −∞, so it may attend to nothing and all weights are 0.`;
  }
  const [top] = places;
  const name = (j) => `“${words[j]}”`;
  const winner = `${places.map(name).join(" and ")} ${places.length > 1 ? "get" : "gets"} ${shown(weights[top])}`;
  if (places.includes(guess)) return `Right: ${winner}. ${lead(top, places, scores, name)}`;
  if (guess === -1) return `Not so: ${winner}, for there is a score that is not −∞.`;
  const yours = `${name(guess)} gets ${shown(weights[guess])}`;
  if (scores[guess] === -Infinity) return `Not so: ${name(guess)} is masked. Its score is −∞, so its weight is 0; ${winner}.`;
  return `Not so: ${yours}, and ${winner}. ${factor(scores[top], scores[guess])}`;
}

function lead(top, places, scores, name) {
  const others = scores.flatMap((s, j) => (places.includes(j) || s === -Infinity ? [] : [j]));
  if (!others.length) return "There is nothing else to attend to.";
  const second = others.reduce((a, b) => (scores[b] > scores[a] ? b : a));
  return `The next is ${name(second)}. ${factor(scores[top], scores[second])}`;
}

const factor = (one, other) =>
  `The scores are ${shown(one)} and ${shown(other)}; the difference of ${shown(one - other)} makes a weight ` +
  `e^${shown(one - other)} = ${shown(Math.exp(one - other))} times as large.`;
