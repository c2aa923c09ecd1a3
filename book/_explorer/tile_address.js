// Which tiles are shown, as a part of the page's address. It needs no DOM.

export const PREFIX = "#tiles?";
export const SIZES = [64, 128, 256]; // queries or keys of a tile

/**
 * @typedef {import("./tile_traffic.js").Settings & { step: number | null }} Shown the step is null at the end
 */

/** @type {Shown} */
export const EXAMPLE = { method: "tiles", rows: 128, columns: 64, causal: false, step: null };

/**
 * Write what is shown: "#tiles?rows=64&step=5"; an empty text for the example.
 *
 * @param {Shown} shown
 */
export function tileAddress({ method, rows, columns, causal, step }) {
  const parts = new URLSearchParams();
  if (method !== EXAMPLE.method) parts.set("method", method);
  if (rows !== EXAMPLE.rows) parts.set("rows", String(rows));
  if (columns !== EXAMPLE.columns) parts.set("columns", String(columns));
  if (causal) parts.set("causal", "1");
  if (step !== null) parts.set("step", String(step + 1));
  return parts.toString() && PREFIX + parts;
}

/**
 * Read what an address asks for; null if it asks for nothing. An invalid value becomes that of the example.
 *
 * @param {string} address
 * @returns {Shown | null}
 */
export function fromTileAddress(address) {
  if (!address.startsWith(PREFIX)) return null;
  const parts = new URLSearchParams(address.slice(PREFIX.length));
  const size = (name) => SIZES.find((one) => String(one) === parts.get(name)) ?? EXAMPLE[name];
  const step = parts.get("step") ?? "";
  return {
    method: parts.get("method") === "table" ? "table" : "tiles",
    rows: size("rows"),
    columns: size("columns"),
    causal: parts.get("causal") === "1",
    step: /^[1-9]\d{0,3}$/.test(step) ? Number(step) - 1 : null,
  };
}
