"""Find a student of the class by what a learning management system wrote into the name of a file."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from grading.gradebook.students import StudentEntry


class KnownStudents:
    """The students of a class, by id, by the system's own number, and by the name in Moodle's folders."""

    def __init__(self, known: Mapping[str, StudentEntry], listed: Collection[str]) -> None:
        self.ids = {student for student in known if student in listed}
        self._also: defaultdict[str, set[str]] = defaultdict(set)
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        for student in self.ids:
            entry = known[student]
            for text in {student.casefold(), entry.lms_user_id} - {""}:
                self._also[text].add(student)
            for name in {entry.name, student.rpartition("_")[0]} - {""}:
                self._named[name.casefold()].add(student)

    def find(self, text: str, *, by_name: bool) -> str:
        """Return the id of the one student to whom a text refers, or "" if there is none, or more than one.

        Args:
            text: what the system wrote.
            by_name: whether the part before the last underscore is a full name. Moodle numbers its participants anew
                in each assignment, so that only the name is the same. Several participants may have that name.
        """
        if text in self.ids:
            return text
        found = self._also.get(text.casefold(), set())
        if not found and by_name:
            found = self._named.get(text.rpartition("_")[0].casefold(), set())
        return next(iter(found)) if len(found) == 1 else ""
