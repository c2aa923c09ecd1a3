// What a page does by itself: it typesets its formulas, makes what scrolls a stop of the tab key, and opens up for paper.
(() => {
  const PORTION = 12; // formulas that are typeset at a time: in between the page answers
  const SCROLLS = ".picture, .cell_output .text_html, .table-wrapper, .pst-scrollable-table-container, div.math, pre";

  const pause = () =>
    new Promise((next) => (window.requestIdleCallback ? requestIdleCallback(next, { timeout: 100 }) : setTimeout(next)));

  // Only what is wider than its box can be scrolled, and only that should stop the tab key.
  const sizes = new ResizeObserver((changes) => {
    for (const box of new Set(changes.map(({ target }) => target.closest(SCROLLS)))) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });

  function watch(box) {
    for (const one of [box, ...box.children]) sizes.observe(one);
  }

  // A head cell is read out with each of its cells: its formula gets a name, as text.
  function name(formula) {
    const math = formula.querySelector("math");
    const letters = [...math.querySelectorAll("mi, mn, mo, mtext")].map((one) => one.textContent.trim());
    math.setAttribute("aria-label", letters.filter(Boolean).join(" "));
  }

  // MathJax's own promise, which printing waits for, is kept when the last formula is typeset.
  async function typeset() {
    const formulas = [...document.querySelectorAll("span.math, div.math")];
    while (formulas.length) {
      const portion = formulas.splice(0, PORTION);
      await window.MathJax.typesetPromise(portion);
      portion.filter((one) => one.matches("div")).forEach(watch);
      portion.filter((one) => one.closest("th")).forEach(name);
      await pause();
    }
  }
  if (window.MathJax) window.MathJax.startup = { pageReady: typeset };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(SCROLLS).forEach(watch));

  // On paper answers are open, and the page is light; afterwards everything is as it was.
  const root = document.documentElement;
  let undo = [];
  window.addEventListener("beforeprint", () => {
    const closed = [...document.querySelectorAll("details:not(.above-input):not([open])")];
    const theme = root.dataset.theme;
    undo = [() => (root.dataset.theme = theme), ...closed.map((one) => () => (one.open = false))];
    closed.forEach((one) => (one.open = true));
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => undo.splice(0).forEach((back) => back()));
})();
