"""Downloads become submissions: every attempt is kept, the last one counts, and a hostile archive does no harm."""

import errno
import io
import os
import stat
import struct
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tiny import REPOSITORY

from grading.__main__ import main
from grading.collect import archive_members, read_sources
from grading.collect.archive_members import members
from grading.collect.attempts import Attempts
from grading.collect.collect import collect
from grading.course import Course, GradingError
from grading.gradebook.students import StudentEntry, written
from grading.repair.files import MAX_FILES, MAX_NOTEBOOK_BYTES
from grading.timestamp import time_zone

HOMEWORK = "02-self-attention"
ADA = StudentEntry("ada", "Ada", "Lovelace", lms_user_id="1815")
BELA = StudentEntry("bela_b", "Béla", "Bartók", lms_user_id="1881")
AIKO = StudentEntry("Aiko Ito_77000", "", "Aiko Ito", "aiko@example.org")

# The names that each system gives to the notebook "work.ipynb" of a student, and the time that they say.
CANVAS = {"lovelaceada_1815_4711_my_LATE_work.ipynb": b"ada", "bartokbela_LATE_1881_4712_work-1.ipynb": b"bela"}
MOODLE = {
    "Aiko Ito_88123_assignsubmission_file_/work.ipynb": b"aiko",  # a number that only this assignment has
    "Aiko Ito_88123_assignsubmission_onlinetext_/onlinetext.html": b"a remark",
    "ada_1_assignsubmission_file_work.ipynb": b"ada",
}
BLACKBOARD = {
    "HW 2_bela_b_attempt_2030-02-01-00-59-00_work.ipynb": b"bela",
    "HW 2_bela_b_attempt_2030-02-01-00-59-00.txt": b"Name: B",
    "HW 2_ada_attempt_2030-01-31-12-00-00_x_attempt_2029-01-01-00-00-00_work.ipynb": b"ada",
}
EXCHANGE = {
    f"ada+{HOMEWORK}+2030-01-31 23:59:00 UTC+secret/work.ipynb": b"ada",
    f"ada+{HOMEWORK}+2030-01-31 23:59:00 UTC+secret/submission_secret.txt": b"s",
    "ada+03-heads+2030-01-31 23:59:00 UTC+secret/work.ipynb": b"another assignment",
}
FOLDERS = {f"all/ada/{HOMEWORK}/work.ipynb": b"ada", f"all/ada/{HOMEWORK}/timestamp.txt": b"2030-01-31 23:59:00 UTC"}


@pytest.fixture
def course(tmp_path) -> Course:
    course = Course(REPOSITORY, tmp_path / "class")
    entries = [ADA, BELA, AIKO, StudentEntry("ada_1", "Another", "Ada")]
    with written(course.config().CourseDirectory.db_url, entries, [], []):
        return course


def download(place: Path, files, name="download.zip") -> Path:
    with zipfile.ZipFile(place / name, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return place / name


def gather(course, *sources, **how):
    return collect(course, HOMEWORK, sources, time_zone("Europe/Berlin"), **how)


def test_of_the_exchange_only_what_a_student_owns_counts_and_a_time_before_it_was_written_is_named(
    course, tmp_path, monkeypatch
):
    inbound, owners = tmp_path / "inbound", {}

    def put(student, owner, minutes):
        time = (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S UTC")
        file = inbound / f"{student}+{HOMEWORK}+{time}+random" / "work.ipynb"
        file.parent.mkdir(parents=True)
        file.write_text(f"{student} by {owner}")
        owners[file.stat().st_ino] = owner

    put("ada", "ada", 0.5)
    put("ada", "bela_b", 0)  # later, and by another student
    put("ada", "mallory", -1)  # and by an account that is not on the class list
    put("bela_b", "bela_b", 10)  # written now
    put("Aiko Ito_77000", "grader", 20)  # somebody has copied it
    put("grader", "bela_b", 0)  # so that what the grader copied looks forged
    monkeypatch.setattr(archive_members, "owner_of", lambda about: owners[about.st_ino])
    walk = os.walk

    def walk_and_then_a_file_is_removed(*where, **how):
        for folder, folders, names in walk(*where, **how):
            yield folder, folders, [*names, *(["removed.ipynb"] if Path(folder).name.startswith("bela_b+") else [])]

    monkeypatch.setattr(os, "walk", walk_and_then_a_file_is_removed)
    said = gather(course, inbound)
    assert "removed.ipynb: it cannot be read" in said
    for owner in ("bela_b", "mallory"):
        assert said.count(f"it was handed in under the name of ada, but is owned by {owner}") == 1
    (note,) = [line for line in said.splitlines() if "owns the files" in line]
    assert note.strip().startswith("grader owns the files of Aiko Ito_77000.")
    notes = [line.strip() for line in said.splitlines() if "If nobody has copied or restored the exchange" in line]
    assert sorted(note.partition("+")[0] for note in notes) == ["Aiko Ito_77000", "bela_b"]
    attempts = Attempts(course, HOMEWORK)
    kept = [
        (attempts.folder(s) / one.name / "work.ipynb").read_text()
        for s in attempts.students()
        for one in attempts.of(s)
    ]
    assert sorted(kept) == ["Aiko Ito_77000 by grader", "ada by ada", "bela_b by bela_b"]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.suffix != ".lock"
    }


def submissions(course) -> dict[str, bytes]:
    return {path.replace(f"/{HOMEWORK}", ""): content for path, content in tree(course.folder / "submitted").items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (CANVAS, {"ada/my_LATE_work.ipynb": b"ada", "bela_b/work-1.ipynb": b"bela", "bela_b/timestamp.txt": b"LATE"}),
        (MOODLE, {"ada_1/work.ipynb": b"ada", "Aiko Ito_77000/work.ipynb": b"aiko"}),
        (BLACKBOARD, {"bela_b/work.ipynb": b"bela", "bela_b/timestamp.txt": b"2030-01-31 23:59:00 UTC",
                      "ada/timestamp.txt": b"2030-01-31 11:00:00 UTC",
                      "ada/x_attempt_2029-01-01-00-00-00_work.ipynb": b"ada"}),
        (EXCHANGE, {"ada/work.ipynb": b"ada", "ada/submission_secret.txt": b"s",
                    "ada/timestamp.txt": b"2030-01-31 23:59:00 UTC"}),
        (FOLDERS, {"ada/work.ipynb": b"ada", "ada/timestamp.txt": b"2030-01-31 23:59:00 UTC"}),
    ],
    ids=["canvas", "moodle", "blackboard", "nbgrader", "folders"],
)  # fmt: skip
@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
def test_what_each_system_names_goes_to_its_students_with_the_time(course, tmp_path, files, expected, packed):
    source = download(tmp_path, files)
    if not packed:
        with zipfile.ZipFile(source) as archive:
            archive.extractall(source := tmp_path / "unpacked")
    gather(course, source)
    assert submissions(course) == expected


def test_the_last_attempt_counts_all_are_kept_and_a_second_collection_changes_nothing(course, tmp_path):
    first = {"HW_ada_attempt_2030-01-30-12-00-00_work.ipynb": b"1", "HW_ada_attempt_2030-01-31-12-00-00_w.ipynb": b"2"}
    (folder := course.submitted("ada", HOMEWORK)).mkdir(parents=True)
    (folder / "mailed.ipynb").write_text("put there by hand")
    (folder / "timestamp.txt").write_text("2030-01-29 12:00:00 UTC")
    before = tree(course.folder)
    source = download(tmp_path, first)
    assert "the last of 3" in gather(course, source, dry_run=True)
    assert tree(course.folder) == before, "a dry run writes nothing"
    gather(course, source)
    assert submissions(course)["ada/w.ipynb"] == b"2"
    kept = tree(course.folder / "attempts")
    assert {b"1", b"2", b"put there by hand"} <= set(kept.values())
    assert [attempt.when[:10] for attempt in Attempts(course, HOMEWORK).of("ada")] == [
        "2030-01-29", "2030-01-30", "2030-01-31"
    ]  # fmt: skip
    assert "The same as before: 1 student." in gather(course, source)
    assert tree(course.folder / "attempts") == kept
    late = download(tmp_path, {"HW_ada_attempt_2030-01-30-18-00-00_work.ipynb": b"between"}, "second.zip")
    assert "Kept, but a later attempt counts (1)" in gather(course, late)
    assert submissions(course)["ada/w.ipynb"] == b"2"


def test_a_later_download_from_canvas_replaces_the_earlier_and_a_corrected_time_stays(course, tmp_path):
    gather(course, download(tmp_path, CANVAS))
    (stamp := course.submitted("bela_b", HOMEWORK) / "timestamp.txt").write_text("2030-02-01 08:00:00 UTC")
    gather(course, download(tmp_path, CANVAS | {"lovelaceada_1815_4999_work-1.ipynb": b"again"}, "new.zip"))
    assert stamp.read_text() == "2030-02-01 08:00:00 UTC"
    assert submissions(course)["ada/my_LATE_work.ipynb"] == b"ada", (
        "one download of Canvas holds one attempt of each student"
    )
    gather(course, download(tmp_path, {"lovelaceada_1815_4999_work-1.ipynb": b"again"}, "newest.zip"))
    assert [name for name in submissions(course) if name.startswith("ada/")] == ["ada/work-1.ipynb"]


def hostile(place: Path) -> Path:
    """A download in which one student tries everything; the names are those that Canvas would write."""
    with zipfile.ZipFile(place / "hostile.zip", "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name, content, mode=0o100644, compressed=zipfile.ZIP_DEFLATED):
            (info := zipfile.ZipInfo(name)).external_attr = mode << 16
            info.compress_type = compressed
            archive.writestr(info, content)

        put("lovelaceada_1815_1_fine.ipynb", b"fine")
        put("../../../x_1881_2_out.ipynb", b"out")
        put("/x_1881_3_absolute.ipynb", b"absolute")
        put("x_1881_4_link.ipynb", b"/etc/passwd", stat.S_IFLNK | 0o777)
        put("x_1881_5_empty.ipynb", b"")
        put("x_1881_6_bomb.ipynb", bytes(MAX_NOTEBOOK_BYTES + 1))
        put("x_1881_7_odd.ipynb", b"odd", compressed=zipfile.ZIP_BZIP2)
        put("x_1881_8_packed.zip", b"PK no zip")
        put("x_1881_9_..\x07*.ipynb", b"name")
        put("x_1881_9_" + "é" * 300 + ".ipynb", b"long")
        with pytest.warns(UserWarning, match="Duplicate"):
            put("lovelaceada_1815_1_fine.ipynb", b"other")
        put("mallory_666_1_work.ipynb", b"unknown")
    return place / "hostile.zip"


@pytest.mark.slow
def test_a_hostile_archive_is_refused_file_by_file_and_writes_nowhere_else(course, tmp_path):
    source = hostile(tmp_path)
    said = gather(course, source)
    assert {name for name in tree(tmp_path) if not name.startswith("class/")} == {"hostile.zip"}
    for why in ("out of the archive", "is a link", "is empty", "more than 20000000 bytes", "other than deflate",
                "not a zip that can be read"):  # fmt: skip
        assert why in said
    assert "Refused (7)" in said
    assert "666: 1 file" in said
    found = submissions(course)
    assert found["ada/fine.ipynb"], found["ada/fine (1).ipynb"] == (b"fine", b"other")
    names = {name.removeprefix("bela_b/") for name, content in found.items() if name.startswith("bela_b/")}
    assert len(names) == 2
    assert all(name.isprintable() and "*" not in name and len(name.encode()) <= 200 for name in names)


def test_notebooks_in_a_students_own_zip_are_collected_within_bounds(course, tmp_path, monkeypatch):
    monkeypatch.setattr(read_sources, "MAX_ATTEMPT_BYTES", 100)
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../folder/0.ipynb", b"refused")
        archive.writestr("folder/1.ipynb", b"inside")
        archive.writestr("folder/2.ipynb", bytes(95))
    source = download(tmp_path, {"lovelaceada_1815_1_all.zip": packed.getvalue()})
    assert "the student's files have more than 100 bytes" in gather(course, source)
    assert submissions(course) == {"ada/1.ipynb": b"inside"}
    monkeypatch.setattr(archive_members, "MAX_MEMBERS", 2)
    assert "all.zip: it has more than 2 files" in gather(course, source, dry_run=True)


def packed(names=("work.ipynb",)) -> bytes:
    """A student's zip, with a different notebook of each name."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return stream.getvalue()


def with_fields(fields) -> bytes:
    """A student's zip with other numbers at these places of the entry in its central directory."""
    content = bytearray(packed())
    for at, value in fields.items():
        struct.pack_into("<H", content, content.index(b"PK\1\2") + at, value)
    return bytes(content)


def with_offset(offset: int) -> bytes:
    """A student's zip whose zip64 field says that its entry begins at this byte."""
    content, extra = packed(), struct.pack("<HHQ", 1, 8, offset)
    at, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    entry, last = bytearray(content[at:end]), bytearray(content[end:])
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    struct.pack_into("<I", last, 12, len(entry) + len(extra))
    return content[:at] + entry + extra + last


def test_no_zip_of_one_student_keeps_the_others_from_being_collected(course, tmp_path):
    no_name, flags = {28: 0, 32: len("work.ipynb")}, [{8: 1 << bit} for bit in (0, 5, 6)]
    zips = [*map(with_fields, [no_name, *flags]), *map(with_offset, [2**64 - 1, 2**63 - 1])]
    files = {f"bartokbela_1881_{i}_{i}.zip": content for i, content in enumerate(zips)}
    said = gather(course, download(tmp_path, files | {"lovelaceada_1815_9_work.ipynb": b"ada"}))
    assert f"Refused ({len(zips)})" in said
    assert all(f"  {name}: " in said for name in files)
    assert submissions(course) == {"ada/work.ipynb": b"ada"}


def test_long_names_are_shortened_and_what_the_disk_cannot_name_stops_nobody_else(course, tmp_path, monkeypatch):
    name = "a.ipynb" + "x" * 300 + ".IPYNB"
    source = download(tmp_path, CANVAS | {"bartokbela_1881_4_all.zip": packed([name, f"b/{name}"])}, "long.zip")
    gather(course, source)
    long = [file.removeprefix("bela_b/") for file in submissions(course) if file.endswith(".IPYNB")]
    assert len(long) == 2
    assert max(len(file.encode()) for file in long) <= 120

    keep, broken = Attempts.keep, errno.ENAMETOOLONG

    def keep_unless_of_bela(attempts, attempt, contents):
        if attempt.student == "bela_b":
            raise OSError(broken, os.strerror(broken))
        keep(attempts, attempt, contents)

    monkeypatch.setattr(Attempts, "keep", keep_unless_of_bela)
    files = {"lovelaceada_1815_5_new.ipynb": b"new", "bartokbela_1881_6_new.ipynb": b"new"}
    source = download(tmp_path, files)
    assert "bartokbela_1881_6_new.ipynb: it cannot be kept: File name too long" in gather(course, source)
    assert submissions(course)["ada/new.ipynb"] == b"new"
    broken = errno.ENOSPC
    with pytest.raises(OSError, match="No space left"):
        gather(course, source)


def test_of_many_notebooks_a_few_are_kept_those_of_the_assignment_first(course, tmp_path, monkeypatch):
    many = [f"{'x' * 100}{n}.ipynb" for n in range(2000)]
    source = download(tmp_path, CANVAS | {"bartokbela_1881_4_all.zip": packed([*many, "z/Self-Attention (1).ipynb"])})
    monkeypatch.setattr(Course, "notebooks", lambda course, assignment: ["self-attention.ipynb"])
    said = gather(course, source)
    assert f"bela_b handed in too many files: `collect` keeps {MAX_FILES} notebooks, " in said
    assert f"leaves out {2002 - MAX_FILES} files: {'x' * 59}…" in said
    kept = {name for name in submissions(course) if name.startswith("bela_b/") and name.endswith(".ipynb")}
    assert len(kept) == MAX_FILES
    assert "bela_b/Self-Attention (1).ipynb" in kept
    assert submissions(course)["ada/my_LATE_work.ipynb"] == b"ada"

    monkeypatch.setattr(read_sources, "MAX_OPENED", 4)
    zips = {f"lovelaceada_1815_{n}_{n}.zip": packed(["1.ipynb", "2.ipynb"]) for n in range(9)}
    said = gather(course, download(tmp_path, zips, "copies.zip"))
    assert "ada handed in too many files: `collect` keeps 2 notebooks, " in said
    assert "leaves out 9 files: 1.ipynb, 2.ipynb, 2.zip, 3.zip, 4.zip and 4 more" in said
    zips = {"lovelaceada_1815_1_1.zip": packed([f"../{n}.ipynb" for n in range(9)])}
    assert gather(course, download(tmp_path, zips, "out.zip")).count("leads out of the archive") == 3


def test_a_folder_with_too_many_files_is_refused_and_the_others_are_collected(course, tmp_path, monkeypatch):
    monkeypatch.setattr(archive_members, "MAX_MEMBERS", 3)
    inbound = tmp_path / "inbound"
    for student, count in ("ada", 3), ("bela_b", 4):
        (folder := inbound / f"{student}+{HOMEWORK}+2030-01-31 12:00:00 UTC").mkdir(parents=True)
        for n in range(count):
            (folder / f"{n}.ipynb").write_text(f"{student} {n}")
    for n in range(4):
        (inbound / f"{n}.ipynb").write_text("in no folder")
    said = gather(course, inbound)
    assert f"bela_b+{HOMEWORK}+2030-01-31 12:00:00 UTC: it has more than 3 files\n" in said
    assert "inbound: it has more than 3 files outside its folders\n" in said
    assert sorted(name for name in submissions(course) if name.endswith(".ipynb")) == [
        f"ada/{n}.ipynb" for n in range(3)
    ]
    monkeypatch.setattr(archive_members, "MAX_MEMBERS", 2)
    with pytest.raises(GradingError, match="inbound has more than 2 files"):
        gather(course, inbound)


def test_a_folder_may_hold_links_and_names_that_are_not_utf_8(course, tmp_path):
    (place := tmp_path / "downloads" / "ada").mkdir(parents=True)
    (tmp_path / "secret.ipynb").write_text("secret")
    (place / "link.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (place / os.fsdecode(b"w\xf6rk.ipynb")).write_text("mine")
    (tmp_path / "downloads" / ".mallory").mkdir()
    (tmp_path / "downloads" / ".mallory" / "work.ipynb").write_text("hidden")
    said = gather(course, tmp_path / "downloads")
    assert "is a link" in said
    assert ".mallory/work.ipynb: it belongs to a student whose name begins with a dot" in said
    assert list(submissions(course).values()) == [b"mine"]
    assert "w\N{REPLACEMENT CHARACTER}rk.ipynb" in str(submissions(course))


def test_an_old_zip_with_names_in_utf_8_that_does_not_say_so(tmp_path):
    source = download(tmp_path, {"Xx/work.ipynb": b"x"})
    source.write_bytes(source.read_bytes().replace(b"Xx/", "é/".encode()))
    with members(source, pytest.fail) as found:
        assert [member.path for member in found] == [("é", "work.ipynb")]


def test_what_is_refused_as_a_whole_says_what_was_expected(course, tmp_path, monkeypatch):
    with pytest.raises(GradingError, match="None of them is named as in a download"):
        gather(course, download(tmp_path, {"work.ipynb": b"whose?"}))
    with pytest.raises(GradingError, match="Expected a folder, or a zip"):
        gather(course, Path(__file__))
    with pytest.raises(GradingError, match="could come from canvas or blackboard: say which"):
        gather(course, download(tmp_path, {"a_1_2_x_ada_attempt_2030-01-31-12-00-00_w.ipynb": b"?"}))
    with pytest.raises(GradingError, match="is in the class's folder"):
        gather(course, course.folder)
    monkeypatch.setattr(archive_members, "MAX_MEMBERS", 1)
    with pytest.raises(GradingError, match=r"download\.zip has more than 1 files\. Expected a folder"):
        gather(course, download(tmp_path, {"1.ipynb": b"1", "2.ipynb": b"2"}))
    assert submissions(course) == {}


def test_the_command_takes_the_zone_from_the_settings_and_lists_unknown_students(course, tmp_path, capsys):
    (course.folder / "course.toml").write_text('time_zone = "America/Lima"\n')
    source = download(tmp_path, {"HW_mallory_attempt_2030-01-31-12-00-00_w.ipynb": b"w"})
    command = ["collect", HOMEWORK, str(source), "--course", str(course.folder)]
    assert main(command) == 0
    assert "mallory: 1 file" in capsys.readouterr().out
    assert submissions(course) == {}
    assert main([*command, "--unlisted"]) == 0
    assert submissions(course)["mallory/timestamp.txt"] == b"2030-01-31 17:00:00 UTC"
    assert main([*command, "--time-zone", "../../etc/passwd"]) == 1
    assert "is not a time zone" in capsys.readouterr().err


def test_in_one_moodle_assignment_a_match_by_name_does_not_replace_one_by_number(course, tmp_path):
    for n in ("77000", "12"):
        files = {f"Aiko Ito_{n}_assignsubmission_file_/work.ipynb": n.encode()}
        other = {"ada_1_assignsubmission_file_work.ipynb": b"ada"} if n == "12" else {}
        said = gather(course, download(tmp_path, files | other, "group.zip"))
    assert "  Aiko Ito_12: it has the same name as Aiko Ito_77000" in said
    assert submissions(course)["Aiko Ito_77000/work.ipynb"] == b"77000"
    gather(course, download(tmp_path, files, "another activity in Moodle, with other numbers.zip"))
    assert submissions(course)["Aiko Ito_77000/work.ipynb"] == b"12"


@pytest.mark.parametrize("exact", [False, True], ids=["by name", "one by number"])
def test_two_participants_with_the_same_name_are_refused_unless_the_number_says_who_it_is(course, tmp_path, exact):
    numbers = ["12", "88", *(["77000"] if exact else [])]
    files = {f"Aiko Ito_{n}_assignsubmission_file_/work.ipynb": n.encode() for n in numbers}
    said = gather(course, download(tmp_path, files))
    for n in ("12", "88"):
        others = ", ".join(f"Aiko Ito_{other}" for other in sorted(numbers) if other != n)
        assert f"  Aiko Ito_{n}: it has the same name as {others}, so the name does not say whose work it is" in said
    assert submissions(course) == ({"Aiko Ito_77000/work.ipynb": b"77000"} if exact else {})
    assert Attempts(course, HOMEWORK).students() == (["Aiko Ito_77000"] if exact else []), "nobody else gets feedback"
