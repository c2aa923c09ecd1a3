"""Work on a student's text stops at its bounds, holds no rights, and takes nothing with it."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from tiny import runs

from grading import bounded

CANNOT_RISE = 1 << 2  # CAP_DAC_READ_SEARCH, the one that stays


def counting(n):
    yield from ([i, "word"] for i in range(n))


def never_ending():
    yield "begun"
    while True:
        pass


def greedy():
    yield len(bytearray(3 * bounded.MEMORY))


def killed():
    yield "begun"
    os.kill(os.getpid(), signal.SIGSEGV)


def wrong():
    yield 1
    raise ValueError("no such thing")


def sleeping():
    yield os.getpid()
    time.sleep(10_000)


def rights():
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    yield [lines["Uid"].split(), int(lines["CapEff"], 16) | int(lines["CapPrm"], 16) | int(lines["CapInh"], 16)]


def writing(file):
    try:
        Path(file).write_text("x")
    except OSError as error:
        yield type(error).__name__
    else:
        yield "written"


def reading(file):
    yield Path(file).read_text()


def test_what_a_generator_yields_comes_back_in_order():
    assert list(bounded.stream(counting, 3)) == [[0, "word"], [1, "word"], [2, "word"]]


def test_the_only_value_is_returned():
    assert bounded.run(counting, 1) == [0, "word"]


def test_work_without_an_end_is_stopped_after_its_processor_time_and_keeps_what_it_had_said():
    came = []
    with pytest.raises(bounded.Exceeded, match="took more than 1 seconds of processor time"):
        came += bounded.stream(never_ending, seconds=1)
    work = bounded.stream(never_ending, seconds=1)
    assert next(work) == "begun"


def test_work_that_waits_is_stopped_by_the_clock(monkeypatch):
    monkeypatch.setattr(bounded, "PATIENCE", 1)
    work = bounded.stream(sleeping, seconds=1)
    child = next(work)
    with pytest.raises(bounded.Exceeded, match="was not done after 1 seconds"):
        next(work)
    assert not runs(child)


def test_a_result_that_nobody_wants_ends_its_work():
    work = bounded.stream(sleeping)
    child = next(work)
    assert runs(child)
    work.close()
    assert not runs(child)


def test_work_cannot_take_more_memory_than_its_bound():
    with pytest.raises(bounded.Exceeded, match="took more than 1 GB of memory"):
        bounded.run(greedy)


def test_work_that_crashes_is_told_from_work_that_raises():
    with pytest.raises(bounded.Exceeded, match=r"ended before it was done \(exit code -11\)"):
        list(bounded.stream(killed))
    with pytest.raises(bounded.WorkFailed, match=r"failed \(ValueError: no such thing\)"):
        list(bounded.stream(wrong))


def test_a_child_writes_no_file_but_reads_what_its_grader_may(tmp_path):
    file = tmp_path / "there.txt"
    file.write_text("told")
    file.chmod(0o600)
    tmp_path.chmod(0o700)
    assert bounded.run(reading, str(file)) == "told"
    assert bounded.run(writing, str(file)) in ("OSError", "PermissionError")
    assert bounded.run(writing, str(tmp_path / "new.txt")) in ("OSError", "PermissionError")
    assert file.read_text() == "told"


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no rights to give up")
def test_a_child_of_root_is_nobody_and_may_do_nothing_but_read():
    ids, capabilities = bounded.run(rights)
    assert set(ids) == {str(bounded.NOBODY)}
    assert capabilities == CANNOT_RISE


def test_no_child_outlives_the_process_that_asked_for_it(tmp_path):
    """The server of the children ends with the grader, however it ends, and takes them along."""
    code = "from tests_bounded import sleeping\nfrom grading import bounded\nwork = bounded.stream(sleeping)\n"
    code += "print(next(work), flush=True)\nimport time\ntime.sleep(10_000)\n"
    (tmp_path / "tests_bounded.py").write_text(
        "import os, time\ndef sleeping():\n yield os.getpid()\n time.sleep(9999)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(bounded.__file__).parents[1])])
    with psutil.Popen(["python", "-c", code], stdout=-1, env=os.environ | {"PYTHONPATH": path}, text=True) as grader:
        child = int(grader.stdout.readline())
        assert runs(child)
        grader.kill()
    until = time.monotonic() + 60
    while runs(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(child)
