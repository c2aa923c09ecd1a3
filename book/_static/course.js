// What every page does: it lays itself out part by part, lets the Tab key reach what scrolls, shows hidden code, copies
// formulas as TeX, opens what is folded if a link leads there or the page is printed, and hides a term's definition when Escape
// is pressed.
(() => {
  const root = document.documentElement;

  // A long page laid out at once would not answer meanwhile. The style sheet leaves out what is far below the screen, and
  // here follow its parts, one after the other, while the browser has nothing else to do.
  addEventListener("load", () => {
    if (!root.classList.contains("from-top")) return;
    const boxes = "section section :is(pre, div.math, .table-wrapper, .text_html:not(:has(.picture)))";
    const parts = document.querySelectorAll(`.bd-article :is(section section, dl.py, ${boxes})`).values();
    function layOutNext() {
      let size = 0; // how many elements this step has laid out; about 100 keep it short
      while (size < 100) {
        const { value: part, done } = parts.next();
        if (done) return root.classList.remove("from-top");
        part.classList.add("laid-out");
        size += part.matches(boxes) ? part.getElementsByTagName("*").length : 100;
      }
      requestIdleCallback(layOutNext);
    }
    requestIdleCallback(layOutNext);
  });

  const SCROLLS = ".cell_output .text_html, .table-wrapper, .pst-scrollable-table-container, div.math, pre";

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
    // The children of a <pre> are inline words, often thousands of them, and have no size to observe.
    for (const one of box.matches("pre") ? [box] : [box, ...box.children]) sizes.observe(one);
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(SCROLLS).forEach(watch));

  // Until it is opened, hidden code is the text of a <noscript> element (book/_ext/html_fixes.py). Its copy button is a copy of
  // one that sphinx-copybutton has added to other code; that extension's script handles clicks on all of them.
  document.addEventListener("toggle", ({ target }) => {
    const cell = /** @type {HTMLElement} */ (target), waiting = cell.querySelector(":scope > noscript");
    if (!waiting) return;
    waiting.outerHTML = waiting.textContent;
    const button = document.querySelector(".copybtn:not(.success)")?.outerHTML ?? "";
    for (const code of cell.querySelectorAll("pre")) {
      watch(code);
      code.id = `opened-code-${document.querySelectorAll("[id^=opened-code]").length}`;
      code.insertAdjacentHTML("afterend", button.replace(/#[\w-]+/, `#${code.id}`));
    }
  }, { capture: true }); // since this event does not bubble

  // Browsers would copy the letters of a formula without what they mean: x 2 for x^2.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection?.rangeCount || !event.clipboardData) return;
    const copied = document.createElement("div");
    copied.append(selection.getRangeAt(0).cloneContents());
    const formulas = copied.querySelectorAll("math[alttext]");
    if (!formulas.length) return;
    formulas.forEach((one) => one.replaceWith(`$${one.getAttribute("alttext")}$`));
    document.body.append(copied); // so that its paragraphs are lines
    event.clipboardData.setData("text/plain", copied.innerText);
    copied.remove();
    event.preventDefault();
  });

  // An address that somebody has edited may be malformed.
  function fragment() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  }

  // Not every browser opens the folds around the place that a link leads to.
  function openFolds() {
    const target = document.getElementById(fragment());
    const closed = [...document.querySelectorAll("details")].filter((one) => !one.open && one.contains(target));
    closed.forEach((one) => (one.open = true));
    if (closed.length) target?.scrollIntoView();
  }
  document.addEventListener("DOMContentLoaded", openFolds);
  addEventListener("hashchange", openFolds);

  // What a term means is shown while the pointer or the focus is on its link (course.css). Escape hides it, until both leave.
  addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    document.querySelectorAll("a.glossary-term:is(:hover, :focus)").forEach((link) => {
      link.classList.add("dismissed");
      for (const leaving of ["pointerleave", "blur"]) {
        link.addEventListener(leaving, () => link.classList.remove("dismissed"), { once: true });
      }
    });
  });

  // On paper the answers are open and the page is light. After printing, the page looks as it did before.
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
