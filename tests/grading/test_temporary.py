"""Temporary folders are gone when their process is, however it may have ended."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from grading.sandbox.payload import packed_payload
from grading.sandbox.temporary import PREFIX, sweep, temporary

HOLD = """
import sys, time
from grading.sandbox.temporary import temporary
with temporary("payload") as folder:
    (folder / "sub").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""

FORK = """
import os, sys
from grading.sandbox.temporary import temporary
block = temporary("payload")
folder = block.__enter__()
if (child := os.fork()) == 0:
    sys.exit()
os.waitpid(child, 0)
print(folder.exists())
block.__exit__(None, None, None)
print(folder.exists())
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(place):
    """A process that has a temporary folder."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith(f"{place}/{PREFIX}payload-")
        yield process
        process.kill()


def test_the_folder_of_a_killed_process_is_gone_at_the_next_start(place, holder):
    (left,) = place.iterdir()
    with packed_payload():
        assert left.exists(), "its process lives"
    holder.send_signal(signal.SIGKILL)
    holder.wait(60)
    with packed_payload() as payload:
        assert list(place.iterdir()) == [payload]
    assert not list(place.iterdir())


def test_nothing_else_is_swept(place, monkeypatch):
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "file").touch()
    others = ["payload-12345678", f"{PREFIX}payload-x", f"{PREFIX}payload-1234567/", f"{PREFIX}file-12345678", "x"]
    for name in others:
        (place / name).mkdir()
    (place / f"{PREFIX}file-12345678").rmdir()
    (place / f"{PREFIX}file-12345678").touch()
    (place / f"{PREFIX}link-12345678").symlink_to(place / "elsewhere")
    before = {path.name for path in place.iterdir()}
    sweep()
    assert {path.name for path in place.iterdir()} == before
    assert (place / "elsewhere" / "file").exists()
    theirs = place / f"{PREFIX}payload-12345678"
    theirs.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    sweep()
    assert theirs.exists(), "it is somebody else's"


def test_a_folder_is_gone_behind_its_block_and_not_swept_within(place):
    with temporary("payload") as folder:
        sweep()
        assert folder.exists()
    assert not folder.exists()


def test_a_folder_stays_when_a_forked_copy_of_its_process_ends(place):
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"], "it is there until its own process leaves the block"
