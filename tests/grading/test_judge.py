"""What an answer from the box earns: what a check gives for the same, and nothing for anything that is no answer."""

import copy

import numpy as np
import pytest
from nbformat.v4 import new_code_cell

from attnlib.checks import check, exercises
from attnlib.checks.calling.call_submission import call_submission
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue import CATALOGUE, QUESTIONS
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.report import MIME_TYPE
from grading.answer_keys import answer_key
from grading.course import GradingError
from grading.graded_cell import GradedCell, read_graded_cell
from grading.judge import Judge
from grading.sandbox.inside import codec
from grading.task import Answered

SEED = 17


def graded(source: str, points: float = 4.0):
    nbgrader = {"grade": True, "solution": False, "locked": True, "points": points, "grade_id": "it"}
    return new_code_cell(source, metadata={"nbgrader": nbgrader})


def answered(graded_cell: GradedCell, implementation, judge: Judge, backend: str = "numpy") -> Answered:
    """Answer as the box does, in this process."""
    exercise = graded_cell.exercise
    asked = judge.probe(graded_cell)
    has = [name for name in asked.unasked if has_argument(implementation, name)]
    answers = {}
    for i, encoded in enumerate(asked.cases[backend]):
        if set(asked.needs[backend][i]) <= set(has):
            case = codec.decode(encoded)
            answer = call_submission(implementation, Case(**case), exercise, backend=backend)
            arrays = {name: codec.encode(x) for name, x in answer.arrays.items()}
            said = {"problem": answer.problem, "error": answer.error, "line": answer.line}
            answers[i] = {"arrays": arrays, "changed": list(answer.changed), **said}
    return Answered({"callable": True, "has": has, "module": False, "backend": backend, "error": None}, answers)


def earned(outputs) -> float:
    results = [output for output in outputs if output.output_type == "execute_result"]
    return float(results[0].data["text/plain"]) if results else 0.0


@pytest.fixture(scope="module")
def judge():
    return Judge(SEED)


@pytest.mark.slow
@pytest.mark.parametrize("name", exercises())
def test_the_reference_earns_everything_and_a_mistake_what_a_check_gives(judge, name):
    exercise = CATALOGUE[name]
    graded_cell = GradedCell("it", name, 4.0, exercise)
    assert earned(judge.outputs(graded_cell, answered(graded_cell, exercise.reference, judge), "")) == 4
    each = 5 if exercise.ungraded_options else 20  # what is wrong with an ungraded option becomes a remark
    for mistake in exercise.mistakes[::each]:
        outputs = judge.outputs(graded_cell, answered(graded_cell, mistake.implementation, judge), "")
        data = outputs[0].data[MIME_TYPE]
        assert data["mistake"] == (None if data["passed"] else mistake.id)
        assert mistake.title in data["message"], "where it costs nothing it is a remark"
        try:
            points = check(name, mistake.implementation, points=4.0, seed=3)
        except AssertionError:
            points = 0.0
        assert earned(outputs) == pytest.approx(points)


@pytest.fixture
def softmax(judge):
    graded_cell = GradedCell("it", "softmax", 4.0, CATALOGUE["softmax"])
    return graded_cell, answered(graded_cell, CATALOGUE["softmax"].reference, judge)


def no_answers(right):
    right.answers.clear()


def one_missing(right):
    del right.answers[0]


def renamed(right):
    (right.answers[0]["arrays"],) = ({"other": x} for x in right.answers[0]["arrays"].values())


def nothing_at_all(right):
    right.answers[0] = None


def negative_size(right):
    next(iter(right.answers[0]["arrays"].values()))["array"][1] = [-1]


def an_object(right):
    next(iter(right.answers[0]["arrays"].values()))["array"][0] = "|O8"


def not_a_number(right):
    x = next(iter(right.answers[0]["arrays"].items()))
    right.answers[0]["arrays"][x[0]] = codec.encode(np.full_like(codec.array(x[1]), np.nan))


def another_shape(right):
    x = next(iter(right.answers[0]["arrays"].items()))
    right.answers[0]["arrays"][x[0]] = codec.encode(codec.array(x[1])[None])


@pytest.mark.parametrize(
    "spoil",
    [no_answers, one_missing, renamed, nothing_at_all, negative_size, an_object, not_a_number, another_shape],
)
def test_what_is_no_answer_to_the_first_case_earns_nothing(judge, softmax, spoil):
    graded_cell, right = softmax
    right = copy.deepcopy(right)
    spoil(right)
    outputs = judge.outputs(graded_cell, right, "")
    assert earned(outputs) == 0
    assert outputs[-1].output_type == "error"


def test_a_question_that_nobody_answered_says_why(judge, softmax):
    graded_cell, _ = softmax
    (said,) = judge.outputs(graded_cell, Answered(), "did not end.")
    assert said.evalue == "did not end."


def test_an_option_is_judged_outside(judge):
    question = QUESTIONS["shift-or-stretch"]
    graded_cell = GradedCell("it", "answer", 1.0, question=question)
    for letter in "ABCDE":
        for form in ("{}", " '{}' "):
            written = form.format(letter).lower()
            outputs = judge.outputs(graded_cell, Answered({"value": written, "error": None}), "")
            assert earned(outputs) == (letter == answer_key(question.name).right)
    assert earned(judge.outputs(graded_cell, Answered({"value": ["A", "B", "C", "D"], "error": None}), "")) == 0


def test_the_box_is_told_nothing_about_the_answers(judge):
    for name in exercises():
        exercise = CATALOGUE[name]
        asked = judge.probe(GradedCell("it", name, 4.0, exercise))
        for backend, cases in asked.cases.items():
            for case, expected in zip(cases, Evaluation(exercise, backend, None).expected, strict=True):
                given = codec.decode(case)
                ways = {"outputs", "unchanged", "upstream", "training"}
                assert set(given) == {"name", "criterion", "inputs", "options", "setup"} | ways
                assert given["name"] == given["criterion"] == "", "the words of a case say what is hard about it"
                assert set(given["outputs"]) <= set(expected.arrays)


def test_two_runs_draw_different_inputs():
    one, other = (Judge(seed).probe(GradedCell("it", "dot", 1.0, CATALOGUE["dot"])).cases for seed in (1, 2))
    assert one != other


@pytest.mark.parametrize(
    ("source", "expression", "backend"),
    [
        ('check("softmax", softmax, points=4)', "softmax", "numpy"),
        ('check("attention", mine.attention, backend="torch", points=4, hint=2)  # yes', "mine.attention", "torch"),
        ('check_choice("shift-or-stretch", answer, points=4)', "answer", "numpy"),
    ],
)
def test_a_graded_cell_is_read_as_a_question(source, expression, backend):
    graded_cell = read_graded_cell(graded(source))
    assert (graded_cell.expression, graded_cell.backend, graded_cell.points) == (expression, backend, 4.0)


def test_two_notebooks_may_ask_for_different_arguments(judge):
    cells = [
        f'check("MultiHeadAttention", M, backend="torch", {more}points=4)' for more in ("", 'unasked="need_weights", ')
    ]
    asking, other = (read_graded_cell(graded(source)) for source in cells)
    assert judge.probe(asking).unasked == ("attn_mask", "is_causal")
    assert judge.probe(other).unasked == ("attn_mask", "is_causal", "need_weights")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("assert softmax(3) == 1", "something else"),
        ('check("softmax", softmax)\ncheck("dot", dot)', "something else"),
        ('check("sofmax", softmax)', "no exercise 'sofmax'"),
        ('check_choice("sofmax", softmax)', "no question 'sofmax'"),
        ('check("softmax", softmax, points=3)', "the call says points=3, but its metadata says 4"),
        ('check("softmax", softmax, seed=0)', "unknown options: seed"),
        ('check("softmax", softmax, backend="jax")', "no backend 'jax', only "),
        ('check("softmax", softmax, hint=3)', "hint=3 is neither 1 nor 2"),
        ('check("softmax", softmax, unasked="mask")', "unasked is 'mask', but softmax has .* that count: none"),
        ("check(name, softmax)", "not a name"),
        ("check(", "not valid Python"),
    ],
)
def test_any_other_test_is_refused_before_a_class_is_graded(source, reason):
    with pytest.raises(GradingError, match=reason):
        read_graded_cell(graded(source))
