"""What a phone cuts off: whatever is too wide has to wrap, or scroll and show that it does."""

WIDTH = 390
# Formulas, code, printed results and tables that reach beyond the screen, or beyond a box that cuts them off, although
# nothing around them can be scrolled.
CUT = """[...document.querySelectorAll('.bd-article :is(math, pre, table, .picture svg)')].filter(one => {
    if (!one.checkVisibility()) return false;
    const right = one.getBoundingClientRect().right;
    for (let box = one; box !== document.documentElement; box = box.parentElement) {
        const overflow = getComputedStyle(box).overflowX, edge = box.getBoundingClientRect().right;
        if (['auto', 'scroll'].includes(overflow)) return edge > innerWidth + 1;
        if (['hidden', 'clip'].includes(overflow) && right > edge + 1) return true;
    }
    return right > innerWidth + 1;
}).map(one => `${one.tagName} ${one.textContent.slice(0, 80)}`)"""
# Pictures that reach beyond the screen, and boxes that scroll sideways, whose contents do not fade at the hidden edge.
UNHINTED = """[...document.querySelectorAll('.bd-article, .bd-article *')].filter(one => {
    if (!one.checkVisibility() || one.closest('svg, math')) return false;
    const style = getComputedStyle(one), beyond = one.clientWidth && one.scrollWidth > one.clientWidth + 1;
    const scrolls = beyond && ['auto', 'scroll'].includes(style.overflowX);
    const edges = one.matches('.picture') ? one.querySelector('svg').getBoundingClientRect() : {left: 0, right: 0};
    if (!scrolls && edges.left >= 0 && edges.right <= innerWidth) return false;
    const hidden = ['--fade-left', '--fade-right'].some(side => parseFloat(style.getPropertyValue(side)));
    return style.maskImage === 'none' || !hidden;
}).map(one => `${one.tagName} ${one.className} ${one.ariaLabel ?? one.textContent.trim().slice(0, 80)}`)"""
OPEN_ALL = "document.querySelectorAll('.bd-article details').forEach(one => { one.open = true })"
# A page draws its pictures for paper, and they stay; what it opened for paper closes again.
DRAW_PICTURES = "['beforeprint', 'afterprint'].forEach(name => dispatchEvent(new Event(name)))"
# A scroll timeline starts with a frame.
DRAWN = "new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)))"
CLOSED = "[...document.querySelectorAll('.bd-article details:not([open])')]"


def cut_off(page, what: str = CUT) -> list:
    """What is cut off, or what another expression finds, with everything open; afterwards, it is closed again."""
    page.evaluate(DRAW_PICTURES)
    closed = page.evaluate_handle(CLOSED)
    page.evaluate(OPEN_ALL)
    page.evaluate(DRAWN)
    found = page.evaluate(what)
    closed.evaluate("all => all.forEach(one => { one.open = false })")
    return found
