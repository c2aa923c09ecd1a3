// What other scripts of a page provide: Sphinx's search, and our own scripts.

interface Window {
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
