"""The violations that axe-core finds on a page, in light and in dark."""

import collections
from pathlib import Path

import axe_playwright_python
from browser_tab import USUAL_SIZE

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A page has thousands of texts but only about a hundred looks, and measuring their contrast takes axe longer than all
# other rules. Contrast depends on the styles of an element and its ancestors, so it is the same for all texts with one
# look, on every page, and checking three of each is enough. Elements that are hidden or hold no text themselves have no
# contrast, but axe would take a long time to find that out. Shadow trees are always checked.
#
# All links in our texts have an underline or a border. If one had neither, axe would measure whether its colour alone
# sets it apart from the text. That takes as long as measuring contrast, so here such a link is always a violation.
#
# Axe goes through everything on a page, so whatever it need not see is removed while it runs: the contents of formulas
# whose looks have all been checked, and spans that only colour words, as in code. Their words stay in place.
SAME_LOOK = "data-same-look"
ENOUGH = 3
checked_looks: collections.Counter[str] = collections.Counter()  # number of texts that axe did not object to, per look
MARK_SAME_LOOKS = """([name, checked, where]) => {
    const known = new Set(checked), grounds = new Map(), counts = new Map(), formulas = new Set(), plain = new Set();
    const unknown = [];
    const values = (style, keys) => keys.map(key => style[key]);
    const paint = ['backgroundColor', 'backgroundImage', 'opacity', 'filter', 'position'];
    const unpainted = 'rgba(0, 0, 0, 0)|none|1|none|static';
    const painted = style => values(style, paint).join('|').replace(unpainted, '');
    const beside = (one, part) => {
        const style = getComputedStyle(one, part), content = style.content;
        return ['none', 'normal'].includes(content) ? '' : content + painted(style);
    };
    const besides = one => ['::before', '::after'].map(part => beside(one, part)).join('');
    const ground = one => {  // what is drawn behind a text, from the page to the element
        if (!grounds.has(one)) {
            const above = one.parentElement ? ground(one.parentElement) : '';
            grounds.set(one, above + painted(getComputedStyle(one)) + besides(one));
        }
        return grounds.get(one);
    };
    const says = one => [...one.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const off = ':disabled, [aria-disabled=true]';
    const seen = one => {
        // Axe says nothing about single letters, labels in drawings, some kinds of fields, or disabled controls.
        const kind = one.matches(FIELD) ? one.type : one.textContent.trim().length < 2;
        const isIn = selector => !!one.closest(selector);
        const exempt = [kind, isIn('svg'), isIn(off), !!one.closest('label')?.control?.matches(off)];
        const ink = values(getComputedStyle(one), ['color', 'fontSize', 'fontWeight', 'textShadow']);
        const look = [...exempt, ground(one), ...ink].join('|');
        if (known.has(look)) return true;
        counts.set(look, 1 + (counts.get(look) ?? 0));
        if (counts.get(look) > ENOUGH) return true;
        formulas.add(one.closest('math'));
        unknown.push([one, look]);
        return false;
    };
    const shape = ['display', 'paddingLeft', 'paddingRight', 'marginLeft', 'marginRight', 'borderWidth'];
    const bare = one => {  // whether removing its tag would leave the words around it in place
        const style = getComputedStyle(one), around = getComputedStyle(one.parentElement);
        const inline = ['inline', ...Array(5).fill('0px')].join();
        return style.font === around.font && values(style, shape).join() === inline && !besides(one);
    };
    const root = where ? document.querySelector(where) : document.body;
    const all = [root, ...root.querySelectorAll('*')];
    for (const one of all) {
        const same = !one.checkVisibility() || !(one.matches(FIELD) || says(one)) || seen(one);
        one.toggleAttribute(name, same);
        if (!same || !one.matches('span, em') || one.closest('button, svg')) continue;
        if ([...one.attributes].every(({name: its}) => [name, 'class'].includes(its))) plain.add(one);
    }
    for (const one of all.reverse()) {
        if (plain.has(one) && !([...one.children].every(part => plain.has(part)) && bare(one))) plain.delete(one);
    }
    axe.configure({rules: [
        {id: 'color-contrast', selector: `*:not([${name}])`},
        {id: 'link-in-text-block', any: ['link-in-text-block-style']},
    ]});
    return {
        unknown,
        spans: [...plain].filter(one => !plain.has(one.parentElement)),
        emptied: [...document.querySelectorAll('math')].filter(one => !formulas.has(one)),
    };
}""".replace("ENOUGH", str(ENOUGH)).replace("FIELD", "'input, select, textarea'")
RUN = """([where, {unknown, spans, emptied}, again]) => {
    const drawn = one => one.closest('svg');  // axe can never judge text that has shapes behind it
    const folds = again ? [...document.querySelectorAll('details:not([open], :not([open]) *)')] : [];
    const parts = [...emptied, ...folds].map(one => [one, [...one.childNodes]]);
    const words = spans.map(one => [one, new Text(one.textContent)]);
    words.forEach(([one, text]) => one.replaceWith(text));
    parts.forEach(([one, all]) => one.replaceChildren(...all.filter(part => part.localName === 'summary')));
    return axe.run(where ?? document, {resultTypes: ['violations', 'incomplete'], elementRef: true})
        .then(({violations, incomplete}) => {
            const contrast = rules => rules.filter(({id}) => id === 'color-contrast').flatMap(({nodes}) => nodes);
            const bad = contrast(violations), unjudged = contrast(incomplete).filter(node => !drawn(node.element));
            const unsettled = new Set([...bad, ...unjudged].map(node => node.element));
            const passed = unknown.filter(([one]) => !unsettled.has(one)).map(([, look]) => look);
            const found = violations.map(({id, impact, nodes}) => [id, impact, nodes.map(node => node.target)]);
            return [found, passed];
        })
        .finally(() => {
            parts.forEach(([one, all]) => one.replaceChildren(...all));
            words.forEach(([one, text]) => text.replaceWith(one));
        });
}"""
# Axe goes through the whole page even if it is asked about one element, so everything around that element is removed.
ALONE = """where => {
    let one = document.querySelector(where);
    for (; one.closest('article') && !one.matches('article'); one = one.parentElement)
        for (const other of [...one.parentElement.children]) if (other !== one) other.remove();
}"""
SETTLED = "new Promise(next => setTimeout(next, 400))"  # the theme looks anew at what scrolls a while after a resize


def violations(page, where: str | None = None, *, again: bool = False) -> list[str]:
    """Violations of any impact that axe finds on a page or in one of its elements, with the first places of each.

    With ``again``, only colours and sizes have changed since the last call, so axe skips what is folded away.
    """
    if where:
        page.evaluate(ALONE, where)
    known = [look for look, count in checked_looks.items() if count >= ENOUGH]
    unseen = page.evaluate_handle(MARK_SAME_LOOKS, [SAME_LOOK, known, where])
    found, passed = page.evaluate(RUN, [where, unseen, again])
    checked_looks.update(passed)
    return [f"{rule} ({impact}), {len(places)} times: {places[:3]}" for rule, impact, places in found]


def go_dark(page) -> None:
    """Have the night fall, as a system reports it, and wait until the page shows it."""
    show_in(page, "dark")


def show_in(page, scheme: str, **media: str) -> None:
    """Have the system report this colour scheme and these other settings, and wait until the page shows the scheme."""
    page.emulate_media(color_scheme=scheme, **media)
    page.locator(f"html[data-theme={scheme}]").wait_for()
    page.evaluate(SETTLED)


# A 1,280-pixel screen at 400 percent zoom.
ENLARGED = {"width": 320, "height": 256}


def violations_in_every_look(page, where: str) -> list[str]:
    """Violations in an element at 400 percent zoom, in light and dark, and at its usual size in forced colours."""
    page.set_viewport_size(ENLARGED)
    found = violations(page, where)
    go_dark(page)
    found += violations(page, where, again=True)
    page.set_viewport_size(USUAL_SIZE)
    show_in(page, "light", forced_colors="active")
    return found + violations(page, where, again=True)
