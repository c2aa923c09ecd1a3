// Below each page of JupyterLite (book/_tools/lite.py): links to the book, whether Python is ready, and what to do if
// it cannot be loaded. Without this, a cell would show [*] forever. On a phone, JupyterLite's own indicator is behind a menu.
// In a notebook, links to the book lead to the site around it, and the checks that pass are recorded (progress.js).
(() => {
  const python = /** @type {HTMLScriptElement} */ (document.currentScript).dataset.python ?? "";

  const STYLE = `
    #course { position: fixed; inset: auto 0 0 auto; z-index: 1000; max-inline-size: min(40rem, 100vw); padding: 0.3rem 0.8rem;
      box-sizing: border-box; border: 1px solid; border-radius: 0.4rem 0 0; background: Canvas; color: CanvasText;
      font: 0.875rem/1.5 system-ui, sans-serif; color-scheme: light dark }
    #course a { color: LinkText }
    #course p { margin: 0.2rem 0 }`;

  const STOPPED = "Python has stopped. Restart it in the Kernel menu.";
  // By the status of JupyterLab's indicator; with any other status, the kernel is starting.
  const STATES = {
    ...{ idle: "Python is ready.", busy: "Python is busy." },
    ...{ dead: STOPPED, terminating: STOPPED, disconnected: STOPPED },
  };

  /** Say what Python is doing, whenever that changes. */
  function watch(state) {
    const look = () => {
      /** @type {HTMLElement | null} */
      const indicator = document.querySelector(".jp-Notebook-ExecutionIndicator");
      const said = STATES[indicator?.dataset.status ?? ""] ?? "Python is starting…";
      if (state.textContent !== said) state.textContent = said;
    };
    look();
    new MutationObserver(look).observe(document.body, {
      subtree: true,
      childList: true,
      attributeFilter: ["data-status"],
    });
  }

  // Unless the class has published the book, every link to it contains this (attnlib/checks/book_links.py).
  const LOCAL_BOOK = "/_build/html/book/";

  /** Let the notebook's links lead to the book around it. JupyterLab would look for them among its own files. */
  function linkToBook() {
    for (const one of document.querySelectorAll(`a[href*="${LOCAL_BOOK}"]`)) {
      if (!(one instanceof HTMLAnchorElement)) continue; // a link inside a drawing
      const [, place] = one.href.split(LOCAL_BOOK);
      const { href } = new URL(`../../book/${place}`, location.href);
      if (one.href === href) continue; // the site itself may have been built at such an address
      const link = /** @type {HTMLAnchorElement} */ (one.cloneNode(true)); // the clone lacks JupyterLab's click handler
      one.replaceWith(Object.assign(link, { href, target: "_blank", rel: "noopener" }));
    }
  }

  /** Record that a check has passed, under the path of the notebook and the name of the check. */
  function keepPassed(report) {
    const path = new URLSearchParams(location.search).get("path") ?? "";
    const [, notebook] = path.match(/^([\w-]+\/[\w-]+)\.ipynb$/) ?? [];
    if (!notebook) return;
    const progress = window.courseProgress.load();
    (progress.checks[notebook] ??= {})[report.dataset.passed] = true;
    window.courseProgress.save(progress);
  }

  /** Whenever the notebook changes, correct its links and record the checks that have passed. */
  function followNotebook() {
    const seen = new WeakSet();
    const look = () => {
      linkToBook();
      for (const report of document.querySelectorAll("[data-passed]")) {
        if (!seen.has(report)) keepPassed(report);
        seen.add(report);
      }
    };
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributeFilter: ["href"] });
  }

  function link(text, address) {
    const one = document.createElement("a");
    one.textContent = text;
    one.href = address;
    return one;
  }

  function explain(said) {
    const host = new URL(python, location.href).host;
    said.append(
      `Python could not be loaded from ${host}, so cells show [*] and do not run. Check your connection, then reload this page. `,
      "What you have written is kept. You can also ",
      link("download it and work on your own computer", "../../book/install.html"),
      ".",
    );
  }

  addEventListener("DOMContentLoaded", () => {
    const bar = document.createElement("aside");
    const said = document.createElement("p");
    const state = document.createElement("span");
    const style = document.createElement("style");
    style.textContent = STYLE;
    bar.id = "course";
    bar.setAttribute("aria-label", "The course");
    said.setAttribute("role", "status");
    bar.append(
      style,
      state,
      " ",
      link("The book", "../../book/index.html"),
      " · ",
      link("All exercises", "../index.html"),
      said,
    );
    document.body.append(bar);
    if (!python) return;
    watch(state);
    followNotebook();
    fetch(python, { mode: "no-cors" }).catch(() => {
      state.remove();
      explain(said);
    });
  });
})();
