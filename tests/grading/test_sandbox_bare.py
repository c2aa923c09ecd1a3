"""Without a sandbox the same cells give the same outputs, within what limits can be had, and all of it is marked."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import runs, wait_until

from grading.pool import Boxes
from grading.sandbox import bubblewrap
from grading.sandbox.execute import execute
from grading.sandbox.host import Host
from grading.sandbox.limits import MB, Limits
from grading.submission import UNSANDBOXED, Submission, Submissions
from grading.task import Probe, Step, Task

LIMITS = Limits(cell=5, notebook=20, grace=0.5, memory=400 * MB, restarts=2)


def none(*_: object) -> None:
    raise AssertionError("bubblewrap was asked for")


@pytest.fixture(scope="module")
def bare():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bubblewrap, "_program", none)
        with Host(LIMITS, sandboxed=False) as host:
            host.ready()
            yield host


def run(host, *steps, limits=LIMITS):
    cells = tuple(Step("", step) if isinstance(step, str) else Step("", probe=step) for step in steps)
    return execute(host, Task(cells, limits, sandboxed=False))


def text(result, i=0) -> str:
    return "".join(output.get("text", "") for output in result.outputs[i])


class NotStarted(Host):
    def launch(self) -> None:
        pass


@pytest.mark.parametrize("sandboxed", [True, False])
def test_isolation_is_proven_once_unless_there_is_to_be_no_sandbox(monkeypatch, sandboxed):
    proven = []
    monkeypatch.setattr("grading.pool.require_isolation", lambda host, course: proven.append(course))
    boxes = Boxes(3, Host(LIMITS, sandboxed=sandboxed))
    try:
        assert [boxes.submit([]).result() for _ in range(4)] == [[]] * 4
    finally:
        boxes.close()
    assert len(proven) == sandboxed


def test_nothing_is_run_in_a_box_that_does_not_hold(monkeypatch):
    def leaks(host: Host, course: object) -> None:
        raise bubblewrap.NoSandboxError("it leaks")

    monkeypatch.setattr("grading.pool.require_isolation", leaks)
    boxes = Boxes(1, Host(LIMITS))
    try:
        for _ in range(2):
            with pytest.raises(bubblewrap.NoSandboxError, match="it leaks"):
                boxes.submit([])
    finally:
        boxes.close()


@pytest.mark.slow
def test_cells_run_and_questions_are_answered(bare):
    choice = Probe("letter")
    result = run(bare, "import numpy as np\nletter = 'b'", "print(np.ones(3).sum())", choice)
    assert text(result, 1) == "3.0\n"
    assert result.answered[2].facts["value"] == "b"
    assert result.stops == {}


def test_a_submission_runs_as_who_grades_in_a_folder_that_is_gone_afterwards(bare):
    result = run(bare, "import os\nopen('left', 'w').close()\nprint(os.getuid(), os.getcwd())")
    uid, folder = text(result).split()
    assert int(uid) == os.getuid()
    assert not Path(folder).exists()


def test_the_verdicts_are_the_same(bare):
    quick = Limits(cell=0.5, notebook=20, grace=0.3, restarts=0)
    assert run(bare, "while True: pass", limits=quick).stops[0][0] == "timeout"
    assert run(bare, "import os; os._exit(0)").stops[0][0] == "crashed"
    assert run(bare, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").stops[0][0] == "crashed"
    assert run(bare, "print('x' * 3_000_000)").cut == {0}


@pytest.mark.slow
def test_sockets_of_other_programs_are_not_charged_to_a_submission(bare):
    """Of a process without a network of its own, the kernel lists the sockets of the whole machine."""
    with bare.submission_process() as process, ExitStack() as stack:
        for _ in range(200):  # as much as 680 MB could lie in them
            for end in socket.socketpair():
                stack.enter_context(end)
        said = list(process.ask({"run": "import time; time.sleep(1); print('done')"}))
    assert "done" in str(said)


def test_no_process_survives(bare):
    result = run(bare, "import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)")
    wait_until(lambda: not runs(int(text(result))))


def test_nothing_is_left_for_the_next(bare):
    run(bare, "import numpy as np\nnp.left = left = 1")
    result = run(bare, "import numpy as np\nprint(hasattr(np, 'left'), 'left' in dir())")
    assert text(result) == "False False\n"


@pytest.mark.slow
def test_the_results_differ_from_those_of_a_sandbox_and_say_so(monkeypatch):
    monkeypatch.setattr("grading.submission.own_names", lambda _course: {})  # there is no class
    monkeypatch.setattr("grading.submission.exam_names", lambda _course: [])
    digests = set()
    for sandboxed in (True, False):
        submissions = Submissions(None, "tiny", [], None, LIMITS, None, sandboxed=sandboxed)
        digests.add(submissions._asked)
        assert (UNSANDBOXED in submissions._flags(Submission("anna", ""))) is not sandboxed
    assert len(digests) == 2
