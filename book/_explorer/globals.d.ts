// What other scripts of a page provide: MathJax, Sphinx's search, and our own course.js.

interface Window {
    // deno-lint-ignore no-explicit-any
    MathJax: any;
    /** Typeset every formula of the page now. */
    typesetAll: () => Promise<void>;
}

declare const Search: { htmlToText: (html: string, anchor?: string) => string };
