"""Where the grader is killed, nothing of it goes on: neither a box that starts, nor one in which code runs."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from attacks.measure import survivors
from processes import wait_until

import grading
from grading.sandbox import bubblewrap

pytestmark = pytest.mark.slow

ENDLESS = "open({there!r}, 'w').close()\nimport time\ntime.sleep(3600)\n"
GRADER = """
import sys
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits

with Host(Limits(), sandboxed=sys.argv[1] == "sandboxed") as host, host.submission_process() as process:
    forks = "import os, time\\nfor _ in range(3):\\n  if not os.fork():\\n    while True: time.sleep(1)"
    list(process.ask({"run": forks}))
    print("at work", flush=True)
    list(process.ask({"run": "while True: pass"}))
"""


@pytest.fixture
def payload(tmp_path) -> Path:
    """The code of the server, in which the imports never come to their end."""
    inside = tmp_path / "payload" / "grading" / "sandbox" / "inside"
    shutil.copytree(Path(grading.__file__).parent / "sandbox" / "inside", inside)
    for folder in (inside.parent, inside.parent.parent):
        (folder / "__init__.py").touch()
    (inside / "shell.py").write_text(ENDLESS.format(there=str(tmp_path / "importing")))
    return tmp_path / "payload"


@pytest.mark.parametrize("hangs_up", ["before", "while it imports"])
def test_a_server_that_is_still_importing_ends_when_the_grader_hangs_up(payload, tmp_path, hangs_up):
    ours, theirs = socket.socketpair()
    settings = bubblewrap.environment() | {"PYTHONPATH": str(payload), "MPLCONFIGDIR": str(tmp_path)}
    if hangs_up == "before":
        ours.close()
    process = subprocess.Popen([*bubblewrap.server(), "--bare"], stdin=theirs, env=settings, cwd="/")
    theirs.close()
    try:
        if hangs_up != "before":
            wait_until(lambda: (tmp_path / "importing").exists() or process.poll() is not None)
            assert process.poll() is None
        ours.close()
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("mode", ["sandboxed", "bare"])
def test_a_submission_and_all_that_it_started_end_with_the_grader(tmp_path, mode):
    if mode == "sandboxed" and bubblewrap.why_not() is not None:
        pytest.skip("no sandbox can be had here")
    place = os.environ | {"TMPDIR": str(tmp_path)}
    grader = subprocess.Popen([sys.executable, "-c", GRADER, mode], stdout=subprocess.PIPE, env=place)
    try:
        assert grader.stdout.readline() == b"at work\n"
        family = psutil.Process(grader.pid).children(recursive=True)
        assert len(family) > 4
    finally:
        grader.send_signal(signal.SIGKILL)
        grader.communicate()
    assert psutil.wait_procs(family, timeout=600)[1] == []
    assert survivors(tmp_path) == []
