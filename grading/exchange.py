"""What nbgrader's exchange needs next to a feedback page before `nbgrader release_feedback` releases it."""

from pathlib import Path
from secrets import token_hex

from grading.course import Course, GradingError

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"  # the names that `nbgrader collect` gives them
MAX_FILE_BYTES = 1_000  # limit for either file
PRIVATE_MODE = 0o600
SECRET_BYTES = 64  # as many as nbgrader draws


def keep_for_exchange(course: Course, assignment: str, student: str) -> None:
    """Put a submission's timestamp and secret next to its feedback and the notebooks that it is made from.

    The timestamp is that of the submission, and is empty if there is none. A student who knows the secret can find the
    page in the exchange. A submission that came in another way has no secret. A new one is then drawn once, so that the
    other pages can be released, and nobody can find this one.
    """
    made = (course.autograded(student, assignment), course.feedback(student, assignment))
    folders = [folder for folder in made if course.files.names(folder)]
    came = course.submitted(student, assignment)
    secrets = (_read(course, folder / SECRET) for folder in (came, *folders))
    wanted = {
        TIMESTAMP: _read(course, came / TIMESTAMP) or b"",
        SECRET: next(filter(None, secrets), None) or token_hex(SECRET_BYTES).encode(),
    }
    for folder in folders:
        for name, content in wanted.items():
            if _read(course, folder / name) != content:
                course.files.write(folder / name, content, PRIVATE_MODE)


def _read(course: Course, file: Path) -> bytes | None:
    """Return what a file holds, or None if it cannot be read."""
    try:
        return course.files.read(file, MAX_FILE_BYTES)
    except (OSError, GradingError):
        return None
