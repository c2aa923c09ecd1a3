"""What processes hold together, against what they have been told to take."""

import math
import mmap
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from grading.sandbox import memory_usage

pytestmark = pytest.mark.slow

MB = 1_000_000
TAKE = 100 * MB
READY = "print('ready', flush=True); input()"
FAMILY = f"""
import os, sys
mine = bytearray(os.urandom(1)) * {TAKE}
for _ in range(3):
    if os.fork() == 0:
        for at in range(0, len(mine) if sys.argv[1] == "rewritten" else 0, 4096): mine[at] ^= 1
        os.close(0)
        print("child", flush=True)
        os.read(int(sys.argv[2]), 1); os._exit(0)
print("parent", flush=True); input()
"""
AREA = f"""
import ctypes, mmap, os
area = mmap.mmap(-1, {TAKE})
for _ in range(10): area.write(bytes({TAKE // 10}))
"""
LEAVE_A_PAGE = f"""
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
assert ctypes.CDLL(None).munmap(ctypes.c_void_p(at), {TAKE - TAKE % mmap.PAGESIZE}) == 0
"""


@pytest.fixture
def started():
    """Start a process, wait until it has done what it should and says so, and hand it back with its children."""
    processes = []
    until, end = os.pipe()

    def start(source, *arguments, lines=1):
        process = subprocess.Popen(
            [sys.executable, "-c", source, *arguments, str(until)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[until],
        )
        processes.append(process)
        for _ in range(lines):
            assert process.stdout.readline()
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]

    yield start
    os.close(end)
    os.close(until)
    for process in processes:
        process.communicate(b"\n")


def test_what_processes_share_counts_once(started):
    family = started(FAMILY, "shared", lines=4)
    assert len(family) == 4
    assert sum(memory_usage.bytes_of_process(one) for one in family) > 4 * TAKE
    assert TAKE < memory_usage.bytes_of_processes(family) < 1.5 * TAKE


def test_what_they_have_made_their_own_counts_for_each(started):
    family = started(FAMILY, "rewritten", lines=4)
    assert 4 * TAKE < memory_usage.bytes_of_processes(family) < 4.5 * TAKE


def test_shared_memory_that_was_given_back_still_counts(started):
    before = memory_usage.shared_bytes_of_machine()
    family = started(f"{AREA}area.madvise(mmap.MADV_DONTNEED)\n{READY}")
    assert memory_usage.bytes_of_process(family[0]) < TAKE
    assert memory_usage.shared_bytes(family) == pytest.approx(TAKE, rel=0.01)
    assert memory_usage.shared_bytes_of_machine() - before > TAKE / 2  # others may have let go of some meanwhile


def test_what_several_have_mapped_counts_once(started):
    family = started(f"{AREA}os.fork() or os.read(int(os.sys.argv[1]), 1) or os._exit(0)\n{READY}")
    assert len(family) == 2
    assert memory_usage.shared_bytes(family) == pytest.approx(TAKE, rel=0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is told how much is held behind a page")
def test_an_area_that_many_share_is_measured_once(started, monkeypatch):
    """A fork doubles the mappings and none of the memory: to ask about each would take the grader seconds."""
    many = "import mmap, os; kept = [mmap.mmap(-1, 4096, prot=1 + n % 2 * 2) for n in range(100)]\n"
    family = started(f"{many}os.fork() or os.read(int(os.sys.argv[1]), 1) or os._exit(0)\n{READY}")
    stat, asked = os.stat, []
    monkeypatch.setattr(os, "stat", lambda *a, **k: asked.append(a) or stat(*a, **k))
    memory_usage.shared_bytes(family)
    assert len(family) == 2
    assert 100 <= len(asked) < 150


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is told how much is held behind a page")
def test_one_page_holds_all_of_it(started):
    family = started(f"{AREA}{LEAVE_A_PAGE}{READY}")
    assert memory_usage.shared_bytes(family) == pytest.approx(TAKE, rel=0.01)


def test_a_file_that_is_mapped_is_no_memory(started, tmp_path):
    (tmp_path / "file").write_bytes(bytes(TAKE))
    opened = f"import mmap; file = open({str(tmp_path / 'file')!r}, 'r+b')"
    family = started(f"{opened}; area = mmap.mmap(file.fileno(), 0); area.write(b'1' * {TAKE})\n{READY}")
    assert memory_usage.shared_bytes(family) == 0
    assert memory_usage.bytes_of_processes(family) < TAKE


def test_a_list_of_mappings_without_end_counts_as_all_there_is(started, monkeypatch):
    family = started(READY)
    assert memory_usage.shared_bytes(family) == 0
    monkeypatch.setattr(memory_usage, "MAX_MAPPINGS_BYTES", 100)
    assert memory_usage.shared_bytes(family) == math.inf


@pytest.mark.parametrize(("line", "held"), [("0001", 1), ("0005", 1), ("0002", memory_usage.MAX_QUEUED_DATAGRAMS)])
def test_a_socket_counts_as_the_most_that_it_can_hold(tmp_path, line, held):
    head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
    one = f"0000000077dd1e9a: 00000003 00000000 00000000 {line} 03  1458 @/some/where\n"
    (tmp_path / "unix").write_text(head + 3 * one)
    sent = int(memory_usage.SEND_BUFFER.read_text())
    assert memory_usage._sockets(tmp_path / "unix") == 3 * held * memory_usage.PINNED_PER_BYTE * sent


def test_a_socket_holds_no_more_than_it_counts_for():
    sent = int(memory_usage.SEND_BUFFER.read_text())
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        with one, other:
            one.setblocking(False)
            size = 0
            try:
                while True:
                    size += one.send(bytes(sent // 3))
            except BlockingIOError:
                assert sent // 2 < size < memory_usage.PINNED_PER_BYTE * sent


def test_sockets_that_nobody_has_open_any_more_count(started, tmp_path):
    place = str(tmp_path / "queue")
    queue = f"import socket; one = socket.socket(socket.AF_UNIX); one.bind({place!r}); one.listen(99)\n"
    queue += f"for _ in range(50): other = socket.socket(socket.AF_UNIX); other.connect({place!r}); other.close()\n"
    family = started(queue + READY)
    with Path(f"/proc/{family[0].pid}/net/unix").open() as file:
        assert sum(place in line for line in file) == 51


def test_mappings_count_for_every_process_that_they_were_forked_to(started):
    many = "import mmap; kept = [mmap.mmap(-1, 4096, prot=1 + n % 2 * 2) for n in range(4000)]\n"
    few, lots = started(READY), started(many + READY)
    more = memory_usage.max_kernel_bytes(lots * 3, sandboxed=False) - memory_usage.max_kernel_bytes(
        few * 3, sandboxed=False
    )
    assert more > 3 * 3000 * (memory_usage.BYTES_PER_MAPPING + 3 * memory_usage.BYTES_PER_ANCESTOR)


def test_who_has_ended_holds_nothing(started):
    process = subprocess.Popen([sys.executable, "-c", ""])
    family = [psutil.Process(process.pid)]
    process.wait()
    assert memory_usage.bytes_of_processes(family) == memory_usage.shared_bytes(family) == 0
