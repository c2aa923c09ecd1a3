"""Copies are found, however they were disguised; independent answers, and what nobody had to write, are not."""

import json
import os
import random
import re

import pytest
from hypothesis import given as any_of
from hypothesis import settings
from hypothesis import strategies as st
from variants import ANSWERS, CELLS

from grading.class_report import similarity as module
from grading.class_report import student_code as reading
from grading.class_report.similarity import GRAM, WINDOW, compare_submissions, pairs, winnow
from grading.class_report.student_code import CodeCell, NotComparableError, given_code, written_code
from grading.class_report.tokens import tokens
from grading.course import Course

ASSIGNMENT = "02-self-attention"
ROOT = reading.Path(__file__).parents[2]
RELEASED = given_code(Course.at(ROOT), ASSIGNMENT)
CLASS = {f"student-{i}": answers for i, answers in enumerate(ANSWERS)}
SOURCE = 3  # whose answers are copied
NAMES = {
    "query": "q",
    "key": "k",
    "value": "v",
    "num": "top",
    "den": "bottom",
    "alpha": "attn",
    "D": "width",
    "x": "inp",
}


def renamed(source):
    return re.sub(r"(?<![.\w])[A-Za-z]\w*\b", lambda match: NAMES.get(match[0], match[0]), source)


def recommented(source):
    body = re.sub(r"^( *)(return|for) ", r"\1# and now\n\1\2 ", source, flags=re.MULTILINE)
    return '"""All my own work."""\n' + body.replace(", ", " ,  ").replace(" = ", "=").replace("    ", "  ")


def wrapped(source):
    return re.sub(r"return (.*)", r"return (\n        \1\n    )", source)


def broken(source):
    return source + "\nif True:\n        a\n    b\n'\n"


def one_cell(cells):
    return [CodeCell("their own", "\n\n".join(cell.source for cell in reversed(cells)))]


DISGUISES = {
    "as it is": lambda cells: cells,
    "renamed": lambda cells: [CodeCell(cell.name, renamed(cell.source)) for cell in cells],
    "reordered": lambda cells: cells[::-1],
    "in one cell": one_cell,
    "comments and spacing": lambda cells: [CodeCell(cell.name, recommented(cell.source)) for cell in cells],
    "line breaks": lambda cells: [CodeCell(cell.name, wrapped(cell.source)) for cell in cells],
    "no Python": lambda cells: [CodeCell(cell.name, broken(cell.source)) for cell in cells],
    "all of it": lambda cells: one_cell([CodeCell("", recommented(renamed(cell.source))) for cell in cells]),
}


def names(found):
    return [(pair.first, pair.second) for pair in found]


def test_six_independent_right_answers_are_not_alike():
    assert pairs(CLASS, RELEASED) == []


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_copy_is_found(disguise):
    copy = DISGUISES[disguise](CLASS[f"student-{SOURCE}"])
    (pair,) = pairs(CLASS | {"copy": copy}, RELEASED)
    assert (pair.first, pair.second) == ("copy", f"student-{SOURCE}")
    assert pair.alike >= module.MIN_SIMILARITY
    assert pair.words >= pair.distinctive >= module.MIN_DISTINCTIVE_WORDS


@pytest.mark.parametrize("source", [i for i in range(6) if i != 0])
def test_whoever_is_copied_is_found(source):
    copy = DISGUISES["all of it"](CLASS[f"student-{source}"])
    assert names(pairs(CLASS | {"copy": copy}, RELEASED)) == [("copy", f"student-{source}")]


def test_a_copy_that_was_partly_rewritten_is_found_and_one_borrowed_function_is_not():
    others = dict(CLASS)
    own, other = others.pop("student-4"), CLASS[f"student-{SOURCE}"]
    assert names(pairs(others | {"copy": [*own[:1], *other[1:]]}, RELEASED)) == [("copy", f"student-{SOURCE}")]
    assert not pairs(others | {"copy": [*other[:1], *own[1:]]}, RELEASED)


def test_passages_stand_side_by_side():
    (pair,) = pairs(CLASS | {"copy": DISGUISES["renamed"](CLASS[f"student-{SOURCE}"])}, RELEASED)
    cosine = next(passage for passage in pair.passages if passage.first_cell == "cosine")
    assert cosine.second_cell == "cosine"
    assert "top = dot(q, k)" in cosine.first
    assert "num = dot(query, key)" in cosine.second


def test_what_was_released_and_the_solution_never_count():
    solution = [CodeCell("all", source) for source in RELEASED]
    assert pairs({"a": solution, "b": solution}, RELEASED) == []
    assert pairs({"a": solution, "b": solution}, []), "the test would not notice if it counted"


def test_what_a_third_of_the_class_wrote_counts_for_nothing():
    text = CLASS[f"student-{SOURCE}"]
    others = {f"other-{i}": CLASS["student-1"] for i in range(4)}
    two = pairs({"a": text, "b": text} | others, RELEASED)
    assert ("a", "b") in names(two)
    three = pairs({"a": text, "b": text, "c": text} | others, RELEASED)
    assert names(three) == []


def test_answers_from_common_pieces_are_not_alike():
    # Sixty students take one of six common ways for each function: hardly anything of it is theirs alone.
    chosen = random.Random(0)
    ways = [0.3, 0.25, 0.2, 0.1, 0.1, 0.05]
    everybody = {
        f"s{i:02}": [chosen.choices([answers[j] for answers in ANSWERS], ways)[0] for j in range(len(CELLS))]
        for i in range(60)
    }
    assert pairs(everybody, RELEASED) == []


def test_short_answers_are_never_enough():
    short = [CodeCell("a", "def f(alpha, beta):\n    return alpha @ beta - alpha * beta + 17 ** alpha\n")]
    assert pairs({"a": short, "b": short}, []) == []


def test_nobody_and_nothing_is_no_pair():
    assert pairs({}, RELEASED) == []
    assert pairs({"a": [], "b": [CodeCell("x", "")], "c": [CodeCell("x", "1")]}, RELEASED) == []


def test_the_result_does_not_depend_on_the_order():
    copy = {"copy": DISGUISES["all of it"](CLASS[f"student-{SOURCE}"])}
    assert pairs(CLASS | copy, RELEASED) == pairs(copy | dict(reversed(CLASS.items())), RELEASED)


def test_a_large_class_takes_no_look_at_every_pair(monkeypatch):
    looked = []
    monkeypatch.setattr(module._Comparison, "pair", lambda self, first, second: looked.append((first, second)))
    words = random.Random(0)
    everybody = {
        f"s{i}": [CodeCell("a", "\n".join(f"x = {words.random()} + y[{words.random()}]" for _ in range(15)))]
        for i in range(300)
    }
    everybody["copy"] = everybody["s17"]
    pairs(everybody, [])
    assert looked == [("copy", "s17")]


# ---- the words


def words(source):
    return [token.text for token in tokens(source)]


def test_names_strings_comments_and_layout_do_not_count():
    one = 'def f(a, b):\n    """Say what."""\n    c = a.sum("x")  # why\n    return np.exp(c) + len(b)\n'
    other = "def g( x, why ):\n  # nothing\n  total = (x\n     .sum('yy'))\n  return numpy.exp(total)+len(why)"
    assert words(one) == words(other.replace("(x\n     .sum('yy'))", "x.sum('yy')"))


def test_what_a_student_cannot_rename_counts():
    assert words("np.exp(x)") != words("np.log(x)")
    assert words("len(x)") != words("max(x)")
    assert words("x + 1") != words("x + 2") != words("x - 2")
    assert words("self.a") == words("self.b")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        *("f(((", "'", '"""', "  x\n y\nz", "%matplotlib inline\nx = 1", "a $ b ? c", "\x00", "\ud800 = 1"),
        *("\\\n" * 5_000, "if 1:\n  x\n y\n" * 2_000, "(" * 20_000, '"""\n' + "x\n" * 5_000, "\t \n x\n" * 2_000),
    ],
    ids=range(13),
)
def test_any_text_has_words(source):
    assert all(token.text and 1 <= token.line <= source.count("\n") + 1 for token in tokens(source))


def test_what_comes_after_a_line_that_is_no_python_counts_as_before():
    sane = "def f(x):\n    return x.sum(-1) / 17\n"
    assert words("if x:\n    y\n  z\n" + sane)[-len(words(sane)) :] == words(sane)


@settings(max_examples=50, derandomize=True, database=None)
@any_of(st.text(max_size=200))
def test_no_text_makes_it_raise(source):
    tokens(source)


# ---- winnowing


@settings(max_examples=50, derandomize=True, database=None)
@any_of(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_of_every_window_one_run_is_kept_and_it_is_the_smallest(runs):
    kept = winnow(runs)
    windows = [runs[i : i + WINDOW] for i in range(max(1, len(runs) - WINDOW + 1))]
    assert {min(window) for window in windows} == set(kept)
    assert len(kept) <= len(runs)


@settings(max_examples=50, derandomize=True, database=None)
@any_of(*[st.lists(st.integers(0, 2**32), max_size=20)] * 4, st.lists(st.integers(0, 2**32), min_size=WINDOW))
def test_what_is_shared_by_a_whole_window_is_found(before, after, other_before, other_after, shared):
    one, other = winnow([*before, *shared, *after]), winnow([*other_before, *shared, *other_after])
    assert set(one) & set(other) & set(shared)


def test_the_example_of_the_paper():
    # Schleimer, Wilkerson and Aiken (2003), figure 2: windows of four hashes.
    runs = [77, 74, 42, 17, 98, 50, 17, 98, 8, 88, 67, 39, 77, 74, 42, 17, 98]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 4)
        assert winnow(runs) == [17, 17, 8, 39, 17]


def test_a_match_shorter_than_a_run_is_never_found():
    shared = " + ".join(f"{i}" for i in range(GRAM // 2))
    assert (
        not {*module.Tokenized([CodeCell("", f"a[0] = {shared}")]).all_runs()}
        & module.Tokenized([CodeCell("", f"f(1) - {shared}")]).all_runs()
    )


# ---- what a student wrote


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def code(source, **nbgrader):
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"nbgrader": nbgrader} if nbgrader else {},
        "outputs": [],
    }


@pytest.fixture
def course(tmp_path):
    course = Course(ROOT, tmp_path)
    course.autograded("ada", ASSIGNMENT).mkdir(parents=True)
    return course


def put(course, content):
    file = course.autograded("ada", ASSIGNMENT) / "self-attention.ipynb"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_answers_and_own_cells_are_read_and_nothing_else(course):
    put(
        course,
        notebook(
            code("answer", solution=True, grade_id="softmax"),
            code("given", solution=False, grade_id="imports"),
            code("check", solution=False, grade=True, grade_id="softmax-check"),
            code(["own\n", "lines"]),
            {"cell_type": "markdown", "source": "text", "metadata": {}},
        ),
    )
    assert written_code(course, ASSIGNMENT, "ada") == [
        CodeCell("softmax", "answer"),
        CodeCell("a cell of their own", "own\nlines"),
    ]


BAD = ["", "{", "[]", "null", '{"cells": 1}', '{"cells": [1]}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000]
BAD += [json.dumps(notebook(code([1])))]


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_what_is_no_notebook_is_left_out_and_said(course, content):
    put(course, content)
    with pytest.raises(NotComparableError, match="not a complete notebook"):
        written_code(course, ASSIGNMENT, "ada")
    found = compare_submissions(course, ASSIGNMENT, ["ada", "nobody"])
    assert (found.compared, found.pairs) == (0, ())
    assert [student for student, _ in found.left_out] == ["ada", "nobody"]
    assert found.left_out[1][1] == "no executed notebook"


def test_odd_metadata_is_no_answer_of_the_assignment(course):
    cell = code("x = 1")
    put(course, notebook(cell | {"metadata": {"nbgrader": 3}}, cell | {"metadata": None}))
    assert [cell.name for cell in written_code(course, ASSIGNMENT, "ada")] == ["a cell of their own"] * 2


def test_more_text_than_anybody_writes_is_left_out(course):
    put(course, notebook(code("x" * (reading.MAX_CODE_LENGTH + 1))))
    with pytest.raises(NotComparableError, match="more than 100000"):
        written_code(course, ASSIGNMENT, "ada")


def test_a_file_of_any_size_is_read_up_to_a_bound(course, monkeypatch):
    put(course, notebook(code("x = 1")))
    monkeypatch.setattr(reading, "MAX_EXECUTED_NOTEBOOK_BYTES", 20)
    with pytest.raises(NotComparableError):
        written_code(course, ASSIGNMENT, "ada")


@pytest.mark.parametrize("make", [lambda f, t: f.symlink_to(t), lambda f, t: os.mkfifo(f), lambda f, t: f.mkdir()])
def test_nothing_but_a_plain_file_is_read(course, tmp_path, make):
    secret = put(course, notebook(code("secret"))).rename(tmp_path / "secret.ipynb")
    make(course.autograded("ada", ASSIGNMENT) / "self-attention.ipynb", secret)
    with pytest.raises(NotComparableError):
        written_code(course, ASSIGNMENT, "ada")


def test_a_class_is_compared_from_its_folder(course):
    texts = [cell.source for cell in CLASS[f"student-{SOURCE}"]]
    for student in ("ada", "bob"):
        folder = course.autograded(student, ASSIGNMENT)
        folder.mkdir(parents=True, exist_ok=True)
        cells = [code(text, solution=True, grade_id=f"c{i}") for i, text in enumerate(texts)]
        (folder / "self-attention.ipynb").write_text(json.dumps(notebook(*cells)))
    found = compare_submissions(course, ASSIGNMENT, ["ada", "bob"])
    assert (found.compared, names(found.pairs), found.left_out) == (2, [("ada", "bob")], ())
