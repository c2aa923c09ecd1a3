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
    """The owners of the files in one source, if they are compared."""

    def __init__(self, found: Sequence[Found], known: KnownStudents, *, compared: bool) -> None:
        self._known, self._found, self._compared = known, found, compared
        self._grader = {"", "root", account_name(os.geteuid())}
        self._own = {self._student(one) for one in found if self._is_own(one)}

    def other(self, one: Found) -> str:
        """Return the account that owns a file, or "" if that is the student, the grader or root, or is not known."""
        known = not self._compared or self._is_own(one) or one.member.owner in self._grader
        return "" if known else one.member.owner

    def is_forged(self, one: Found) -> bool:
        """Return whether somebody handed in a file under another's name.

        Another student's file is forged, and so is anybody's if the student has handed in as well. Otherwise, somebody
        may have copied the files, and so owns what others handed in.
        """
        owner = self.other(one)
        return bool(owner) and (self._student(one) in self._own or owner in (self._known.ids or self._own))

    def notes(self) -> list[str]:
        """Return a sentence for each account that owns files of others, unless they are forged."""
        others: defaultdict[str, set[str]] = defaultdict(set)
        for one in self._found:
            if (owner := self.other(one)) and not self.is_forged(one):
                others[owner].add(one.student)
        return [OWNED.format(owner, listed(sorted(names))) for owner, names in others.items()]

    def written(self, files: Sequence[Found]) -> datetime | None:
        """Return when the last of these files was written, if no copying by the grader or root has changed that."""
        by_others = [one.member for one in files if self._compared and one.member.owner not in self._grader]
        return max((member.written for member in by_others if member.written), default=None)

    def _student(self, one: Found) -> str:
        return self._known.find(one.student, by_name=False) or one.student

    def _is_own(self, one: Found) -> bool:
        return one.member.owner in {one.student, self._student(one)}
