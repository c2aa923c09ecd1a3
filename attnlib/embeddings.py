"""Word vectors: a lookup table of words, and a way to make one from a text by counting.

Dimensions: V words in the vocabulary, D width of a vector.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from attnlib.similarity import cosine

Sentence = Sequence[str]
Vectors = NDArray[np.float64]


class KeyedVectors:
    """Words and their vectors: ``kv["train"]`` is ``(D,)``, ``kv[["the", "train"]]`` is ``(2, D)``.

    Attributes:
        words: the V words, in the order of the rows.
        vectors: ``(V, D)``.

    Raises:
        ValueError: words and vectors differ in number, or a word comes twice.
        KeyError: on lookup, a word is not in the vocabulary.

    Source:
        The names follow gensim's class of the same name.

    Example:
        >>> import numpy as np
        >>> kv = KeyedVectors(["cat", "dog"], np.array([[1.0, 0.0], [0.6, 0.8]]))
        >>> kv["dog"], "bird" in kv
        (array([0.6, 0.8]), False)
        >>> kv.most_similar("cat", topn=1)[0][0]
        'dog'
    """

    def __init__(self, words: Sequence[str], vectors: Vectors) -> None:
        if vectors.ndim != 2 or len(words) != len(vectors):
            raise ValueError(f"{len(words)} words need vectors of shape ({len(words)}, D), got {vectors.shape}")
        self.words = list(words)
        self.vectors = vectors
        self.index = {word: i for i, word in enumerate(self.words)}
        if len(self.index) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ValueError(f"the word {twice!r} comes more than once")

    def __getitem__(self, words: str | Sequence[str]) -> Vectors:
        rows = self._row(words) if isinstance(words, str) else [self._row(word) for word in words]
        found: Vectors = self.vectors[rows]
        return found

    def __contains__(self, word: str) -> bool:
        return word in self.index

    def __len__(self) -> int:
        return len(self.words)

    def most_similar(self, word: str, topn: int = 10) -> list[tuple[str, float]]:
        """Return the ``topn`` other words with the largest cosine to ``word``, and those cosines, best first."""
        cosines = cosine(self[[word]], self.vectors)[0]  # 0 for a vector of zeros
        order = [i for i in np.argsort(-cosines, kind="stable") if self.words[i] != word]
        return [(self.words[i], float(cosines[i])) for i in order[:topn]]

    def _row(self, word: str) -> int:
        try:
            return self.index[word]
        except KeyError:
            raise KeyError(f"{word!r} is not among the {len(self)} words of these vectors") from None


def small_town() -> list[list[str]]:
    """Return the sentences of the course's own text, scenes from a small town, as lists of lower-case words.

    Returns:
        About a thousand sentences.

    Source:
        Written for this course (``attnlib/data/small_town.txt``), CC BY 4.0.

    Example:
        >>> small_town()[0]
        ['our', 'town', 'is', 'called', 'withy', 'bridge', 'and', 'it', 'is', 'very', 'small']
    """
    text = (files("attnlib") / "data" / "small_town.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [re.findall(r"[a-z']+", line.lower()) for line in lines]


def ppmi_vectors(
    sentences: Iterable[Sentence], width: int = 24, *, window: int = 8, min_count: int = 3, smoothing: float = 0.75
) -> KeyedVectors:
    r"""Make word vectors by counting which words stand near which, without any training.

    A word is described by how much more often than chance it stands within ``window`` words of every other one,

    .. math:: M_{ab} = \max\Bigl(0, \log \frac{P(a, b)}{P(a)\, P_s(b)}\Bigr)

    and the ``width`` strongest directions of that matrix are kept: :math:`M \approx U S V^\top`, vectors
    :math:`U \sqrt{S}`. All of them are then divided by one number, so that the components have mean square 1.

    Args:
        sentences: each a sequence of words; words of different sentences never count as neighbours.
        width: D, the number of components of a vector.
        window: how many words to either side count as near.
        min_count: rarer words are left out.
        smoothing: s, the power to which the counts of neighbours are raised: below 1, rare ones count less.

    Returns:
        Vectors ``(V, D)``, the most frequent word first. The same text gives the same similarities everywhere; the
        sign of a component depends on the linear algebra library.

    Raises:
        ValueError: fewer than ``width`` words occur ``min_count`` times, ``width`` or ``window`` is less than 1, or no
            two words stand near each other.

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
        raise ValueError("no two of the words that are kept ever stand near each other: there is nothing to count")
    u, s, _ = np.linalg.svd(_ppmi(near, smoothing))
    vectors = u[:, :width] * np.sqrt(s[:width])
    return KeyedVectors(words, vectors / np.sqrt(np.mean(vectors**2)))


def _near(sentences: Iterable[Sentence], words: Sequence[str], window: int) -> Vectors:
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


def _ppmi(count: Vectors, smoothing: float) -> Vectors:
    """Positive pointwise mutual information of a table of counts, ``(V, V)``."""
    context = count.sum(axis=0) ** smoothing
    chance = count.sum(axis=1, keepdims=True) * (context / context.sum())
    ratio = np.divide(count, chance, out=np.zeros_like(count), where=count > 0)
    ppmi: Vectors = np.log(np.maximum(ratio, 1))
    return ppmi
