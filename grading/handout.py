"""Hand out the assignments, and never overwrite anybody's work.

``_build/released/`` holds each notebook as it is released. Nobody works there, and its files are read-only: the book
and JupyterLite are built from it, and nbgrader's exchange releases it. ``exercises/`` holds the same notebooks for
readers of the repository, next to a list of their digests that ``sha256sum --check`` understands. A notebook in
``exercises/`` with any other digest is somebody's work, and stays. ``work/`` is where students work: a notebook is
copied there once. If the class has published the book, the links of the notebooks in ``_build/released/`` and
``work/`` lead there.

An exam is not released before it begins. If a released assignment becomes an exam, its notebooks are removed from
``_build/released/`` until then.

A copy of the course without ``solutions/`` cannot generate notebooks. There, the list says what is released.
"""

import json
import os
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from grading.class_settings import book_address
from grading.course import Course, GradingError, log_file
from grading.exam.declared import TIME_FORMAT, not_begun
from grading.reread_links import relink_notebook

RELEASED_FOLDER = Path("_build", "released")
EXERCISES_FOLDER, WORK_FOLDER = Path("exercises"), Path("work")
STUDENT_CELL = "student"  # the id of the cell that says whose notebook it is
DIGESTS = EXERCISES_FOLDER / "SHA256SUMS"

READ_ONLY_MODE = 0o444

Files = dict[str, bytes]  # contents by path below the folder, such as 02-self-attention/self-attention.ipynb


def hand_out(course: Course, assignment: str | None = None) -> list[str]:
    """Release an assignment, or all of them, and return what was written to ``exercises/`` and what was left alone.

    Raises:
        GradingError: there is nothing to release, it is an exam that has not begun, or it cannot be written.
    """
    before, closed = _digests(course), not_begun(course)
    if assignment in closed:
        raise GradingError(f"not released: the exam {assignment} begins at {closed[assignment]:{TIME_FORMAT}}")
    files = released(course, assignment, without=closed)
    now = {path: _digest(content) for path, content in files.items()}
    kept = {path: digest for path, digest in before.items() if assignment and not path.startswith(f"{assignment}/")}
    lines = [f"{digest}  {path}\n" for path, digest in sorted((kept | now).items())]
    with _writing(course.root):
        _mirror(_linked(course, files), course.root / RELEASED_FOLDER, whole=assignment is None)
        for name in closed:
            recall(course, name)
        said = [f"{name}: not released: the exam begins at {begin:{TIME_FORMAT}}" for name, begin in closed.items()]
        said += _published(course, files, before)
        _write(course.root / DIGESTS, "".join(lines).encode())
    return said


def released(course: Course, assignment: str | None = None, without: Collection[str] = ()) -> Files:
    """Return the notebooks as they are released: an assignment's, or all but some. Nobody's work is among them.

    Raises:
        GradingError: there is nothing to release.
    """
    if not course.assignments():
        return _found(course, _digests(course))
    return _generated(course, [assignment] if assignment else [x for x in course.assignments() if x not in without])


def released_before(course: Course, assignment: str) -> bool:
    """Return whether an assignment is on the list of what has been released."""
    return any(path.startswith(f"{assignment}/") for path in _digests(course))


def recall(course: Course, assignment: str) -> int:
    """Remove the notebooks of an assignment from what the exchange releases, and return how many there were."""
    there = in_release(course, assignment)
    for file in there:
        file.unlink()
    return len(there)


def in_release(course: Course, assignment: str) -> list[Path]:
    """Return the notebooks of an assignment among those that the exchange releases."""
    return list((course.root / RELEASED_FOLDER / assignment).glob("*.ipynb"))


def start_work(course: Course, assignment: str | None, folder: Path, student: str = "") -> list[str]:
    """Copy released notebooks into a student's folder, unless they are already there, and return what happened.

    If it is known who the ``student`` is, each copy says so, and shows options in an order of the student's own.

    Raises:
        GradingError: there is no such assignment, nothing has been released yet, or the folder cannot be written to.
    """
    digests = _digests(course)
    names = sorted({path.partition("/")[0] for path in digests})
    if not digests:
        raise GradingError("nothing has been released yet: run `python -m grading release`")
    if assignment not in (None, *names):
        raise GradingError(f"{assignment} has not been released; these have: {', '.join(names)}")
    chosen = {path: digest for path, digest in digests.items() if assignment in (None, path.partition("/")[0])}
    with _writing(folder):
        found = _linked(course, _found(course, chosen)).items()
        return [_copied(folder / path, _owned(content, student) if student else content) for path, content in found]


def _linked(course: Course, files: Files) -> Files:
    """Return the notebooks. If the class has published the book, their links lead there."""
    book = book_address(course)
    return {path: relink_notebook(content, book) for path, content in files.items()} if book else files


def _owned(content: bytes, student: str) -> bytes:
    """Return a notebook with a cell that says whose it is, below the first cell of code."""
    notebook = json.loads(content)
    at = next(i for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code")
    says = f"set_student({json.dumps(student, ensure_ascii=False)})"
    source = ["from attnlib.checks import set_student\n", "\n", says]
    empty: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook["cells"].insert(at + 1, empty | {"id": STUDENT_CELL, "source": source})
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an OSError into a GradingError that says why a folder cannot be written to."""
    try:
        yield
    except OSError as error:
        raise GradingError(
            f"cannot write into {folder}: {error.strerror} ({error.filename}). It has to be a folder that you can "
            "write to, on a disk with free space. Fix this, and run the same command again"
        ) from error


def _copied(target: Path, content: bytes) -> str:
    """Write a file as a whole or not at all, and only if no file of that name exists."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        whole = Path(beside, target.name)
        whole.write_bytes(content)
        try:
            os.link(whole, target)  # unlike a rename, this never replaces a file
        except FileExistsError:
            return f"{target}: already there, left as it is. To get a fresh copy, move or rename it first"
    return f"{target}: copied"


def _generated(course: Course, assignments: Collection[str]) -> Files:
    from grading.release import release  # nbgrader, which takes a second to import

    with TemporaryDirectory(prefix="released-") as made:
        for name in assignments:
            release(course, name, Path(made), log_file(course, name))
        return _read(Path(made))


def _found(course: Course, digests: dict[str, str]) -> Files:
    """Return the notebooks that the list of digests names, each from the first place where it is unchanged."""
    if not digests:
        raise GradingError(f"there is neither solutions/ nor {DIGESTS} in {course.root}: clone the course again")
    files = {}
    for path, digest in digests.items():
        match = next((found for found in _candidates(course.root, path) if _digest(found) == digest), None)
        if match is None:
            raise GradingError(
                f"{EXERCISES_FOLDER / path} is not what was released, and no other copy is left. "
                f"Move your work elsewhere ({WORK_FOLDER}/ is meant for it), and get the original from the course again"
            )
        files[path] = match
    return files


def _candidates(root: Path, path: str) -> Iterator[bytes]:
    for place in (EXERCISES_FOLDER, RELEASED_FOLDER):
        if (root / place / path).is_file():
            yield (root / place / path).read_bytes()
    if (root / RELEASED_FOLDER / path).is_file():
        from attnlib.checks.book_links import LOCAL_BOOK  # imports NumPy, which takes a while

        with suppress(ValueError, LookupError, TypeError):  # the file is no longer a notebook
            yield relink_notebook((root / RELEASED_FOLDER / path).read_bytes(), LOCAL_BOOK)  # as released
    committed = ["git", "-C", str(root), "show", f"HEAD:./{EXERCISES_FOLDER.as_posix()}/{path}"]
    try:
        yield subprocess.run(committed, capture_output=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return  # git is not installed, or this is not a repository


def _published(course: Course, files: Files, before: dict[str, str]) -> Iterator[str]:
    """Update the notebooks in ``exercises/`` that nobody has changed, and say what happened to the rest."""
    for path, content in files.items():
        target = course.root / EXERCISES_FOLDER / path
        there = target.read_bytes() if target.is_file() else None
        if there == content:
            continue
        if there is None or _digest(there) == before.get(path):
            _write(target, content)
            yield f"{EXERCISES_FOLDER / path}: released"
        else:
            yield (
                f"{EXERCISES_FOLDER / path} is not what was released, so it was left as it is. To get the version that "
                f"is released now, run `make work ASSIGNMENT={path.partition('/')[0]}`. This copies it to "
                f"{WORK_FOLDER / path}; if that file already exists, move or rename it first"
            )


def _mirror(files: Files, folder: Path, *, whole: bool) -> None:
    """Write these files into a folder, read-only. Leave files with the same content alone.

    If these files are the ``whole`` release, remove all others from the folder.
    """
    there = _read(folder)
    for path, content in files.items():
        if there.get(path) != content:
            _write(folder / path, content)
        (folder / path).chmod(READ_ONLY_MODE)
    for path in there.keys() - files.keys() if whole else ():
        (folder / path).unlink()


def _read(folder: Path) -> Files:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and ".ipynb_checkpoints" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _write(target: Path, content: bytes) -> None:
    """Write a file as a whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.new")
    beside.write_bytes(content)
    beside.replace(target)


def _digests(course: Course) -> dict[str, str]:
    file = course.root / DIGESTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines)}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
