// The decoder's file: fetched with a progress report, stored by the browser, and unpacked. It needs no DOM.

const STORE = "attention-decoder"; // the name of the browser's store
const BEFORE = /^[^{]*/; // the file is a script, because a page that was opened as a file can read nothing else
const AFTER = /;\s*$/;

/** The file that arrived is not the file that was asked for. */
export class CutOff extends Error {}

/**
 * Fetch the file, or take it from the browser's store, and return its text and whether the browser keeps it.
 *
 * @param {{ address: string, length: number }} wanted
 * @param {(share: number) => void} progress
 */
export async function fetchFile({ address, length }, progress) {
  const store = await openStore();
  const found = await store?.match(address).then((one) => one?.text(), () => null);
  if (found?.length === length) return { text: found, kept: true };
  const answer = await fetch(address, { cache: "no-store" }); // it is stored below
  const text = await read(answer, (count) => progress(count / length));
  if (text.length !== length) throw new CutOff(`${Math.round(100 * text.length / length)}%`);
  return { text, kept: await keep(store, address, text) };
}

/** The browser's store; null where there is none, or it is forbidden. */
async function openStore() {
  try {
    return await globalThis.caches.open(STORE);
  } catch {
    return null;
  }
}

/** Forget a file that cannot be used. */
export async function forgetFile() {
  if (await openStore()) await globalThis.caches.delete(STORE);
}

/** Read a response piece by piece; if it breaks off, return what arrived. */
async function read(answer, progress) {
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += next.value;
      progress(text.length);
    }
  } catch {
    // The text is too short; the caller sees that by its length.
  }
  return text;
}

/** Store the file in place of older ones; return false if there is no room for it, or no permission. */
async function keep(store, address, text) {
  if (!store) return false;
  const older = await store.keys().catch(() => []);
  const done = [...older.map((one) => store.delete(one)), store.put(address, new Response(text))];
  return Promise.all(done).then(() => true, () => false);
}

/** Parse the text of the file. */
export const parsed = (text) => JSON.parse(text.replace(BEFORE, "").replace(AFTER, ""));

/**
 * The matrices of a parsed file, and the merges of the tokenizer.
 *
 * The numbers of a matrix are bytes, each times the scale of its group; a scale is the upper half of a float32. Norms
 * are floats.
 */
export function unpacked({ config, shapes, group, numbers, scales, norms, merges }) {
  const bytes = new Int8Array(buffer(numbers));
  const scale = new Float32Array(Uint32Array.from(new Uint16Array(buffer(scales)), (half) => half << 16).buffer);
  const plain = new Float32Array(buffer(norms));
  const all = Float32Array.from(bytes);
  for (let g = 0; g < scale.length; g++) {
    for (let n = g * group; n < (g + 1) * group; n++) all[n] *= scale[g];
  }
  let at = 0, normAt = 0;
  const matrix = ([rows, width]) => ({
    rows,
    width,
    numbers: rows === 1 ? plain.subarray(normAt, normAt += width) : all.subarray(at, at += rows * width),
  });
  const weights = Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, matrix(shape)]));
  return { config, weights, merges: new Uint16Array(buffer(merges)) };
}

const buffer = (base64) => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let n = 0; n < text.length; n++) bytes[n] = text.charCodeAt(n);
  return bytes.buffer;
};
