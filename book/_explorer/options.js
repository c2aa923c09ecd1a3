// What a reader can set in the explorer. Python reads and checks the same options.json: book/_tools/explorer.py.

import { MASKS, POSITIONS, SIMILARITIES } from "./attention.js";
import options from "./options.json" with { type: "json" };

/**
 * A list of named options, or of the numbers from 1 to the largest.
 *
 * @typedef {{ label: string, options?: Record<string, string>, largest?: number, default?: string | number }} Control
 *
 * A number that counts while a control has certain options, or always if it is a control of its own. It may have a slider
 * between two numbers.
 *
 * @typedef {{
 *   label: string, control: string | null, when: string[], lowest: number, highest?: number, slider?: number[],
 *   placeholder?: string, default: number | null,
 * }} Field
 *
 * @typedef {{ controls: Record<string, Control>, fields: Record<string, Field>, words: number }} Options
 */

/** @type {Record<string, string[]>} */
const COMPUTED = { similarity: Object.keys(SIMILARITIES), mask: Object.keys(MASKS), positions: POSITIONS };

/**
 * Return the options, or throw an error if they are not the ones that attention.js can compute.
 *
 * @param {Options} read what the file holds
 */
export function checkedOptions(read) {
  for (const [name, computed] of Object.entries(COMPUTED)) {
    const offered = Object.keys(read.controls[name]?.options ?? {});
    if (offered.join() !== computed.join()) {
      throw new Error(`options.json offers ${offered} as ${name}, but attention.js computes ${computed}`);
    }
  }
  for (const [name, { control, when }] of Object.entries(read.fields)) {
    const unknown = when.filter((option) => !(option in (read.controls[control ?? ""]?.options ?? {})));
    if (unknown.length) throw new Error(`options.json shows ${name} for ${unknown}, which ${control} does not offer`);
  }
  return read;
}

export const { controls: CONTROLS, fields: FIELDS, words: MOST_WORDS } = checkedOptions(options);

/**
 * Return the options of a control and their names.
 *
 * @param {Control} control
 */
export function named({ options, largest = 0 }) {
  return options ?? Object.fromEntries(Array.from({ length: largest }, (_, n) => [n + 1, String(n + 1)]));
}

/** Return the settings that a page begins with, or throw an error if one of them is not among the options. */
export function checkedSettings(settings) {
  for (const [name, control] of Object.entries(CONTROLS)) {
    if ("default" in control && !(settings[name] in named(control))) {
      throw new Error(`${name} is ${settings[name]}, but the options are ${Object.keys(named(control))}`);
    }
  }
  return settings;
}
