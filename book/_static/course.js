// What a page does by itself: it typesets its formulas, makes what scrolls a stop of the tab key, and opens up for paper.
(() => {
  const PORTION = 12; // formulas that are typeset at a time: in between the page answers
  const LATER = 6000; // ms until formulas that nobody has come near are typeset too
  const MATHJAX = new URL("mathjax/startup.js", document.currentScript.src);
  const SCROLLS = ".cell_output .text_html, .table-wrapper, .pst-scrollable-table-container, div.math, pre";

  const pause = () =>
    new Promise((next) => (window.requestIdleCallback ? requestIdleCallback(next, { timeout: 100 }) : setTimeout(next)));

  // Only what is wider than its box can be scrolled, and only that should stop the tab key.
  const sizes = new ResizeObserver((changes) => {
    const boxes = [...new Set(changes.map(({ target }) => target.closest(SCROLLS)))];
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth); // all are asked before one is changed
    boxes.forEach((box, n) => (wide[n] ? (box.tabIndex = 0) : box.removeAttribute("tabindex")));
  });

  function watch(box) {
    for (const one of [box, ...box.children]) sizes.observe(one);
  }

  // Pictures are not laid out before one comes near (course.css), and to ask how wide they are would do it at once:
  // they scroll where the style sheet keeps them from shrinking.
  const phone = matchMedia("(max-width: 40rem)");
  function reachPictures() {
    for (const picture of document.querySelectorAll(".picture")) {
      if (phone.matches) picture.tabIndex = 0;
      else picture.removeAttribute("tabindex");
    }
  }
  phone.addEventListener("change", reachPictures);

  // A head cell is read out with each of its cells: its formula gets a name, as text.
  function name(formula) {
    const math = formula.querySelector("math");
    const letters = [...math.querySelectorAll("mi, mn, mo, mtext")].map((one) => one.textContent.trim());
    math.setAttribute("aria-label", letters.filter(Boolean).join(" "));
  }

  let mathjax; // kept once it is there
  function load() {
    mathjax ??= new Promise((done, failed) => {
      window.MathJax.startup = { typeset: false };
      const script = document.createElement("script");
      Object.assign(script, { src: MATHJAX, onerror: failed, onload: () => window.MathJax.startup.promise.then(done) });
      document.head.append(script);
    });
    return mathjax;
  }

  // MathJax is large and slow, and few formulas stand on the first screen: those are typeset that the reader comes near,
  // and after a while the rest. Who needs all of them now, for paper or in a test, waits for window.typesetAll().
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

  let near; // who moves is followed by formulas a screen ahead; before that, those on the first screen do
  function follow(formulas, ahead) {
    near?.disconnect();
    near = new IntersectionObserver((seen) => ask(seen.filter((one) => one.isIntersecting).map((one) => one.target)), {
      rootMargin: `${ahead} 0%`,
    });
    formulas.forEach((one) => near.observe(one));
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(SCROLLS).forEach(watch);
    reachPictures();
    const formulas = [...document.querySelectorAll("span.math, div.math")];
    follow(formulas, "0%");
    addEventListener("scroll", () => follow(formulas, "100%"), { once: true, passive: true });
    window.typesetAll = () => ask(formulas);
    setTimeout(window.typesetAll, LATER);
  });

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
