"""A lookup table of words and their vectors.

Dimensions: V words in the vocabulary, D width of a vector.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnlib._arrays import check_int
from attnlib.embeddings import word2vec_format
from attnlib.embeddings.word2vec_format import Path, Vectors
from attnlib.similarity import cosine

ROWS_PER_BLOCK = 2**10  # rows at a time, which stay in a core's cache


class KeyedVectors:
    """Words and their vectors: ``kv["train"]`` is ``(D,)``, ``kv[["the", "train"]]`` is ``(2, D)``.

    Args:
        words: V different words.
        vectors: ``(V, D)``, floating point, one row per word.

    Attributes:
        index_to_key: the V words, in the order of the rows.
        key_to_index: the row of each word.
        vectors: ``(V, D)``.

    Raises:
        TypeError: the vectors are not a floating point array, or a lookup is for neither a word nor
            a list of words.
        ValueError: words and vectors differ in number, D is 0, or a word occurs twice.
        KeyError: on lookup, a word is not in the vocabulary.

    Source:
        The names and the file formats are those of gensim's class of the same name.

    Example:
        >>> import numpy as np
        >>> kv = KeyedVectors(["cat", "dog"], np.array([[1.0, 0.0], [0.6, 0.8]]))
        >>> kv["dog"], "bird" in kv
        (array([0.6, 0.8]), False)
        >>> kv.most_similar("cat", topn=1)[0][0]
        'dog'
    """

    def __init__(self, words: Sequence[str], vectors: Vectors) -> None:
        if not isinstance(vectors, np.ndarray) or not np.issubdtype(vectors.dtype, np.floating):
            kind = getattr(vectors, "dtype", type(vectors).__name__)
            raise TypeError(f"vectors are {kind}, but a NumPy array of floating point is needed")
        if vectors.ndim != 2 or len(words) != len(vectors) or vectors.shape[1] == 0:
            raise ValueError(f"{len(words)} words need vectors of shape ({len(words)}, D >= 1), got {vectors.shape}")
        self.index_to_key = list(words)
        self.vectors = vectors
        self.key_to_index = {word: i for i, word in enumerate(self.index_to_key)}
        if len(self.key_to_index) != len(self.index_to_key):
            twice = next(word for word, count in Counter(self.index_to_key).items() if count > 1)
            raise ValueError(f"the word {twice!r} occurs more than once")

    @classmethod
    def load_word2vec_format(
        cls,
        fname: Path,
        *,
        binary: bool = False,
        encoding: str = "utf8",
        unicode_errors: str = "strict",
        limit: int | None = None,
        datatype: DTypeLike = np.float32,
        no_header: bool = False,
    ) -> Self:
        r"""Read vectors from a file in word2vec's text or binary format, or in GloVe's (``no_header=True``).

        If a word occurs again, its later vector is skipped, with a warning.

        Args:
            fname: the file; its name ends in ``.gz`` if it is compressed.
            binary: whether it is in the binary format.
            encoding: the encoding of the words.
            unicode_errors: what to do with bytes that do not fit the encoding: ``"strict"`` refuses them,
                ``"replace"`` and ``"ignore"`` do what their names say.
            limit: read that many words at most (files have the most frequent first); ``None`` reads all.
            datatype: the dtype of the vectors.
            no_header: whether the text lacks its first line ``V D``. D is then taken from the first line.

        Returns:
            The vectors ``(V, D)``, in the order of the file.

        Raises:
            EOFError: the file ends before the V words that its header promises.
            ValueError: a line does not hold a word and D numbers, its word begins or ends with a space, the header is
                invalid or promises fewer words than there are, a word does not fit the encoding, ``limit`` is less than
                1, or both ``binary`` and ``no_header`` are set.
            TypeError: ``datatype`` is not floating point.

        Source:
            Mikolov et al. (2013), the tool word2vec; Pennington, Socher and Manning (2014), "GloVe: Global Vectors for
            Word Representation".

        Example:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = pathlib.Path(folder, "two.txt")
            ...     _ = file.write_text("2 3\ncat 0.5 0 1\ndog 0.25 0 2\n")
            ...     KeyedVectors.load_word2vec_format(file)["dog"]
            array([0.25, 0.  , 2.  ], dtype=float32)
        """
        words, vectors = word2vec_format.read(
            fname,
            binary=binary,
            encoding=encoding,
            unicode_errors=unicode_errors,
            limit=limit,
            datatype=datatype,
            no_header=no_header,
        )
        return cls(words, vectors)

    def save_word2vec_format(self, fname: Path, *, binary: bool = False, write_header: bool = True) -> None:
        r"""Write the vectors to a file as gensim does, the words in utf-8, in the order of the rows.

        Args:
            fname: the file; it is compressed if its name ends in ``.gz``.
            binary: write float32 instead of decimals. Decimals are read back exactly; float32 loses half the digits
                of float64.
            write_header: whether the first line ``V D`` is written; GloVe's files have none.

        Raises:
            ValueError: a word that could not be read back: in text, one with a newline, with a number after a space or
                with a space at either end; in binary, one with a space or with a newline in front; or ``binary``
                without a header.

        Example:
            >>> import pathlib, tempfile
            >>> import numpy as np
            >>> kv = KeyedVectors(["cat", "dog"], np.array([[0.5, 0.0], [0.25, 1e-7]]))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = pathlib.Path(folder, "two.txt")
            ...     kv.save_word2vec_format(file)
            ...     file.read_text()
            '2 2\ncat 0.5 0.0\ndog 0.25 1e-07\n'
        """
        word2vec_format.write(fname, self.index_to_key, self.vectors, binary=binary, write_header=write_header)

    @property
    def vector_size(self) -> int:
        """D, the width of a vector."""
        return int(self.vectors.shape[1])

    def __getitem__(self, words: str | Sequence[str]) -> Vectors:
        several = isinstance(words, Iterable) and not isinstance(words, str)
        rows = [self._row(word) for word in words] if several else self._row(words)
        found: Vectors = self.vectors[rows]
        return found

    def __contains__(self, word: str) -> bool:
        return word in self.key_to_index

    def __len__(self) -> int:
        return len(self.index_to_key)

    def similarity(self, w1: str, w2: str) -> float:
        """Return the cosine of the angle between the vectors of two words; 0 if one is a vector of zeros."""
        return float(cosine(self[[w1]], self[[w2]])[0, 0])

    def most_similar(self, word: str, topn: int = 10) -> list[tuple[str, float]]:
        """Return the ``topn`` other words with the largest cosine to ``word``, and those cosines, best first.

        Of words with the same cosine, the one that comes first in the table is first.
        """
        topn, own = check_int("topn", topn, 0), self._row(word)
        blocks = [self.vectors[start : start + ROWS_PER_BLOCK] for start in range(0, len(self), ROWS_PER_BLOCK)]
        cosines = np.concatenate([_cosines(self.vectors[own], block) for block in blocks])
        order = [i for i in _best(cosines, topn + 1) if i != own]
        return [(self.index_to_key[i], float(cosines[i])) for i in order[:topn]]

    def get_mean_vector(
        self,
        keys: Sequence[str],
        weights: ArrayLike | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Vectors:
        r"""Average the vectors of those words of a sentence that are in the vocabulary.

        .. math:: m = \sum_i w_i\, \frac{v_i}{\lVert v_i \rVert} \Big/ \sum_i \lvert w_i \rvert

        A word that occurs twice counts twice. A vector of zeros has no direction and is left unchanged. If no word is
        known, or all weights are 0, the mean is a vector of zeros.

        Args:
            keys: the words, at least one.
            weights: one number for each word, known or not; all 1 by default.
            pre_normalize: whether each vector is divided by its length first, as in the formula.
            post_normalize: whether the mean is divided by its length.
            ignore_missing: whether words that are not in the vocabulary are left out.

        Returns:
            m, ``(D,)``, in the dtype of the vectors. For many sentences:
            ``np.stack([kv.get_mean_vector(words) for words in sentences])``.

        Raises:
            TypeError: ``keys`` is one string, or a key is not a string.
            ValueError: there are no keys, or not as many weights as keys.
            KeyError: a word is not in the vocabulary, and ``ignore_missing`` is False.

        Source:
            gensim's method of the same name, with the same defaults.

        Example:
            >>> import numpy as np
            >>> kv = KeyedVectors(["cat", "dog"], np.array([[2.0, 0.0], [0.0, 1.0]]))
            >>> kv.get_mean_vector(["the", "cat", "dog"])
            array([0.5, 0.5])
            >>> kv.get_mean_vector(["the", "cat", "dog"], pre_normalize=False)
            array([1. , 0.5])
        """
        w = _weights(keys, weights)
        known = [i for i, word in enumerate(keys) if not ignore_missing or word in self]
        v, w = self[[keys[i] for i in known]].astype(np.float64), w[known]
        if pre_normalize:
            v = _directions(v)
        total = np.abs(w).sum()
        mean = w @ v / (total if total else 1.0)
        if post_normalize:
            mean = _directions(mean)
        return mean.astype(self.vectors.dtype)

    def _row(self, word: object) -> int:
        if not isinstance(word, str):
            raise TypeError(f"{word!r} is not a word: a string is needed, or a list of strings to look up several")
        try:
            return self.key_to_index[word]
        except KeyError:
            raise KeyError(f"{word!r} is not among the {len(self)} words of these vectors") from None


def _cosines(v: Vectors, vectors: Vectors) -> Vectors:
    """Return the cosines of one vector with many, 0 where one is zeros, as :func:`cosine` does, but far faster.

    In float64, squares of float32 and float16 numbers neither overflow nor vanish, so dividing by lengths is enough.
    """
    if vectors.dtype.itemsize > 4:
        return np.asarray(cosine(v[None], vectors)[0])
    wide, w = vectors.astype(np.float64), v.astype(np.float64)
    length = np.sqrt(np.einsum("vd,vd->v", wide, wide) * (w @ w))
    return np.asarray(wide @ w / np.where(length == 0, 1, length), vectors.dtype)


def _best(cosines: Vectors, n: int) -> NDArray[np.intp]:
    """Return the indices of the n largest, or more, in stable descending order, nan last; only those are sorted."""
    least = np.partition(-cosines, min(n, cosines.size) - 1)[min(n, cosines.size) - 1]
    among = np.flatnonzero(~(-cosines > least))
    order: NDArray[np.intp] = among[np.argsort(-cosines[among], kind="stable")]
    return order


def _weights(keys: Sequence[str], weights: ArrayLike | None) -> NDArray[np.float64]:
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise TypeError(f"keys are {keys!r}, but a list of words is needed: split a sentence into its words first")
    if len(keys) == 0:
        raise ValueError("keys are empty, but the mean needs at least one word")
    w = np.ones(len(keys)) if weights is None else np.asarray(weights, np.float64)
    if w.shape != (len(keys),):
        raise ValueError(f"weights have shape {w.shape}, but there are {len(keys)} keys: ({len(keys)},) is needed")
    return w


def _directions(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide vectors ``(..., D)`` by their lengths; a vector of zeros is unchanged."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    directions: NDArray[Any] = v / np.where(length == 0, 1.0, length)
    return directions
