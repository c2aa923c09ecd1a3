"""What reading a submission reports: repairs and refusals, and the phrases that both use."""

from collections.abc import Sequence
from dataclasses import dataclass

from grading.text import printable as fit_to_print
from grading.verdict import Verdict

OR_RENAME = ", or rename what was submitted: "  # the names of what came instead of a notebook follow
SEVERAL_FILES = "There are several files, and "  # the beginning of the repair that says which one was graded


@dataclass(frozen=True)
class Repair:
    """One repair: a slug for its kind, and a plain sentence for student and instructor, printable."""

    kind: str
    text: str


class RefusedError(Exception):
    """The submission cannot be graded: the verdict, the reason, and the digest of what was handed in."""

    def __init__(self, verdict: Verdict, reason: str, digest: str) -> None:
        super().__init__(verdict, reason, digest)
        self.verdict, self.reason, self.digest = verdict, reason, digest

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


class UnreadableError(Exception):
    """A file is not a notebook that can be graded. The text continues a sentence that begins with the file's name."""


def printable(text: str, most: int = 60) -> str:
    """Return a student's text on one line, fit for a terminal, and not too long."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return fit_to_print(cut)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names for a sentence, the first few of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(printable(name) for name in names[:most]) + more
