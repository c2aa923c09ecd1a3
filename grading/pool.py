"""Where tasks are run: in boxes on this machine, or in boxes on the machines of a dask cluster.

Either way the box's answers come back as plain data, and the process that runs it holds neither the expected answers
nor the gradebook. For tests that students write, it draws the implementations that they call by a seed in the task.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from threading import Lock, Semaphore
from time import monotonic, sleep
from typing import Any, Protocol

from grading._untyped import tqdm
from grading.course import Course, GradingError
from grading.sandbox.bubblewrap import require_hidden
from grading.sandbox.execute import execute, execute_again, execute_alone
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.sandbox.selftest import require_isolation
from grading.sandbox.selftest.canaries import ROOT
from grading.task import Answered, Probe, Result, Step, Task

CONNECT = 10  # seconds in which a scheduler has to answer
PATIENCE = 300  # seconds for which a run waits for a scheduler that it has lost
POLL = 0.1  # seconds between looks at the connection
WORKERS = "workers with `dask worker {} --nthreads 1`, on machines that have this course installed"

ResultList = list[Result]


class Pool(Protocol):
    """Runs the notebooks of one submission after another, several submissions at a time."""

    size: int

    def submit(self, tasks: Sequence[Task]) -> "Future[ResultList]":
        """Schedule a submission's tasks, and return a future for the results."""

    def close(self) -> None:
        """Stop, and end every process."""


class Boxes:
    """A box on this machine in which ``size`` submissions run side by side. A thread waits for the process of each.

    It is tested for access to the files of ``course``, by default the class that the environment names.
    """

    def __init__(self, size: int, host: Host, course: Course | None = None) -> None:
        self.size, self._host, self._course = size, host, course
        self._host.launch()
        self._threads = ThreadPoolExecutor(size, "box")
        self._places, self._all_places = Semaphore(size), Lock()
        self._proven = not host.sandboxed

    def submit(self, tasks: Sequence[Task]) -> "Future[ResultList]":
        """Run a submission's tasks as soon as there is room.

        Raises:
            NoSandboxError: the box, which is tested before anything is run, is not secure.
        """
        if not self._proven:
            require_isolation(self._host, self._course)
            self._proven = True
        return self._threads.submit(self._run, tasks)

    def _run(self, tasks: Sequence[Task]) -> ResultList:
        with self._places:
            results = [execute(self._host, task) for task in tasks]
        if not any(result.starved for result in results):
            return results
        with self._alone():
            return [execute_alone(self._host, task) for task in tasks]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until nothing else is running here, and let nothing else start."""
        with self._all_places:
            for _ in range(self.size):
                self._places.acquire()
            try:
                yield
            finally:
                self._places.release(self.size)

    def close(self) -> None:
        """Kill the box. What is running in it is lost."""
        self._host.close()
        self._threads.shutdown(cancel_futures=True)


class Cluster:
    """Boxes on the machines of a dask cluster: each worker makes one when it gets its first task.

    If the scheduler is restarted, what it had not sent back is sent again: each submission has one result.
    """

    def __init__(self, scheduler: str) -> None:
        self._address, self._reconnecting, self._closed = scheduler, Lock(), False
        try:
            self._client = _connected(scheduler)
        except OSError as error:
            raise GradingError(
                f"there is no dask scheduler at {scheduler} ({error}). Start one with `dask scheduler`, and "
                f"{WORKERS.format(scheduler)}"
            ) from error
        self.size = len(self._client.scheduler_info(n_workers=-1)["workers"])
        if not self.size:
            self.close()
            raise GradingError(f"the dask scheduler at {scheduler} has no workers. Start {WORKERS.format(scheduler)}")

    def submit(self, tasks: Sequence[Task]) -> "Future[ResultList]":
        """Send a submission's tasks to a worker. Only text is exchanged, so nothing is unpickled."""
        results: Future[ResultList] = Future()
        self._send(_packed(tasks), results)
        return results

    def _send(self, packed: str, results: "Future[ResultList]") -> None:
        try:
            sent = self._running().submit(run_packed, packed, pure=False, retries=1)
        except Exception as error:
            results.set_exception(error)
            return
        sent.add_done_callback(lambda done: self._pass_on(done, packed, results))

    def _pass_on(self, done: Any, packed: str, results: "Future[ResultList]") -> None:
        """Set the results of a submission, or send it again if the scheduler was lost.

        The scheduler may be lost before the submission has been graded, or while its results are being fetched.
        """
        try:
            results.set_result([_result(one) for one in json.loads(done.result())])
        except (CancelledError, OSError) as error:
            if self._closed or done.status == "error":  # a worker raised it
                results.set_exception(error)
            else:
                self._send(packed, results)
        except Exception as error:
            results.set_exception(error)

    def _running(self) -> Any:
        """Return a client with a connection, and wait for a scheduler that is being restarted.

        A client that has lost its scheduler tries to connect for a few seconds, and then closes for good.
        """
        with self._reconnecting:
            until = monotonic() + PATIENCE
            if self._client.status != "running":
                tqdm.write(f"Lost the scheduler at {self._address}: waiting up to 5 minutes for it.", file=sys.stderr)
            while self._client.status != "running":
                if self._client.status == "closed":
                    try:
                        self._client = _connected(self._address)
                    except OSError:
                        if self._closed or monotonic() > until:
                            raise
                sleep(POLL)
            return self._client

    def close(self) -> None:
        """Leave the cluster. What is running there is lost."""
        self._closed = True
        self._client.close()


def _connected(scheduler: str) -> Any:
    from distributed import Client  # imported only if requested, since it takes a second

    return Client(scheduler, timeout=CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]


# the boxes of this process, sandboxed or not; each starts when it is first needed, and stays
_hosts: dict[bool, Host] = {}
_one_at_a_time = Lock()


def run_here(tasks: Sequence[Task]) -> ResultList:
    """Run tasks one after another in this process's own box, which is tested before anything is run.

    Other processes may be at work on this machine, such as other workers of a cluster, so nothing here runs alone.
    """
    with _one_at_a_time:
        results = [execute(_host(task), task) for task in tasks]
        if any(result.starved for result in results):
            results = [execute_again(_host(task), task) for task in tasks]
        return results


def _host(task: Task) -> Host:
    if task.sandboxed not in _hosts:
        host = Host(task.limits, sandboxed=task.sandboxed)
        if task.sandboxed:
            # A worker has a course of its own, with its solutions and perhaps a class.
            require_hidden(Course.at(ROOT))
            require_isolation(host)
        _hosts[task.sandboxed] = host
    return _hosts[task.sandboxed]


def run_packed(packed: str) -> str:
    """Run tasks on a worker; both the tasks and the results are JSON text."""
    return json.dumps([_plain(result) for result in run_here([_task(one) for one in json.loads(packed)])])


def _packed(tasks: Sequence[Task]) -> str:
    return json.dumps([asdict(task) for task in tasks])


def _task(data: dict[str, Any]) -> Task:
    steps = [step | {"probe": step["probe"] and Probe(**step["probe"])} for step in data["steps"]]
    return Task(tuple(Step(**step) for step in steps), Limits(**data["limits"]), data["sandboxed"])


def _plain(result: Result) -> dict[str, Any]:
    plain = asdict(result) | {"cut": sorted(result.cut)}
    for one in plain["answered"].values():
        one["used"] = sorted(one["used"])
    return plain


def _result(data: dict[str, Any]) -> Result:
    """Return a result as it was before it went through JSON, which turns numeric keys into text."""
    answered = {int(i): _answered(one) for i, one in data["answered"].items()}
    stops = {int(i): (str(verdict), str(reason)) for i, (verdict, reason) in data["stops"].items()}
    return Result(
        _numbered(data["outputs"]), answered, stops, set(data["cut"]), data["lost"], data["starved"], data["again"]
    )


def _answered(data: dict[str, Any]) -> Answered:
    return Answered(data["facts"], _numbered(data["answers"]), _numbered(data["tests"]), set(data["used"]))


def _numbered(data: dict[str, Any]) -> dict[int, Any]:
    return {int(i): x for i, x in data.items()}
