"""Word vectors made from a text by counting which words occur near each other, without any training.

Dimensions: V words in the vocabulary, D width of a vector.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from attnlib.embeddings.keyed_vectors import KeyedVectors

Sentence = Sequence[str]
Table = NDArray[np.float64]


def small_town() -> list[list[str]]:
    """Return the sentences of the course's own text, scenes from a small town, as lists of lower-case words.

    Returns:
        About a thousand sentences.

    Source:
        Written for this course (``attnlib/embeddings/small_town.txt``), CC BY 4.0.

    Example:
        >>> small_town()[0]
        ['our', 'town', 'is', 'called', 'withy', 'bridge', 'and', 'it', 'is', 'very', 'small']
    """
    text = (files("attnlib.embeddings") / "small_town.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [re.findall(r"[a-z']+", line.lower()) for line in lines]


def ppmi_vectors(
    sentences: Iterable[Sentence], width: int = 24, *, window: int = 8, min_count: int = 3, smoothing: float = 0.75
) -> KeyedVectors:
    r"""Make word vectors by counting which words occur near each other, without any training.

    A word is described by how much more often than by chance it occurs within ``window`` words of every other one,

    .. math:: M_{ab} = \max\Bigl(0, \log \frac{P(a, b)}{P(a)\, P_s(b)}\Bigr)

    and the ``width`` strongest directions of that matrix are kept: :math:`M \approx U S V^\top`, vectors
    :math:`U \sqrt{S}`. All of them are then divided by one number, so that the components have mean square 1.

    Args:
        sentences: each a sequence of words; words in different sentences never count as neighbours.
        width: D, the number of components of a vector.
        window: the number of words on either side that count as near.
        min_count: rarer words are left out.
        smoothing: s, the power to which the counts of neighbours are raised: below 1, rare ones count less.

    Returns:
        Vectors ``(V, D)``, the most frequent word first. The same text gives the same similarities everywhere; the
        sign of a component depends on the linear algebra library.

    Raises:
        ValueError: fewer than ``width`` words occur ``min_count`` times, ``width`` or ``window`` is less than 1, or no
            two words occur near each other.

    Source:
        Levy, Goldberg and Dagan (2015), "Improving Distributional Similarity with Lessons Learned from Word
        Embeddings".

    Example:
        >>> ppmi_vectors(small_town()).most_similar("station", topn=1)[0][0]
        'passengers'
    """
    sentences = [list(sentence) for sentence in sentences]
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted((w for w, n in counts.items() if n >= min_count), key=lambda w: (-counts[w], w))
    if len(words) < width:
        raise ValueError(
            f"only {len(words)} words occur {min_count} times or more: too few for vectors of width {width}"
        )
    if width < 1 or window < 1:
        raise ValueError(f"width is {width} and window is {window}, but both must be at least 1")
    near = _near(sentences, words, window)
    if not near.any():
        raise ValueError("no two of the words that are kept occur near each other: there is nothing to count")
    u, s, _ = np.linalg.svd(_ppmi(near, smoothing))
    vectors = u[:, :width] * np.sqrt(s[:width])
    return KeyedVectors(words, vectors / np.sqrt(np.mean(vectors**2)))


def _near(sentences: Iterable[Sentence], words: Sequence[str], window: int) -> Table:
    """Count how often word b stands within ``window`` words of word a: ``(V, V)``."""
    index = {word: i for i, word in enumerate(words)}
    count = np.zeros((len(words), len(words)))
    for sentence in sentences:
        rows = [index.get(word, -1) for word in sentence]
        for i, a in enumerate(rows):
            for b in rows[i + 1 : i + 1 + window]:
                if a >= 0 and b >= 0:
                    count[a, b] += 1
                    count[b, a] += 1
    return count


def _ppmi(count: Table, smoothing: float) -> Table:
    """Return the positive pointwise mutual information of a table of counts, ``(V, V)``."""
    context = count.sum(axis=0) ** smoothing
    chance = count.sum(axis=1, keepdims=True) * (context / context.sum())
    ratio = np.divide(count, chance, out=np.zeros_like(count), where=count > 0)
    ppmi: Table = np.log(np.maximum(ratio, 1))
    return ppmi
