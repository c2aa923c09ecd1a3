"""A program that runs in a fork behaves as it does in a Python process of its own."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from _tools.forked_python import forked_python
from pages import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="we fork only on Linux")]

PROGRAM = """\
import json, os, sys
if sys.argv[1] == "wait":
    print(os.getpid(), flush=True)
    sys.stdin.read()
told = {"modules": "fractions" in sys.modules, "arguments": sys.argv[1:], "name": __name__, "input": sys.stdin.read()}
print(json.dumps(told | {"folder": os.getcwd(), "here": os.environ["HERE"]}))
print("a warning", file=sys.stderr)
if sys.argv[1] == "thread":
    import threading, time
    threading.Thread(target=lambda: (time.sleep(0.5), print("the thread is done"))).start()
if sys.argv[1] == "raise":
    raise ValueError("as it should")
sys.exit(3)
"""
USER = """\
import sys
from _tools.forked_python import forked_python
with forked_python() as python:
    print(*python, sep="\\n", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def python():
    with forked_python("fractions") as python:
        yield python


@pytest.fixture
def command(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return [*python, "-m", "program"]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("HERE", "yes")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "book"))


def run(command, folder, *arguments):
    options = {"cwd": folder, "input": "in", "capture_output": True, "text": True}
    return subprocess.run([*command, *arguments], **options, check=False)


def ends(pid):
    """Wait until a process has ended."""
    try:
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.05)
    except psutil.NoSuchProcess:
        pass
    return True


def waiting(command, folder):
    """Start a program that waits, and return it with its process ID."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program = subprocess.Popen([*command, "wait"], cwd=folder, **streams)
    return program, int(program.stdout.readline())


def test_a_program_has_its_own_environment_and_the_modules_of_the_server(command, tmp_path):
    done = run(command, tmp_path, "one", "two")
    assert done.returncode == 3
    assert '"modules": true, "arguments": ["one", "two"], "name": "__main__", "input": "in"' in done.stdout
    assert f'"folder": "{tmp_path}", "here": "yes"' in done.stdout
    assert done.stderr == "a warning\n"


def test_an_error_is_printed_and_sets_the_exit_status(command, tmp_path):
    done = run(command, tmp_path, "raise")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: as it should\n")


def test_killing_the_command_kills_its_program_and_no_other(command, tmp_path):
    (first, one), (second, other) = waiting(command, tmp_path), waiting(command, tmp_path)
    with first, second:
        first.kill()
        assert ends(one)
        assert psutil.pid_exists(other)
        second.kill()
        assert ends(other)


def test_a_large_environment_arrives(command, tmp_path, monkeypatch):
    monkeypatch.setenv("LARGE", "x" * 100_000)
    assert run(command, tmp_path, "one").returncode == 3


def test_threads_are_waited_for(command, tmp_path):
    assert "the thread is done" in run(command, tmp_path, "thread").stdout


def test_forks_draw_different_random_numbers(tmp_path):
    (tmp_path / "drawn.py").write_text("import numpy as np\nprint(np.random.random(3))\n")
    with forked_python("numpy") as python:
        assert run([*python, "-m", "drawn"], tmp_path).stdout != run([*python, "-m", "drawn"], tmp_path).stdout


def test_other_options_are_left_to_python(command, tmp_path):
    *python, _, _ = command
    done = run(
        [*python, "-X", "dev", "-c", "import sys; print('fractions' in sys.modules, sys.flags.dev_mode)"], tmp_path
    )
    assert done.stdout == "False True\n"


def test_it_starts_where_folders_of_scripts_are_not_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    (tmp_path / "program.py").write_text(PROGRAM)
    with forked_python("_tools.replace_folder") as python:
        assert run([*python, "-m", "program"], tmp_path, "one").returncode == 3


def test_an_interrupt_ends_nothing(command, tmp_path):
    program, _ = waiting(command, tmp_path)
    program.send_signal(signal.SIGINT)
    said, _ = program.communicate(b"in")
    assert (b'"arguments": ["wait"]' in said, program.returncode) == (True, 3)


def test_no_process_is_left_when_the_process_that_started_the_server_is_killed(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", USER], **streams, text=True) as user:
        python = [user.stdout.readline().strip() for _ in range(5)]
        (server,) = psutil.Process(user.pid).children()
        program, pid = waiting([*python, "-m", "program"], tmp_path)
        with program:
            user.send_signal(signal.SIGKILL)
            assert ends(server.pid)
            assert ends(pid)
            assert program.wait() == 1


def test_a_module_that_cannot_be_imported_is_reported(capfd):
    said = pytest.raises(RuntimeError, match="could not start with the modules fractions, nothing_of_this_name")
    with said, forked_python("fractions", "nothing_of_this_name"):
        pass
    assert "No module named 'nothing_of_this_name'" in capfd.readouterr().err
