"""Submissions that run at the same time have users of their own, whichever process grades them."""

import os
import stat
import subprocess
import sys
from contextlib import ExitStack

import pytest

from grading.course import GradingError
from grading.sandbox import users
from grading.sandbox.users import own_user

pytestmark = pytest.mark.slow

CLAIM = """from contextlib import ExitStack
from pathlib import Path
from grading.sandbox import users
users.PLACES, users.LAST_UID = (Path({place!r}),), {last}
with ExitStack() as stack:
    print(*(stack.enter_context(users.own_user()) for _ in range({count})), flush=True)
    input()
"""
# Runs as nobody, and does what any account can: bind every socket name that used to serve as a claim of a user ID.
SQUAT = """import os, socket
os.setgid(65_534)
os.setuid(65_534)
names = ["\\0attention-grading-user-%s" % number for number in range({first}, {last} + 1)]
sockets = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for name in names]
print(*(claim.bind(name) for claim, name in zip(sockets, names)), flush=True)
input()
"""
# What else gives numbers to users, and which: useradd (login.defs), and systemd (https://systemd.io/UIDS-GIDS).
TAKEN = {
    "accounts": range(1000, 60_001),
    "systemd-homed": range(60_001, 60_514),
    "systemd-nspawn": range(60_514, 60_578),
    "DynamicUser": range(61_184, 65_520),
    "nobody, and what a container may not know": range(65_534, 100_000),
}

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="an ordinary user has one number, their own"
)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nobody has claimed a number yet, in this process or another. Return where claims are kept."""
    monkeypatch.setattr(users, "PLACES", (tmp_path,))
    return tmp_path


def claiming(count: int) -> "subprocess.Popen[str]":
    (place,) = users.PLACES
    source = CLAIM.format(place=str(place), last=users.LAST_UID, count=count)
    return subprocess.Popen([sys.executable, "-c", source], stdin=-1, stdout=-1, text=True)


@needs_root
def test_no_two_submissions_have_a_user_in_common(fresh):
    with ExitStack() as stack:
        ours = {stack.enter_context(own_user()) for _ in range(100)}
        others = [claiming(100) for _ in range(3)]
        claimed = [set(map(int, other.stdout.readline().split())) for other in others]
        for other in others:
            other.communicate("\n", timeout=600)
    assert [len(each) for each in (ours, *claimed)] == [100] * 4
    assert len(ours.union(*claimed)) == 400


@pytest.mark.parametrize("who", TAKEN)
def test_no_number_is_one_that_something_else_gives_away(who):
    assert not set(range(users.FIRST_UID, users.LAST_UID + 1)) & set(TAKEN[who])


@needs_root
def test_a_number_is_free_again_once_its_submission_has_ended(fresh, monkeypatch):
    monkeypatch.setattr(users, "LAST_UID", users.FIRST_UID)
    for _ in range(2):
        with own_user() as number:
            assert number == users.FIRST_UID
            with pytest.raises(GradingError, match="have claimed all user IDs"), own_user():
                pass


@needs_root
def test_numbers_are_free_again_once_their_process_was_killed(fresh, monkeypatch):
    monkeypatch.setattr(users, "LAST_UID", users.FIRST_UID)
    other = claiming(1)
    assert other.stdout.readline() == f"{users.FIRST_UID}\n"
    with pytest.raises(GradingError, match="Wait until some of them have ended"), own_user():
        pass
    other.kill()
    other.communicate(timeout=600)
    with own_user() as number:
        assert number == users.FIRST_UID


@needs_root
def test_no_other_account_can_claim_the_numbers(fresh):
    source = SQUAT.format(first=users.FIRST_UID, last=users.LAST_UID)
    other = subprocess.Popen([sys.executable, "-Ic", source], stdin=-1, stdout=-1, text=True)
    assert set(other.stdout.readline().split()) == {"None"}, "all names are bound"
    with own_user() as number:
        assert users.FIRST_UID <= number <= users.LAST_UID
        folder = (fresh / users.FOLDER_NAME).stat()
        assert (folder.st_uid, stat.S_IMODE(folder.st_mode)) == (0, 0o700)
    other.communicate("\n", timeout=600)


@needs_root
@pytest.mark.parametrize("spoil", [lambda x: x.chmod(0o711), lambda x: os.chown(x, 65_534, 0)], ids=["mode", "owner"])
def test_a_folder_of_claims_that_others_can_enter_is_refused(fresh, spoil):
    (fresh / users.FOLDER_NAME).mkdir(0o700)
    spoil(fresh / users.FOLDER_NAME)
    with pytest.raises(GradingError, match=r"only root can enter, but it is drwx.* Remove it"), own_user():
        pass


@needs_root
def test_claims_are_kept_in_the_first_place_that_can_be_written_to(fresh, monkeypatch):
    monkeypatch.setattr(users, "PLACES", (fresh / "missing", fresh))
    with own_user() as number:
        assert (fresh / users.FOLDER_NAME / str(number)).exists()
    monkeypatch.setattr(users, "PLACES", (fresh / "missing",))
    with pytest.raises(GradingError, match=r"no folder can be made in .*missing"), own_user():
        pass


def test_an_ordinary_user_keeps_their_own_number(monkeypatch):
    monkeypatch.setattr(users.os, "getuid", lambda: 1234)
    with own_user() as number:
        assert number == 1234
