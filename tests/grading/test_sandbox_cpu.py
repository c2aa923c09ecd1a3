"""A limit on time counts the processor time of a submission's own processes, whatever else keeps the machine busy."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from time import sleep

import psutil
import pytest
from test_sandbox_host import LIMITS, pytestmark, run, text  # noqa: F401 (the mark holds for this file too)

from grading import pool
from grading.pool import Boxes
from grading.report import rows
from grading.run import How
from grading.run import run as grade
from grading.sandbox import cpu_time
from grading.sandbox.cpu_time import Meter, Span, Time
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.sandbox.submission_process import _is_running
from grading.task import Result, Task

PATIENT = replace(LIMITS, cell=0.5, notebook=30, clock=1000)  # the limit on elapsed time is never reached
BUSY = "    end = time.process_time() + {seconds}\n    while time.process_time() < end: pass\n    os._exit(0)\n"
START = "import os, time\n"


@pytest.mark.slow
def test_time_on_the_clock_is_not_counted(host):
    result = run(host, "import time; time.sleep(1.5); print('done')", limits=replace(PATIENT, cell=0.3))
    assert result.stops == {}
    assert text(result) == "done\n"


def test_what_sleeps_for_ever_is_ended_by_the_clock(host):
    result = run(host, "import time; time.sleep(3600)", limits=replace(LIMITS, cell=0.2, clock=3))
    verdict, reason = result.stops[0]
    assert verdict == "timeout"
    assert "did not finish within 0.6 seconds, though it used little processor time" in reason


@pytest.mark.slow
def test_the_processor_time_of_all_processes_counts(host):
    forks = START + "for _ in range(3):\n  if not os.fork():\n" + BUSY.format(seconds=600) + "time.sleep(600)"
    verdict, reason = run(host, forks, limits=PATIENT).stops[0]
    assert (verdict, "0.5 seconds of processor time" in reason) == ("timeout", True)


@pytest.mark.slow
def test_the_processor_time_of_children_that_have_ended_counts(host):
    forks = START + "while True:\n  if not os.fork():\n" + BUSY.format(seconds=0.2) + "  os.wait()"
    verdict, reason = run(host, forks, limits=PATIENT).stops[0]
    assert (verdict, "0.5 seconds of processor time" in reason) == ("timeout", True)


@pytest.mark.parametrize(
    ("does", "state", "running"),
    [
        ("while True: pass", psutil.STATUS_RUNNING, True),
        # With these flags, CLONE_VFORK and SIGCHLD, the kernel blocks the parent until its child has ended.
        ("libc.syscall(clone, 0x4000 | 17, 0, 0, 0, 0) or time.sleep(600)", psutil.STATUS_DISK_SLEEP, True),
        ("time.sleep(600)", psutil.STATUS_SLEEPING, False),
        ("os.kill(os.getpid(), 19)", psutil.STATUS_STOPPED, False),
        ("os._exit(0)", psutil.STATUS_ZOMBIE, False),
    ],
)
def test_a_process_that_is_computing_or_blocked_in_a_fork_is_running(does, state, running):
    """A blocked process goes on as soon as it can, and would use up the next cell's time."""
    begin = "import ctypes, os, platform, time\nlibc = ctypes.CDLL(None)\n"
    begin += "clone = 56 if platform.machine() == 'x86_64' else 220\nprint('ready', flush=True)\n"
    line = [sys.executable, "-c", begin + does]
    with subprocess.Popen(line, stdout=subprocess.PIPE, start_new_session=True) as started:
        try:
            assert started.stdout.readline() == b"ready\n"
            process = psutil.Process(started.pid)
            while process.status() != state:
                sleep(0.01)
            assert _is_running(process) is running
        finally:
            os.killpg(started.pid, 9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "drop",
    [
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import ctypes; ctypes.CDLL(None).sigaction(17, bytes(136) + b'\\x02' + bytes(15), None)",  # SA_NOCLDWAIT
    ],
    ids=["SIG_IGN", "SA_NOCLDWAIT"],
)
def test_the_processor_time_of_children_that_the_kernel_is_told_to_drop_counts(host, drop):
    """Without the filter, none of it counts: the cell uses several times its half second, and the clock ends it."""
    forks = f"{START}{drop}\nwhile True:\n  if not os.fork():\n{BUSY.format(seconds=0.1)}"
    forks += "  try: os.wait()\n  except ChildProcessError: pass"
    verdict, reason = run(host, forks, limits=replace(PATIENT, clock=30)).stops[0]
    assert (verdict, "0.5 seconds of processor time" in reason) == ("timeout", True), reason


@pytest.mark.slow
def test_what_a_stopped_cell_leaves_running_takes_no_time_from_the_next_cell(host):
    """Its main process sleeps, so it can be interrupted at once, and lives on."""
    forks = START + "if not os.fork():\n" + BUSY.format(seconds=600) + "time.sleep(600)"
    works = START + "end = time.process_time() + 0.35\nwhile time.process_time() < end: pass\nprint('done')"
    result = run(host, forks, works, limits=PATIENT)
    assert list(result.stops) == [0]
    assert text(result, 1) == "done\n"


@pytest.mark.slow
def test_a_process_that_waits_or_has_ended_is_no_reason_to_run_a_notebook_again(host):
    begins = "import subprocess\nones = [subprocess.Popen(['true']), subprocess.Popen(['sleep', '600'])]\nx = 1"
    result = run(host, begins, "while True: pass", "x += 1; print(x)", limits=PATIENT)
    assert list(result.stops) == [1]
    assert result.again == ""
    assert text(result, 2) == "2\n"
    later = run(host, begins, "while True: pass", "print(len([one.poll() for one in ones]))", limits=PATIENT)
    assert text(later, 2) == "2\n"


WAITERS = {  # what installs an action for SIGCHLD, and waits for its children by other means
    "torch": "from torch.utils.data import DataLoader; print([len(x) for x in DataLoader(range(6), 3, num_workers=1)])",
    "bash": "import subprocess; subprocess.run(['bash', '-c', 'sleep 0.1 & wait; echo [3, 3]'], stdout=1, check=True)",
    "sh": "import subprocess; print(subprocess.getoutput('x=$(echo 3, | cat); (sleep 0.1; echo [$x 3])'))",
}


@pytest.mark.parametrize("name", WAITERS)
def test_what_installs_a_handler_for_children_that_end_still_works(host, name):
    result = run(host, WAITERS[name], limits=replace(LIMITS, cell=30, notebook=60))
    assert result.stops == {}
    assert "[3, 3]" in str(result.outputs)


@pytest.mark.slow
def test_the_processor_time_of_children_that_have_lost_their_parent_counts(host):
    """They fall to the first process of the namespace, which is the submission's own."""
    forks = START + "while True:\n  if not os.fork():\n    if os.fork(): os._exit(0)\n" + BUSY.format(seconds=0.1)
    forks += "  os.wait(); os.wait()"
    verdict, reason = run(host, forks, limits=replace(PATIENT, clock=60)).stops[0]
    assert (verdict, "0.5 seconds of processor time" in reason) == ("timeout", True), reason


@pytest.mark.slow
def test_all_cells_together_have_a_limit_of_processor_time(host):
    # The second cell runs past the limit for longer than the grader waits between two checks.
    cell = START + "if not os.fork():\n" + BUSY.format(seconds=0.5) + "os.wait(); print('done')"
    result = run(host, *[cell] * 4, limits=replace(PATIENT, cell=1, notebook=0.7))
    assert text(result) == "done\n"
    assert "0.7 seconds of processor time. This is the limit for the whole notebook" in result.stops[1][1]


@pytest.mark.slow
def test_a_process_that_ended_has_used_what_it_used(host):
    cell = START + "if not os.fork():\n" + BUSY.format(seconds=0.35) + "os.wait(); os._exit(1)"
    result = run(host, *[cell] * 4, limits=replace(PATIENT, notebook=0.6))
    assert set(result.stops) < {0, 1, 2, 3}, "after two of them there is no time left"


@pytest.mark.parametrize(
    ("time", "delayed"),
    [
        (Time(used=20, clock=120, waited=100), 80),  # six others on its processor
        (Time(used=20, clock=120, waited=0), 0),  # it slept
        (Time(used=29, clock=120, waited=29), 0),  # it waited for its own processes
    ],
)
def test_only_waiting_for_others_counts_as_a_delay(time, delayed):
    assert time.delayed() == delayed


@pytest.mark.parametrize(
    ("clock", "waited", "left", "starved"),
    [
        (7, 0, 1, False),
        (9, 0, -1, False),  # it slept for too long
        (9, 6, 4, False),  # for 5 seconds others had the processor
        (30, 24, 1, False),
        (33, 32, -1, True),  # 24 are the most that others may delay it
    ],
)
def test_a_delay_by_others_prolongs_the_limit_on_the_clock_up_to_a_bound(monkeypatch, clock, waited, left, starved):
    meter = Meter(None, Limits(clock=4), 180)
    times = iter([Time(used=100, clock=1000, waited=10)])
    monkeypatch.setattr(meter, "now", lambda: next(times, Time(used=101, clock=1000 + clock, waited=10 + waited)))
    monkeypatch.setattr(cpu_time, "monotonic", lambda: 1000 + clock)
    meter.used = 101
    span = Span(meter, 2)
    assert span.left() == left
    assert span.why(2, "")[1] is starved


def test_the_kernel_says_how_long_a_process_waited():
    assert cpu_time.waited(Path("/proc/self")) > 0


def test_the_waiting_of_a_process_that_is_gone_and_that_of_the_grader_count(monkeypatch, tmp_path):
    """Both delay a submission. Otherwise the time that is left after a cell was killed depends on other programs."""
    waiting = {"thread-self": 2, str(os.getpid()): 30}
    for name in waiting:
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text("1000 0 7\n")
    monkeypatch.setattr(cpu_time, "PROC", tmp_path)
    meter = Meter(psutil.Process(), Limits(clock=4), 180)
    begin = meter.now()
    for name, seconds in waiting.items():
        (tmp_path / name / "schedstat").write_text(f"1000 {seconds}000000000 7\n")
    assert meter.now().since(begin).waited == 32
    shutil.rmtree(tmp_path / str(os.getpid()))
    assert meter.now().since(begin).waited == 32


@pytest.fixture
def sleeper():
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint(1, flush=True)"
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield psutil.Process(process.pid)
    process.kill()
    process.communicate()


@pytest.mark.parametrize(("seconds", "confined"), [(3600.0, True), (0.0, False)])
def test_what_takes_several_cores_is_kept_to_one_with_all_its_threads(monkeypatch, sleeper, seconds, confined):
    meter = Meter(sleeper, Limits(), 180)
    monkeypatch.setattr(cpu_time, "used", lambda family: seconds)
    meter.look([sleeper])
    threads = [thread.id for thread in sleeper.threads()]
    assert len(threads) == 2
    cores = {max(os.sched_getaffinity(0))} if confined else os.sched_getaffinity(0)
    assert [os.sched_getaffinity(thread) for thread in threads] == [cores] * 2
    priority = min(os.getpriority(os.PRIO_PROCESS, 0) + 10 * confined, 19)
    assert [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads] == [priority] * 2


def test_what_was_starved_runs_again_with_nothing_beside_it(monkeypatch):
    begun, go_on, alone = threading.Barrier(3), threading.Event(), []

    def first(host, task):
        begun.wait(60)
        if task.sandboxed:  # of the three that run at the same time, one is starved, and two go on for a while
            return Result(starved=True)
        go_on.wait(60)
        alone.append("beside it")
        return Result()

    def second(host, task):
        alone.append("alone")
        return Result()

    monkeypatch.setattr("grading.pool.execute", first)
    monkeypatch.setattr("grading.pool.execute_alone", second)
    boxes = Boxes(3, NotStarted(LIMITS, sandboxed=False))
    try:
        tasks = [Task((), LIMITS, sandboxed) for sandboxed in (True, False, False)]
        futures = [boxes.submit([task]) for task in tasks]
        threading.Timer(0.2, go_on.set).start()
        [future.result(60) for future in futures]
    finally:
        boxes.close()
    assert alone == ["beside it", "beside it", "alone"]


def test_what_a_worker_of_a_cluster_runs_again_is_not_said_to_have_run_alone(monkeypatch):
    """Other workers, of which it knows nothing, may be at work on its machine."""
    monkeypatch.setattr(pool, "_hosts", {False: NotStarted(LIMITS, sandboxed=False)})
    monkeypatch.setattr(pool, "execute", lambda host, task: Result(starved=True))
    monkeypatch.setattr("grading.sandbox.execute._executed", lambda host, task: Result())
    (result,) = json.loads(pool.run_packed(pool._packed([Task((), LIMITS, sandboxed=False)])))
    assert result["again"] == (
        "this was run a second time, beside whatever else ran on that machine: other programs kept the processors busy"
    )


class NotStarted(Host):
    def launch(self) -> None:
        pass


def starve(monkeypatch, times):
    """Let the first so many runs of a task look as if other programs had kept it from a processor."""
    from grading.sandbox import execute

    left, real = [True] * times, execute._executed

    def executed(host, task):
        result = real(host, task)
        result.starved = bool(left and left.pop())
        return result

    monkeypatch.setattr(execute, "_executed", executed)


def test_the_outcome_says_that_it_ran_again(tiny, boxes, monkeypatch):
    tiny.submit("starved")
    starve(monkeypatch, 1)
    grade(tiny, "tiny", ["starved"], pool=boxes)
    (row,) = rows(tiny, "tiny")
    assert (row.score, row.outcome.verdict) == (6, "graded")
    assert row.outcome.flags == ("this was run a second time, on its own: other programs kept the processors busy",)


def test_what_is_starved_twice_is_not_the_students_fault_and_is_graded_by_the_next_run(tiny, boxes, monkeypatch):
    tiny.submit("starved")
    with monkeypatch.context() as patch:
        starve(patch, 2)
        grade(tiny, "tiny", ["starved"], How(regrade=True), pool=boxes)
    (row,) = rows(tiny, "tiny")
    assert row.outcome.verdict == "infrastructure"
    assert "other programs kept the processors busy both times" in row.outcome.reason
    grade(tiny, "tiny", ["starved"], pool=boxes)
    (row,) = rows(tiny, "tiny")
    assert (row.score, row.outcome.verdict, row.outcome.flags) == (6, "graded", ())
