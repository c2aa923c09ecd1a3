"""A step of nbgrader's `generate_feedback` that makes no page of an exam until it is over for everybody.

When the page is made, the student's answers to multiple-choice questions become final.
"""

from pathlib import Path
from typing import Any

from grading._nbgrader import NbGraderPreprocessor
from grading._untyped import NotebookNode
from grading.course import Course
from grading.exam.window import require_over
from grading.first_answers import settle_exam_answers


class Withhold(NbGraderPreprocessor):  # type: ignore[misc]
    """Comes before all other steps of feedback, whoever asks for it: `run`, Formgrader, or nbgrader's own command."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return the notebook and the resources unchanged.

        Raises:
            GradingError: the assignment is an exam that is not over.
        """
        places = self.config.CourseDirectory
        course = Course(Path(places.root), Path(places.feedback_directory).parent)
        student, assignment = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        require_over(course, assignment, "no feedback page is made yet")
        settle_exam_answers(course, assignment, student)
        return nb, resources
