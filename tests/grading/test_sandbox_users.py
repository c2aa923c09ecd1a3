"""Grading processes that run at the same time give their submissions users of their own."""

import os
import subprocess
import sys
from functools import cache
from secrets import token_hex

import pytest

from grading.course import GradingError
from grading.sandbox import users

DRAW = """from grading.sandbox import users
users.NAME, users.BLOCKS = {name!r}, {blocks}
print(*(users.next_user() for _ in range(150)), flush=True)
input()
"""

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="an ordinary user has one number, their own"
)


@pytest.fixture
def fresh(monkeypatch):
    """Nobody has claimed a number yet, in this process or another."""
    monkeypatch.setattr(users, "NAME", f"test-{token_hex(8)}")
    monkeypatch.setattr(users, "_claimed", cache(users._claimed.__wrapped__))


def drawing() -> "subprocess.Popen[str]":
    source = DRAW.format(name=users.NAME, blocks=users.BLOCKS)
    return subprocess.Popen([sys.executable, "-c", source], stdin=-1, stdout=-1, text=True)


@needs_root
def test_no_two_processes_have_a_user_in_common(fresh):
    ours = {users.next_user() for _ in range(150)}
    others = [drawing() for _ in range(3)]
    drawn = [set(map(int, other.stdout.readline().split())) for other in others]
    for other in others:
        other.communicate("\n", timeout=60)
    assert [len(each) for each in (ours, *drawn)] == [users.SIZE] * 4
    assert len(ours.union(*drawn)) == 4 * users.SIZE
    assert min(ours) > 1000
    assert max(ours) < 65_534


@needs_root
def test_numbers_are_free_again_once_their_process_was_killed(fresh, monkeypatch):
    monkeypatch.setattr(users, "BLOCKS", 1)
    other = drawing()
    drawn = set(map(int, other.stdout.readline().split()))
    with pytest.raises(GradingError, match="Wait until one of them has ended"):
        users.next_user()
    other.kill()
    other.communicate(timeout=60)
    assert users.next_user() in drawn


def test_an_ordinary_user_keeps_their_own_number(monkeypatch):
    monkeypatch.setattr(users.os, "getuid", lambda: 1234)
    assert users.next_user() == 1234
