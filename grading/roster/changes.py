"""What a roster would change in the gradebook: who is new, who has another name, and who has left."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grading.gradebook.students import StudentEntry
from grading.outcome import plain
from grading.roster.read_students import Listed, Problem
from grading.text import counted


@dataclass(frozen=True)
class Changes:
    """What would change.

    Attributes:
        new: the students whom the gradebook does not know.
        changed: the others about whom the file says something else: as they are, and as they will be.
        same: how many there are about whom it says the same.
        back: the students who had left, and are in the file again.
        missing: the students on the class list who are not in the file, and have not left.
        notes: what else a person should know, one sentence each.
        problems: the lines that contradict the gradebook or each other.
        names: the other names of the students in the file, by id: the login, and an id that is not the gradebook's.
    """

    new: tuple[StudentEntry, ...]
    changed: tuple[tuple[StudentEntry, StudentEntry], ...]
    same: int
    back: tuple[StudentEntry, ...]
    missing: tuple[StudentEntry, ...]
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    names: Mapping[str, tuple[str, ...]]


def compare(
    file: Sequence[Listed],
    known: Mapping[str, StudentEntry],
    class_list: Collection[str],
    left: Collection[str],
) -> Changes:
    """Return what would change.

    Args:
        file: the students of the file.
        known: the students in the gradebook.
        class_list: those of them who are on the class list.
        left: those who have left the class.
    """
    found, notes, problems = identified(file, known)
    after = {student: _merged(known.get(student), listed.entry, student) for student, listed in found.items()}
    everybody = {student: known[student] for student in class_list} | after
    return Changes(
        new=tuple(entry for student, entry in after.items() if student not in known),
        changed=tuple((known[s], entry) for s, entry in after.items() if s in known and known[s] != entry),
        same=sum(known.get(student) == entry for student, entry in after.items()),
        back=tuple(entry for student, entry in after.items() if student in left),
        missing=tuple(known[student] for student in sorted(set(class_list) - after.keys() - set(left))),
        notes=(*notes, *_namesakes(everybody.values())),
        problems=tuple(problems),
        names={student: _other_names(student, listed) for student, listed in found.items()},
    )


def _other_names(student: str, listed: Listed) -> tuple[str, ...]:
    return tuple(name for name in (listed.entry.id, *listed.names) if name != student)


def identified(
    file: Sequence[Listed], known: Mapping[str, StudentEntry]
) -> tuple[dict[str, Listed], list[str], list[Problem]]:
    """Return the students of a file by the ids that the gradebook uses for them, with notes and problems."""
    folded = {student.casefold(): student for student in known}
    former = _former_ids(known, {listed.entry.id for listed in file})
    found: dict[str, Listed] = {}
    notes, problems = [], []
    for listed in file:
        line, entry = listed.line, listed.entry
        student = entry.id if entry.id in known else former.get(entry.lms_user_id) or former.get(entry.email.casefold())
        same = folded.get(entry.id.casefold(), entry.id)
        if same != entry.id:
            text = f"the id is {plain(entry.id)!r}; expected {plain(same)!r}, as in the gradebook"
            problems.append(Problem(line, text))
        elif student in found:
            text = f"an earlier line also has the number or address of {plain(student)!r}; expected one line"
            problems.append(Problem(line, text))
        elif student and student != entry.id:
            notes.append(f"{plain(entry.id)} is {plain(student)} in the gradebook, and keeps that id.")
        found[student or entry.id] = listed
    return found, notes, problems


def _former_ids(known: Mapping[str, StudentEntry], in_file: Collection[str]) -> dict[str, str]:
    """Return the ids of the students who are not in the file by the numbers and addresses that only one student has."""
    marks = [
        (mark, entry.id) for entry in known.values() for mark in {entry.lms_user_id, entry.email.casefold()} - {""}
    ]
    often = Counter(mark for mark, _ in marks)
    return {mark: student for mark, student in marks if often[mark] == 1 and student not in in_file}


def _merged(before: StudentEntry | None, entry: StudentEntry, student: str) -> StudentEntry:
    """Return a student with what the file says. What it does not say stays, and so do the parts of the same name."""
    said = replace(entry, id=student)
    if before is None:
        return said
    names = before if before.name == entry.name else said
    return StudentEntry(
        student,
        names.first_name,
        names.last_name,
        said.email or before.email,
        said.lms_user_id or before.lms_user_id,
    )


def _namesakes(entries: Iterable[StudentEntry]) -> Iterator[str]:
    named: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries:
        named[entry.name].append(plain(entry.id))
    for name, ids in named.items():
        if name and len(ids) > 1:
            yield f"{len(ids)} students are named {plain(name)}: {', '.join(ids)}. The id is always next to the name."


def shown(changes: Changes, *, complete: bool) -> str:
    """Return text for a terminal. ``complete`` says that whoever is missing from the file has left."""
    missing = "Left the class" if complete else "On the class list, but not in the file"
    blocks = [
        *_block("New", map(_described, changes.new)),
        *_block("Changed", (f"{plain(old.id)}: {_difference(old, new)}" for old, new in changes.changed)),
        *_block("Back in the class", map(_described, changes.back)),
        *_block(missing, map(_described, changes.missing)),
    ]
    if changes.missing and not complete:
        blocks.append("  If the file lists the whole class, pass --complete: these students have then left.")
    return "\n".join([*blocks, f"The same as before: {counted(changes.same, 'student')}.", *changes.notes])


def _block(title: str, lines: Iterable[str]) -> list[str]:
    listed = [f"  {line}" for line in lines]
    return [f"{title} ({len(listed)}):", *listed] if listed else []


def _described(entry: StudentEntry) -> str:
    return f"{plain(entry.id)}: {', '.join(filter(None, (entry.name, plain(entry.email))))}"


def _difference(old: StudentEntry, new: StudentEntry) -> str:
    pairs = [("", old.name, new.name), ("e-mail ", old.email, new.email)]
    pairs.append(("number ", old.lms_user_id, new.lms_user_id))
    return ", ".join(f"{what}{plain(was) or 'nothing'} → {plain(now)}" for what, was, now in pairs if was != now)
