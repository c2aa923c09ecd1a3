"""Read sources into attempts, with the files of each, and list whatever cannot be collected, with the reason."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from errno import EILSEQ, EINVAL, ENAMETOOLONG
from functools import partial
from pathlib import Path

from grading.collect.archive_members import Member, RefusedMemberError, inside, members
from grading.collect.attempts import Attempt, digest, iso, now
from grading.collect.owners import Owners
from grading.collect.students import KnownStudents
from grading.collect.systems import SYSTEMS, Asked, Found, recognise, wrong_student
from grading.exchange import SECRET
from grading.lateness import TIME_FORMAT
from grading.repair.files import MAX_FILES, MAX_NOTEBOOK_BYTES, NOTEBOOK_NAME, fits
from grading.repair.messages import listed
from grading.text import counted
from grading.timestamp import TIMESTAMP_FILE, handed_in_text

FORGED = "was handed in under the name of {}, but is owned by {}"
SAME_NAME = (
    "has the same name as {}, so the name does not say whose work it is. If it belongs to {} on the class list, put "
    "its files into a folder of that name, and collect the folder that contains it"
)
WRONG_TIME = (
    "{}: the time of submission is {}, but the file was written at {}. If nobody has copied or restored the exchange, "
    "the time is wrong"
)
FUTURE = "{}: the time of submission, {}, is in the future. The time that counts is {}, when the file was written"
LEFT_OUT = (
    "{} handed in too many files: `collect` keeps {}, starting with those named as in the assignment, and leaves out "
    "{}: {}"
)
MAX_DELAY = timedelta(minutes=1)  # between the time of a submission to the exchange and the end of the copying
MAX_NAME = 100  # bytes of a file's name, before the suffix
MAX_OPENED = 50  # files of an attempt that are opened; more than are kept, since some may be refused or be copies
BAD_NAME = (ENAMETOOLONG, EILSEQ, EINVAL)  # errors with which file systems refuse a name
MAX_ATTEMPT_BYTES = 3 * MAX_NOTEBOOK_BYTES

Keep = Callable[[Attempt, Mapping[str, bytes]], None]


@dataclass
class Collected:
    """What came out of the sources.

    Attributes:
        attempts: what came from each student.
        systems: the system that named each source.
        unknown: what the system calls the students who are not on the class list, with how many files each has.
        refused: the files that cannot be collected, each with the reason: a dictionary, used as a set that keeps its
        order.
        ignored: how many other files there are, by suffix.
        by_name: the students whom Moodle numbers differently here, so that only their names could be matched.
        notes: what else a person should know, one sentence each.
    """

    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    systems: dict[str, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    refused: dict[tuple[str, str], None] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    by_name: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


class Reading:
    """Reads the sources of one assignment, one after another, and passes each attempt with its files to ``keep``.

    ``notebooks`` are the names of the assignment's notebooks, which are read before a student's other files.
    ``numbered`` are the students whose number on the class list has been found in this assignment's files from Moodle.
    """

    def __init__(
        self,
        asked: Asked,
        known: KnownStudents,
        keep: Keep,
        *,
        notebooks: Collection[str],
        numbered: Iterable[str],
        told: str = "",
        unlisted: bool = False,
    ) -> None:
        self.asked, self.known, self.keep, self.notebooks, self.told = asked, known, keep, notebooks, told
        self.unlisted = unlisted or not known.ids  # without a class list, everybody is taken
        self.collected, self.numbered = Collected(), set(numbered)

    def read(self, source: Path) -> None:
        """Read one folder or zip.

        Raises:
            GradingError: it cannot be read, or nothing in it is named as expected.
        """
        with members(source, self._refuse) as found:
            system = recognise(found, self.asked, str(source), self.told)
            self.collected.systems[source.name] = system
            for student, files, owners in self._grouped(found, system):
                self._attempt(student, files, source.name, system, owners)

    def _grouped(self, found: Sequence[Member], system: str) -> Iterator[tuple[str, list[Found], Owners]]:
        """Yield the files of each attempt, with the id of the student, and the owners of all files."""
        groups: defaultdict[tuple[str, str], list[Found]] = defaultdict(list)
        named = [(member, SYSTEMS[system](member, self.asked)) for member in found]
        several = len({member.owner for member in found} - {""}) > 1
        of_students = [one for _, one in named if one]
        owners = Owners(of_students, self.known, system=system, several=several)
        self.collected.notes += owners.notes()
        unclear = self._unclear(of_students) if system == "moodle" else {}
        for member, one in named:
            if one is None:
                self._ignore(member.path[-1])
            elif owners.is_forged(one):
                self._refuse("/".join(member.path[:-1]) or str(member), FORGED.format(one.student, member.owner))
            elif one.student in unclear:
                self._refuse(one.student, unclear[one.student])
            elif student := self._student(one, system):
                groups[student, one.attempt].append(one)
        yield from ((student, files, owners) for (student, _), files in groups.items())

    def _unclear(self, found: Sequence[Found]) -> dict[str, str]:
        """Return the participants whom only a shared name links to a student, and why they are refused.

        If none of a download's numbers is on the class list, it is from another Moodle assignment, which has other
        numbers.
        """
        called: defaultdict[str, set[str]] = defaultdict(set)
        for one in found:
            called[self.known.find(one.student, by_name=True)].add(one.student)
        if numbered := {one.student for one in found} & self.known.ids:
            self.numbered |= numbered
            for student in called.keys() & self.numbered:
                called[student].add(student)
        return {
            name: SAME_NAME.format(listed(sorted(names - {name})), student)
            for student, names in called.items()
            for name in names
            if student and len(names) > 1 and not self.known.find(name, by_name=False)
        }

    def _refuse(self, path: str, why: str) -> None:
        """Note once that a file or an attempt is refused, however many files it has."""
        self.collected.refused[path, why] = None

    def _student(self, found: Found, system: str) -> str:
        """Return the id of the student whose file it is, or "" if the file is not collected."""
        student = self.known.find(found.student, by_name=system == "moodle")
        if student:
            if system == "moodle" and student != found.student:
                self.collected.by_name.add(student)
            return student
        if wrong := wrong_student(found.student):
            self._refuse(str(found.member), f"belongs to a student whose name {wrong}")
        elif self.unlisted:
            return found.student
        else:
            self.collected.unknown[found.student] += 1
        return ""

    def _attempt(self, student: str, files: Sequence[Found], source: str, system: str, owners: Owners) -> None:
        when, late = files[0].when, any(one.late for one in files)
        work, secret, names = list[Found](), dict[str, bytes](), dict[str, str]()
        for found in files:
            if found.file == TIMESTAMP_FILE and system in ("folders", "nbgrader"):
                stamp = handed_in_text(self._content(found.member))
                when, late = stamp.when or when, stamp.late
                self.collected.notes += [f"{found.member}: {stamp.problem}"] if stamp.problem else []
            elif found.file == SECRET and system in ("folders", "nbgrader"):
                if content := self._content(found.member):
                    secret[SECRET], names[SECRET] = content, str(found.member)
            elif NOTEBOOK_NAME.search(found.file) or _is_zip(found.file):
                work.append(found)
            else:
                self._ignore(found.file)
        contents, where = self._work(student, work)
        if not contents:
            return
        when = self._checked(files, when, owners)
        other = next(filter(None, map(owners.other, files)), "")
        about = (student, digest(contents), source, system, names | where)
        attempt = Attempt(*about, iso(when), late, max(found.order for found in files), now(), other)
        if self._kept(attempt, contents | secret, files[0].member):
            self.collected.attempts.setdefault(student, []).append(attempt)

    def _kept(self, attempt: Attempt, contents: Mapping[str, bytes], member: Member) -> bool:
        """Keep an attempt, and return whether that was possible. An error that is not about its name is raised."""
        try:
            self.keep(attempt, contents)
        except OSError as error:
            if error.errno not in BAD_NAME:
                raise
            self._refuse(str(member), f"cannot be kept: {error.strerror}")
            return False
        return True

    def _work(self, student: str, files: Sequence[Found]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the notebooks of an attempt by their new names, and where each was."""
        contents, where, left, opened = dict[str, bytes](), dict[str, str](), list[str](), 0
        for found in sorted(files, key=lambda one: self._order(one.file)):
            opened += _is_zip(found.file)
            if opened > MAX_OPENED:
                left.append(found.file)
                continue
            for name, read in self._notebooks(found):
                if len(contents) == MAX_FILES or opened == MAX_OPENED:
                    left.append(name)
                    continue
                opened += 1
                content = read()
                if sum(map(len, contents.values())) + len(content) > MAX_ATTEMPT_BYTES:
                    more = f"is left out, because the student's files have more than {MAX_ATTEMPT_BYTES} bytes"
                    self._refuse(str(found.member), more)
                elif content and content not in contents.values():
                    new = _free(_file_name(name), contents)
                    contents[new], where[new] = content, str(found.member)
        if left:
            counts = counted(len(contents), "notebook"), counted(len(left), "file")
            self.collected.notes.append(LEFT_OUT.format(student, *counts, listed(left)))
        return contents, where

    def _order(self, name: str) -> tuple[bool, bool]:
        """Return the key that sorts files: first those named as the assignment's notebooks, and zips last."""
        return not any(fits(name, wanted) for wanted in self.notebooks), _is_zip(name)

    def _checked(self, files: Sequence[Found], when: datetime | None, owners: Owners) -> datetime | None:
        """Return the time of submission, which the student can set, and note if it cannot be right.

        If it is in the future, the files count as handed in when they were written.
        """
        written = owners.written(files)
        if not when or not written:
            return when
        times = f"{when:{TIME_FORMAT}}", f"{written:{TIME_FORMAT}}"
        if when > datetime.fromisoformat(now()) + MAX_DELAY:
            self.collected.notes.append(FUTURE.format(files[0].member, *times))
            return written
        if written - when > MAX_DELAY:
            self.collected.notes.append(WRONG_TIME.format(files[0].member, *times))
        return when

    def _notebooks(self, found: Found) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield the name of each notebook in a file, which may be a zip of them, and a function that reads it."""
        if not _is_zip(found.file):
            yield found.file, partial(self._content, found.member)
            return
        try:
            packed = inside(self._content(found.member))
        except RefusedMemberError as why:
            self._refuse(str(found.member), str(why))
            return
        for member in sorted(packed, key=lambda one: self._order(one.path[-1])):
            if NOTEBOOK_NAME.search(member.path[-1]):
                yield member.path[-1], partial(self._content, member, within=found.member)

    def _content(self, member: Member, within: Member | None = None) -> bytes:
        try:
            return member.read()
        except RefusedMemberError as why:
            self._refuse(f"{within}: {member}" if within else str(member), str(why))
            return b""

    def _ignore(self, name: str) -> None:
        self.collected.ignored[Path(name).suffix.lower() or name] += 1


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _file_name(name: str) -> str:
    """Return a notebook's name, shortened, and without characters that an operating system may not allow."""
    clean = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name).strip()
    stem, suffix = _split(clean)
    stem = stem.lstrip(".").encode()[:MAX_NAME].decode(errors="ignore")
    return f"{stem or 'notebook'}{suffix}"


def _free(name: str, taken: Collection[str]) -> str:
    """Return the name, or, if another file has it, one with a number, as browsers write it."""
    stem, suffix = _split(name)
    names = [name, *(f"{stem} ({n}){suffix}" for n in range(1, len(taken) + 1))]
    there = {one.casefold() for one in taken}
    return next(one for one in names if one.casefold() not in there)


def _split(name: str) -> tuple[str, str]:
    """Return the name of a notebook before its suffix, and the suffix."""
    stem = NOTEBOOK_NAME.sub("", name)
    return stem, name[len(stem) :]
