"""Submissions that run at the same time have users of their own, whichever process grades them."""

import errno
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

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
# Runs as nobody, and tries what would claim a user ID or show which are claimed.
INTRUDE = """import fcntl, os, sys
place, folder, claim = sys.argv[1:]
os.setgid(65_534)
os.setuid(65_534)
os.listdir(place)  # which anybody can
for intrude in (
    lambda: os.listdir(folder),
    lambda: open(claim, "ab"),
    lambda: fcntl.flock(os.open(claim, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB),
    lambda: fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH),
):
    try:
        print(intrude())
    except OSError as error:
        print(type(error).__name__)
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
def test_no_other_account_can_claim_the_numbers(monkeypatch):
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.setattr(users, "PLACES", (Path(place),))
        with own_user() as number:
            folder = Path(place, users.FOLDER_NAME)
            line = [sys.executable, "-Ic", INTRUDE, place, folder, folder / str(number)]
            done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.split() == ["PermissionError"] * 4


@needs_root
@pytest.mark.parametrize(("function", "code"), [("open", errno.EROFS), ("flock", errno.ENOLCK)])
def test_a_file_that_cannot_be_locked_says_what_to_do(fresh, monkeypatch, function, code):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path if function == "open" else users.fcntl, function, fail)
    with pytest.raises(GradingError, match=f"{os.strerror(code)}. Make sure that root can create and lock"), own_user():
        pass


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


@needs_root
def test_numbers_can_be_claimed_where_the_file_system_is_read_only():
    box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--"]
    source = "from grading.sandbox.users import own_user\nwith own_user() as number:\n    print(number)"
    done = subprocess.run(
        [*box, sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert users.FIRST_UID <= int(done.stdout) <= users.LAST_UID


def test_an_ordinary_user_keeps_their_own_number(monkeypatch):
    monkeypatch.setattr(users.os, "getuid", lambda: 1234)
    with own_user() as number:
        assert number == 1234
