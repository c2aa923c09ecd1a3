"""The files that word vectors are kept in: word2vec's text and binary formats, and GloVe's.

- Text: a header line ``V D``; then a line per word: the word, a space, and D decimal numbers, with spaces between.
- GloVe's text: the same without the header.
- Binary: the same header line; then per word: the word, a space, and D little-endian float32. word2vec's own tool
  adds a newline, gensim does not.

In text the last D fields of a line are its numbers, so a word may hold spaces, as a few of GloVe's do. If the field
before them is a number too, this is treated as an error, not as part of the word; and so is a space at either end of
the word.
Files named ``.gz`` are compressed.

Dimensions: V words in the file, D width of a vector.
"""

import gzip
import os
import warnings
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Path = str | os.PathLike[str]
Vectors = NDArray[np.floating[Any]]
Entry = tuple[str, bytes, Any]  # its place in the file, the word, its D numbers


def read(
    fname: Path,
    *,
    binary: bool,
    encoding: str,
    unicode_errors: str,
    limit: int | None,
    datatype: DTypeLike,
    no_header: bool,
) -> tuple[list[str], Vectors]:
    """Return the words of a file and their vectors ``(V, D)``; see ``KeyedVectors.load_word2vec_format``."""
    dtype = _check_options(binary, limit, datatype, no_header)
    words, numbers, again = dict[str, None](), bytearray(), list[str]()
    with _open(fname, "rb") as file:
        promised, width = (None, _width(fname, file)) if no_header else _header(fname, file.readline())
        entries = _binary_entries(fname, file, width) if binary else _text_entries(fname, file, width, no_header)
        for place, raw, vector in islice(entries, limit):
            word = _decode(raw, encoding, unicode_errors, place)
            if word in words:
                again.append(f"{place}: {word!r}")
                continue
            words[word] = None
            numbers += np.asarray(vector, dtype).tobytes()  # in place: a large file is held in memory only once
    if promised is not None:
        _check_count(fname, len(words) + len(again), promised, limit)
    if again:
        warnings.warn(f"repeated words are skipped, {len(again)} in all, first {again[0]}", stacklevel=3)
    return list(words), np.frombuffer(numbers, dtype).reshape(len(words), width)


def write(fname: Path, words: Sequence[str], vectors: Vectors, *, binary: bool, write_header: bool) -> None:
    """Write words and vectors ``(V, D)`` to a file; see ``KeyedVectors.save_word2vec_format``."""
    if binary and not write_header:
        raise ValueError("binary is True and write_header False, but without the header nothing tells the width D")
    encoded = [_encode(word, binary) for word in words]  # before opening the file: an error leaves no half of it
    with _open(fname, "wb") as file:
        if write_header:
            file.write(b"%d %d\n" % vectors.shape)
        for word, row in zip(encoded, vectors, strict=True):
            # str of a NumPy number is the shortest decimal that reads back as the same number of its dtype.
            numbers = row.astype("<f4").tobytes() if binary else " ".join(map(str, row)).encode() + b"\n"
            file.write(word + b" " + numbers)


def _open(fname: Path, mode: str) -> IO[bytes]:
    opener: Any = gzip.open if os.fspath(fname).endswith(".gz") else open
    opened: IO[bytes] = opener(fname, mode)
    return opened


def _check_options(binary: bool, limit: int | None, datatype: DTypeLike, no_header: bool) -> np.dtype[Any]:
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}, but at least 1 word must be read (None reads all)")
    if binary and no_header:
        raise ValueError("binary and no_header are both True, but a binary file without a header does not tell D")
    dtype = np.dtype(datatype)
    if not np.issubdtype(dtype, np.floating):
        raise TypeError(f"datatype is {dtype}, but floating point is needed")
    return dtype


def _header(fname: Path, line: bytes) -> tuple[int, int]:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields) or int(fields[1]) < 1:
        raise ValueError(
            f"{fname}, line 1: the header has two whole numbers, V words and D >= 1 numbers each, got {_shown(line)} "
            "(GloVe's files have no header: no_header=True)"
        )
    return int(fields[0]), int(fields[1])


def _width(fname: Path, file: IO[bytes]) -> int:
    """Return D, the number of fields at the end of the first line that are numbers. Its first field is a word."""
    line = file.readline()
    file.seek(0)
    fields = _fields(line)
    width = 0
    while width + 1 < len(fields) and _is_number(fields[-1 - width]):
        width += 1
    if width == 0:
        raise ValueError(f"{fname}, line 1: a word and its numbers are needed, got {_shown(line)}")
    return width


def _text_entries(fname: Path, file: IO[bytes], width: int, no_header: bool) -> Iterator[Entry]:
    for number, line in enumerate(file, start=1 if no_header else 2):
        place, fields = f"{fname}, line {number}", _fields(line)
        if fields == [b""] and not file.read(64).strip():
            return  # an empty line ends some files
        word, values = b" ".join(fields[:-width]), fields[-width:]
        wanted = f"but a word and D={width} numbers are needed: {_shown(line)}"
        if len(fields) <= width or (len(fields) > width + 1 and _is_number(fields[-1 - width])):
            raise ValueError(f"{place}: {len(fields)} fields came, {wanted}")
        if word != word.strip(b" "):
            raise ValueError(f"{place}: the word {_shown(word)} begins or ends with a space, {wanted}")
        try:
            yield place, word, [float(value) for value in values]
        except ValueError:
            odd = next(value for value in values if not _is_number(value))
            raise ValueError(f"{place}: {_shown(odd)} is not a number, {wanted}") from None


def _binary_entries(fname: Path, file: IO[bytes], width: int) -> Iterator[Entry]:
    for number in count(start=1):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b""):
            word += byte
        word = word.lstrip(b"\n")  # the newline after the previous vector, if there is one
        if not word and not byte:
            return
        place, vector = f"{fname}, word {number}", file.read(4 * width)
        if len(vector) < 4 * width:
            raise EOFError(f"{place} ({_shown(word)}): the file ends before its D={width} numbers: it is truncated")
        yield place, bytes(word), np.frombuffer(vector, "<f4")


def _check_count(fname: Path, came: int, promised: int, limit: int | None) -> None:
    wanted = promised if limit is None else min(promised, limit)
    if came < wanted:
        raise EOFError(f"{fname}: the header promises V={promised} words, but the file ends after {came}")
    if came > wanted:
        raise ValueError(f"{fname}: the header promises V={promised} words, but {came} or more follow")


def _decode(word: bytes, encoding: str, errors: str, place: str) -> str:
    try:
        return word.decode(encoding, errors)
    except UnicodeDecodeError as error:
        error.reason += f" ({place}: choose another encoding, or unicode_errors='replace')"
        raise


def _encode(word: str, binary: bool) -> bytes:
    """Return the bytes of a word, after checking that :func:`read` will find the same word in them."""
    encoded = word.encode()
    if binary and (" " in word or word.startswith("\n")):
        raise ValueError(f"the word {word!r} has a space or starts with a newline: binary files cannot hold it")
    if not binary and ("\n" in word or (" " in word and _is_number(encoded.rpartition(b" ")[2]))):
        raise ValueError(f"the word {word!r} has a newline or ends in a number of its own: text files cannot hold it")
    if not binary and word != word.strip(" "):
        raise ValueError(f"the word {word!r} begins or ends with a space: text files cannot hold it")
    return encoded


def _fields(line: bytes) -> list[bytes]:
    return line.rstrip(b" \r\n").split(b" ")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(raw: bytes | bytearray) -> str:
    return repr(bytes(raw[:60])) + ("..." if len(raw) > 60 else "")
