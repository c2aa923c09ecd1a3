// What other scripts of a page provide: MathJax, Sphinx's search, and our own scripts.

interface Window {
    // deno-lint-ignore no-explicit-any
    MathJax: any;
    /** Typeset every formula of the page now. */
    typesetAll: () => Promise<void>;
    /** What the search looks through, from _ext/section_search.py. */
    SEARCH_ENTRIES: object[];
}

// What the page of the search loads before search.js: Sphinx's data on English, MiniSearch, and the book's sections.
declare const stopwords: string[];
declare class Stemmer {
    stemWord(word: string): string;
}
// deno-lint-ignore no-explicit-any
declare const MiniSearch: any;
