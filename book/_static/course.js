// What a page does by itself once it is there: formulas are typeset, and what scrolls can be scrolled by keyboard.
(() => {
  const FORMULAS = 12; // at a time: between two such portions the page answers
  const SCROLLS = ".picture, .cell_output .text_html, .table-wrapper, .pst-scrollable-table-container, div.math, pre";

  const pause = () =>
    new Promise((next) =>
      window.requestIdleCallback ? requestIdleCallback(next, { timeout: 100 }) : setTimeout(next),
    );

  // Only what is wider than its box is a stop of the tab key.
  const stops = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const box = target.closest(SCROLLS);
      if (!box) continue;
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });
  // MathJax's own promise, which printing waits for, is kept when the last formula is typeset.
  async function typeset() {
    const formulas = [...document.querySelectorAll("span.math, div.math")];
    while (formulas.length) {
      const some = formulas.splice(0, FORMULAS);
      await window.MathJax.typesetPromise(some);
      some.flatMap((one) => [...one.children]).forEach((child) => stops.observe(child));
      await pause();
    }
  }
  if (window.MathJax) window.MathJax.startup = { pageReady: typeset };

  document.addEventListener("DOMContentLoaded", () => {
    for (const box of document.querySelectorAll(SCROLLS)) {
      stops.observe(box);
      for (const child of box.children) stops.observe(child);
    }
  });
})();
