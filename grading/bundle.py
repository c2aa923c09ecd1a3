"""One zip file for students: the notebooks, attnlib as a wheel, and the versions of the packages to install.

The file holds no answers. The notebooks are the released ones, and attnlib does not know which options are right. The
same tree gives the same bytes. Exams are left out until they are over: attnlib would name the mistakes in them. For an
exam, there is a file of its own, with a part of attnlib that says nothing about answers (`grading.exam.library`).
"""

import io
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from grading._untyped import make_wheel_in
from grading.class_settings import ClassSettings, book_address, read_class
from grading.course import Course, GradingError, environment
from grading.exam.declared import TIME_FORMAT
from grading.exam.library import reduce_to_exam, require_silent
from grading.exam.window import exam_of, not_over
from grading.handout import WORK_FOLDER, Files, released
from grading.reread_links import relink_notebook
from grading.text import counted

NAME, EXAM_NAME = "attention-students.zip", "attention-exam-{}.zip"
FOLDER = "attention"  # the folder that unpacking makes
SOURCE_DATE = 315_532_800  # 1980, where the times of a zip file begin
BUILDERS = {"flit-core", "pip"}  # what only install.py needs; on Windows, pip cannot replace itself
INSTALL = """\
You need Python 3.11 or newer, and 0.4 GB of disk space. In this folder:

```bash
python3 -m venv .venv
.venv/bin/pip install --requirement requirements.txt
.venv/bin/jupyter lab work
```

On Windows, write `.venv\\Scripts\\pip` and `.venv\\Scripts\\jupyter`.
"""
README = """\
Fill in the cells that say `YOUR CODE HERE`, and run the check below each as often as you like. The tasks in
PyTorch need these packages as well (0.3 GB, or 2.8 GB with CUDA):

```bash
.venv/bin/pip install --constraint constraints.txt torch array-api-compat
```

To get the options of each question in an order of your own, add a cell with these two lines to a notebook, with the id
that your course site or your instructor names:

```python
from attnlib.checks import set_student
set_student("your id")
```
"""
EXAM_README = """\
# {title}

This is an exam. It begins at {begin} and ends at {end}. If you were granted more time, it ends later for you. What you
hand in after its end earns nothing. If you hand in several times, the last submission before the end counts.

State your id first: add a cell with these two lines to the notebook, with the id that your course site or your
instructor names, and run it. Each question then shows its options in your own order, with letters from P on. Other
letters earn nothing.

```python
from attnlib.checks import set_student
set_student("your id")
```

The checks say only that an answer was received. You get feedback after the exam has ended for everybody.

"""


def bundle(course: Course, out: Path | None = None, exam: str = "") -> str:
    """Write the file for students, and return what it holds, as text for a terminal.

    Args:
        course: the class.
        out: where to write; None means the folder of the class.
        exam: the exam that the file is for; "" for all assignments but exams that are not over.

    Raises:
        GradingError: there is nothing to release, ``exam`` is not an exam or its notebook imports what says something
            about answers, or the file cannot be written.
    """
    files, said = _for_exam(course, exam) if exam else _for_term(course)
    file = (out or course.folder / (EXAM_NAME.format(exam) if exam else NAME)).absolute()
    try:
        if file.is_relative_to(course.folder):
            course.files.write(file, _zipped(files))
        else:
            file.write_bytes(_zipped(files))
    except OSError as error:
        raise GradingError(
            f"cannot write {file}: {error}. Pass --out FILE, in a folder that you can write to"
        ) from None
    return said.format(file)


def _for_term(course: Course) -> tuple[Files, str]:
    """Return the files, and what they are, with a field for where they were written."""
    exams = not_over(course)
    notebooks = released(course, without=exams)
    wheel, content = _wheel(course.root, lambda source: None)
    left_out = [f"Left out, because they are exams that are not over: {', '.join(exams)}"] if exams else []
    said = "\n".join([f"{counted(len(notebooks), 'notebook')} and {wheel} in {{}}", *left_out])
    return _files(course, notebooks, wheel, content, _readme(read_class(course))), said


def _for_exam(course: Course, assignment: str) -> tuple[Files, str]:
    """Return the files for an exam, and what they are."""
    course.require(assignment)
    exam = exam_of(course, assignment)
    if exam is None:
        raise GradingError(f"{assignment} is not an exam: declare it with `exam {assignment} --begin DATE --end DATE`")
    notebooks = released(course, assignment)
    asked = require_silent(notebooks)
    wheel, content = _wheel(course.root, lambda source: reduce_to_exam(source, asked))
    end = f"{exam.end:{TIME_FORMAT}}" if exam.end else "the time that you will be told"
    readme = EXAM_README.format(title=assignment, begin=f"{exam.begin:{TIME_FORMAT}}", end=end) + INSTALL
    said = f"{counted(len(notebooks), 'notebook')} and {wheel} in {{}}\nHand it out at {exam.begin:{TIME_FORMAT}}"
    return _files(course, notebooks, wheel, content, readme), said


def _files(course: Course, notebooks: Files, wheel: str, content: bytes, readme: str) -> Files:
    lock = (course.root / "requirements.txt").read_text(encoding="utf-8")
    book = book_address(course)  # the bundle has no copy of the book, so without an address, it has no links
    work = {f"{WORK_FOLDER}/{path}": relink_notebook(notebook, book) for path, notebook in notebooks.items()}
    needed = {"requirements.txt": _requirements(course.root, lock, wheel).encode(), "constraints.txt": lock.encode()}
    return work | needed | {wheel: content, "README.md": readme.encode()}


def _readme(settings: ClassSettings) -> str:
    title = settings.title or "The exercises of the course on attention"
    book = f"The book: {settings.book}\n\n" if settings.book else ""
    return f"# {title}\n\n{book}{INSTALL}\n{README}"


def _zipped(files: Files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{FOLDER}/{path}")  # its time is the beginning of 1980
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return stream.getvalue()


def _wheel(root: Path, change: Callable[[Path], None]) -> tuple[str, bytes]:
    """Return the name and the content of attnlib's wheel, made after a change to a copy of its source."""
    with TemporaryDirectory(prefix="attnlib-") as place:
        copy = Path(place, "source")
        shutil.copytree(root / "attnlib", copy / "attnlib", ignore=shutil.ignore_patterns("__pycache__", ".*"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copyfile(root / name, copy / name)
        change(copy)
        for path in copy.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        with environment("SOURCE_DATE_EPOCH", str(SOURCE_DATE)):
            wheel = make_wheel_in(copy / "pyproject.toml", Path(place)).file
        return wheel.name, wheel.read_bytes()


def _requirements(root: Path, lock: str, wheel: str) -> str:
    """Return what the group of students asks for, in the versions of the lock."""
    groups = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    wanted = [name for name in groups["student"] if name not in BUILDERS]
    pinned = [line for line in lock.splitlines() if line.partition("==")[0] in wanted]
    return "\n".join(["--constraint constraints.txt", f"./{wheel}", *pinned, ""])
