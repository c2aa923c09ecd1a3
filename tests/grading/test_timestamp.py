"""The time of a submission is read as nbgrader reads it, from a file that may be anything."""

import logging
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.coursedir import CourseDirectory

from grading.course import GradingError
from grading.timestamp import MAX_TIMESTAMP_BYTES, HandedIn, _moment, due_date, handed_in

LOG = logging.getLogger("test-timestamp")

SAME = [
    "2030-05-01 11:59:30.123456 UTC",
    "2030-05-01 11:59:30 UTC\n",
    "2030-05-01 11:59",
    "2030-05-01T11:59:30Z",
    "2030-05-01T11:59:30.5+02:00",
    "2030-05-01 11:59:30-0730",
    "2030-05-01 11:59:30 America/Los_Angeles",
    "2030-01-01 11:59:30 Europe/Berlin",
    "2030-07-01 11:59:30 Etc/GMT+5",
]
GARBAGE = [
    "31.01.2030 18:00",
    "yesterday",
    "5",
    "2030-13-01 00:00 UTC",
    "0001-01-01 00:00:00+14:00",
    "2030-05-01 11:59:30 /etc/passwd",
    "2030-05-01 11:59:30 ../../etc/passwd",
    "2030-05-01 11:59:30 Nowhere/Land",
    "2030-05-01 11:59:30\x1b[2J",
    "٢٠٣٠-05-01 11:59:30",
    "\x00" * 50,
    "9" * MAX_TIMESTAMP_BYTES,
    "2030-05-01 11:59:30 UTC" + " " * MAX_TIMESTAMP_BYTES,
]


@pytest.mark.parametrize("text", SAME)
def test_a_moment_is_read_as_nbgrader_reads_it(tmp_path, text):
    (tmp_path / "timestamp.txt").write_text(text)
    nbgraders = CourseDirectory(log=LOG).get_existing_timestamp(str(tmp_path))
    assert handed_in(tmp_path).when == nbgraders
    assert nbgraders is not None
    assert nbgraders.tzinfo is None


def test_an_offset_behind_a_space_is_no_number_of_seconds(tmp_path):
    (tmp_path / "timestamp.txt").write_text("2030-05-01 11:59:30 +0200")
    assert handed_in(tmp_path).when == datetime(2030, 5, 1, 9, 59, 30)
    assert CourseDirectory(log=LOG).get_existing_timestamp(str(tmp_path)) != datetime(2030, 5, 1, 9, 59, 30)


@pytest.mark.parametrize("text", ["", " \n", *GARBAGE])
def test_garbage_is_no_moment_and_that_is_told(tmp_path, text):
    (tmp_path / "timestamp.txt").write_text(text)
    assert handed_in(tmp_path).when is None
    message = handed_in(tmp_path).problem
    assert message.startswith("timestamp.txt: ")
    assert message.endswith("It is not known whether the submission came late.")
    assert message.isprintable()
    assert len(message) < 500


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "timestamp.txt").write_bytes(b"\xff\xfe2030")
    assert handed_in(tmp_path).when is None
    assert handed_in(tmp_path).problem


def test_no_file_is_no_moment_and_no_matter(tmp_path):
    assert handed_in(tmp_path) == HandedIn()
    assert handed_in(tmp_path / "nowhere") == HandedIn()


def _link(file: Path) -> None:
    file.with_name("real.txt").write_text(SAME[0])
    file.symlink_to("real.txt")


@pytest.mark.parametrize(
    "make",
    [_link, Path.mkdir, os.mkfifo, lambda file: file.symlink_to("/dev/zero"), lambda file: file.symlink_to(file)],
)
def test_what_is_no_regular_file_is_not_read(tmp_path, make):
    make(tmp_path / "timestamp.txt")
    assert handed_in(tmp_path).when is None
    assert handed_in(tmp_path).problem


def test_a_folder_that_leads_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "timestamp.txt").write_text(SAME[0])
    (tmp_path / "link").symlink_to("elsewhere")
    assert handed_in(tmp_path / "elsewhere").when is not None
    assert handed_in(tmp_path / "link").when is None
    assert handed_in(tmp_path / "link").problem


@given(st.text(max_size=MAX_TIMESTAMP_BYTES) | st.from_regex(r"\d{4}-\d\d-\d\d \d\d:\d\d ?[A-Za-z/_+-]*\d*"))
def test_no_text_does_worse_than_to_be_refused(text):
    with suppress(ValueError, OverflowError):
        assert isinstance(_moment(text), datetime)


@pytest.mark.parametrize("text", ["0203-01-31 09:00 UTC", "0001-01-01 00:00+05:00", "31.01.2030", "1969-12-31 23:59"])
def test_a_date_that_nobody_can_mean_is_refused_with_an_example(text):
    with pytest.raises(GradingError, match="expected one like 2030-01-31 23:59 UTC"):
        due_date(text)
