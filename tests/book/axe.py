"""The barriers that axe-core finds on a page, in light and in dark."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A page has thousands of texts but only about a hundred looks, and measuring their contrast takes axe longer than all
# other rules. Contrast follows from the styles of an element and of everything that it is in, so it is the same for all
# texts of one look, and three of each are enough. Form fields and shadow trees are never left out.
SAME_LOOK = "data-same-look"
MARK_SAME_LOOKS = """name => {
    const grounds = new Map(), counts = new Map(), formulas = new Set();
    const values = (style, keys) => keys.map(key => style[key]);
    const paint = ['backgroundColor', 'backgroundImage', 'opacity', 'filter', 'position'];
    const plain = 'rgba(0, 0, 0, 0)|none|1|none|static';
    const painted = style => values(style, paint).join('|').replace(plain, '');
    const beside = (one, part) => {
        const style = getComputedStyle(one, part), content = style.content;
        return ['none', 'normal'].includes(content) ? '' : content + painted(style);
    };
    const ground = one => {  // what is drawn behind a text, from the page to the element
        if (!grounds.has(one)) {
            const above = one.parentElement ? ground(one.parentElement) : '';
            const drawn = ['::before', '::after'].map(part => beside(one, part));
            grounds.set(one, above + painted(getComputedStyle(one)) + drawn.join(''));
        }
        return grounds.get(one);
    };
    const says = one => [...one.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    for (const one of document.body.querySelectorAll('*')) {
        one.removeAttribute(name);
        if (!one.checkVisibility() || !says(one) || one.matches('label, label *, button, option, textarea')) continue;
        const letter = one.textContent.trim().length < 2;  // of which axe says nothing
        const ink = values(getComputedStyle(one), ['color', 'fontSize', 'fontWeight', 'textShadow']);
        const look = [letter, ground(one), ...ink].join('|');
        counts.set(look, 1 + (counts.get(look) ?? 0));
        one.toggleAttribute(name, counts.get(look) > 3);
        if (counts.get(look) <= 3) formulas.add(one.closest('math'));
    }
    axe.configure({rules: [{id: 'color-contrast', selector: `*:not([${name}])`}]});
    return [...document.querySelectorAll('math')].filter(one => !formulas.has(one));
}"""
# Axe goes through everything on a page. To save time, formulas are emptied while it runs, unless one of their letters
# is among the three texts of a look that it checks.
RUN = """([where, formulas]) => {
    const parts = formulas.map(one => [...one.childNodes]);
    formulas.forEach(one => one.replaceChildren());
    return axe.run(where ?? document, {resultTypes: ['violations']})
        .then(found => found.violations)
        .finally(() => formulas.forEach((one, n) => one.replaceChildren(...parts[n])));
}"""
# Axe goes through the whole page even if it is asked about one element, so everything around that element is removed.
ALONE = """where => {
    let one = document.querySelector(where);
    for (; one.closest('article') && !one.matches('article'); one = one.parentElement)
        for (const other of [...one.parentElement.children]) if (other !== one) other.remove();
}"""
SETTLED = "new Promise(next => setTimeout(next, 400))"  # the theme looks anew at what scrolls a while after a resize


def violations(page, where: str | None = None) -> list[str]:
    """Violations of any impact that axe finds on a page or in one of its elements, with the first places of each."""
    if where:
        page.evaluate(ALONE, where)
    formulas = page.evaluate_handle(MARK_SAME_LOOKS, SAME_LOOK)
    return [
        f"{one['id']} ({one['impact']}), {len(one['nodes'])} times: {[node['target'] for node in one['nodes'][:3]]}"
        for one in page.evaluate(RUN, [where, formulas])
    ]


def go_dark(page) -> None:
    """Have the night fall, as a system reports it, and wait until the page shows it."""
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-theme=dark]").wait_for()
    page.evaluate(SETTLED)
