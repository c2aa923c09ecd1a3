"""The scores and comments on feedback pages, in their own module: the child that renders a page opens no gradebook."""

from pathlib import Path
from typing import Any

from grading._nbgrader import NbGraderPreprocessor
from grading._untyped import NotebookNode, is_grade, is_solution, is_task
from grading.class_settings import read_class
from grading.course import Course
from grading.gradebook.notebook_marks import notebook_marks
from grading.gradebook.students import students
from grading.marking.comments import expanded, read_comments


class Scores(NbGraderPreprocessor):  # type: ignore[misc]
    """Put the gradebook's scores and comments into the cells, and flag scores that a person has to give or check.

    Until a person has done so, the mark given to an earlier submission counts. The page also gets the student's name
    and the course's title. This class replaces nbgrader's own ``GetGrades``, which queries the gradebook for every
    cell.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> Any:
        """Return the notebook and the resources with the scores and with what the gradebook knows about the student."""
        places = self.config.CourseDirectory
        course = Course(Path(places.root), Path(places.feedback_directory).parent)
        named, about = read_comments(course), resources["nbgrader"]
        marks = notebook_marks(about["db_url"], about["student"], about["assignment"], about["notebook"])
        for cell in nb.cells:
            if is_solution(cell) or is_task(cell):
                comment = marks.comments[cell.metadata.nbgrader["grade_id"]]
                cell.metadata.nbgrader["comment"] = expanded(comment, named)
            if is_grade(cell) or is_task(cell):
                found = marks.cells[cell.metadata.nbgrader["grade_id"]]
                shown = {"score": found.score, "points": found.max_score}
                waits = found.needs_marking
                flags = {"unread": waits and not found.marked, "again": waits and found.marked}
                cell.metadata.nbgrader.update(shown | flags)
        entry = students(about["db_url"], about["student"]).get(about["student"])
        about |= {"score": marks.score - marks.penalty, "max_score": marks.max_score, "late_penalty": marks.penalty}
        about |= {"name": entry.name if entry else "", "course": read_class(course).title}
        return nb, resources
