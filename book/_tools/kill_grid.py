"""A table of mistakes, and a test whose inputs a reader chooses, which catches some of them.

Every choice is computed while the book is built, with the mistakes that the checks know. The page needs no script:
the choices are radio buttons, and the style sheet in the element shows the part of the table that belongs to them.
"""

from collections.abc import Mapping
from html import escape
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.exercise import Mistake

MISTAKES = (
    *("no-scale", "scaled-by-width", "scaled-by-keys", "scaled-by-queries", "scaled-by-value-width"),
    *("softmax-over-queries", "softmax-over-all", "softmax-from-front", "width-from-front", "not-normalised"),
    *("hard", "uniform", "reversed-sign", "keys-ask", "keys-reshaped", "weights-transposed", "causal-unasked"),
    *("overflow", "global-shift", "mask-ignored", "mask-inverted", "masked-after-softmax"),
    *("causal-ignored", "causal-without-self", "causal-at-the-end"),
)
CHOICES: dict[str, tuple[str, ...]] = {
    "Sizes": ("T = S = D = D_v = 4", "T = 3, S = 5, D = 4, D_v = 2"),
    "Batch": ("one sentence", "a batch of 2"),
    "Scores": ("all zero", "of order 1", "in the thousands"),
    "Mask": ("none", "boolean", "causal"),
}
CAPTION = "Mistakes of scaled dot-product attention, and whether the test with these inputs catches them"
TAG = "attention-mutants"  # like those of the explorers, so that its many words are neither timed nor searched
START = (0, 0, 1, 0)  # what is chosen at first, as indices
Chosen = tuple[int, ...]


def inputs(chosen: Chosen) -> tuple[list[NDArray[np.float64]], dict[str, Any]]:
    """Return queries, keys and values, and the options, of the test that is chosen."""
    sizes, batch, scores, mask = chosen
    T, S, D, D_v = ((4, 4, 4, 4), (3, 5, 4, 2))[sizes]
    rng = np.random.default_rng(0)
    lead = (2,) if batch else ()
    arrays = [rng.normal(size=(*lead, n, width)) for n, width in ((T, D), (S, D), (S, D_v))]
    arrays[0] = arrays[0] * (0, 1, 3000)[scores]
    allowed = rng.random((T, S)) < 0.6
    allowed[np.arange(T), np.arange(T)] = True  # every query may attend to something
    return arrays, ({}, {"attn_mask": allowed}, {"is_causal": True})[mask]


def catches(mistake: Mistake, chosen: Chosen) -> bool:
    """Tell whether the result of a mistake differs from the right one, or whether it fails."""
    arrays, options = inputs(chosen)
    reference: Any = attnlib.scaled_dot_product_attention
    want = reference(*arrays, **options)
    try:
        with np.errstate(all="ignore"):
            got = mistake.implementation(*arrays, **options)
    except (ValueError, IndexError):
        return True
    return not (np.shape(got) == want.shape and np.allclose(got, want, atol=1e-5))


def states() -> list[Chosen]:
    """Return every combination of the choices, as indices."""
    return list(product(*(range(len(options)) for options in CHOICES.values())))


class KillGrid:
    """The element. ``caught`` says, for each combination of choices, of which mistakes the test catches which."""

    def __init__(self) -> None:
        known = {mistake.id: mistake for mistake in CATALOGUE["scaled_dot_product_attention"].mistakes}
        self.titles = [known[name].title for name in MISTAKES]
        self.caught: Mapping[Chosen, list[bool]] = {
            chosen: [catches(known[name], chosen) for name in MISTAKES] for chosen in states()
        }

    def survivors(self, *chosen: int) -> int:
        """Return how many mistakes survive the test that is chosen."""
        return self.caught[chosen].count(False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = "\n".join(f"{_described(chosen)}: {self.survivors(*chosen)} survive" for chosen in self.caught)
        return {"text/html": self._html(), "text/plain": text}

    def _html(self) -> str:
        bodies = "".join(self._body(chosen) for chosen in self.caught)
        head = "<thead><tr><th scope='col'>Mistake</th><th scope='col'>The test</th></tr></thead>"
        table = f"<table><caption>{CAPTION}</caption>{head}{bodies}</table>"
        return f"<{TAG} class='kill-grid'>{_style()}{_controls()}{table}</{TAG}>"

    def _body(self, chosen: Chosen) -> str:
        rows = "".join(
            f"<tr{'' if caught else ' class=survives'}><th scope='row'>{escape(title)}</th>"
            f"<td>{'catches it' if caught else 'lets it pass'}</td></tr>"
            for title, caught in zip(self.titles, self.caught[chosen], strict=True)
        )
        count = f"{self.survivors(*chosen)} of {len(self.titles)} mistakes survive"
        return f"<tbody class='{_name(chosen)}'><tr><th scope='row'>{count}</th><td></td></tr>{rows}</tbody>"


def _name(chosen: Chosen) -> str:
    return "s" + "".join(map(str, chosen))


def _described(chosen: Chosen) -> str:
    return ", ".join(options[i] for options, i in zip(CHOICES.values(), chosen, strict=True))


def _controls() -> str:
    groups = []
    for n, (legend, options) in enumerate(CHOICES.items()):
        radios = "".join(
            f"<label><input type='radio' name='kill-grid-{n}' id='kill-grid-{n}-{i}'"
            f"{' checked' if START[n] == i else ''}> {escape(option)}</label>"
            for i, option in enumerate(options)
        )
        groups.append(f"<fieldset><legend>{legend}</legend>{radios}</fieldset>")
    return "".join(groups)


def _style() -> str:
    """Return the style sheet, which shows the part of the table that belongs to the choices."""
    shown = "".join(
        f".kill-grid{''.join(f':has(#kill-grid-{n}-{i}:checked)' for n, i in enumerate(chosen))} "
        f".{_name(chosen)}{{display:table-row-group}}"
        for chosen in states()
    )
    rules = (
        ".kill-grid{display:block}"
        ".kill-grid fieldset{display:inline-block;vertical-align:top;margin:0 .5rem .5rem 0;padding:.2rem .7rem .4rem;"
        "border:1px solid currentColor;border-radius:.3rem}"
        ".kill-grid legend{float:none;width:auto;margin:0;padding:0 .3rem;font-size:1rem;font-weight:bold}"
        ".kill-grid label{display:block}"
        ".kill-grid table{border-collapse:collapse;margin:0}"
        ".kill-grid th,.kill-grid td{padding:.1rem .8rem .1rem 0;text-align:left;font-weight:normal}"
        ".kill-grid caption{caption-side:top;text-align:left;font-style:italic}"
        ".kill-grid tbody tr:first-child th,.kill-grid .survives *{font-weight:bold}"
        ".kill-grid tbody{display:none}@media print{.kill-grid fieldset{display:none}}"
        f"@supports not selector(:has(a)){{.kill-grid .{_name(START)}{{display:table-row-group}}}}"
    )
    return f"<style>{rules}{shown}</style>"
