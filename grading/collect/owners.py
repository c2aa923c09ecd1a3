"""Compare the accounts that own files with the students under whose names the files were handed in.

In a folder where every account can write, such as nbgrader's exchange, students choose the names of their folders.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from grading.collect.archive_members import account_name
from grading.collect.students import KnownStudents
from grading.collect.systems import Found
from grading.repair.messages import listed

OWNED = (
    "{} owns the files of {}. They count only until there are files that these students own. If nobody has copied or "
    "unpacked them, ask these students whether they handed them in"
)


class Owners:
    """The owners of the files in one source.

    Students write into the exchange themselves, and into their folders if any of them owns a file there. Whoever
    unpacks a download owns what is in it, so there only what another student owns is refused.

    Args:
        found: the files of students.
        known: the students on the class list.
        system: the system that named the files.
        several: whether the files in the source have several owners.
    """

    def __init__(self, found: Sequence[Found], known: KnownStudents, *, system: str, several: bool) -> None:
        self._known, self._found = known, found
        self._grader = {"", "root", account_name(os.geteuid())}
        self._own = {self._student(one) for one in found if self._is_own(one)}
        self._shared = system == "nbgrader" or (system == "folders" and several and bool(self._own))
        self._compared = self._shared or several

    def other(self, one: Found) -> str:
        """Return the account that owns a file where students write, or "" if it is the student, the grader or root."""
        return one.member.owner if self._shared and self._is_of_another(one) else ""

    def is_forged(self, one: Found) -> bool:
        """Return whether somebody handed in a file under another's name.

        Another student's file is forged and, where students write, so is anybody's if the student has handed in as
        well. Otherwise, somebody may have copied the files, and so owns what others handed in.
        """
        if not self._compared or not self._is_of_another(one):
            return False
        return one.member.owner in (self._known.ids or self._own) or (self._shared and self._student(one) in self._own)

    def notes(self) -> list[str]:
        """Return a sentence for each account that owns files of others, unless they are forged."""
        others: defaultdict[str, set[str]] = defaultdict(set)
        for one in self._found:
            if (owner := self.other(one)) and not self.is_forged(one):
                others[owner].add(one.student)
        return [OWNED.format(owner, listed(sorted(names))) for owner, names in others.items()]

    def written(self, files: Sequence[Found]) -> datetime | None:
        """Return when the last of these files was written, if no copying by the grader or root has changed that."""
        by_others = [one.member for one in files if self._shared and one.member.owner not in self._grader]
        return max((member.written for member in by_others if member.written), default=None)

    def _student(self, one: Found) -> str:
        return self._known.find(one.student, by_name=False) or one.student

    def _is_of_another(self, one: Found) -> bool:
        return not self._is_own(one) and one.member.owner not in self._grader

    def _is_own(self, one: Found) -> bool:
        return one.member.owner in {one.student, self._student(one)}
