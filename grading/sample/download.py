"""What a learning management system exports of the made-up class: a class list, and a zip of the submissions."""

import csv
import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from grading.course import Course
from grading.sample import write_class
from grading.text import counted

LAST_NAMES = {
    **{"ada": "Byron", "bela": "Kiss", "chloe": "Martin", "dmitri": "Orlov", "emeka": "Okafor", "fatima": "Haddad"},
    **{"goran": "Novak", "hana": "Sato", "ivan": "Petrov", "jun": "Park", "karim": "Aziz", "lena": "Weber"},
    **{"milo": "Rossi", "nora": "Berg"},  # Nora hands in nothing
}
IN_TIME, LATE = "2030-01-30-18-00-00", "2030-02-01-09-00-00"
LATE_STUDENT = "jun"
CLASS_LIST, SUBMISSIONS = "students.csv", "submissions.zip"


def write_download(course: Course, assignment: str, folder: Path) -> str:
    """Write both files, named as Blackboard names submissions, and return what they hold, as text for a terminal."""
    with TemporaryDirectory(prefix="sample-") as made:
        aside = Course(course.root, Path(made))
        students = write_class(aside, assignment)
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / SUBMISSIONS, "w", zipfile.ZIP_DEFLATED) as archive:
            for student in students:
                time = LATE if student == LATE_STUDENT else IN_TIME
                for notebook in sorted(aside.submitted(student, assignment).iterdir()):
                    archive.write(notebook, f"Homework_{student}_attempt_{time}_{notebook.name}")
    (folder / CLASS_LIST).write_text(_class_list(), encoding="utf-8")
    return (
        f"{counted(len(LAST_NAMES), 'student')} in {folder / CLASS_LIST}\n"
        f"{counted(len(students), 'submission')} in {folder / SUBMISSIONS}"
    )


def _class_list() -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("id", "first_name", "last_name", "email"))
    writer.writerows((name, name.title(), last, f"{name}@example.org") for name, last in LAST_NAMES.items())
    return stream.getvalue()
