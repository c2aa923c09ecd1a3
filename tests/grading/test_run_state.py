"""A run can be killed at any moment and goes on where it was; and only one goes on at a time."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import count, pairwise
from pathlib import Path
from types import FrameType

import pytest

from grading.course import Course, GradingError
from grading.outcome import Finding, Outcome
from grading.run_state import RunInProgressError, RunState, lock
from grading.verify import _seeds

pytestmark = pytest.mark.slow

ADA = Outcome("ada", "graded", "", (Finding("softmax", "no-max", "overflows"),), "0" * 64)
OTHER = replace(ADA, verdict="timeout", reason="cell 3", findings=(), digest="1" * 64)
MODULES = ("grading.run_state", "grading.audit_log", "grading.outcome", "grading.safe_files")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(tmp_path, tmp_path / "class")


@pytest.fixture
def outcomes(course: Course) -> Path:
    return course.outcomes("softmax")


@pytest.fixture
def run_state(course: Course) -> RunState:
    return RunState(course, "softmax")


def in_child(do: Callable[[], object], before_line: Callable[[], object]) -> int:
    """Do something in a process that calls ``before_line`` before each line it runs, and return its exit code."""
    if (child := os.fork()) == 0:

        def trace(frame: FrameType, what: str, _: object) -> object:
            if what == "line" and frame.f_globals["__name__"] in MODULES:
                before_line()
            return trace

        try:
            sys.settrace(trace)
            do()
            sys.settrace(None)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int, do: Callable[[], object]) -> bool:
    """Do something in a process that is killed before the ``step``-th line it runs; tell whether it got that far."""
    steps = count(1)
    code = in_child(do, lambda: next(steps) == step and os.kill(os.getpid(), signal.SIGKILL))
    assert code in (0, -signal.SIGKILL), "the process failed of itself"
    return code != 0


def killing_steps(course: Course, do: Callable[[], object]) -> list[int]:
    """Do something once, and return the steps at which a kill leaves different files, and one behind the last.

    A kill leaves nothing but files, so that of the lines that see the same files one stands for all. The class is gone
    afterwards.
    """
    seen = course.root / "seen"
    with seen.open("w") as file:
        assert in_child(do, lambda: print(on_disk(course.folder), file=file, flush=True)) == 0
    lines = seen.read_text().splitlines()
    assert len(lines) > 20
    shutil.rmtree(course.folder)
    changes = [step for step, (now, before) in enumerate(pairwise(["", *lines]), 1) if now != before]
    assert len(changes) > 2
    return [*changes, len(lines) + 1]


def on_disk(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what each file below a folder holds, and who may read it."""
    paths = sorted(folder.rglob("*"))
    return {str(path): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"") for path in paths}


# Outcomes -------------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_found_again_by_the_next_run(course, run_state):
    run_state.store_outcome(ADA)
    assert RunState(course, "softmax").outcome_of("ada") == ADA
    assert run_state.outcome_of("bob") is None
    assert RunState(course, "other").outcome_of("ada") is None
    run_state.store_outcome(OTHER)
    assert run_state.outcome_of("ada") == OTHER
    assert Outcome.from_json((course.outcomes("softmax") / "ada.json").read_bytes()) == OTHER


def test_a_kill_at_any_step_leaves_the_outcome_before_or_the_new_one(course, run_state, outcomes):
    found = []
    for step in killing_steps(course, lambda: run_state.store_outcome(ADA)):
        killed = killed_at(step, lambda: run_state.store_outcome(ADA))
        found.append(run_state.outcome_of("ada"))
        assert found[-1] or not list(outcomes.glob("*.json")), "half of a file stands in its place"
        shutil.rmtree(course.folder, ignore_errors=True)
    assert not killed
    assert found == sorted(found, key=bool)
    assert set(found) == {None, ADA}


def test_a_kill_at_any_step_never_loses_the_outcome_before(course, run_state):
    found = []
    run_state.store_outcome(ADA)
    for step in killing_steps(course, lambda: run_state.store_outcome(OTHER)):
        run_state.store_outcome(ADA)
        killed = killed_at(step, lambda: run_state.store_outcome(OTHER))
        found.append(run_state.outcome_of("ada"))
        shutil.rmtree(course.folder)
    assert not killed
    assert found == sorted(found, key=[ADA, OTHER].index)
    assert set(found) == {ADA, OTHER}


def test_what_a_killed_run_left_behind_is_in_nobodys_way(run_state, outcomes):
    outcomes.mkdir(parents=True)
    (outcomes / ".ada.json.unfinished").write_text("{" * 10_000)
    assert run_state.outcome_of("ada") is None
    run_state.store_outcome(ADA)
    assert run_state.outcome_of("ada") == ADA
    assert [file.name for file in outcomes.iterdir()] == ["ada.json"]


def test_an_outcome_is_on_the_disk_before_it_takes_its_place(run_state, outcomes, monkeypatch):
    calls = []
    real_sync, real_rename = os.fsync, os.rename
    name = lambda file: str(Path(f"/proc/self/fd/{file}").readlink())  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(("sync", name(file))), real_sync(file)))
    monkeypatch.setattr(os, "rename", lambda *how, **at: (calls.append(("move", how[1])), real_rename(*how, **at)))
    run_state.store_outcome(ADA)
    unfinished = outcomes / ".ada.json.unfinished"
    assert calls[-3:] == [("sync", str(unfinished)), ("move", "ada.json"), ("sync", str(outcomes))]


whole = asdict(ADA)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        json.dumps(whole)[:-20],
        "[]",
        "null",
        "7",
        "[" * 100_000,
        "\x00" * 100,
        json.dumps({}),
        json.dumps(whole | {"findings": None}),
        json.dumps(whole | {"findings": [1]}),
        json.dumps(whole | {"findings": [{"question": 1}]}),
        json.dumps(whole | {"student": "bob"}),
        json.dumps(whole | {"verdict": "splendid"}),
        json.dumps(whole | {"verdict": []}),
        json.dumps(whole | {"reason": 3}),
        json.dumps(whole | {"digest": None}),
        json.dumps(whole | {"unheard": "of"}),
    ],
)
def test_a_broken_outcome_is_none_and_is_made_again(run_state, outcomes, text):
    run_state.store_outcome(ADA)
    (outcomes / "ada.json").write_text(text)
    assert run_state.outcome_of("ada") is None
    run_state.store_outcome(ADA)
    assert run_state.outcome_of("ada") == ADA


def test_bytes_that_are_no_text_are_a_broken_outcome(run_state, outcomes):
    run_state.store_outcome(ADA)
    (outcomes / "ada.json").write_bytes(b"\xff\xfe")
    assert run_state.outcome_of("ada") is None


# The secret -----------------------------------------------------------------------------------------------------------


def test_a_run_keeps_its_secret_and_the_next_draws_another(course, run_state):
    seed = run_state.seed
    assert 0 <= seed < 2**128
    assert RunState(course, "softmax").seed == run_state.seed == seed
    assert RunState(course, "other").seed != seed
    run_state.finish()
    assert run_state.seed != seed
    run_state.finish()
    run_state.finish()


def test_secrets_use_all_their_bits(run_state):
    drawn = set()
    for _ in range(64):
        drawn.add(run_state.seed)
        run_state.finish()
    assert len(drawn) == 64
    ones, zeros = 0, 0
    for seed in drawn:
        ones, zeros = ones | seed, zeros | ~seed
    assert ones == 2**128 - 1
    assert zeros % 2**128 == 2**128 - 1


def test_nobody_else_can_read_the_secret(course, run_state):
    before = os.umask(0)
    try:
        seed = run_state.seed
    finally:
        os.umask(before)
    file = course.reports("softmax") / "seed"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    assert run_state.seed == seed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_kill_at_any_step_leaves_one_secret_or_none(course, run_state):
    file, found = course.reports("softmax") / "seed", []
    for step in killing_steps(course, lambda: run_state.seed):
        killed = killed_at(step, lambda: run_state.seed)
        assert {stat.S_IMODE(left.stat().st_mode) for left in file.parent.glob("seed*")} <= {0o600}
        found.append(file.read_text() if file.exists() else None)
        if found[-1]:
            assert run_state.seed == int(found[-1], 16), "a run that was killed goes on with the secret it had drawn"
        shutil.rmtree(course.folder, ignore_errors=True)
    assert not killed
    assert found[0] is None
    assert found[-1]


def test_a_kill_while_a_run_ends_leaves_its_secret_or_none(course, run_state):
    file = course.reports("softmax") / "seed"
    assert run_state.seed
    for step in killing_steps(course, run_state.finish):
        seed = run_state.seed
        killed = killed_at(step, run_state.finish)
        assert not file.exists() or run_state.seed == seed
        is_gone = not file.exists()
        shutil.rmtree(course.folder)
    assert is_gone
    assert not killed


def test_a_kill_while_a_run_ends_leaves_a_log_whose_entries_are_of_the_seeds_it_reveals(course):
    run_state = RunState(course, "softmax")
    run_state.announce(ADA, 1.0, sandboxed=True)
    for step in killing_steps(course, run_state.finish):
        run_state = RunState(course, "softmax")
        run_state.announce(ADA, 1.0, sandboxed=True)
        killed = killed_at(step, run_state.finish)
        run_state = RunState(course, "softmax")
        run_state.announce(ADA, 1.0, sandboxed=True)
        run_state.finish()
        entries, wrong = run_state.audit.entries()
        assert wrong == [*_seeds(entries)] == []
        assert ["student" in entry.said for entry in entries] in ([True, False] * 2, [True, True, False])
        shutil.rmtree(course.folder)
    assert not killed


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "x" * 32, "-" + "0" * 31, "é" * 32])
def test_a_broken_secret_is_told(course, run_state, text):
    assert run_state.seed is not None
    (course.reports("softmax") / "seed").write_text(text)
    with pytest.raises(GradingError, match=r"should hold 32 hexadecimal digits, but does not. Remove the file"):
        _ = run_state.seed


# One run at a time ----------------------------------------------------------------------------------------------------


@pytest.fixture
def holder(course):
    """Yield the number of a process that holds the lock, and has started a program that lives longer."""
    reading, writing = os.pipe()
    if (process := os.fork()) == 0:
        try:
            with lock(course):
                started = subprocess.Popen(["sleep", "60"])
                os.write(writing, f"{started.pid}\n".encode())
                started.wait()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as said:
        started = int(said.readline())
    yield process
    os.kill(started, signal.SIGKILL)


def test_a_second_run_refuses_and_says_who_it_is_until_that_one_is_killed(course, holder):
    said = rf"in progress \(process {holder} on .+\): wait for it or stop it"
    with pytest.raises(RunInProgressError, match=said), lock(course):
        pass
    with lock(replace(course, folder=course.root / "another class")):
        pass
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with lock(course):
        pass


def test_the_lock_is_free_again_behind_the_block_whatever_happened(course):
    def fail():
        with lock(course):
            with pytest.raises(RunInProgressError, match=f"process {os.getpid()} on "), lock(course):
                pass
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()


def test_the_file_of_the_lock_may_hold_anything(course):
    course.folder.mkdir()
    (course.folder / "run.lock").write_bytes(b"\xff\x1b[2J" * 100_000)
    with lock(course), pytest.raises(RunInProgressError) as refused, lock(course):
        pass
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200
