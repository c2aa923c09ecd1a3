// What a reader has done, kept in the reader's own browser: the chapters read, the questions answered, and the
// checks passed in the browser version of the exercises, which lite.js adds.
(() => {
  const KEY = "attention-course-progress";

  /** Return the stored progress, or an empty record if it is missing, damaged or blocked by the browser. */
  function load() {
    let kept = null;
    try {
      kept = JSON.parse(localStorage.getItem(KEY) ?? "null");
    } catch {
      // Damaged, or the browser forbids it: the reader begins anew.
    }
    return checked(kept) ?? { read: {}, answers: {}, checks: {} };
  }

  /** Return only the valid parts of a progress record, or null if it is not one. */
  function checked(kept) {
    const isRecord = (one) => typeof one === "object" && one !== null && !Array.isArray(one);
    if (!isRecord(kept) || !isRecord(kept.read) || !isRecord(kept.answers)) return null;
    const read = Object.entries(kept.read).filter(([, when]) => typeof when === "string");
    const booleans = (records) =>
      Object.fromEntries(
        Object.entries(records).filter(([, found]) => isRecord(found)).map(([name, found]) => [
          name,
          Object.fromEntries(Object.entries(found).filter(([, right]) => typeof right === "boolean")),
        ]),
      );
    const checks = isRecord(kept.checks) ? kept.checks : {}; // older files have none
    return { read: Object.fromEntries(read), answers: booleans(kept.answers), checks: booleans(checks) };
  }

  /** Keep progress; return whether the browser allowed it. */
  function save(progress) {
    try {
      localStorage.setItem(KEY, JSON.stringify(progress));
      return true;
    } catch {
      return false;
    }
  }

  function erase() {
    try {
      localStorage.removeItem(KEY);
    } catch {
      // If the browser forbids storage, there is nothing to erase.
    }
  }

  window.courseProgress = { load, checked, save, erase };

  const chapter = location.pathname.split("/").pop()?.replace(/\.html$/, "") ?? "";

  // The first option that a reader opens counts as the reader's answer.
  function watchQuestion(question, number) {
    const options = [...question.querySelectorAll("details")];
    options.forEach((option) =>
      option.addEventListener("toggle", () => {
        const progress = load(), found = (progress.answers[chapter] ??= {});
        if (!option.open || number in found) return;
        const explanation = option.querySelector(".sd-card-body, .sd-summary-content") ?? option;
        found[number] = /^\s*Yes\b/.test(
          explanation.textContent.replace(option.querySelector("summary").textContent, ""),
        );
        save(progress);
      })
    );
  }

  function addCheckbox(article) {
    const box = document.createElement("input"), label = document.createElement("label");
    const said = document.createElement("p"), line = document.createElement("div");
    const toc = document.createElement("a");
    Object.assign(box, { type: "checkbox", checked: chapter in load().read });
    box.addEventListener("change", () => {
      const progress = load();
      if (box.checked) progress.read[chapter] = new Date().toISOString().slice(0, 10);
      else delete progress.read[chapter];
      const failed =
        "This browser does not allow the site to store anything, so the tick will be lost when you leave the page.";
      said.textContent = save(progress) ? "" : failed;
    });
    label.append(box, " I have read this chapter");
    Object.assign(toc, { href: "index.html", textContent: "See what you have done so far" });
    line.className = "chapter-read";
    said.setAttribute("role", "status");
    line.append(label, toc, said);
    article.append(line);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const article = document.querySelector("article.bd-article");
    if (!article || article.querySelector(".road")) return;
    article.querySelectorAll(".quiz").forEach(watchQuestion);
    addCheckbox(article);
  });
})();
