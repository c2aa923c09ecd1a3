"""What nbgrader's exchange asks for beside a feedback page, before `nbgrader release_feedback` hands it out."""

from pathlib import Path
from secrets import token_hex

from grading.course import Course, GradingError

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"  # as `nbgrader collect` writes them
MAX_FILE_BYTES = 1_000  # of either file
PRIVATE_MODE = 0o600
SECRET_BYTES = 64  # of a secret, as many as nbgrader draws


def keep_for_exchange(course: Course, assignment: str, student: str) -> None:
    """Put a submission's timestamp and secret beside its feedback, and beside the notebooks that feedback is made of.

    The timestamp is that of the submission, and empty where there is none. A student who knows the secret finds the
    page in the exchange. Whoever handed in on another way has none: a new one is drawn once, so that the others' pages
    can be released, and nobody finds this one.
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
    """Return what a file holds, None where there is none that can be read."""
    try:
        return course.files.read(file, MAX_FILE_BYTES)
    except (OSError, GradingError):
        return None
