"""How well two markers agree: Cohen's kappa, unweighted and with quadratic weights."""

from collections.abc import Sequence


def cohens_kappa(first: Sequence[float], second: Sequence[float], *, weighted: bool = False) -> float:
    r"""Return :math:`\kappa = 1 - \sum w_{ij} o_{ij} / \sum w_{ij} e_{ij}` of the marks that two people gave.

    Here :math:`o_{ij}` is how often the first gave the i-th and the second the j-th mark, :math:`e_{ij}` is how often
    that would happen if they were independent, and :math:`w_{ij}` is 1 for different marks or, if ``weighted``,
    :math:`(i - j)^2`. If both always give the same single mark, the result is 1.

    Args:
        first: the marks of the first person.
        second: those of the second one, for the same answers.
        weighted: whether a larger difference counts more.

    Source: J. Cohen, A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.

    >>> cohens_kappa([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    marks = sorted({*first, *second})
    at = {mark: i for i, mark in enumerate(marks)}

    def cost(a: float, b: float) -> float:
        return float((at[a] - at[b]) ** 2 if weighted else a != b)

    observed = sum(map(cost, first, second)) / len(first)
    expected = sum(cost(a, b) for a in first for b in second) / len(first) ** 2
    return 1.0 if expected == 0 else 1 - observed / expected
