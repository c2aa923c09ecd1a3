"""Programs that are forks of one process behave like programs of their own."""

import os
import signal

import pytest
from _tools.fork_server import ForkServer

PROGRAM = """\
import json, os, signal, sys
if sys.argv[1] == "wait":
    signal.pause()
told = {"modules": "fractions" in sys.modules, "arguments": sys.argv[1:], "name": __name__, "input": sys.stdin.read()}
print(json.dumps(told | {"folder": os.getcwd(), "here": os.environ["HERE"], "leader": os.getsid(0) == os.getpid()}))
sys.exit(3)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    server = ForkServer("fractions")
    yield server
    server.stop()


@pytest.fixture
def start(server, tmp_path):
    """Start the program above, whose output goes into a file."""
    (tmp_path / "program.py").write_text(PROGRAM)

    def started(*arguments):
        with (tmp_path / "said").open("w") as said:
            env = os.environ | {"HERE": "yes"}
            return server.start(["program", *arguments], cwd=tmp_path, env=env, stdout=said.fileno())

    return started


def test_a_program_has_its_own_surroundings_and_the_modules_of_the_server(start, tmp_path):
    assert start("one", "two").wait() == 3
    said = (tmp_path / "said").read_text()
    assert '"modules": true, "arguments": ["one", "two"], "name": "__main__", "input": ""' in said
    assert f'"folder": "{tmp_path}", "here": "yes", "leader": true' in said


def test_a_program_that_is_killed_does_not_end_the_others(start):
    first, second = start("wait"), start("wait")
    assert first.poll() is None
    first.kill()
    assert first.wait() == first.poll() == -signal.SIGKILL
    first.terminate()  # nothing to end any more
    assert second.poll() is None
    second.terminate()
    assert second.wait() == -signal.SIGTERM


def test_an_interrupt_meant_for_a_session_leaves_the_server_alone(server, start):
    program = start("wait")
    server._process.send_signal(signal.SIGINT)
    assert start("again").wait() == 3
    program.send_signal(signal.SIGINT)
    assert program.wait() != 0
