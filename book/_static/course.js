// What every page does: it typesets its formulas, lets the Tab key reach what scrolls, and opens what is folded
// for a link that leads there, and for paper.
(() => {
  const PORTION = 12; // formulas that are typeset at a time; in between, the page answers the reader
  const LATER = 6000; // milliseconds until the formulas that nobody has come near are typeset too
  const MATHJAX = new URL("mathjax/startup.js", /** @type {HTMLScriptElement} */ (document.currentScript).src);
  const SCROLLS = ".cell_output .text_html, .table-wrapper, .pst-scrollable-table-container, div.math, pre";

  // Safari has no requestIdleCallback.
  const whenIdle = (next) =>
    "requestIdleCallback" in window ? requestIdleCallback(next, { timeout: 100 }) : setTimeout(next);
  const pause = () => new Promise(whenIdle);

  // Only what is wider than its box can be scrolled, so the Tab key should stop only there.
  const sizes = new ResizeObserver((changes) => {
    const boxes = new Set(changes.map(({ target }) => /** @type {HTMLElement} */ (target.closest(SCROLLS))));
    // All are measured before one is changed, or the page would be laid out again for each.
    const measured = [...boxes].map((box) => ({ box, wide: box.scrollWidth > box.clientWidth }));
    measured.forEach(({ box, wide }) => setStop(box, wide));
  });

  function setStop(element, reachable) {
    const stop = { tabindex: "0", role: "group", "aria-label": "Scrolls sideways" };
    for (const [name, value] of Object.entries(stop)) {
      if (reachable) element.setAttribute(name, value);
      else element.removeAttribute(name);
    }
  }

  function watch(box) {
    for (const one of [box, ...box.children]) sizes.observe(one);
  }

  // Screen readers read a head cell out with each of its cells, so its formula gets a name in plain text.
  function name(formula) {
    const math = formula.querySelector("math");
    const letters = [...math.querySelectorAll("mi, mn, mo, mtext")].map((one) => one.textContent.trim());
    math.setAttribute("aria-label", letters.filter(Boolean).join(" "));
  }

  /** @type {Promise<void> | undefined} */
  let mathjax;
  function load() {
    mathjax ??= new Promise((done, failed) => {
      window.MathJax.startup = { typeset: false };
      const script = document.createElement("script");
      Object.assign(script, { src: MATHJAX, onerror: failed, onload: () => window.MathJax.startup.promise.then(done) });
      document.head.append(script);
    });
    return mathjax;
  }

  // MathJax is large and slow, and the first screen has few formulas. A formula is typeset when the reader comes near it,
  // and the rest after a while. What needs all of them now, such as printing or a test, waits for window.typesetAll().
  let typeset = Promise.resolve();
  function ask(formulas) {
    typeset = typeset.then(async () => {
      const left = formulas.filter((one) => !one.querySelector("mjx-container"));
      if (left.length) await load();
      while (left.length) {
        const portion = left.splice(0, PORTION);
        await window.MathJax.typesetPromise(portion);
        portion.filter((one) => one.matches("div")).forEach(watch);
        portion.filter((one) => one.closest("th")).forEach(name);
        await pause();
      }
    });
    return typeset;
  }

  // Until the reader scrolls, only the first screen is typeset; after the first scroll, one screen ahead.
  /** @type {IntersectionObserver | undefined} */
  let near;
  function follow(formulas, ahead) {
    near?.disconnect();
    const observer = new IntersectionObserver(
      (seen) => ask(seen.filter((one) => one.isIntersecting).map((one) => one.target)),
      {
        rootMargin: `${ahead} 0%`,
      },
    );
    near = observer;
    formulas.forEach((one) => observer.observe(one));
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(SCROLLS).forEach(watch);
    const formulas = [...document.querySelectorAll("span.math, div.math")];
    follow(formulas, "0%");
    addEventListener("scroll", () => follow(formulas, "100%"), { once: true, passive: true });
    window.typesetAll = () => ask(formulas);
    setTimeout(window.typesetAll, LATER);
  });

  // Not every browser opens the folds around the place that a link leads to.
  function openFolds() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = [...document.querySelectorAll("details")].filter((one) => !one.open && one.contains(target));
    closed.forEach((one) => (one.open = true));
    if (closed.length) target?.scrollIntoView();
  }
  document.addEventListener("DOMContentLoaded", openFolds);
  addEventListener("hashchange", openFolds);

  // On paper the answers are open and the page is light. After printing, the page looks as it did before.
  const root = document.documentElement;
  /** @type {(() => void)[]} */
  let undo = [];
  window.addEventListener("beforeprint", () => {
    const closed = [...document.querySelectorAll("details")].filter((one) => one.matches(":not(.above-input, [open])"));
    const theme = root.dataset.theme;
    undo = [() => (root.dataset.theme = theme), ...closed.map((one) => () => (one.open = false))];
    closed.forEach((one) => (one.open = true));
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => undo.splice(0).forEach((back) => back()));
})();
