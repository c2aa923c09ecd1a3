"""Text that keeps a parser or a tokenizer busy for minutes costs its author a look, and nobody else notices.

Each text would take ten seconds or more. The bounds are set low, so that the test need not wait for the real ones.
"""

import pytest
from tiny import TinyCourse

from grading import admission
from grading.insight import likeness
from grading.report import rows
from grading.run import How, run

RIGHT = (
    "def one(x, axis=-1):\n    return np.exp(x - (m := x.max(axis, keepdims=True))) / "
    "np.exp(x - m).sum(axis, keepdims=True)\n"
)
SLOW_TO_LOOK_THROUGH = f"{RIGHT}x = 'x'" + '.__dict__["a"]' * 900
SLOW_TO_COMPARE = "x='" + "\\'" * 40_000  # a string without an end


@pytest.fixture(scope="module")
def course(tiny, boxes) -> TinyCourse:
    tiny.submit("honest")
    tiny.submit("slow-checks", answer_one=SLOW_TO_LOOK_THROUGH)
    tiny.submit("slow-words", answer_one=SLOW_TO_COMPARE)
    with pytest.MonkeyPatch.context() as low:
        low.setattr(admission, "SECONDS", 1)
        run(tiny, "tiny", None, How(pages=False), pool=boxes)
    return tiny


def test_code_that_cannot_be_looked_through_in_time_is_graded_and_flagged(course):
    graded = {row.outcome.student: row for row in rows(course, "tiny")}
    assert graded["honest"].outcome.flags == ()
    assert graded["honest"].score == 6
    assert graded["slow-checks"].score == 6
    (flag,) = graded["slow-checks"].outcome.flags
    assert flag == "its code could not be looked through: took more than 1 seconds of processor time"


def test_code_that_cannot_be_compared_in_time_is_left_out_and_the_others_are_compared(course, monkeypatch):
    monkeypatch.setattr(likeness, "SECONDS", 1)
    found = likeness.likeness(course, "tiny", ["honest", "slow-checks", "slow-words"])
    assert found.compared == 2
    assert found.left_out == (("slow-words", "comparing it took more than 1 seconds of processor time"),)
