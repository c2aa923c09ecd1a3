"""One submission on its way: read and repaired, run as tasks, and recorded with what came back."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from logging import Logger
from pathlib import Path

from grading._untyped import NotebookNode, notebook_text
from grading.bounded_worker import LostError
from grading.course import Course
from grading.exam.declared import exam_names
from grading.first_answers import keep_first_answers
from grading.gradebook.assignment import AssignmentGradebook
from grading.judge import Judge
from grading.lateness import Lateness
from grading.notebook_template import VERDICT_KEY, NotebookTemplate, NotebookVerdict, worst
from grading.options_shown import OptionsShown
from grading.outcome import Outcome, findings
from grading.own_names import own_names
from grading.pool import ResultList
from grading.read_submission import read_submission
from grading.rendering import harmless
from grading.repair.messages import RefusedError, Repair
from grading.repair.notebook import digest
from grading.reread_links import change_text, without_links
from grading.run_state import RunState
from grading.sandbox.limits import Limits
from grading.task import Task
from grading.timestamp import handed_in
from grading.verdict import Verdict
from grading.version import version

UNSANDBOXED = "UNSANDBOXED: the code was not shut in; it could have read files and awarded itself marks"
MAX_FLAGS_OF_SUBMISSION = 12  # flags shown for one submission


@dataclass(frozen=True)
class Submission:
    """What a student handed in, ready to run; or, in ``refused``, why it cannot be run. ``flags`` are worth a look."""

    student: str
    digest: str
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    repairs: tuple[Repair, ...] = ()
    flags: tuple[str, ...] = ()
    shown: dict[str, OptionsShown] = field(default_factory=dict)
    refused: RefusedError | None = None
    same: bool = False  # whether it was graded before, so that marks given by hand still count
    lost: str = ""  # why it could not be read, if the submission was not the cause


class Submissions:
    """The submissions to one assignment: what is done before and after they are run."""

    def __init__(
        self,
        course: Course,
        assignment: str,
        templates: Sequence[NotebookTemplate],
        judge: Judge,
        limits: Limits,
        log: Logger,
        *,
        sandboxed: bool,
    ) -> None:
        self.course, self.assignment, self.templates, self.judge = course, assignment, templates, judge
        self.limits, self.log, self.sandboxed = limits, log, sandboxed
        self._is_exam = assignment in exam_names(course)
        self._asked = asked(templates, sandboxed=sandboxed, exam=self._is_exam)
        self._names = own_names(course)

    def digest(self, student: str) -> str:
        """Return the digest that :meth:`read` would compute, without parsing the submission."""
        return digest_of(self.course.submitted(student, self.assignment), self.templates, self._asked)

    def is_up_to_date(self, student: str, before: Outcome) -> bool:
        """Tell whether grading the student again would give the same outcome.

        It might not if the submission, the engine or the exercises have changed, if time ran out under a smaller limit,
        or if the grader failed.
        """
        if before.verdict is Verdict.INFRASTRUCTURE:
            return False
        longer = 0 < before.timeout < self.limits.cell
        return before.version == version() and not longer and before.digest == self.digest(student)

    def read(self, student: str, before: str = "") -> Submission:
        """Read what was handed in. A missing or unreadable notebook earns nothing, if there are others.

        ``before`` is the digest of what an earlier run graded, or empty if marks given by hand have to be reviewed.
        """
        folder = self.course.submitted(student, self.assignment)
        came: list[str] = []
        notebooks: dict[str, NotebookNode] = {}
        repairs: list[Repair] = []
        flags: list[str] = []
        shown: dict[str, OptionsShown] = {}
        refusals: list[RefusedError] = []
        for template in self.templates:
            try:
                read = read_submission(folder, template)
            except RefusedError as why:
                came.append(why.digest)
                refusals.append(why)
                continue
            except LostError as why:
                digest = self.digest(student)
                return Submission(student, digest, same=before == digest, lost=str(why))
            came.append(read.repaired.digest)
            notebooks[template.name] = read.repaired.notebook
            repairs += read.repaired.repairs
            names, saved = self._names.get(student, ()), read.repaired.saved
            shown[template.name] = OptionsShown(student, names, read.stated, saved, self._is_exam)
            flags += read.flags
        refused = refusals[0] if refusals else None
        tasks = tuple(self._task(name, notebook) for name, notebook in notebooks.items())
        digest = _digest(came, self._asked)
        same = before == digest
        return Submission(student, digest, notebooks, tasks, tuple(repairs), tuple(flags), shown, refused, same)

    def _task(self, name: str, notebook: NotebookNode) -> Task:
        return self._template(name).task(notebook, self.judge, self.limits, sandboxed=self.sandboxed)

    def _template(self, name: str) -> NotebookTemplate:
        return next(template for template in self.templates if template.name == name)

    def settle(
        self,
        submission: Submission,
        run: "Future[ResultList]",
        gradebook: AssignmentGradebook,
        lateness: Lateness,
        run_state: RunState,
    ) -> Outcome:
        """Store what a submission earned: the notebook, the log, the gradebook and the outcome, in this order.

        Whatever goes wrong, an outcome is stored, and nothing else is left that could be mistaken for one.
        """
        try:
            outcome = lateness.of_new(self._settled(submission, run.result(), gradebook, run_state))
        except Exception as error:
            self.log.exception("the grader failed on %s", submission.student)
            outcome = self._failed(submission, f"{type(error).__name__}: {error}", gradebook, run_state)
        run_state.store_outcome(outcome)
        return outcome

    def _settled(
        self, submission: Submission, results: ResultList, gradebook: AssignmentGradebook, run_state: RunState
    ) -> Outcome:
        lost = submission.lost or next((result.lost for result in results if result.lost), "")
        if lost:
            return self._failed(submission, lost, gradebook, run_state)
        student = submission.student
        when = handed_in(self.course.submitted(student, self.assignment)).when
        if not submission.notebooks:
            assert submission.refused is not None
            self._forget(student)
            refused = Outcome(student, submission.refused.verdict, submission.refused.reason, digest=submission.digest)
            refused = replace(refused, version=version())
            run_state.announce(refused, 0.0, sandboxed=self.sandboxed)
            gradebook.record_nothing(student, when, same=submission.same)
            return refused
        marked, verdicts = {}, []
        for (name, notebook), result in zip(submission.notebooks.items(), results, strict=True):
            template = self._template(name)
            choices = [*template.choices(notebook, result)]
            submission.shown[name].tell(choices)
            keep_first_answers(self.course, self.assignment, student, choices)
            marked[name], verdict = template.marked(notebook, result, self.judge)
            marked[name].metadata[VERDICT_KEY] = {"verdict": verdict.verdict, "reason": verdict.reason}
            verdicts.append(verdict)
            file = self.course.autograded(student, self.assignment) / f"{name}.ipynb"
            self.course.files.write(file, notebook_text(harmless(marked[name])).encode())
        again = next((result.again for result in results if result.again), "")
        late = any(verdict == Verdict.TIMEOUT for result in results for verdict, _ in result.stops.values())
        outcome = self._outcome(submission, marked, verdicts, again)
        outcome = replace(outcome, version=version(), timeout=self.limits.cell if late else 0.0)
        run_state.announce(outcome, gradebook.automatic_score(marked), sandboxed=self.sandboxed)
        gradebook.record(student, marked, when, unsandboxed=not self.sandboxed, same=submission.same)
        return outcome

    def _outcome(
        self, submission: Submission, marked: dict[str, NotebookNode], verdicts: Sequence[NotebookVerdict], again: str
    ) -> Outcome:
        counts, refused = worst(verdicts), submission.refused
        reason = f"{refused.reason} {counts.reason}".strip() if refused else counts.reason
        verdict = refused.verdict if refused else counts.verdict
        found = tuple(finding for notebook in marked.values() for finding in findings(notebook))
        flags = (*filter(None, [again]), *self._flags(submission))
        untouched = [cell for name, notebook in marked.items() for cell in self._template(name).untouched(notebook)]
        about = (submission.student, verdict, reason, found, submission.digest, flags)
        return Outcome(*about, untouched=tuple(untouched))

    def _flags(self, submission: Submission) -> list[str]:
        """Return why an instructor should look at a submission."""
        bare = [] if self.sandboxed else [UNSANDBOXED]
        others = [
            flag for name, shown in submission.shown.items() for flag in shown.flags(self._template(name).questions)
        ]
        repairs = (str(repair.text) for repair in submission.repairs[:MAX_FLAGS_OF_SUBMISSION])
        return [*[*bare, *others, *submission.flags][:MAX_FLAGS_OF_SUBMISSION], *repairs]

    def _failed(
        self, submission: Submission, reason: str, gradebook: AssignmentGradebook, run_state: RunState
    ) -> Outcome:
        """Record that the grader failed on a student, and leave no earlier grade that could be mistaken for this one's.

        The digest of unchanged answers is kept, so that the next run knows which answers the marks belong to. That of
        changed answers is not kept, because the gradebook may have failed, and still hold the marks of the earlier
        ones.
        """
        student, same = submission.student, submission.same
        outcome = Outcome(student, Verdict.INFRASTRUCTURE, reason, digest=submission.digest if same else "")
        try:
            run_state.announce(outcome, 0.0, sandboxed=self.sandboxed)
            self._forget(student)
            gradebook.record_nothing(student, same=same)
        except Exception:
            self.log.exception("the earlier grade of %s stands", student)
        return outcome

    def _forget(self, student: str) -> None:
        for folder in (self.course.autograded, self.course.feedback):
            self.course.files.remove(folder(student, self.assignment))


def asked(templates: Sequence[NotebookTemplate], *, sandboxed: bool, exam: bool) -> str:
    """Return the part of a submission's digest that stands for the assignment and for how it is graded."""
    digest = sha256("".join(_asked_text(template.released) for template in templates).encode()).hexdigest()
    # Stored digests contain the word "walled". Another word would put marks given by hand up for review again.
    return f"{digest} {'walled' if sandboxed else UNSANDBOXED}{' exam' if exam else ''}"


def _asked_text(released: NotebookNode) -> str:
    """Return the text of a notebook as it was released, without the links to the book, which are not part of the task.

    They differ between classes, and depend on whether ATTENTION_BOOK is set in the shell.
    """
    plain = deepcopy(released)
    change_text(plain, without_links)
    return notebook_text(plain)


def digest_of(folder: Path, templates: Sequence[NotebookTemplate], asked: str) -> str:
    """Return the digest of what came into a student's folder, and of what was asked."""
    return _digest((digest(folder, f"{template.name}.ipynb") for template in templates), asked)


def _digest(came: Iterable[str], asked: str) -> str:
    return sha256("".join([asked, *came]).encode()).hexdigest()
