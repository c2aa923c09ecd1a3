// The file of a model: fetched with a report of the progress, kept by the browser, and handed to the model's worker.

/** The file that arrived is not the file that was asked for. */
class CutOff extends Error {}

/**
 * Load a model in its worker. The page is told how much of the file has arrived, and then about the model, or why
 * there is no model.
 *
 * @param {{ address: string, length: number, store: string, file?: any }} wanted the file's address and its length in
 *   bytes, and the name of the browser's store; or what the page has read
 * @param {(file: any) => any} take makes a model from it, and returns what the page has to know
 */
export async function loadModel(wanted, take) {
  try {
    const { bytes, kept } = wanted.file ? { bytes: null, kept: null } : await fetchFile(wanted);
    postMessage({ ...(await take(bytes ?? wanted.file)), kept });
  } catch (error) {
    await forgetFile(wanted.store);
    postMessage({ failed: error instanceof CutOff ? "cut" : "lost" });
  }
}

/** Fetch the file, or take it from the browser's store; return its bytes and whether the browser keeps it. */
async function fetchFile({ address, length, store: name }) {
  const store = await openStore(name);
  const found = await store?.match(address).then((one) => one?.arrayBuffer(), () => null);
  if (found && found.byteLength === length) return { bytes: new Uint8Array(found), kept: true };
  const answer = await fetch(address, { cache: "no-store" }); // it is stored below
  const { bytes, count } = await read(answer, length);
  if (count !== length) throw new CutOff(`${Math.round(100 * count / length)}%`);
  return { bytes, kept: await keep(store, address, bytes) };
}

/** The browser's store; null where there is none, or it is forbidden. */
async function openStore(name) {
  try {
    return await globalThis.caches.open(name);
  } catch {
    return null;
  }
}

/** Forget a file that cannot be used. */
async function forgetFile(name) {
  if (await openStore(name)) await globalThis.caches.delete(name);
}

/** Read a response piece by piece; if it breaks off, return what arrived. */
async function read(answer, length) {
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const reader = answer.body.getReader();
  const bytes = new Uint8Array(length);
  let count = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (count + next.value.length <= length) bytes.set(next.value, count);
      count += next.value.length;
      postMessage({ progress: count / length });
    }
  } catch {
    // There are too few bytes; the caller can tell from their count.
  }
  return { bytes, count };
}

/** Store the file in place of older ones; return false if there is no room for it, or no permission. */
async function keep(store, address, bytes) {
  if (!store) return false;
  const older = await store.keys().catch(() => []);
  const done = [...older.map((one) => store.delete(one)), store.put(address, new Response(bytes))];
  return Promise.all(done).then(() => true, () => false);
}
