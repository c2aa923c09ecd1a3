"""A cluster that loses a worker and its scheduler, and has a slow worker, gives everybody the grades of one machine.

`pytest tests/grading/test_cluster_faults.py --submissions 1000` tries it with so many submissions.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed.comm.core import CommClosedError
from processes import wait_until
from tiny import ELSEWHERE, ONE_AXIS, OVERFLOWS, REPOSITORY

from grading.course import GradingError
from grading.pool import Cluster
from grading.report import rows
from grading.run import How, run
from grading.run_state import RunState

pytestmark = pytest.mark.slow

DASK = Path(sys.executable).with_name("dask")
# What a submission is, with the points that tiny.py and arithmetic give for it.
POINTS = {"right": 6, "partly": 1.5 + 4 / 3 + 2, "other": 2 + 2 + 1.2, "exits": 4, "forges": 4, "shows": 4, "draws": 4}
KINDS = (
    *((edits, POINTS[kind]) for kind, edits in ELSEWHERE.items()),
    ({"answer_one": OVERFLOWS, "answer_three": ONE_AXIS}, 1.5 + 2 + 1.2),
    ({"answer_two": ""}, 4),
)


class Service:
    """A program that is started again whenever it ends, as systemd does with `Restart=always`."""

    def __init__(self, command, place: Path) -> None:
        self._command, self._place, self._ended = command, place, False
        self.starts = 0
        self._thread = threading.Thread(target=self._keep_running)
        self._start()
        self._thread.start()

    def _start(self) -> None:
        settings = {"PATH": os.environ["PATH"], "HOME": str(self._place), "OMP_NUM_THREADS": "1"}
        settings |= {"PYTHONPATH": str(REPOSITORY)}
        self.process = subprocess.Popen(self._command, cwd=self._place, env=settings, stderr=subprocess.DEVNULL)
        self.starts += 1

    def _keep_running(self) -> None:
        while not self._ended:
            self.process.wait()
            if not self._ended:
                self._start()

    def end(self) -> None:
        self._ended = True
        self.process.kill()
        self._thread.join()


@contextmanager
def stopped_most_of_the_time(service: Service):
    """Let a service run for a fifth of a second, and stop it for half of one, again and again."""
    done = threading.Event()

    def hold_up() -> None:
        while not done.wait(0.2):
            service.process.send_signal(signal.SIGSTOP)
            done.wait(0.5)
            service.process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=hold_up)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def scheduler(address, tmp_path_factory):
    port = address.rpartition(":")[2]
    command = [DASK, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    service = Service(command, tmp_path_factory.mktemp("scheduler"))
    yield service
    service.end()


def test_a_scheduler_without_workers_is_not_waited_for(scheduler, address):
    wait_until(lambda: connects(address))
    with pytest.raises(GradingError, match=f"has no workers. Start workers with `dask worker {address}"):
        How(scheduler=address).pool()


def connects(address: str) -> bool:
    host, _, port = address.removeprefix("tcp://").partition(":")
    with socket.socket() as one:
        return one.connect_ex((host, int(port))) == 0


@pytest.fixture
def workers(scheduler, address, tmp_path_factory):
    command = [DASK, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    services = [Service(command, tmp_path_factory.mktemp("worker")) for _ in range(2)]
    yield services
    for service in services:
        service.end()


def test_nothing_is_lost_or_doubled_and_the_grades_are_those_of_one_machine(
    tiny, boxes, workers, scheduler, address, pytestconfig, tmp_path
):
    count = pytestconfig.getoption("submissions")
    for i, (edits, _) in enumerate(KINDS):
        tiny.submit(f"{i}", **edits)
    run(tiny, "tiny", how=How(pages=False), pool=boxes)
    here = grades(tiny)
    assert [sum(score for score, _ in here[f"{i}"][1].values()) for i in range(len(KINDS))] == pytest.approx(
        [points for _, points in KINDS]
    )

    course = type(tiny).at(tiny.root, tmp_path / "class")
    for i in range(count):
        course.submit(f"{i}", **KINDS[i % len(KINDS)][0])
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(2, timeout=600)
    outcomes = course.outcomes("tiny")

    def break_things() -> None:
        for graded, service in ((count // 4, workers[1]), (count // 2, scheduler)):
            wait_until(lambda graded=graded: outcomes.is_dir() and len(list(outcomes.iterdir())) >= graded)
            service.process.kill()

    breaking = threading.Thread(target=break_things)
    breaking.start()
    with stopped_most_of_the_time(workers[0]):
        run(course, "tiny", how=How(scheduler=address))
    breaking.join()
    assert (scheduler.starts, workers[1].starts > 1) == (2, True)
    assert grades(course) == {f"{i}": here[f"{i % len(KINDS)}"] for i in range(count)}
    assert all((course.feedback(student, "tiny") / "tiny.html").is_file() for student in grades(course))
    log = [entry.said for entry in RunState(course, "tiny").audit.entries()[0]]
    assert sorted(one["student"] for one in log if "verdict" in one) == sorted(grades(course))


class FakeFuture:
    """A stand-in for a client's future: ``result`` returns the results, or fails as if they were lost on the way."""

    def __init__(self, status: str, error: Exception | None = None) -> None:
        self.status, self._error = status, error

    def add_done_callback(self, call) -> None:
        call(self)

    def result(self) -> str:
        if self._error:
            raise self._error
        return "[]"


@pytest.mark.parametrize(("status", "tries"), [("finished", 2), ("error", 1)])
@pytest.mark.parametrize(
    "lost", [CommClosedError("in <TCP (closed)>: Connection reset by peer"), OSError("Timed out trying to connect")]
)
def test_a_submission_is_sent_again_if_its_results_are_lost_but_not_if_a_worker_raised_the_error(
    monkeypatch, status, tries, lost
):
    futures = [FakeFuture(status, lost), FakeFuture("finished")]
    client = SimpleNamespace(submit=lambda *_, **__: futures.pop(0))
    monkeypatch.setattr(Cluster, "_running", lambda _: client)
    cluster = Cluster.__new__(Cluster)
    cluster._closed = False
    results = cluster.submit([])
    assert len(futures) == 2 - tries
    assert (results.exception() is None) == (tries == 2)


def grades(course):
    return {
        row.outcome.student: (row.outcome.verdict, row.scores, row.outcome.findings) for row in rows(course, "tiny")
    }
