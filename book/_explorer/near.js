// Loads the scripts of an interactive element when the reader comes near it. They are as large as a short page. A
// fragment in the address may set what an element shows, so all scripts are then loaded at once.
/** @param {HTMLElement} element */
function load({ dataset }) {
  const sources = (dataset.scripts ?? "").split(" ").filter((src) => !document.querySelector(`script[src="${src}"]`));
  for (const src of sources) {
    const script = Object.assign(document.createElement("script"), { src, async: false });
    script.onerror = () => script.remove(); // the next element that needs it tries again
    document.head.append(script);
  }
}

const near = new IntersectionObserver((seen) => {
  seen.filter((one) => one.isIntersecting).forEach(({ target }) => {
    near.unobserve(target);
    load(/** @type {HTMLElement} */ (target));
  });
}, { rootMargin: "100%" });

document.addEventListener("DOMContentLoaded", () => {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = document.querySelectorAll("[data-scripts]");
  const all = () => location.hash && elements.forEach(load);
  elements.forEach((one) => near.observe(one));
  addEventListener("hashchange", all);
  all();
});
