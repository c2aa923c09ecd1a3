"""The inputs of the grader are offered to nobody: not in the sandbox, not in feedback, not in the grader's process."""

import shutil
import sys

import pytest

from attnlib.checks import failing_case, session
from attnlib.checks.catalogue import CATALOGUE
from grading.graded_cell import GradedCell
from grading.judge import Judge
from grading.sandbox import bubblewrap
from grading.sandbox.execute import execute
from grading.sandbox.limits import Limits
from grading.static_checks.flags import find_flags
from grading.task import Step, Task

WRONG = "def softmax(x, axis=-1):\n    return x"
ASKING = "from attnlib.checks import failing_case\ncase = failing_case('softmax')\nprint(bool(case), case)"
HUNTING = """
import sys
import attnlib.checks
print(sorted(name for name in sys.modules if name.startswith("attnlib.checks") and ".calling" not in name))
for name in ("session", "failing_input", "shrinking", "evaluation", "catalogue"):
    try:
        __import__(f"attnlib.checks.{name}")
        print(name, "is there")
    except ModuleNotFoundError:
        pass
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bwrap") is None or bubblewrap.why_not() is not None,
    reason="no sandbox can be had here",
)
def test_there_is_no_failing_case_in_the_sandbox_and_the_feedback_offers_none(monkeypatch, host):
    monkeypatch.setattr(session, "_outcomes", {})
    cell, judge = GradedCell("it", "softmax", 4.0, CATALOGUE["softmax"]), Judge(17)
    steps = (Step("", WRONG), Step("", probe=judge.probe(cell)), Step("", ASKING), Step("", HUNTING))
    result = execute(host, Task(steps, Limits(cell=20, notebook=60)))
    assert result.outputs[2][0]["text"].startswith("False softmax is not examined here")
    assert result.outputs[3][0]["text"] == "['attnlib.checks']\n"
    shown = judge.outputs(cell, result.answered[1], "")[0].data
    assert shown["text/plain"].startswith("✗ softmax")
    assert "failing_case" not in f"{shown['text/plain']}{shown['text/html']}"
    assert not failing_case("softmax"), "the grader's own process keeps nothing"
    assert "No check of softmax has run" in repr(failing_case("softmax"))


def test_asking_for_a_failing_case_is_not_flagged_and_reaching_into_the_session_is():
    forbidden = {"softmax": CATALOGUE["softmax"].forbidden}
    honest = f"{WRONG}\n{ASKING}\nsoftmax(**case.arguments), case.expected, case.call(softmax)"
    assert not find_flags([("own", honest)], forbidden)
    (flag,) = find_flags([("own", "from attnlib.checks.session import _outcomes")], forbidden)
    assert flag.level == "suspicious"
