"""The scores and comments on feedback pages, in their own module: the child that renders a page opens no gradebook."""

from pathlib import Path
from typing import Any

from grading._nbgrader import GetGrades
from grading._untyped import NotebookNode
from grading.class_settings import read_class
from grading.course import Course
from grading.gradebook.students import students
from grading.marking.comments import expanded, read_comments


class Scores(GetGrades):  # type: ignore[misc]
    """Put the gradebook's scores and comments into the cells, and flag scores that a person has to give or check.

    Until a person has done so, the mark given to an earlier submission counts. The page also gets the student's name
    and the course's title.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> Any:
        """Return the notebook and the resources with the scores and with what the gradebook knows about the student."""
        places = self.config.CourseDirectory
        course = Course(Path(places.root), Path(places.feedback_directory).parent)
        self._named = read_comments(course)
        nb, resources = super().preprocess(nb, resources)
        entry = students(self.db_url, self.student_id).get(self.student_id)
        resources["nbgrader"]["name"] = entry.name if entry else ""
        resources["nbgrader"]["course"] = read_class(course).title
        return nb, resources

    def _get_comment(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_comment(cell, resources)
        cell.metadata.nbgrader["comment"] = expanded(cell.metadata.nbgrader["comment"] or "", self._named)

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        place = (cell.metadata.nbgrader["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        grade = self.gradebook.find_grade(*place)
        waits, marked = grade.needs_manual_grade, grade.manual_score is not None
        cell.metadata.nbgrader.update(unread=waits and not marked, again=waits and marked)
