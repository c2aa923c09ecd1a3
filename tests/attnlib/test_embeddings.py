"""Word vectors: a lookup that says what is missing, files as gensim has them, and counting as by hand."""

import gzip
import json
import math
import re
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from backends import examples
from hypothesis import given
from scipy.linalg import sqrtm

from attnlib.embeddings import KeyedVectors, ppmi_vectors, small_town

TOY = [s.split() for s in ("a b c", "a b", "b c d", "d a", "c a b d", "d d c")]


@pytest.fixture(scope="module")
def town():
    return ppmi_vectors(small_town())


def ppmi_by_hand(sentences, window, smoothing):
    """PPMI from the definition, pair by pair, with dictionaries."""
    pairs = Counter()
    for sentence in sentences:
        for i, a in enumerate(sentence):
            for j, b in enumerate(sentence):
                if i != j and abs(i - j) <= window:
                    pairs[a, b] += 1
    words = sorted({a for a, _ in pairs}, key=lambda w: (-sum(s.count(w) for s in sentences), w))
    total = sum(pairs.values())
    row = {a: sum(n for (x, _), n in pairs.items() if x == a) for a in words}
    smoothed = {b: sum(n for (_, y), n in pairs.items() if y == b) ** smoothing for b in words}
    table = np.zeros((len(words), len(words)))
    for (a, b), n in pairs.items():
        chance = row[a] / total * smoothed[b] / sum(smoothed.values())
        table[words.index(a), words.index(b)] = max(0.0, math.log(n / total / chance))
    return words, table


@pytest.mark.parametrize("window", [1, 2, 8])
def test_vectors_of_full_width_have_the_dot_products_of_the_table_counted_by_hand(window):
    words, table = ppmi_by_hand(TOY, window, 0.75)
    vectors = ppmi_vectors(TOY, len(words), window=window, min_count=1)
    assert vectors.index_to_key == words
    wanted = np.real(sqrtm(table @ table.T))  # U S U^T, where table = U S V^T
    got = vectors.vectors @ vectors.vectors.T
    scale = np.trace(wanted) / np.trace(got)  # the one number that all vectors are divided by
    np.testing.assert_allclose(scale * got, wanted, atol=1e-6)


def test_components_have_mean_square_1(town):
    assert np.mean(town.vectors**2) == pytest.approx(1)


def test_the_same_text_gives_the_same_similarities(town):
    again = ppmi_vectors(sentence for sentence in small_town())
    np.testing.assert_array_equal(again.vectors @ again.vectors.T, town.vectors @ town.vectors.T)


def test_station_goes_with_what_is_found_at_a_station(town):
    near = {word for word, _ in town.most_similar("station", topn=6)}
    assert near & {"platform", "passengers", "railway"}


def test_rare_words_are_left_out(town):
    counts = Counter(word for sentence in small_town() for word in sentence)
    assert set(town.index_to_key) == {word for word, count in counts.items() if count >= 3}


def test_a_text_too_small_for_the_width_is_refused():
    with pytest.raises(ValueError, match="only 4 words occur 1 times or more: too few for vectors of width 5"):
        ppmi_vectors(TOY, 5, min_count=1)


def test_a_list_of_words_gives_rows_in_its_order():
    kv = KeyedVectors(["x", "y", "z"], np.eye(3))
    np.testing.assert_array_equal(kv[["z", "x", "z"]], np.eye(3)[[2, 0, 2]])
    assert len(kv) == 3


def test_an_unknown_word_is_named():
    with pytest.raises(KeyError, match="'bird' is not among the 1 words"):
        KeyedVectors(["x"], np.eye(1))["bird"]


@pytest.mark.parametrize(
    ("words", "vectors", "said"),
    [
        (["x", "y"], np.eye(3), r"2 words need vectors of shape \(2, D >= 1\), got \(3, 3\)"),
        (["x", "y"], np.ones((2, 0)), r"shape \(2, D >= 1\), got \(2, 0\)"),
        (["x", "x"], np.eye(2), "'x' occurs more than once"),
    ],
)
def test_words_and_vectors_that_do_not_fit_are_refused(words, vectors, said):
    with pytest.raises(ValueError, match=said):
        KeyedVectors(words, vectors)


@pytest.mark.parametrize("vectors", [np.eye(2, dtype=int), [[1.0], [2.0]]], ids=["int64", "list"])
def test_vectors_that_are_no_array_of_floats_are_refused(vectors):
    with pytest.raises(TypeError, match=r"vectors are (int64|list), but a NumPy array of floating point"):
        KeyedVectors(["x", "y"], vectors)


def test_the_most_similar_are_ordered_by_cosine_and_leave_out_the_word_itself():
    kv = KeyedVectors(["a", "near", "far", "against"], np.array([[1, 0], [9, 1], [1, 1], [-1, 0.0]]))
    assert [word for word, _ in kv.most_similar("a")] == ["near", "far", "against"]
    assert kv.most_similar("a", topn=1)[0][1] == pytest.approx(9 / math.sqrt(82))


def test_only_words_and_lists_of_words_are_looked_up():
    kv = KeyedVectors(["the", "cat"], np.eye(2))
    for key in (0, None, ["the", 0], [["the"]]):
        with pytest.raises(
            TypeError, match=r"is not a word: a string is needed, or a list of strings to look up several"
        ):
            kv[key]
    with pytest.raises(TypeError, match=r"\['the', 'cat'\] is not a word: a string is needed"):
        kv.most_similar(["the", "cat"])
    with pytest.raises(TypeError, match=r"0 is not a word"):
        kv.similarity("the", 0)
    for topn, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="topn is"):
            kv.most_similar("the", topn=topn)


@pytest.mark.parametrize("topn", [0, 1, 2, 7, 4998, 4999, 6000])
@pytest.mark.parametrize("word", ["0", "2500", "4999"])
def test_the_most_similar_are_the_first_of_all_words_sorted_and_ties_keep_their_order(topn, word):
    rng = np.random.default_rng(3)
    table = np.array([[1, 0], [0, 1], [-2, 0], [0, -0.5], [0, 0]], np.float32)[rng.integers(0, 5, 5000)]
    kv = KeyedVectors([str(i) for i in range(5000)], table)
    v = table[int(word)].astype(float)
    lengths = np.linalg.norm(table.astype(float), axis=1) * np.linalg.norm(v)
    cosines = table @ v / np.where(lengths == 0, 1, lengths)
    wanted = sorted((-c, i) for i, c in enumerate(cosines) if str(i) != word)[:topn]
    assert [name for name, _ in kv.most_similar(word, topn)] == [str(i) for _, i in wanted]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", ["tiny", "1", "max"])
def test_cosines_depend_on_no_length_however_small_or_large(dtype, size):
    factor = {"tiny": np.finfo(dtype).tiny, "1": 1, "max": np.finfo(dtype).max / 8}[size]
    kv = KeyedVectors(["a", "b", "c"], np.array([[4, 3], [3, 4], [-4, 3]], dtype) * dtype(factor))
    got = kv.most_similar("a")
    assert [word for word, _ in got] == ["b", "c"]
    np.testing.assert_allclose([c for _, c in got], [24 / 25, -7 / 25], rtol=4 * np.finfo(dtype).eps)


def test_vectors_of_nan_are_the_least_similar():
    kv = KeyedVectors(["a", "nan", "against", "near"], np.array([[1, 0], [np.nan, 1], [-1, 0], [2, 1]]))
    for topn in (1, 2, 3):
        assert [word for word, _ in kv.most_similar("a", topn)] == ["near", "against", "nan"][:topn]


def test_vectors_that_are_changed_are_compared_as_they_are_now():
    kv = KeyedVectors(["a", "b", "c"], np.array([[1, 0], [1, 1], [0, 1.0]]))
    assert kv.most_similar("a", topn=1)[0][0] == "b"
    kv.vectors[2] = [3, 0]
    assert kv.most_similar("a", topn=1) == [("c", 1.0)]


def test_a_vector_of_zeros_has_cosine_zero_with_every_word():
    kv = KeyedVectors(["a", "b", "zero"], np.array([[1.0, 0], [0.6, 0.8], [0, 0]]))
    assert kv.most_similar("a") == [("b", pytest.approx(0.6)), ("zero", 0.0)]
    assert [cosine for _, cosine in kv.most_similar("zero")] == [0, 0]


def test_words_with_the_same_neighbours_have_the_same_direction():
    # x and y stand beside p and q alike; z stands beside r alone.
    kv = ppmi_vectors([["p", "x", "q"], ["p", "y", "q"], ["r", "z", "r"]] * 3, width=4, window=1)
    assert kv.most_similar("x", topn=1) == [("y", pytest.approx(1))]
    assert dict(kv.most_similar("x"))["z"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("sentences", "options", "said"),
    [
        (TOY, {"width": 0}, "width is 0"),
        (TOY, {"window": 0}, "window is 0"),
        ([["a"], ["b"]], {}, "nothing to count"),
    ],
)
def test_what_cannot_be_counted_is_refused(sentences, options, said):
    with pytest.raises(ValueError, match=said):
        ppmi_vectors(sentences, **{"width": 2, "min_count": 1} | options)


# Similarity and means


def test_the_similarity_of_two_words_is_the_cosine_of_their_angle():
    kv = KeyedVectors(["east", "north", "northeast", "zero"], np.array([[2.0, 0], [0, 3], [5, 5], [0, 0]]))
    assert kv.similarity("east", "north") == 0
    assert kv.similarity("east", "northeast") == pytest.approx(math.sqrt(0.5))
    assert kv.similarity("zero", "east") == 0
    assert type(kv.similarity("east", "north")) is float


TRIANGLE = KeyedVectors(["x", "y", "z", "zero"], np.array([[3, 4], [0, 2], [-1, 0], [0, 0]], np.float32))
MEANS = {
    "directions": (["x", "y"], {}, [0.3, 0.9]),
    "vectors_as_they_are": (["x", "y"], {"pre_normalize": False}, [1.5, 3.0]),
    "a_direction_of_directions": (["x", "y"], {"post_normalize": True}, [1 / math.sqrt(10), 3 / math.sqrt(10)]),
    "a_word_that_comes_twice": (["x", "x", "y"], {}, [0.4, 2.6 / 3]),
    "weights": (["x", "y"], {"weights": [2, 1], "pre_normalize": False}, [2.0, 10 / 3]),
    "a_negative_weight_divides_by_its_size": (["x", "y"], {"weights": [2, -1], "pre_normalize": False}, [2.0, 2.0]),
    "the_weight_of_an_unknown_word_goes_with_it": (["bird", "x", "y"], {"weights": [9, 1, 1]}, [0.3, 0.9]),
    "an_unknown_word_does_not_dilute": (["x", "bird"], {"pre_normalize": False}, [3.0, 4.0]),
    "a_vector_of_zeros_counts": (["x", "zero"], {}, [0.3, 0.4]),
    "no_known_word": (["bird", "fish"], {"post_normalize": True}, [0, 0]),
    "no_weight": (["x", "y"], {"weights": [0, 0]}, [0, 0]),
}


@pytest.mark.parametrize(("keys", "options", "mean"), MEANS.values(), ids=MEANS)
def test_the_mean_of_a_sentence_is_that_worked_out_by_hand(keys, options, mean):
    got = TRIANGLE.get_mean_vector(keys, **options)
    np.testing.assert_allclose(got, mean, rtol=1e-6)
    assert got.dtype == np.float32


MEAN_ERRORS = {
    "a_missing_word": (["x", "bird"], {"ignore_missing": False}, KeyError, "'bird' is not among the 4 words"),
    "no_words": ([], {}, ValueError, "keys are empty"),
    "a_string": ("xy", {}, TypeError, "keys are 'xy', but a list of words is needed"),
    "a_number": ([0], {}, TypeError, r"keys are \[0\]"),
    "weights": (["x", "y"], {"weights": [1]}, ValueError, r"weights have shape \(1,\), but there are 2 keys: \(2,\)"),
}


@pytest.mark.parametrize(("keys", "options", "exception", "said"), MEAN_ERRORS.values(), ids=MEAN_ERRORS)
def test_a_mean_of_what_is_no_sentence_is_refused(keys, options, exception, said):
    with pytest.raises(exception, match=said):
        TRIANGLE.get_mean_vector(keys, **options)


# Files. Those in data/ were written by gensim (data/make_gensim_files.py).

DATA = Path(__file__).parent / "data"
WORDS = ["the", "naïve", "猫", "</s>"]
VECTORS = np.array([[1, 0.1, -2.5e-7], [1e10, 3, 1 / 3], [0, -0.0, 123456.789], [-1e-38, 0.5, 2]], np.float32)
GENSIM = KeyedVectors(WORDS, VECTORS)
FORMATS = {
    "gensim.txt": ({}, {}),
    "gensim.txt.gz": ({}, {}),
    "gensim.bin": ({"binary": True}, {"binary": True}),
    "gensim_no_header.txt": ({"no_header": True}, {"write_header": False}),
}
each_format = pytest.mark.parametrize("name", FORMATS)


def loaded(path, content, **options):
    """The vectors of a file with these bytes."""
    path.write_bytes(content)
    return KeyedVectors.load_word2vec_format(path, **options)


def saved(path, kv, **options):
    """The bytes of the file that the vectors are written to."""
    kv.save_word2vec_format(path, **options)
    return path.read_bytes()


def floats(*numbers):
    """Numbers as a binary file has them."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


def assert_same(one, other):
    assert one.index_to_key == other.index_to_key
    assert one.vectors.dtype == other.vectors.dtype
    assert one.vectors.tobytes() == other.vectors.tobytes()


@each_format
def test_files_of_gensim_are_read(name):
    assert_same(KeyedVectors.load_word2vec_format(DATA / name, **FORMATS[name][0]), GENSIM)


@each_format
def test_files_are_written_byte_for_byte_as_gensim_writes_them(tmp_path, name):
    content = saved(tmp_path / name, GENSIM, **FORMATS[name][1])
    if name.endswith(".gz"):  # whose own header holds the time
        assert gzip.decompress(content) == gzip.decompress((DATA / name).read_bytes())
    else:
        assert content == (DATA / name).read_bytes()


@pytest.mark.parametrize("mean", json.loads((DATA / "gensim_means.json").read_text(encoding="utf-8")), ids=str)
def test_means_are_those_of_gensim(mean):
    got = GENSIM.get_mean_vector(mean["keys"], **mean["options"])
    np.testing.assert_allclose(got, mean["mean"], rtol=1e-5, atol=1e-7)


def test_the_text_format_is_a_header_and_a_line_per_word(tmp_path):
    kv = KeyedVectors(["a", "é"], np.array([[1, 0.5, -3], [1e-9, 0.1, 0]], np.float32))
    assert saved(tmp_path / "x", kv) == b"2 3\na 1.0 0.5 -3.0\n\xc3\xa9 1e-09 0.1 0.0\n"
    assert saved(tmp_path / "x", kv, write_header=False) == b"a 1.0 0.5 -3.0\n\xc3\xa9 1e-09 0.1 0.0\n"


def test_the_binary_format_is_a_header_and_little_endian_floats(tmp_path):
    kv = KeyedVectors(["a", "é"], np.array([[1, 0.5], [1e-9, 0.1]]))
    wanted = b"2 2\na " + struct.pack("<2f", 1, 0.5) + b"\xc3\xa9 " + struct.pack("<2f", 1e-9, 0.1)
    assert saved(tmp_path / "x", kv, binary=True) == wanted


@pytest.mark.parametrize("newline", [b"", b"\n"], ids=["gensim", "word2vec"])
def test_binary_vectors_may_end_in_a_newline(tmp_path, newline):
    # The bytes of a space and of a newline are neither inside a vector.
    first, second = (np.float32(np.frombuffer(raw, "<f4")[0]) for raw in (b"\x01\x02\x03 ", b"\n\x02\x380"))
    content = b"2 1\na " + first.tobytes() + newline + b"b " + second.tobytes() + newline
    kv = loaded(tmp_path / "x", content, binary=True)
    assert kv.index_to_key == ["a", "b"]
    np.testing.assert_array_equal(kv.vectors[:, 0], [first, second])


@pytest.mark.parametrize("word", ["\tb", "b\n", "\r", "\u00a0", ""])
def test_a_binary_word_keeps_all_that_is_no_newline_in_front(tmp_path, word):
    content = b"2 1\na " + floats(1) + b"\n" + word.encode() + b" " + floats(2)
    assert loaded(tmp_path / "x", content, binary=True).index_to_key == ["a", word]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n"], ids=["unix", "dos", "word2vec"])
@pytest.mark.parametrize("last", [True, False], ids=["closed", "open"])
def test_lines_may_end_as_other_programs_end_them(tmp_path, end, last):
    content = end.join([b"2 2", b"a 1 2", b"b 3 4"]) + end * last
    assert_same(loaded(tmp_path / "x", content), KeyedVectors(["a", "b"], np.array([[1, 2], [3, 4]], np.float32)))


def test_an_empty_line_may_end_a_file(tmp_path):
    assert loaded(tmp_path / "x", b"1 2\na 1 2\n\n \n").index_to_key == ["a"]


@pytest.mark.parametrize("word", [". . .", "at name@domain.com", "a\u00a0b", "\u2028", "10", "", "\u0085", "a\tb"])
@pytest.mark.parametrize("header", [True, False], ids=["header", "no_header"])
def test_the_last_fields_are_the_numbers_and_the_rest_is_the_word(tmp_path, word, header):
    content = b"1 3\n" * header + word.encode() + b" 1 2 3\n"
    kv = loaded(tmp_path / "x", content, no_header=not header)
    assert kv.key_to_index == {word: 0}
    np.testing.assert_array_equal(kv[word], [1, 2, 3])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_are_read_in_the_dtype_that_is_asked_for(tmp_path, dtype):
    kv = loaded(tmp_path / "x", b"1 2\na 0.1 0.3333333333333333\n", datatype=dtype)
    assert_same(kv, KeyedVectors(["a"], np.array([[0.1, 1 / 3]], dtype)))


def test_vectors_are_float32_and_may_be_changed(tmp_path):
    kv = loaded(tmp_path / "x", b"1 1\na 0.1\n")
    assert kv.vectors.dtype == np.float32
    kv.vectors[0] = 7
    assert kv["a"] == 7


@each_format
@pytest.mark.parametrize("limit", [1, 3, 4, 99])
def test_a_limit_reads_the_first_words(name, limit):
    kv = KeyedVectors.load_word2vec_format(DATA / name, limit=limit, **FORMATS[name][0])
    assert_same(kv, KeyedVectors(WORDS[:limit], VECTORS[:limit]))


def test_a_limit_reads_no_further(tmp_path):
    assert loaded(tmp_path / "x", b"9 2\na 1 2\nb 3 4\nbroken", limit=2).index_to_key == ["a", "b"]


def test_no_words_are_no_mistake(tmp_path):
    kv = loaded(tmp_path / "x", b"0 5\n")
    assert (len(kv), kv.vector_size) == (0, 5)
    assert saved(tmp_path / "y", kv) == b"0 5\n"


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_of_a_word_that_comes_again_the_first_vector_is_kept(tmp_path, binary):
    rows = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("c", 5)]
    lines = [b"%s " % w.encode() + (struct.pack("<f", n) if binary else b"%d\n" % n) for w, n in rows]
    with pytest.warns(UserWarning, match=r"repeated words are skipped, 2 in all, first .*x, (line 4|word 3): 'a'"):
        kv = loaded(tmp_path / "x", b"5 1\n" + b"".join(lines), binary=binary)
    assert_same(kv, KeyedVectors(["a", "b", "c"], np.array([[1], [2], [5]], np.float32)))


def test_words_may_be_in_another_encoding(tmp_path):
    assert loaded(tmp_path / "x", b"1 1\ncaf\xe9 1\n", encoding="latin-1").index_to_key == ["café"]


def test_bytes_that_fit_no_encoding_are_refused_unless_told_what_to_do(tmp_path):
    content = b"1 1\ncaf\xc3 1\n"  # a word cut in the middle of a letter, as word2vec does with long ones
    with pytest.raises(UnicodeDecodeError, match=r"x, line 2: choose another encoding, or unicode_errors='replace'"):
        loaded(tmp_path / "x", content)
    assert loaded(tmp_path / "x", content, unicode_errors="ignore").index_to_key == ["caf"]
    assert loaded(tmp_path / "x", content, unicode_errors="replace").index_to_key == ["caf\ufffd"]


FILE_ERRORS = {
    "no_header": (b"a 1 2\n", {}, ValueError, "line 1: the header .* got b'a 1 2.n' .*no_header=True"),
    "half_a_header": (b"2\na 1 2\n", {}, ValueError, "line 1: the header has two whole numbers"),
    "a_negative_header": (b"-1 2\na 1 2\n", {}, ValueError, "line 1: the header has two whole numbers"),
    "a_width_of_0": (b"1 0\na\n", {}, ValueError, "D >= 1"),
    "an_empty_file": (b"", {}, ValueError, "line 1: the header .* got b''"),
    "an_empty_file_without_header": (b"", {"no_header": True}, ValueError, "line 1: a word and its numbers .* got b''"),
    "no_number": (b"a b\n", {"no_header": True}, ValueError, "line 1: a word and its numbers .* got b'a b.n'"),
    "a_header_where_none_is": (b"1 2\na 1 2\n", {"no_header": True}, ValueError, "line 2: 3 fields came, but .* D=1"),
    "too_few_fields": (b"2 2\na 1 2\nb 1\n", {}, ValueError, "line 3: 2 fields came, but a word and D=2 .*: b'b 1.n'"),
    "too_many_fields": (b"1 2\na 1 2 3\n", {}, ValueError, "line 2: 4 fields came, but a word and D=2"),
    "too_few_without_header": (b"a 1 2\nb 1\n", {"no_header": True}, ValueError, "line 2: 2 fields came, but .* D=2"),
    "no_number_in_a_line": (b"1 2\na 1 x\n", {}, ValueError, "line 2: b'x' is not a number, .*D=2.*: b'a 1 x.n'"),
    "a_double_space": (b"1 2\na 1  2\n", {}, ValueError, "line 2: 4 fields came"),
    "a_double_space_after_the_word": (b"1 2\na  1 2\n", {}, ValueError, "line 2: the word b'a ' begins or ends with"),
    "a_space_in_front": (b"2 2\na 1 2\n b 1 2\n", {}, ValueError, "line 3: the word b' b' begins or ends with"),
    "a_space_in_front_without_header": (b" a 1 2\n", {"no_header": True}, ValueError, "line 1: the word b' a'"),
    "an_empty_line_inside": (b"2 2\na 1 2\n\nb 1 2\n", {}, ValueError, "line 3: 1 fields came"),
    "tabs": (b"1 2\na\t1\t2\n", {}, ValueError, "line 2: 1 fields came"),
    "a_long_line": (b"1 2\n" + b"a" * 999, {}, ValueError, r"needed: b'a{60}'\.\.\.$"),
    "fewer_words": (b"3 2\na 1 2\nb 1 2\n", {}, EOFError, "promises V=3 words, but the file ends after 2"),
    "fewer_than_the_limit": (b"3 2\na 1 2\n", {"limit": 2}, EOFError, "promises V=3 words, but the file ends after 1"),
    "more_words": (b"1 2\na 1 2\nb 1 2\n", {}, ValueError, "promises V=1 words, but 2 or more follow"),
    "cut_in_a_vector": (b"1 2\na " + floats(1, 2)[:7], {"binary": True}, EOFError, r"word 1 \(b'a'\): the file ends"),
    "cut_in_a_word": (b"2 1\na " + floats(1) + b"b", {"binary": True}, EOFError, r"word 2 \(b'b'\): the file ends"),
    "cut_between": (
        b"2 1\na " + floats(1),
        {"binary": True},
        EOFError,
        "promises V=2 words, but the file ends after 1",
    ),
    "more_than_promised": (
        b"1 1\na " + floats(1) + b"b " + floats(2),
        {"binary": True},
        ValueError,
        "2 or more follow",
    ),
    "limit": (b"1 1\na 1\n", {"limit": 0}, ValueError, "limit is 0, but at least 1"),
    "binary_without_header": (b"", {"binary": True, "no_header": True}, ValueError, "binary and no_header"),
    "integers": (b"1 1\na 1\n", {"datatype": int}, TypeError, "datatype is int64, but floating point"),
}


@pytest.mark.parametrize(("content", "options", "exception", "said"), FILE_ERRORS.values(), ids=FILE_ERRORS)
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, content, options, exception, said):
    with pytest.raises(exception, match=said) as caught:
        loaded(tmp_path / "x", content, **options)
    assert re.search(r"/x[,:]|^(limit|binary|datatype) ", str(caught.value)), "the file is named"


UNSAVED = {
    "a_newline_in_text": ("a\nb", {}, "'a.+b' has a newline"),
    "a_number_after_a_space_in_text": ("top 10", {}, "'top 10' .* ends in a number of its own"),
    "a_space_behind_in_text": ("a ", {}, "'a ' begins or ends with a space"),
    "a_space_in_front_in_text": (" a", {}, "' a' begins or ends with a space"),
    "a_space_in_binary": ("a b", {"binary": True}, "'a b' has a space"),
    "a_newline_in_front_in_binary": ("\na", {"binary": True}, "starts with a newline"),
    "binary_without_header": ("a", {"binary": True, "write_header": False}, "write_header False"),
}


@pytest.mark.parametrize(("word", "options", "said"), UNSAVED.values(), ids=UNSAVED)
def test_what_could_not_be_read_back_is_not_written(tmp_path, word, options, said):
    with pytest.raises(ValueError, match=said):
        KeyedVectors(["fine", word], np.eye(2)).save_word2vec_format(tmp_path / "x", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@examples
@given(data=st.data(), how=st.sampled_from([("text", {}, {}), *((n, *o) for n, o in FORMATS.items())]))
def test_what_is_written_is_read_back(tmp_path_factory, data, how):
    name, reading, writing = how
    letters = st.characters(codec="utf-8", exclude_characters="\n of")
    words = data.draw(st.lists(st.text(letters, max_size=4), min_size=1, max_size=5, unique=True))
    if not reading.get("binary"):
        endings = st.sampled_from(["", " of"])  # which is none of the letters
        words = [
            word and word + data.draw(endings) for word in words
        ]  # nothing but the ending would begin with a space
    width = data.draw(st.integers(1, 4))
    numbers = st.lists(st.floats(width=32), min_size=width, max_size=width)
    vectors = np.array(data.draw(st.lists(numbers, min_size=len(words), max_size=len(words))), np.float32)
    path = tmp_path_factory.mktemp("round") / name
    KeyedVectors(words, vectors).save_word2vec_format(path, **writing)
    read = KeyedVectors.load_word2vec_format(path, **reading)
    assert read.index_to_key == words
    np.testing.assert_array_equal(read.vectors, vectors)


def test_float64_is_read_back_exactly_from_text(tmp_path, town):
    town.save_word2vec_format(tmp_path / "town.txt.gz")
    assert_same(KeyedVectors.load_word2vec_format(tmp_path / "town.txt.gz", datatype=np.float64), town)


def test_importing_needs_neither_torch_nor_matplotlib_nor_gensim():
    code = (
        "import sys, attnlib, attnlib.embeddings; print({'torch', 'scipy', 'matplotlib', 'gensim'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
