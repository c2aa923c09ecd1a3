"""Whatever a submission does to its process, the grader goes on in time, and knows what it was."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from grading.sandbox import bubblewrap, failures, lifeline
from grading.sandbox import execute as execute_module
from grading.sandbox.execute import execute
from grading.sandbox.host import Host
from grading.sandbox.limits import MB, Limits
from grading.task import Probe, Result, Step, Task

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bubblewrap.shutil.which("bwrap") is None or bubblewrap.why_not() is not None,
    reason="no sandbox can be had here",
)
LIMITS = Limits(cell=10, notebook=30, grace=0.4, memory=300 * MB, cell_output=20_000, notebook_output=50_000)
QUICK = replace(LIMITS, cell=0.4)
CHANNEL = """
import os
links = {name: f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")}
channel = next(int(name) for name, link in links.items() if os.path.islink(link) and "socket:" in os.readlink(link))
def send(body):
    os.write(channel, len(body).to_bytes(4, "big") + body)
"""


def run(host, *steps, limits=LIMITS):
    cells = tuple(Step("", step) if isinstance(step, str) else Step("", probe=step) for step in steps)
    return execute(host, Task(cells, limits))


def text(result, i=0) -> str:
    return "".join(output.get("text", "") for output in result.outputs[i])


def texts(result) -> list[str]:
    return [text(result, i) for i in sorted(result.outputs)]


@pytest.mark.slow
def test_a_loop_is_interrupted_and_what_comes_after_it_still_has_its_names(host):
    result = run(host, "x = 3\nprint('before')", "while True: pass", "print(x)", limits=QUICK)
    assert {i: verdict for i, (verdict, _) in result.stops.items()} == {1: "timeout"}
    assert "did not finish within 0.4 seconds" in result.stops[1][1]
    assert texts(result) == ["before\n", "", "3\n"]
    assert result.outputs[1][-1]["ename"] == "KeyboardInterrupt"


def test_a_cell_that_is_deaf_to_the_interrupt_is_killed_and_the_rest_runs_without_it(host):
    deaf = "print('kept')\nwhile True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass"
    result = run(host, "x = 3\nprint('once')", deaf, "print(x)", Probe("str(x)"), limits=QUICK)
    assert {i: verdict for i, (verdict, _) in result.stops.items()} == {1: "timeout"}
    assert texts(result) == ["once\n", "kept\n", "3\n"]
    assert result.answered[3].facts["value"] == "3"


def test_the_notebook_has_a_deadline_of_its_own(host):
    cells = ["print('done')", *["import time; time.sleep(1)"] * 5]
    result = run(host, *cells, Probe("1"), limits=replace(LIMITS, notebook=0.5, clock=4))
    assert text(result) == "done\n"
    stopped, (verdict, why) = min(result.stops.items())
    assert 0 < stopped < len(cells)
    assert verdict == "timeout"
    assert "2 seconds" in why
    assert result.answered.get(len(cells)) is None or result.answered[len(cells)].facts is None


@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        ("import os; os._exit(0)", "crashed", "ended the Python process"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "", ""),  # the first process cannot be
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
        ("import os; os.closerange(3, 256)", "crashed", ""),
        (f"{CHANNEL}send(b'[]')", "tampered", "channel"),
        (f"{CHANNEL}send(b'{{}}')", "tampered", "channel"),
        (f'{CHANNEL}send(b\'{{"output": {{"output_type": []}}}}\')', "tampered", "channel"),
        (f"{CHANNEL}os.write(channel, b'\\xff' * 9)", "output-limit", "far more"),
        ("x = bytearray(10**9)", "", ""),
    ],
    ids=["exit", "kill", "null", "hangs up", "list", "empty", "odd kind", "noise", "memory"],
)
def test_each_end_has_its_verdict_and_the_next_cell_runs(host, source, verdict, words):
    result = run(host, source, "print('after')")
    found, reason = result.stops.get(0, ("", ""))
    if verdict:
        assert (found, words in reason) == (verdict, True)
    else:
        assert found in ("", "crashed")  # an error, or the end of the process: neither stops the grader
    assert text(result, 1) == "after\n"


@pytest.mark.slow
def test_a_process_that_takes_too_much_processor_time_is_ended(host):
    result = run(host, "while True: pass", "print('after')", limits=replace(LIMITS, processor=1))
    (verdict, reason), *_ = result.stops.values()
    assert (verdict, "processor time" in reason) == ("timeout", True)
    assert text(result, 1) == "after\n"


def test_an_answer_with_another_number_than_the_question_had_is_tampering(host):
    forge = f"{CHANNEL}\nclass Letter(str):\n    pass\nimport json\n"
    forge += "class Value:\n    def __repr__(self):\n        send(json.dumps({'nonce': '0', 'value': 'a'}).encode())\n"
    forge += "        return 'b'\nletter = Value()"
    result = run(host, forge, Probe("letter"))
    assert result.stops[1][0] == "tampered"


def test_student_code_finds_no_module_of_the_grader_but_its_exceptions(host):
    modules = "import sys\nfound = [x for x in sys.modules if x.startswith('grading')]; print(*found)"
    names = "print(*(x for x in vars(sys.modules[found[0]]) if x[0] != '_'))"
    objects = "print(*(x for x in vars(sys.stdout).values() if type(x).__module__.startswith('grading')))"
    result = run(host, modules, names, objects)
    assert texts(result) == ["grading.sandbox.inside.refusals\n", "Forbidden Withheld\n", "\n"]


def test_output_is_cut_at_the_limit_of_a_cell_and_of_the_notebook(host):
    result = run(host, "print('x' * 30_000)", "print('y' * 15_000)", "print('z' * 15_000)", "1 + 1", "print('w')")
    assert 5_000 < len(text(result, 0)) <= 20_000
    assert result.cut >= {0}
    assert len(text(result, 1)) == 15_001
    assert sum(len(one) for one in texts(result)) <= 50_000
    assert result.stops == {}


def test_a_process_that_ends_too_often_is_given_up(host):
    result = run(host, *["import os; os._exit(1)"] * 4, Probe("1"), limits=replace(LIMITS, restarts=2))
    assert [result.stops[i][0] for i in range(3)] == ["crashed"] * 3
    assert result.stops[4] == ("", "was not reached.")


def test_what_was_shown_before_a_restart_is_shown_once(host):
    result = run(host, "import os\nprint('one')", "os._exit(0)", "print('two')", "os._exit(0)", "print('three')")
    assert [text(result, i) for i in (0, 2, 4)] == ["one\n", "two\n", "three\n"]


def sleepers(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_no_process_survives_its_submission(host):
    word = "31415.9"
    start = f"""import os, subprocess
subprocess.Popen(["sleep", "{word}"])
subprocess.Popen(["setsid", "-f", "sleep", "{word}"]).wait()
if not os.fork():
    os.setsid()
    if not os.fork(): os.execvp("sleep", ["sleep", "{word}"])
    os._exit(0)
"""
    with host.submission_process(limits=LIMITS) as process:
        list(process.ask({"run": start}))
        list(process.ask({"run": "import time; time.sleep(0.2)"}))
        assert len(sleepers(word)) == 3
    assert sleepers(word) == []


@pytest.mark.parametrize(("said", "is_well"), [(b"killed", True), (b"", False), (b"up", False)])
def test_a_box_is_given_up_where_nothing_is_killed_and_not_where_something_is_slow_to_end(monkeypatch, said, is_well):
    monkeypatch.setattr(lifeline, "END_SECONDS", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(said) if said else None
        assert lifeline.hang_up(ours) is is_well


def test_the_load_of_the_machine_cannot_be_watched(host):
    assert text(run(host, "import os; print([*os.walk('/proc/pressure')][0][1:])")) in ("([], [])\n", "")


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user can make no terminals for each submission")
def test_a_submission_can_have_few_terminals(host):
    source = (
        "import pty\nopened = []\ntry:\n    while True: opened += pty.openpty()\nexcept OSError: print(len(opened))"
    )
    assert int(text(run(host, source))) <= 2 * 16


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user can make no terminals for each submission")
def test_terminals_are_those_of_one_submission(host):
    opened = "import os, pty; pty.openpty(); print(sorted(os.listdir('/dev/pts')))"
    with host.submission_process(limits=LIMITS) as neighbour:
        list(neighbour.ask({"run": opened}))
        assert text(run(host, opened)) == "['0', 'ptmx']\n"


def test_nothing_passes_from_one_session_to_the_next(host):
    run(host, "import numpy as np, os, sys, attnlib\nnp.left = attnlib.left = sys.left = left = 1\n"
        "os.environ['LEFT'] = '1'\nopen('left', 'w').close()\nprint(os.listdir())")  # fmt: skip
    result = run(host, "import numpy as np, os, sys, attnlib\n"
                 "print(hasattr(np, 'left'), hasattr(attnlib, 'left'), hasattr(sys, 'left'), 'left' in globals(), "
                 "'LEFT' in os.environ, os.listdir())")  # fmt: skip
    assert text(result) == "False False False False False []\n"


def test_the_box_is_the_same_after_all_of_this(host):
    host.ready()
    processes = host._process.pid if host._process else 0
    run(host, "import os; os._exit(0)")
    assert (host._process.pid if host._process else 0) == processes
    assert Path(f"/proc/{processes}").exists()


@pytest.mark.slow
def test_a_box_that_somebody_kills_is_made_anew():
    with Host(LIMITS) as box:
        box.ready()
        box._process.kill()
        box._process.wait()
        assert text(run(box, "print('again')")) == "again\n"


def kill_in_the_middle(monkeypatch, times: int) -> None:
    """Have somebody kill a submission's process before its second step, in its first so many runs."""
    left, do = [True] * times, execute_module._Run._do

    def kill_and_do(self, process, i, step):
        if i == 1 and left and left.pop():
            process._process.kill()
        do(self, process, i, step)

    monkeypatch.setattr(execute_module._Run, "_do", kill_and_do)


@pytest.mark.slow
def test_a_submission_whose_process_somebody_kills_runs_again_and_nothing_is_lost(host, monkeypatch):
    steps = ("x = 1\nprint('one')", "print('two')", "print(x)")
    undisturbed = run(host, *steps)
    host.ready()
    box = host._process.pid
    kill_in_the_middle(monkeypatch, 1)
    result = run(host, *steps)
    assert result.again.startswith("this was run a second time: something other than the grader or the submission")
    result.again = ""
    assert result == undisturbed
    assert host._process.pid == box, "others are at work in it"


@pytest.mark.slow
def test_a_submission_whose_process_is_killed_again_is_not_judged(host, monkeypatch):
    kill_in_the_middle(monkeypatch, 2)
    result = run(host, "print('one')", "print('two')")
    assert "something other than the grader or the submission's own code" in result.lost
    assert (result.stops, result.outputs) == ({}, {})


def test_a_process_and_then_its_box_may_be_killed_once_each(monkeypatch):
    came = iter(
        [failures.KilledError("process"), failures.HostLostError("box"), Result(), failures.KilledError("process")] * 2
    )

    def executed(host, task):
        if isinstance(one := next(came), Exception):
            raise one
        return one

    monkeypatch.setattr(execute_module, "_executed", executed)
    task = Task((), LIMITS)
    assert execute(None, task) == Result(again="this was run a second time: process")
    assert execute(None, task).lost == "process", "it was killed twice"


@pytest.mark.parametrize("victim", ["child.pid", "0", "-1"])
def test_what_a_submission_kills_itself_counts_as_its_own_doing(host, victim):
    source = f"""import os, signal, subprocess
child = subprocess.Popen(["sleep", "600"])
os.kill({victim}, signal.SIGKILL)
print(child.wait())"""
    result = run(host, source)
    assert (text(result), result.again, result.lost, result.stops) == ("-9\n", "", "", {})


def test_a_kill_is_the_submissions_own_where_there_is_no_sandbox():
    assert failures.how_it_ended(-9, 0.5, 190, sandboxed=False).verdict == "crashed"
    assert failures.how_it_ended(-9, 190.01, 190, sandboxed=True).verdict == "timeout"
    with pytest.raises(failures.KilledError):
        failures.how_it_ended(-9, 0.5, 190, sandboxed=True)


@pytest.mark.slow
def test_a_submission_that_has_the_kernel_kill_it_is_not_run_again(host):
    lower = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    result = run(host, lower, "print('after')")
    assert (result.stops[0][0], text(result, 1), result.again, result.lost) == ("timeout", "after\n", "", "")
