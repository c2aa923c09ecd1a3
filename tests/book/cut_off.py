"""What a phone of 390 pixels cuts off: whatever is too wide has to wrap or scroll."""

WIDTH = 390
# Formulas, code, printed results and tables that reach beyond the screen, or beyond a box that cuts them off, although
# nothing around them can be scrolled.
CUT = """[...document.querySelectorAll('.bd-article :is(mjx-math, pre, table, .picture svg)')].filter(one => {
    if (!one.checkVisibility()) return false;
    const right = one.getBoundingClientRect().right;
    for (let box = one; box !== document.documentElement; box = box.parentElement) {
        const overflow = getComputedStyle(box).overflowX, edge = box.getBoundingClientRect().right;
        if (['auto', 'scroll'].includes(overflow)) return edge > innerWidth + 1;
        if (['hidden', 'clip'].includes(overflow) && right > edge + 1) return true;
    }
    return right > innerWidth + 1;
}).map(one => `${one.tagName} ${one.textContent.slice(0, 80)}`)"""
OPEN_ALL = "document.querySelectorAll('.bd-article details').forEach(one => { one.open = true })"
CLOSED = "[...document.querySelectorAll('.bd-article details:not([open])')]"


def cut_off(page) -> list[str]:
    """What is cut off where everything is open; what was closed is closed again."""
    closed = page.evaluate_handle(CLOSED)
    page.evaluate(OPEN_ALL)
    found = page.evaluate(CUT)
    closed.evaluate("all => all.forEach(one => { one.open = false })")
    return found
