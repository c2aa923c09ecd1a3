// How a reader takes away what is on the screen: as a link, or as a picture.

import { asFile } from "./drawing.js";
import { h } from "./table.js";

/** Copy the page's address, and say whether that worked. */
export async function copyAddress() {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  return copied ? "Link copied." : "The link is in the address bar: copy it from there.";
}

/**
 * Follow the fragment of the page's address. The event's own address is used: a drawing that writes its state into the
 * address between the reader's change and the event would hide what the reader asked for.
 *
 * @param {(fragment: string) => void} then
 */
export function onFragment(then) {
  addEventListener("hashchange", ({ newURL }) => then(new URL(newURL).hash));
}

/** Save a drawing as a file. */
export function savePicture(svg, name) {
  const file = new Blob([asFile(svg)], { type: "image/svg+xml" });
  const address = URL.createObjectURL(file);
  h("a", { href: address, download: `${name}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
