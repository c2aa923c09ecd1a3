// What other scripts of a page provide: Sphinx's search, and our own scripts.

interface Window {
    /** What the search looks through, from _ext/section_search.py. */
    SEARCH_ENTRIES: object[];
    /** What the reader has done, from progress.js. */
    courseProgress: {
        load: () => Progress;
        checked: (kept: unknown) => Progress | null;
        save: (progress: Progress) => boolean;
        erase: () => void;
    };
}

/**
 * The day on which each chapter was read, whether the first answer to each of its questions was right, and which checks
 * of each notebook have passed in the browser version of the exercises.
 */
interface Progress {
    read: Record<string, string>;
    answers: Record<string, Record<string, boolean>>;
    checks: Record<string, Record<string, boolean>>;
}

// What the page of the search loads before search.js: Sphinx's data on English, MiniSearch, and the book's sections.
declare const stopwords: string[];
declare class Stemmer {
    stemWord(word: string): string;
}
// deno-lint-ignore no-explicit-any
declare const MiniSearch: any;

/** What _ext/explorer_assets.py writes before the script of a model that runs in a page. */
interface ModelScript {
    worker: string;
}
// deno-lint-ignore no-explicit-any
declare const DATE_TRANSLATOR: ModelScript & { config: any };
declare const DECODER: ModelScript;
declare const MINILM: ModelScript;

/** What the file of the decoder's weights defines, in a page that was opened as a file. */
// deno-lint-ignore no-explicit-any no-var
declare var DECODER_FILE: any;

/** How many labelled controls the scripts of the page have made. */
// deno-lint-ignore no-var
declare var attentionFields: number | undefined;
