"""What a student reads: the idea, the numbers, where to reread, a hint. Never the answer."""

import ast
import inspect
import json
import re
import textwrap
from dataclasses import replace
from functools import cache, lru_cache
from html.parser import HTMLParser
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pytest
from mistakes import of_every_mistake
from nbgrader.utils import determine_grade
from told_apart import confused

import attnlib
from attnlib.checks import check, examine
from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from grading.sanitize import safe_html

ROOT = Path(__file__).parents[2]
NUMBERS = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]\d+)?|nan|inf|True|False")
MIME = "application/vnd.attnlib.report+json"


def report_of(name, mistake):
    """What a student reads about a mistake: the report, or the remark if the mistake costs no points."""
    report = _examined(name)[1][mistake.id]
    return report.remark or report


@lru_cache(maxsize=2)  # the tests of an exercise run one after another
def _examined(name):
    """The evaluation of an exercise under seed 0, and the report on each mistake."""
    exercise = CATALOGUE[name]
    evaluation = Evaluation(exercise, exercise.backends[0], 0)
    return evaluation, {mistake.id: evaluation.of(mistake.implementation) for mistake in exercise.mistakes}


def bundle(report):
    return report._repr_mimebundle_()


class Strict(HTMLParser):
    """Collects the tags and attributes, and insists that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(html):
    parser = Strict()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


# The name of the mistake ---------------------------------------------------------------------------------------------

REPORTED = 2  # each seed but the first reports every second mistake, so that two seeds report all of them


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE, scope="module")
def test_a_known_mistake_fails_and_is_named_as_itself_whatever_the_seed(name, seeds):
    exercise, (evaluation, reports) = CATALOGUE[name], _examined(name)
    options = exercise.ungraded_options
    has = {one.id: {n for n in options if has_argument(one.implementation, n)} for one in exercise.mistakes}
    assert not confused(evaluation, has)
    for identifier, report in reports.items():
        assert_named(report, identifier, "seed 0")
    for seed in seeds[1:]:
        evaluation = Evaluation(exercise, exercise.backends[0], seed)
        assert not confused(evaluation, has), f"seed {seed}"
        for mistake in exercise.mistakes[seed % REPORTED :: REPORTED]:
            report = evaluation.report(_answers(evaluation, mistake, has[mistake.id]))
            assert_named(report, mistake.id, f"seed {seed}")
            assert report.score == reports[mistake.id].score, "a mistake should score the same with each seed"


def _answers(evaluation, mistake, has):
    """Return a mistake's answers. The evaluation already has them, except where the result of a call is random."""
    if evaluation.exercise.call_exact is not None:
        return evaluation._answers(mistake.implementation, evaluation.asked(has))
    return {i: evaluation._answer(mistake, i) for i in evaluation.asked(has)}


def assert_named(report, identifier, seed):
    """Check that a mistake costs points or gets a remark, and is reported under its own name."""
    assert not report.passed or report.remark, identifier
    assert report.score < 1 or report.remark
    report = report.remark or report
    assert report.mistake == identifier, f"{seed}: {identifier} is reported as\n{report.message}"


# The message --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@of_every_mistake
def test_a_message_has_the_idea_the_case_the_section_and_a_hint(name, mistake):
    report = report_of(name, mistake)
    assert name in report.headline()
    assert mistake.title in report.headline()
    assert mistake.says in report.message
    assert f"With {report.failure.case.name}" in report.message
    assert str(mistake.section) in report.message
    assert mistake.section.heading in report.message
    assert mistake.hint in report.message


@of_every_mistake
def test_numbers_that_differ_are_shown_expected_beside_got(name, mistake):
    report = report_of(name, mistake)
    comparison = report.failure.comparison()
    if comparison is None:  # a shape, an exception or a changed input: there are no numbers to compare
        assert re.search("shape|Error|changed|returned| is .*, not ", report.message)
        return
    expected, got = report.message.split("expected", 1)[1].split("\n  got ", 1)
    assert NUMBERS.findall(expected) != NUMBERS.findall(got.split("Reread")[0])
    assert f"first difference at {comparison.first}" in report.message


@pytest.mark.slow
@of_every_mistake
def test_a_message_never_contains_code_of_an_answer(name, mistake):
    report = report_of(name, mistake)
    squeezed = re.sub(r"\s", "", report.message.replace(_own_line(report), ""))
    for function in (CATALOGUE[name].reference, attnlib.softmax, attnlib.scaled_dot, mistake.implementation):
        for line in _statements(function):
            assert len(line) < 20 or re.sub(r"\s", "", line) not in squeezed


def sentences(report):
    """The sentences of a message, without the numbers and the student's own line."""
    told = [report.headline(), *report.what(), *report.next_step()]
    return [part for text in told for part in re.split(r"(?<=[.?]) |: |\n", text) if len(part) > 20]


@of_every_mistake
def test_no_sentence_stands_twice_in_a_report(name, mistake):
    report = replace(report_of(name, mistake), hints=2)
    assert len(sentences(report)) == len(set(sentences(report))), report.message
    unknown = replace(report, named=None)
    assert len(sentences(unknown)) == len(set(sentences(unknown))), unknown.message


@pytest.mark.slow
@of_every_mistake
def test_a_report_counts_the_cases_that_are_right(name, mistake):
    failure = report_of(name, mistake).failure
    assert 0 <= failure.right < failure.asked
    verb = "is" if failure.right == 1 else "are"
    assert f"{failure.right} of {failure.asked} cases {verb} right." in report_of(name, mistake).message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (1, "lacks 1 True value, and has no extra ones"),
        (2, "lacks 2 True values, and has no extra ones"),
        (-1, "has 1 True value too many, and lacks none"),
        (-3, "has 3 True values too many, and lacks none"),
    ],
)
def test_one_wrong_entry_of_a_mask_is_told_of_in_the_singular(wrong, said):
    def nearly(query_len, key_len=None, *rest, **options):
        right = attnlib.causal_mask(query_len, key_len, *rest, **options)
        flat = right.copy().ravel()
        flat[np.flatnonzero(flat == (wrong > 0))[: abs(wrong)]] ^= True
        return flat.reshape(right.shape)

    assert said in examine("causal_mask", nearly, seed=0).message


def test_the_cases_are_counted_as_they_are():
    def right_for_matrices_alone(query, key):
        return attnlib.dot(query, key) if query.ndim == 2 else 0 * attnlib.dot(query, key)

    report = examine("dot", right_for_matrices_alone, seed=0)
    batches = [case for case in Evaluation(CATALOGUE["dot"], "numpy", 0).cases if case.inputs["query"].ndim > 2]
    assert report.failure.asked - report.failure.right == len(batches) == 3


@pytest.mark.parametrize("name", CATALOGUE)
def test_results_are_called_as_the_notebook_calls_them(name):
    text = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "exercises").glob("*/*.ipynb"))
    for output in CATALOGUE[name].outputs:
        assert output in text


def test_a_right_answer_is_told_in_one_line():
    report = examine("dot", attnlib.dot)
    assert report.message == "✓ dot: right"
    assert report.title == "right"
    assert report.failure is None


def test_the_points_stand_in_the_headline():
    report = replace(examine("dot", attnlib.dot), points=2)
    assert "2 of 2 points" in report.headline()
    report = replace(examine("softmax", CATALOGUE["softmax"].mistakes[0].implementation), points=4)
    assert "3 of 4 points" in report.headline()


def test_where_no_mistake_is_known_the_broken_rule_is_named():
    def half(x, axis=-1):
        return attnlib.softmax(x, axis) / 2

    report = examine("softmax", half, seed=0)
    assert report.mistake is None
    assert "the rows of weights do not sum to 1" in report.message
    assert "Reread" in report.message


STATEMENTS = {
    "times 3": ("dot", lambda q, k: 3 * attnlib.dot(q, k), "3 times as large as expected"),
    "plus 1": ("dot", lambda q, k: attnlib.dot(q, k) + 1, "off by +1"),
    "zero": ("dot", lambda q, k: 0 * attnlib.dot(q, k), "0 everywhere"),
    "negative": ("softmax", lambda x, axis=-1: -attnlib.softmax(x, axis), "negative"),
    "columns": (
        "self_attention",
        lambda x: _changed_weights(x, lambda w: w.swapaxes(-1, -2)),
        "columns of weights sum to 1",
    ),
    "transposed shape": ("dot", lambda q, k: 2 * attnlib.dot(k, q), "the last two sizes are swapped"),
    "nan": ("dot", lambda q, k: attnlib.dot(q, k) * np.nan, "nan"),
    "infinity": ("dot", lambda q, k: attnlib.dot(q, k) + np.inf, "infinity"),
}


@pytest.mark.parametrize("label", STATEMENTS)
def test_an_observation_says_what_is_the_case(label):
    name, implementation, told = STATEMENTS[label]
    assert told in examine(name, implementation, seed=0).message


@pytest.mark.parametrize(
    ("name", "implementation"),
    [
        ("dot", lambda q, k: np.abs(q) @ np.abs(k.swapaxes(-1, -2))),
        ("cosine", lambda q, k: attnlib.cosine(q, k) + (attnlib.cosine(q, k) == 0)),
        ("softmax", lambda x, axis=-1: attnlib.softmax(x, axis).round(5)),
    ],
    ids=["wrong where 0 is expected", "1 for the zero vector", "rounded to 5 decimals"],
)
def test_an_observation_is_never_untrue(name, implementation):
    message = examine(name, implementation, seed=0).message
    assert "is 1 times as large as expected" not in message


@pytest.mark.parametrize("decimals", [3, 4])
def test_a_difference_can_be_seen_in_the_numbers_or_is_told_in_words(decimals):
    message = examine("softmax", lambda x, axis=-1: attnlib.softmax(x, axis).round(decimals), seed=3).message
    assert "expected" in message, "a report about other numbers shows them"
    expected, got = message.split("expected", 1)[1].split("\n  got ", 1)
    assert NUMBERS.findall(expected) != NUMBERS.findall(got.split("Reread")[0])


def test_wrong_weights_are_told_before_the_context_that_they_made():
    def exponentials(query, key, value):
        weights = np.exp(attnlib.scaled_dot(query, key))
        return weights @ value, weights

    assert "the rows of weights do not sum to 1" in examine("attention", exponentials, seed=0).message


# The HTML -----------------------------------------------------------------------------------------------------------


def test_html_is_escaped():
    def f(query, key):
        raise ValueError("<script>alert('1 & 2')</script>")

    html = bundle(examine("dot", f, seed=0))["text/html"]
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "1 &amp; 2" in html
    assert "script" not in parse(html).tags


@pytest.mark.slow
@of_every_mistake
def test_html_is_well_formed_and_asks_for_nothing_from_outside(name, mistake):
    html = bundle(replace(report_of(name, mistake), points=3))["text/html"]
    parsed = parse(html)
    assert set(parsed.tags) <= {
        "a",
        "div",
        "p",
        "strong",
        "b",
        "u",
        "table",
        "caption",
        "pre",
        "br",
        "tbody",
        "thead",
        "tr",
        "td",
        "th",
    }
    assert {attribute for attribute, _ in parsed.attributes} <= {"style", "class", "scope", "href"}
    assert "http" not in html
    assert "src=" not in html
    assert "url(" not in html
    assert "@import" not in html


@pytest.mark.slow
@of_every_mistake
def test_html_shades_but_never_covers_the_page_so_that_dark_mode_stays_readable(name, mistake):
    html = bundle(report_of(name, mistake))["text/html"]
    for style in re.findall(r"style='([^']*)'", html):
        rules = dict(rule.split(":", 1) for rule in style.split(";") if rule.strip())
        assert not rules.keys() & {"background", "background-image"}
        assert rules.get("color", "inherit") == "inherit"
        shade = rules.get("background-color", "rgba(0,0,0,0.00)")
        assert float(re.fullmatch(r"rgba\(\d+,\d+,\d+,(0\.\d\d)\)", shade)[1]) <= 0.45


def test_html_marks_wrong_numbers_by_more_than_colour():
    html = bundle(examine("dot", lambda q, k: attnlib.dot(q, k) + (np.arange(k.shape[-2]) == 1), seed=0))["text/html"]
    assert "<b><u>9</u></b>" in html
    assert "bold and underlined" in html
    assert "✗" in html
    assert "✓" in bundle(examine("dot", attnlib.dot))["text/html"]


def test_the_html_names_a_check_that_has_passed_and_no_other():
    passed = bundle(examine("dot", attnlib.dot, seed=0))["text/html"]
    assert re.findall(r"<div [^>]* data-passed='(\w+)'", passed) == ["dot"]
    assert "data-passed" not in bundle(examine("dot", lambda q, k: q, seed=0))["text/html"]
    assert "data-passed" not in safe_html(passed), "nobody reads it in feedback"


def test_html_says_everything_that_the_text_says():
    mistake = next(m for m in CATALOGUE["attention"].mistakes if m.id == "no-scale")
    report = report_of("attention", mistake)
    html = bundle(report)["text/html"]
    for said in (mistake.says, mistake.hint, mistake.section.heading, report.failure.case.name):
        assert said in html


# The data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [None, 1, 2.5, np.int64(3), np.float32(2)])
def test_data_is_valid_json_whatever_the_kind_of_points(points):
    for implementation in (attnlib.dot, lambda q, k: q * np.nan, lambda q, k: None):
        data = bundle(replace(examine("dot", implementation), points=points))[MIME]
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert {"exercise", "backend", "score", "points", "passed", "mistake", "title", "message"} <= set(data)


def test_data_says_what_the_report_says():
    mistake = CATALOGUE["softmax"].mistakes[0]
    report = report_of("softmax", mistake)
    data = bundle(report)[MIME]
    assert (data["exercise"], data["backend"]) == ("softmax", "numpy")
    assert (data["passed"], data["mistake"], data["score"]) == (False, mistake.id, report.score)
    assert data["message"] == report.message == str(report)


# Shown --------------------------------------------------------------------------------------------------------------


def test_outside_of_ipython_the_report_is_text(capsys):
    check("dot", lambda query, key: query @ np.swapaxes(key, -1, -2), points=2)
    assert capsys.readouterr() == ("✓ dot: right · 2 of 2 points\n", "")


@pytest.fixture(scope="module")
def notebook():
    """A notebook with one check that passes, one that earns a part and one that earns nothing, run by nbclient."""
    cells = [
        "import numpy as np, attnlib\nfrom attnlib.checks import check\n"
        "def softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis, keepdims=True)",
        "check('dot', attnlib.dot, points=2)",
        "check('softmax', softmax, points=4)",
        "def dot(query, key):\n    raise NotImplementedError\ncheck('dot', dot)",
        "import sys\ndef dot(query, key):\n    sys.exit(1)\ncheck('dot', dot)",
        "1 + 1",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    return [cell.outputs for cell in book.cells]


@pytest.mark.parametrize(("cell", "earned"), [(1, "2.0"), (2, "3.0")])
def test_in_a_notebook_there_is_one_display_and_then_a_plain_number(notebook, cell, earned):
    shown, returned = notebook[cell]
    assert (shown.output_type, returned.output_type) == ("display_data", "execute_result")
    assert {"text/plain", "text/html", MIME} <= set(shown.data)
    assert dict(returned.data) == {"text/plain": earned}


@pytest.mark.parametrize(("cell", "points", "grade"), [(1, 2, 2), (2, 4, 3), (3, 1, 0)])
def test_nbgrader_reads_the_points_from_the_cell(notebook, cell, points, grade):
    metadata = {"nbgrader": {"grade": True, "solution": False, "points": points, "grade_id": "a", "schema_version": 3}}
    code = nbformat.v4.new_code_cell("check(...)", metadata=metadata, outputs=notebook[cell])
    assert determine_grade(code)[:2] == (grade, points)


def test_in_a_notebook_nothing_earned_is_shown_and_then_raised(notebook):
    shown, raised = notebook[3]
    assert (shown.output_type, raised.output_type) == ("display_data", "error")
    assert raised.ename == "CheckFailed"
    assert "not written yet" in shown.data["text/plain"]
    assert "not written yet" in raised.evalue


def test_in_a_notebook_leaving_the_program_is_reported_and_the_kernel_lives(notebook):
    assert notebook[5][0].data["text/plain"] == "2"
    assert [output.output_type for output in notebook[4]] == ["display_data", "error"]
    assert notebook[4][1].ename == "CheckFailed"


def _changed_weights(x, change):
    context, weights = attnlib.self_attention(x)
    return context, change(weights)


def _own_line(report):
    """The student's own line, which a report may of course show."""
    return report.failure.answer.line or "\0"


@cache
def _statements(function):
    """The statements of a function as lines of source, without its docstring."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return []
    body = [node for node in getattr(tree.body[0], "body", []) if not isinstance(node, ast.Expr)]
    return [line.strip() for node in body for line in ast.unparse(node).split("\n")]


@pytest.mark.parametrize(("n", "shown"), [(100, "…, not"), (1_000, "is an array of shape (1000,), not")])
def test_a_report_shows_the_beginning_of_a_long_answer_or_only_its_shape(n, shown):
    for name in ("attention_shapes", "attention_cost"):
        report = examine(name, lambda *arguments: ((7,) * n,) * 2, seed=1)
        assert shown in report.headline()
        assert len(report.headline()) < 300
        assert len(report.message) < 2_000
