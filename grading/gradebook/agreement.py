"""Check that the gradebook knows the students who were graded according to the class's files.

The gradebook and the outcomes of a class are written together, but kept apart. If ATTENTION_DB names a different
gradebook from the one that the class was graded with, or if that gradebook is gone, everybody would seem to have earned
nothing.
"""

from grading.course import Course, GradingError
from grading.gradebook.lookup import shown, submitters
from grading.run_state import RunState
from grading.text import counted
from grading.verdict import Verdict


def require_agreement(course: Course, assignment: str) -> set[str]:
    """Return the students who have a submission in the class's gradebook, if it agrees with the class's files.

    Raises:
        GradingError: students were graded, and the gradebook knows none of them.
    """
    url = course.config().CourseDirectory.db_url
    outcomes, known = RunState(course, assignment).all()[0], submitters(url, assignment)
    # If the grader failed on a submission, the gradebook may know nothing of it.
    graded = {outcome.student for outcome in outcomes if outcome.verdict is not Verdict.INFRASTRUCTURE}
    if graded and not graded & known:
        raise GradingError(
            f"{course.outcomes(assignment)} lists who was graded for {assignment} ({counted(len(graded), 'student')}), "
            f"but the gradebook {shown(url)} knows none of them, so nothing was changed. If their marks are in another "
            f"gradebook, copy them into this one: `python -m grading migrate --from {_former(course)}`; or set "
            f"ATTENTION_DB to that one's address, or unset it to use the class's own. If the marks are lost, "
            f"`python -m grading run {assignment} --regrade` grades everybody again"
        )
    return known


def _former(course: Course) -> str:
    """Return the address to migrate from: the file that is used without ATTENTION_DB, or "URL" if there is none."""
    file = course.folder / "gradebook.db"
    own = f"sqlite:///{file}"
    return own if file.is_file() and own != course.config().CourseDirectory.db_url else "URL"
