"""The scores and comments of one submitted notebook's cells, as the gradebook stores them.

``same`` says that the answers were graded before: what a person has marked then stays marked.
"""

from collections.abc import Collection, Mapping, Sequence
from logging import Logger

from grading._nbgrader import Comment, Grade, SubmittedNotebook, compute_checksum, determine_grade
from grading._untyped import NotebookNode, is_grade, is_solution, is_task
from grading.course import GradingError
from grading.outcome import plain


def fill_marks(
    notebook: NotebookNode, grades: Mapping[str, Grade], comments: Mapping[str, Comment], log: Logger, *, same: bool
) -> None:
    """Write the scores and automatic comments of an executed and judged notebook into its rows."""
    graded = [cell for cell in notebook.cells if is_grade(cell) or is_task(cell)]
    for name, cell in _by_name(graded, grades).items():
        grade = grades[name]
        grade.auto_score = None if is_task(cell) else determine_grade(cell, log)[0]
        if not (same and _is_marked(grade)):
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
    answers = [cell for cell in notebook.cells if is_solution(cell) or is_task(cell)]
    for name, cell in _by_name(answers, comments).items():
        untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
        comments[name].auto_comment = "No response." if untouched and not is_task(cell) else None


def _is_marked(grade: Grade) -> bool:
    """Tell whether a person has given a mark, and nothing new has come since."""
    return grade.manual_score is not None and not grade.needs_manual_grade


def _by_name(cells: Sequence[NotebookNode], known: Collection[str]) -> dict[str, NotebookNode]:
    """Return the cells by name.

    Each cell that the gradebook knows must occur once: otherwise an earlier submission's score could stay.
    """
    names = [cell.metadata.nbgrader["grade_id"] for cell in cells]
    if sorted(names) != sorted(known):
        odd = ", ".join(sorted({plain(name) for name in names if name not in known or names.count(name) > 1}))
        gone = ", ".join(sorted(set(known) - set(names)))
        raise GradingError(
            f"the notebook's cells are not those of the gradebook. Unknown or duplicate: {odd or 'none'}; missing: "
            f"{gone or 'none'}. Register the assignment as it is now, and grade again"
        )
    return dict(zip(names, cells, strict=True))


def clear_marks(
    notebook: SubmittedNotebook, grades: Mapping[str, Grade], comments: Mapping[str, Comment], *, same: bool
) -> None:
    """Record in the rows of a notebook that was not handed in that it earned nothing."""
    for grade in grades.values():
        marked = same and _is_marked(grade)
        grade.auto_score, grade.needs_manual_grade = 0, grade.manual_score is not None and not marked
    for comment in comments.values():
        comment.auto_comment = None
    notebook.late_submission_penalty = None
