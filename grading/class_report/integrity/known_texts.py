"""The texts that submissions are compared with. Nothing is looked up elsewhere.

They are the chapters of the book, the written answers in the course's own solutions, and the files that an instructor
has put into `known-texts/` in the class's folder: a tutorial, say, or what an AI assistant answers when it is asked the
question.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grading.class_report.similarity import Passage
from grading.course import Course

FOLDER = "known-texts"
SUFFIXES = (".md", ".txt", ".py", ".ipynb", ".html", ".htm")
MAX_BYTES = 5_000_000  # of a file
TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class KnownText:
    """A text and what it is called. ``given`` says that the course itself wrote it."""

    name: str
    text: str
    given: bool = False


@dataclass(frozen=True)
class Match:
    """What a student has in common with a known text: "text" or "code", how many words, and the longest passages."""

    student: str
    source: str
    kind: str
    words: int
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class KnownTexts:
    """All known texts, and the files in the folder that could not be read, with the reason."""

    texts: tuple[KnownText, ...]
    unread: tuple[tuple[str, str], ...]

    @property
    def own(self) -> list[str]:
        """The names of the files that the instructor has put there."""
        return [known.name for known in self.texts if not known.given]


def known_texts(course: Course, assignment: str) -> KnownTexts:
    """Return the known texts on this machine."""
    texts, unread = list(_given(course, assignment)), []
    for name in course.files.names(course.folder / FOLDER):
        try:
            texts.append(KnownText(name, _own(course, name)))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            unread.append((name, f"{error}"))
    return KnownTexts(tuple(texts), tuple(unread))


def _given(course: Course, assignment: str) -> Iterator[KnownText]:
    for path in sorted((course.root / "book").glob("*.md")):
        yield KnownText(f"the book, {path.name}", path.read_text(encoding="utf-8"), given=True)
    for name in course.notebooks(assignment):
        cells = json.loads((course.root / "solutions" / assignment / name).read_text(encoding="utf-8"))["cells"]
        written = [cell for cell in cells if cell["cell_type"] == "markdown" and _is_answer(cell["metadata"])]
        text = "\n\n".join("".join(cell["source"]) for cell in written)
        yield KnownText(f"the solution, {name}", text, given=True)


def _is_answer(metadata: dict[str, dict[str, object]]) -> bool:
    return bool(metadata.get("nbgrader", {}).get("solution"))


def _own(course: Course, name: str) -> str:
    kind = Path(name).suffix.lower()
    if kind not in SUFFIXES:
        raise ValueError(f"it is not one of {', '.join(SUFFIXES)}: save it as text")
    text = course.files.read(course.folder / FOLDER / name, MAX_BYTES).decode("utf-8", "replace")
    if kind == ".ipynb":
        return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return html.unescape(TAG.sub(" ", text)) if kind.startswith(".htm") else text
