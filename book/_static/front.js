// The front page: a sentence whose words attend to each other, and how much of the course the reader has done.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const THINNEST = 0.02; // the smallest weight that gets an arc

  function element(tag, properties = {}, ...children) {
    const one = Object.assign(document.createElement(tag), properties);
    one.append(...children);
    return one;
  }

  /** Replace the two shaded sentences by one, in which a word and an ending can be chosen. */
  function makeAttending(box) {
    const { query, endings } = JSON.parse(box.querySelector("script").textContent);
    const arcs = document.createElementNS(SVG, "svg");
    arcs.setAttribute("aria-hidden", "true");
    const words = element("div", { className: "attending-words" });
    words.setAttribute("role", "radiogroup");
    words.ariaLabel = "Choose a word that looks at the others";
    const labels = endings[0].words.map((word, n) => wordChoice(words, word, word === query, () => choose(n)));
    const ends = element("div", { className: "attending-endings" }, "End the sentence with ");
    ends.setAttribute("role", "radiogroup");
    ends.ariaLabel = "Choose the last word";
    endings.forEach((one, n) => ends.append(endingChoice(one.ending, n === 0, () => choose(chosen, n)), " "));
    const said = element("p", { className: "attending-said" });
    said.setAttribute("role", "status");
    let chosen = endings[0].words.indexOf(query), ending = 0;

    function choose(word, end = ending) {
      [chosen, ending] = [word, end];
      const { words: texts, weights } = endings[ending];
      labels.forEach((label, n) => label.show(texts[n], weights[chosen][n], n === chosen));
      said.textContent = sentenceAbout(texts, weights[chosen], chosen);
      draw(true);
    }

    function draw(moves = false) {
      drawArcs(arcs, labels.map((label) => label.element), endings[ending].weights[chosen], chosen, moves);
    }

    const stage = element("div", { className: "attending-stage" });
    stage.append(arcs, words);
    box.replaceChildren(ends, stage, said);
    new ResizeObserver(() => draw()).observe(stage);
    choose(chosen);
  }

  function wordChoice(words, text, checked, choose) {
    const share = element("small"), name = element("span", { textContent: text });
    const input = element("input", { type: "radio", name: "attending-word", checked, onchange: choose });
    const special = text.startsWith("[") ? " special" : "";
    const label = element("label", { className: `attending-word${special}` }, input, name, " ", share);
    words.append(label, " ");
    const show = (word, weight, isQuery) => {
      name.textContent = word;
      share.textContent = `${Math.round(100 * weight)}%`;
      label.style.setProperty("--weight", String(weight));
      label.classList.toggle("asking", isQuery);
    };
    return { element: label, show };
  }

  function endingChoice(text, checked, choose) {
    const input = element("input", { type: "radio", name: "attending-ending", checked, onchange: choose });
    return element("label", {}, input, ` ${text}`);
  }

  /** Say in one sentence where the largest weights of a word are. */
  function sentenceAbout(words, weights, query) {
    const largest = weights.map((w, n) => [w, words[n]]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const shares = largest.map(([w, word]) => `${Math.round(100 * w)}% to “${word}”`);
    return `“${words[query]}” gives ${shares.slice(0, -1).join(", ")} and ${shares.at(-1)}.`;
  }

  /** Draw an arc from each word to the one that looks at it, as thick as the weight. */
  function drawArcs(svg, places, weights, query, moves) {
    const frame = svg.getBoundingClientRect();
    const boxes = places.map((one) => one.getBoundingClientRect()).map((r) => ({
      x: r.left + r.width / 2 - frame.left,
      top: r.top - frame.top,
      bottom: r.bottom - frame.top,
    }));
    svg.replaceChildren();
    weights.forEach((weight, n) => {
      if (n === query || weight < THINNEST) return;
      const path = arc(boxes[n], boxes[query]);
      svg.append(stroke(path, "arc", weight));
      if (moves) svg.append(stroke(path, "arc flowing", weight));
    });
  }

  /** Return a path from one word to another: above both on the same line, and between the lines on different ones. */
  function arc(from, to) {
    if (from.bottom < to.top) return between(from.x, from.bottom, to.x, to.top);
    if (to.bottom < from.top) return between(from.x, from.top, to.x, to.bottom);
    const high = Math.max(Math.min(from.top, to.top) - 18 - 0.22 * Math.abs(from.x - to.x), 2);
    return `M${from.x} ${from.top}C${from.x} ${high} ${to.x} ${high} ${to.x} ${to.top}`;
  }

  function between(x1, y1, x2, y2) {
    const middle = (y1 + y2) / 2;
    return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
  }

  function stroke(path, name, weight) {
    const one = document.createElementNS(SVG, "path");
    one.setAttribute("d", path);
    one.setAttribute("class", name);
    one.style.setProperty("--weight", String(weight));
    one.addEventListener("animationend", () => one.matches(".flowing") && one.remove());
    return one;
  }

  // What the reader has done ------------------------------------------------------------------------------------------

  function showProgress(road) {
    const { read, answers, checks } = window.courseProgress.load();
    let questions = 0, answered = 0, right = 0, asked = 0, passed = 0;
    const stages = [...road.querySelectorAll("[data-chapter]")];
    for (const drawing of stages) {
      const { chapter, questions: all, notebook, checks: names = "" } = drawing.dataset;
      const found = Object.values(answers[chapter] ?? {}).slice(0, Number(all));
      const asks = names.split(" ").filter(Boolean), passes = asks.filter((name) => checks[notebook]?.[name] === true);
      asked += asks.length;
      passed += passes.length;
      questions += Number(all);
      answered += found.length;
      right += found.filter(Boolean).length;
      const parts = [
        chapter in read ? "read" : "",
        found.length ? `${someOf(found.length, all, "question")} answered` : "",
        passes.length ? `${someOf(passes.length, asks.length, "check")} passed` : "",
      ].filter(Boolean);
      const item = drawing.closest("li");
      item.classList.toggle("done", chapter in read);
      item.querySelector(".stage-state")?.remove();
      if (parts.length) item.append(element("p", { className: "stage-state", textContent: parts.join(" · ") }));
    }
    const chapters = stages.filter((one) => one.dataset.chapter in read).length;
    return `You have read ${chapters} of ${stages.length} chapters and answered ${answered} of ${questions} questions, ` +
      `${right} of them correctly on the first try.` +
      // Readers who work on their own computers pass no checks here, so they see nothing about checks.
      (passed ? ` In the browser version of the exercises, you have passed ${someOf(passed, asked, "check")}.` : "");
  }

  const someOf = (some, all, what) => `${some} of ${all} ${Number(all) === 1 ? what : `${what}s`}`;

  function addSummary(road) {
    const done = element("p"), said = element("p");
    said.setAttribute("role", "status");
    const refresh = () => (done.textContent = showProgress(road));
    const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
    const file = element("input", { type: "file", accept: "application/json,.json", hidden: true });
    file.addEventListener("change", async () => {
      said.textContent = await restore(file.files?.[0]);
      file.value = "";
      refresh();
    });
    const eraser = button("Erase", () => {
      if (!confirm("Erase your progress from this browser?")) return;
      window.courseProgress.erase();
      said.textContent = "Erased.";
      refresh();
    });
    const buttons = element(
      "p",
      {},
      button("Save as a file", download),
      " ",
      button("Load a file", () => file.click()),
      " ",
    );
    buttons.append(eraser, file);
    const kept =
      "When you have read a chapter, tick the box at its end. Only the checks that you pass in the browser version of " +
      "the exercises count here, not those in notebooks on your own computer. Your progress is stored in this browser " +
      "and nowhere else.";
    road.after(
      element("div", { className: "progress-so-far" }, done, element("p", { textContent: kept }), buttons, said),
    );
    refresh();
  }

  function download() {
    const text = JSON.stringify(window.courseProgress.load(), null, 2);
    const link = element("a", {
      href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
      download: "attention-course-progress.json",
    });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function restore(file) {
    if (!file) return "";
    let progress = null;
    try {
      progress = window.courseProgress.checked(JSON.parse(await file.text()));
    } catch {
      // The file is not JSON; the message below says so.
    }
    if (!progress) return `${file.name} is not a progress file saved from this page, so nothing was changed.`;
    return window.courseProgress.save(progress)
      ? `Loaded ${file.name}.`
      : "This browser does not allow the site to store your progress, so the file was not loaded.";
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".attending").forEach(makeAttending);
    document.querySelectorAll(".road").forEach(addSummary);
  });
})();
