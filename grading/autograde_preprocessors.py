"""The preprocessors that put this engine into nbgrader's own `autograde`, and thus behind Formgrader's button.

To grade a class, use `python -m grading run`, which starts its boxes once. Here one is started for each call.
"""

import shutil
from pathlib import Path
from secrets import randbits
from typing import Any

from grading._nbgrader import NbGraderPreprocessor
from grading._untyped import NotebookNode
from grading.course import Course, GradingError, log_file
from grading.exam.declared import exam_names
from grading.exchange import SECRET, TIMESTAMP
from grading.first_answers import keep_first_answers
from grading.judge import Judge
from grading.notebook_template import VERDICT_KEY, NotebookTemplate
from grading.options_shown import OptionsShown
from grading.own_names import own_names
from grading.pool import run_here
from grading.read_submission import read_submission
from grading.release import notebook_templates, register
from grading.repair.messages import RefusedError
from grading.sandbox.bubblewrap import require_hidden
from grading.sandbox.limits import Limits

SEED_BITS = 128


def _template(resources: Any, root: str) -> NotebookTemplate:
    """Return the notebook that the gradebook knows; the one in ``exercises/`` may be somebody's work by now."""
    course, place = Course.at(Path(root)), resources["nbgrader"]
    register(course, place["assignment"], log_file(course, place["assignment"]))
    return next(
        template for template in notebook_templates(course, place["assignment"]) if template.name == place["notebook"]
    )


def _keep_only(names: set[str], folder: Path) -> None:
    """Remove what else nbgrader copied, because Formgrader would serve a student's page as one of its own."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in names:
            path.unlink()


class Admit(NbGraderPreprocessor):  # type: ignore[misc]
    """Replaces nbgrader's sanitizing: rereads the submission, and repairs it into the assignment's own cells."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return the repaired notebook."""
        template = _template(resources, self.config.CourseDirectory.root)
        try:
            repaired = read_submission(Path(resources["metadata"]["path"]), template).repaired
        except RefusedError as refused:
            raise GradingError(f"{refused.verdict}: {refused.reason}") from refused
        for repair in repaired.repairs:
            self.log.warning("%s", repair.text)
        return repaired.notebook, resources


class Grade(NbGraderPreprocessor):  # type: ignore[misc]
    """Replaces nbgrader's executing: the cells are run in a box, and what they earned is judged outside."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return the notebook as it was run, with what its graded cells earned."""
        course = Course.at(Path(self.config.CourseDirectory.root))
        notebooks = course.notebooks(resources["nbgrader"]["assignment"])
        _keep_only({*notebooks, TIMESTAMP, SECRET}, Path(resources["metadata"]["path"]))
        template, judge = _template(resources, self.config.CourseDirectory.root), Judge(randbits(SEED_BITS))
        require_hidden(course)
        (result,) = run_here([template.task(nb, judge, Limits(), sandboxed=True)])
        if result.lost:
            raise GradingError(result.lost)
        student, assignment = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        choices = [*template.choices(nb, result)]
        read = read_submission(course.submitted(student, assignment), template)
        names, exam = own_names(course).get(student, ()), assignment in exam_names(course)
        OptionsShown(student, names, read.stated, read.repaired.saved, exam).tell(choices)
        keep_first_answers(course, assignment, student, choices)
        marked, verdict = template.marked(nb, result, judge)
        marked.metadata[VERDICT_KEY] = {"verdict": verdict.verdict, "reason": verdict.reason}
        return marked, resources
