"""The verdicts on a submission, from the mildest to the most severe: if there are several, the last one counts.

Their values are stored in outcomes, in the audit log and in autograded notebooks, so they must never change.
"""

from enum import StrEnum


class Verdict(StrEnum):
    """What happened to a submission.

    Attributes:
        text: what happened, and what it costs.
        informs: whether the submission says anything about the questions.
    """

    text: str
    informs: bool

    def __new__(cls, value: str, text: str = "", informs: bool = True) -> "Verdict":
        """Create a member. The default is for type checkers: ``Verdict("graded")`` only looks a member up."""
        member = str.__new__(cls, value)
        member._value_, member.text, member.informs = value, text, informs
        return member

    GRADED = "graded", "every cell was run"
    STUDENT_ERROR = "student-error", "a cell raised an error; the answers that could still be read are counted"
    OUTPUT_LIMIT = "output-limit", "a cell produced more output than is kept; all others are counted"
    CRASHED = "crashed", "a cell ended the Python process, and earned nothing; the others are counted"
    TIMEOUT = "timeout", "a cell did not finish in time, and earned nothing; the others are counted"
    OUT_OF_MEMORY = (
        "out-of-memory",
        "a cell needed more memory than there is, and earned nothing; the others are counted",
    )
    TAMPERED = (
        "tampered",
        "a cell wrote into the channel that its answers go through, and earned nothing; check it yourself",
    )
    UNREADABLE = "unreadable", "the file is not a notebook that can be graded; nothing was earned", False
    MISSING = "missing", "there is no notebook; nothing was earned", False
    INFRASTRUCTURE = "infrastructure", "the grader itself failed; nothing is known about this submission", False

    @property
    def severity(self) -> int:
        """The rank among all verdicts: the higher, the worse."""
        return list(type(self)).index(self)

    @property
    def refused(self) -> bool:
        """Whether the submission was refused before any of its cells was run."""
        return not self.informs and self is not Verdict.INFRASTRUCTURE
