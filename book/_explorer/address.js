// What is on the screen, as a part of the page's address: only what differs from the page's example. It needs no DOM.

import { number, wrongWords } from "./inputs.js";
import { CONTROLS, FIELDS, named } from "./options.js";

export const PREFIX = "#look?";
const PLAIN = { "%2C": ",", "%3B": ";", "%27": "'" }; // characters that an address may hold as they are

/**
 * @typedef {object} OnScreen
 * @property {string[]} words
 * @property {Record<string, number[][]>} tables
 * @property {Record<string, any>} settings
 * @property {number[][]} flips pairs for which the mask is flipped
 * @property {number} query
 * @property {number} head
 * @property {number | null} step null for the end
 * @property {boolean} predict whether the weights are hidden
 */

const tableText = (table) => table.map((row) => row.map((x) => Number(x.toFixed(4))).join(",")).join(";");

/**
 * Write what is on the screen: "#look?query=2&step=5"; nothing where it is the example.
 *
 * @param {OnScreen} now
 * @param {OnScreen} example
 */
export function addressOf(now, example) {
  const parts = new URLSearchParams();
  const tell = (name, value, before) => value !== before && parts.set(name, String(value ?? ""));
  tell("words", now.words.join(" "), example.words.join(" "));
  for (const [name, table] of Object.entries(now.tables)) tell(name, tableText(table), tableText(example.tables[name]));
  for (const [name, value] of Object.entries(now.settings)) tell(name, value, example.settings[name]);
  tell("flips", now.flips.join(";"), example.flips.join(";"));
  for (const name of ["query", "head", "step"]) tell(name, now[name], example[name]);
  tell("predict", Number(now.predict), Number(example.predict));
  const text = parts.toString().replace(/%2C|%3B|%27/g, (code) => PLAIN[code]);
  return text && PREFIX + text;
}

/** A reader of one part: {value}, or {message} that says what is wrong with it. */
const wholeNumber = (text, high) => {
  const { value, message } = number(text, 0, high);
  return Number.isInteger(value)
    ? { value }
    : { message: message ?? `“${text}” was given, but a whole number is needed.` };
};

function tableOf(text, rows, columns) {
  const cells = text.split(";").map((row) => row.split(",").map((cell) => number(cell)));
  const bad = cells.flat().find(({ message }) => message);
  if (bad) return bad;
  const table = cells.map((row) => row.map(({ value }) => Number(value)));
  const width = table[0].length;
  const fits = table.length === rows && table.every((row) => row.length === width) && columns.includes(width);
  const needed = columns.length > 1 ? `${columns[0]} to ${columns.at(-1)}` : columns[0];
  return fits ? { value: table } : { message: `A table of ${rows} rows of ${needed} numbers is needed.` };
}

function flipsOf(text, words) {
  const pairs = text.split(";").filter(Boolean).map((pair) => pair.split(",").map(Number));
  const right = pairs.every((pair) =>
    pair.length === 2 && pair.every((n) => Number.isInteger(n) && n >= 0 && n < words)
  );
  return right
    ? { value: pairs }
    : { message: `Pairs of word positions from 0 to ${words - 1} are needed, such as 0,1.` };
}

function settingOf(name, text, most) {
  if (name in FIELDS) {
    const { lowest, highest = most, placeholder } = FIELDS[name];
    if (placeholder && text === "") return { value: null };
    return name === "length" ? wholeNumber(text, most) : number(text, lowest, highest);
  }
  const options = Object.keys(named(CONTROLS[name]));
  if (!options.includes(text)) return { message: `“${text}” was given, but one of ${options.join(", ")} is needed.` };
  return { value: CONTROLS[name].largest ? Number(text) : text };
}

/** Which settings a page lets its reader choose. */
export function settable(controls) {
  const offered = (name) => controls.includes(name in FIELDS ? FIELDS[name].control ?? name : name);
  return [...Object.keys(CONTROLS).filter((name) => name !== "width"), ...Object.keys(FIELDS)].filter(offered);
}

/**
 * Read what an address asks for. What cannot be used is left as it is in the example, and there is a message about it.
 *
 * @param {string} address
 * @param {OnScreen} example
 * @param {string[]} controls those of the page
 * @returns {{ asked: Partial<OnScreen>, problems: string[] } | null} null where it asks for nothing
 */
export function fromAddress(address, example, controls) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  const words = parts.get("words")?.split(/\s+/).filter(Boolean) ?? example.words;
  const wrong = wrongWords(words);
  const sentence = wrong ? example.words : words;
  /** @type {Record<string, any>} */
  const asked = { settings: {}, tables: {} };
  const problems = [];
  const take = (name, into, /** @type {{ value?: any, message?: string }} */ { value, message = "" }) => {
    if (value === undefined) problems.push(`${name}: ${message.replace(/ Until then.*/, "")}`);
    else into[name] = value;
  };
  for (const [name, text] of parts) {
    if (name === "words") take(name, asked, wrong ? { message: wrong } : { value: words });
    else if (Object.hasOwn(example.tables, name)) {
      take(name, asked.tables, tableOf(text, ...shapeOf(name, sentence, example, controls)));
    } else if (settable(controls).includes(name)) take(name, asked.settings, settingOf(name, text, sentence.length));
    else if (name === "flips" && controls.includes("mask")) take(name, asked, flipsOf(text, sentence.length));
    else if (name === "query") take(name, asked, wholeNumber(text, sentence.length - 1));
    else if (name === "head" || name === "step") {
      take(name, asked, text === "" ? { value: null } : wholeNumber(text, 1000));
    } else if (name === "predict") take(name, asked, wholeNumber(text, 1));
    else problems.push(`“${name}” is not a setting of this page.`);
  }
  return { asked, problems };
}

/** How many rows a table has, and how many columns it may have. */
function shapeOf(name, words, { tables }, controls) {
  const columns = tables[name][0].length;
  const free = name === "x" && controls.includes("width");
  const widths = free ? Array.from({ length: CONTROLS.width.largest ?? 0 }, (_, n) => n + 1) : [columns];
  return [name.startsWith("w") ? tables[name].length : words.length, widths];
}
