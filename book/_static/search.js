// The search: ranks the sections with MiniSearch, corrects a mistyped word, and shows the words where they occur.
(() => {
  const entries = /** @type {HTMLScriptElement} */ (document.currentScript).dataset.entries ?? "";
  const MOST_HITS = 30;
  const LEAST_SHARE = 0.01; // of the best hit's score
  const EXCERPT = 180; // characters
  const PHRASE_IN_TITLE = 1; // how much is added to a score, as a share of it
  const PHRASE_IN_TEXT = 0.3;
  const stemmer = new Stemmer();
  const ignored = new Set(stopwords);

  const simple = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  // "FlashAttention" is found as one word and as two.
  const words = (text) =>
    text.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
      .flatMap((word) => [word, ...(/\p{Ll}\p{Lu}\p{Ll}/u.test(word) ? word.split(/(?<=\p{Ll})(?=\p{Lu})/u) : [])]);
  /** @type {Map<string, string | null>} */
  const stems = new Map(); // finding a stem is slow, and most words occur many times in the book
  function stem(word) {
    if (!stems.has(word)) {
      const lower = word.toLowerCase();
      stems.set(word, ignored.has(lower) ? null : stemmer.stemWord(lower));
    }
    return stems.get(word);
  }

  /** @type {Set<string>} */
  const known = new Set();
  const index = new MiniSearch({
    idField: "url",
    fields: ["title", "bold", "about", "page", "formulas", "text"],
    storeFields: ["title", "page", "text", "about", "weight", "reference"],
    tokenize: words,
    processTerm: (word) => {
      const term = stem(word);
      if (term) known.add(term);
      return term;
    },
    searchOptions: {
      boost: { title: 4, bold: 2, about: 2, page: 1.5 },
      prefix: (term) => term.length > 3,
      processTerm: stem,
      // Two swapped letters are two changes. A word that the book has is no slip.
      fuzzy: (term) => (known.has(term) || term.length < 5 ? false : term.length < 7 ? 1 : 2),
      boostDocument: (_id, _term, entry) => entry.weight,
    },
  });

  // A section that has all the words, or the phrase, is worth more than one that has a single word often.
  function ranked(query) {
    const asked = new Set(words(query).map(stem).filter(Boolean));
    const phrase = simple(query);
    const hits = index.search(query).map((hit) => {
      const inTitle = simple(hit.title).includes(phrase) ? PHRASE_IN_TITLE : 0;
      const inText = simple(hit.text).includes(phrase) ? PHRASE_IN_TEXT : 0;
      return { ...hit, score: hit.score * (hit.queryTerms.length / asked.size) ** 2 * (1 + inTitle + inText) };
    }).sort((one, other) => other.score - one.score);
    const best = hits[0]?.score;
    // A definition does not come before a section that explains.
    const section = hits.findIndex((hit) => !hit.reference && hit.queryTerms.length === asked.size);
    if (hits[0]?.reference && section > 0) hits.unshift(...hits.splice(section, 1));
    return hits.filter((hit) => hit.score >= LEAST_SHARE * best).slice(0, MOST_HITS);
  }

  // The words of a text as they are written there, if the search found them.
  const found = (text, terms) => words(text).filter((word) => terms.has(stem(word)));

  function excerpt(hit, terms) {
    const text = hit.text || hit.about || "";
    const first = found(text, terms)[0];
    const at = Math.max(0, first ? text.indexOf(first) - EXCERPT / 3 : 0);
    const start = at && text.indexOf(" ", at) + 1;
    const cut = text.slice(start, start + EXCERPT);
    const paragraph = document.createElement("p");
    paragraph.className = "context";
    const ends = [start ? "… " : "", start + EXCERPT < text.length ? " …" : ""];
    for (const piece of (ends[0] + cut + ends[1]).split(/([\p{L}\p{N}]+)/u)) {
      const isFound = found(piece, terms).length > 0;
      const node = isFound ? document.createElement("mark") : document.createTextNode(piece);
      if (isFound) node.textContent = piece;
      paragraph.append(node);
    }
    return paragraph;
  }

  function item(hit) {
    const terms = new Set(hit.terms);
    const element = document.createElement("li"),
      link = document.createElement("a"),
      page = document.createElement("p");
    // On the page that opens, Sphinx's script highlights the words in this address, and then removes them from it.
    const [path, section] = hit.id.split("#"), seen = [...new Set(found(hit.text, terms))].join(" ").toLowerCase();
    link.href = path + (seen && `?highlight=${encodeURIComponent(seen)}`) + (section ? `#${section}` : "");
    link.textContent = hit.title;
    page.className = "search-page";
    page.textContent = hit.page;
    element.append(link);
    if (hit.page !== hit.title) element.append(page);
    element.append(excerpt(hit, terms));
    return element;
  }

  function show(query, summary, list) {
    const hits = ranked(query);
    list.append(...hits.map(item));
    summary.textContent = hits.length
      ? `${hits.length} section${hits.length > 1 ? "s" : ""} found for “${query}”`
      : `Nothing was found for “${query}”. Try other words, or look at the contents or the glossary.`;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const query = new URLSearchParams(location.search).get("q")?.trim();
    if (!query) return;
    const field = /** @type {HTMLInputElement} */ (document.querySelector(".bd-search-container input[name=q]"));
    const summary = document.createElement("p"), list = document.createElement("ol");
    field.value = query;
    Object.assign(summary, { className: "search-summary", role: "status", textContent: "Searching…" });
    list.ariaLabel = "Sections found";
    document.getElementById("search-results")?.append(summary, list);
    // The search index is twice as large as a page, so it is loaded only for a search. Screen readers announce a change
    // of the summary, so it is on the page before the result is.
    const script = document.createElement("script");
    script.onerror = () => {
      summary.textContent = "The search index could not be loaded. Check your connection, then reload this page.";
    };
    script.onload = (event) => {
      if (!window.SEARCH_ENTRIES) return script.onerror?.(event); // the connection broke in the middle
      index.addAll(window.SEARCH_ENTRIES);
      show(query, summary, list);
    };
    script.src = entries;
    document.head.append(script);
  });
})();
