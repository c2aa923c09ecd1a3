"""Work on a student's text stops at its bounds, holds no rights, and takes nothing with it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from processes import runs, wait_until
from tiny import REPOSITORY

from grading import bounded_worker, rendering
from grading.course import Course

pytestmark = pytest.mark.slow

CANNOT_RISE = 1 << 2  # CAP_DAC_READ_SEARCH, the one that stays


def counting(n):
    yield from ([i, "word"] for i in range(n))


def never_ending():
    yield "begun"
    while True:
        pass


def greedy():
    yield len(bytearray(3 * bounded_worker.MAX_MEMORY_BYTES))


def killed(number):
    yield "begun"
    os.kill(os.getpid(), number)


def gone(*given):
    os._exit(1)


def connecting():
    try:
        socket.socket(socket.AF_INET)
    except OSError as error:
        yield type(error).__name__
    else:
        yield "connected"


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
    assert bounded_worker.values(counting, 3) == [[0, "word"], [1, "word"], [2, "word"]]


def test_the_only_value_is_returned():
    assert bounded_worker.value(counting, 1) == [0, "word"]


def test_work_without_an_end_is_stopped_after_its_processor_time_and_keeps_what_it_had_said(monkeypatch):
    monkeypatch.setattr(bounded_worker, "CLOCK_FACTOR", 600)  # a busy machine gives a process little time
    with pytest.raises(bounded_worker.ExceededError, match="took more than 1 seconds of processor time") as stopped:
        bounded_worker.values(never_ending, seconds=1)
    assert stopped.value.values == ["begun"]


def test_work_that_only_waits_says_nothing_about_what_it_works_on(monkeypatch):
    monkeypatch.setattr(bounded_worker, "CLOCK_FACTOR", 3)
    with pytest.raises(bounded_worker.LostError, match="had not finished after 3 seconds"):
        bounded_worker.values(sleeping, seconds=1)


def test_work_cannot_take_more_memory_than_its_bound():
    with pytest.raises(bounded_worker.ExceededError, match="took more than 1 GB of memory"):
        bounded_worker.value(greedy)


def test_work_that_crashes_is_told_from_work_that_raises():
    with pytest.raises(bounded_worker.ExceededError, match=r"ended before it was finished \(exit code -11\)"):
        bounded_worker.values(killed, signal.SIGSEGV)
    with pytest.raises(bounded_worker.WorkFailedError, match=r"failed \(ValueError: no such thing\)") as stopped:
        bounded_worker.values(wrong)
    assert stopped.value.values == [1]


def test_work_that_something_else_killed_is_done_again_and_then_lost(monkeypatch):
    real, lost = bounded_worker._received, [bounded_worker.LostError("once")]

    def received(*given):
        if lost:
            raise lost.pop()
        return real(*given)

    monkeypatch.setattr(bounded_worker, "_received", received)
    assert bounded_worker.value(counting, 1) == [0, "word"]
    with pytest.raises(bounded_worker.LostError, match="ended by something else"):
        bounded_worker.values(killed, signal.SIGKILL)


def test_a_child_that_cannot_be_started_is_lost_and_leaves_nothing(monkeypatch):
    before = len([*Path("/proc/self/fd").iterdir()])
    monkeypatch.setattr("multiprocessing.context.ForkServerProcess.start", lambda child: os.open("/nowhere", 0))
    with pytest.raises(bounded_worker.LostError, match="could not be started"):
        bounded_worker.value(counting, 1)
    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_a_child_that_cannot_be_shut_in_is_lost(monkeypatch):
    monkeypatch.setattr(bounded_worker, "_child", gone)
    with pytest.raises(bounded_worker.LostError, match="ended by something else"):
        bounded_worker.value(counting, 1)


def test_a_script_is_not_run_again_by_its_children(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('run')\nfrom grading import bounded_worker\nfrom tell import told\nprint(bounded_worker.value(told))\n"
    )
    (tmp_path / "tell.py").write_text("def told():\n yield 'told'\n")
    path = os.pathsep.join([str(tmp_path), str(Path(bounded_worker.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["run", "told"], done.stderr


def test_a_child_opens_no_connection():
    assert bounded_worker.value(connecting) == "OSError"


def test_a_child_writes_no_file_but_reads_what_its_grader_may(tmp_path):
    file = tmp_path / "there.txt"
    file.write_text("told")
    file.chmod(0o600)
    tmp_path.chmod(0o700)
    assert bounded_worker.value(reading, str(file)) == "told"
    assert bounded_worker.value(writing, str(file)) in ("OSError", "PermissionError")
    assert bounded_worker.value(writing, str(tmp_path / "new.txt")) in ("OSError", "PermissionError")
    assert file.read_text() == "told"


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no rights to give up")
def test_a_child_of_root_is_nobody_and_may_do_nothing_but_read():
    ids, capabilities = bounded_worker.value(rights)
    assert set(ids) == {str(bounded_worker.NOBODY_UID)}
    assert capabilities == CANNOT_RISE


def test_no_child_outlives_the_process_that_asked_for_it(tmp_path):
    """The server of the children ends with the grader, however it ends, and takes them along."""
    (tmp_path / "tell.py").write_text(
        "import os, time\ndef told():\n print(os.getpid(), flush=True)\n time.sleep(9999)\n yield\n"
    )
    code = "from tell import told\nfrom grading import bounded_worker\nbounded_worker.values(told)\n"
    path = os.pathsep.join([str(tmp_path), str(Path(bounded_worker.__file__).parents[1])])
    with psutil.Popen(
        [sys.executable, "-c", code], stdout=-1, env=os.environ | {"PYTHONPATH": path}, text=True
    ) as grader:
        child = int(grader.stdout.readline())
        assert runs(child)
        grader.kill()
        grader.stdout.read()  # ends once nobody holds the other end
    wait_until(lambda: not runs(child))


def test_a_temporary_folder_with_a_long_name_is_no_obstacle(tmp_path):
    place = tmp_path / ("long" * 25)
    place.mkdir()
    code = "from test_bounded_worker import counting\nfrom grading import bounded_worker\n"
    code += "print(bounded_worker.value(counting, 1))\n"
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(bounded_worker.__file__).parents[1])])
    settings = os.environ | {"PYTHONPATH": path, "TMPDIR": str(place)}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True)
    assert done.stdout == "[0, 'word']\n", done.stderr
    assert list(place.iterdir()) == []


def imported_by_a_page(notebook: NotebookNode, settings):
    before = set(sys.modules)
    about = dict.fromkeys(("score", "max_score", "late_penalty"), 0) | {"student": "ada", "notebook": "a"}
    list(rendering._page(notebook, {"nonce": "", "nbgrader": about, "unique_key": "a"}, settings))
    yield sorted(sys.modules.keys() - before)


def test_a_page_imports_nothing_that_its_server_has_not_imported():
    """Each page is made in a process of its own, so that an import there is paid for by every student."""
    error = new_output("error", ename="ValueError", evalue="bad", traceback=["\x1b[31mbad\x1b[0m"])
    shown = new_output("display_data", data={"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "1"})
    cells = [
        new_markdown_cell("# A\n\n$x^2$ and `y`\n\n```python\nz\n```"),
        new_code_cell("%time f(1)", outputs=[shown, error]),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    settings = rendering._settings(Course.at(REPOSITORY).config())
    assert bounded_worker.value(imported_by_a_page, notebook, settings) == []
