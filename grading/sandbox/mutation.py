"""Run a student's tests: in rounds, each in a process of its own, against one implementation of every target.

The implementations stay outside of the box. A call of one is sent here, and its result is sent back, so the process
holds nothing that tells a correct version from a mutant. Because a process sees only one implementation of a target,
it cannot compare them with each other. The implementations come in a random order.
"""

from secrets import SystemRandom, token_hex
from time import monotonic, sleep, thread_time
from typing import Any

from attnlib.checks.calling.tested import MAX_TESTS
from attnlib.checks.mutation.answers import Answers, CallRefusedError
from attnlib.checks.mutation.run_tests import MAX_CALLS, TOO_MANY_CALLS
from attnlib.checks.mutation.sample import CORRECT, MUTANTS, draw_sample
from attnlib.checks.mutation.targets import find_target
from grading.sandbox.failures import StoppedError
from grading.sandbox.host import Host
from grading.sandbox.inside.codec import data, encode
from grading.sandbox.inside.frames import MessageError
from grading.sandbox.submission_process import SubmissionProcess
from grading.sandbox.withheld import ALL_WITHHELD, parts
from grading.task import Answered, Probe, Result, Task
from grading.verdict import Verdict

SECONDS = 10.0  # of processor time, for the tests of one target against all implementations
SECONDS_OUTSIDE = 30.0  # of processor time, for answering their calls
TOO_SLOW = f"took more than {SECONDS:g} seconds of processor time for all implementations together."
TOO_SLOW_OUTSIDE = "made calls that take too long to answer. Use fewer calls, or smaller arrays."


def run_rounds(host: Host, task: Task, result: Result) -> None:
    """Run the tests that a task asks for, and add what came of them to its result."""
    probes = {i: step.probe for i, step in enumerate(task.steps) if step.probe and step.probe.target}
    targets = {i: _Tested(probe, result.answered.setdefault(i, Answered())) for i, probe in probes.items()}
    rounds = _Rounds(host, task, result, targets)
    for number in range(CORRECT + MUTANTS if targets else 0):
        rounds.run(number)
    for i in rounds.open():
        if len(targets[i].answered.tests) < CORRECT + MUTANTS:
            result.stops[i] = ("", "were not reached.")


class _Rounds:
    def __init__(self, host: Host, task: Task, result: Result, targets: "dict[int, _Tested]") -> None:
        self._host, self._task, self._result, self._targets = host, task, result, targets
        self._left = task.limits.notebook  # seconds of processor time, for all rounds together
        self._skipped = {i for i in result.stops if i not in targets}

    def open(self) -> list[int]:
        """Return the targets whose tests have not been stopped."""
        return [i for i in self._targets if i not in self._result.stops]

    def run(self, number: int) -> None:
        """Run the tests of all targets once. A process that a test has ended is replaced for the other targets."""
        waiting = self.open()
        while waiting and self._left > 0:
            with self._host.submission_process(self._left, self._task.limits) as process:
                self._through(process, number, waiting)
                self._left -= process.time.spent()

    def _through(self, process: SubmissionProcess, number: int, waiting: list[int]) -> None:
        """Run the cells up to the last tests that wait, and the tests, until one of them stops the process."""
        i = waiting[0]
        try:
            _finish(process, {"parts": parts(ALL_WITHHELD)}, self._task)
            for i in range(waiting[-1] + 1):
                if i in waiting:
                    waiting.remove(i)
                    self._targets[i].run(process, number)
                elif not self._task.steps[i].probe and i not in self._skipped:
                    self._run_cell(process, i)
        except StoppedError as stop:
            self._result.starved |= stop.starved
            if i in self._targets:
                self._result.stops[i] = (stop.verdict if stop.verdict is not Verdict.GRADED else "", stop.reason)

    def _run_cell(self, process: SubmissionProcess, i: int) -> None:
        try:
            _finish(process, {"run": self._task.steps[i].source}, self._task)
        except StoppedError as stop:
            self._skipped.add(i)
            if not stop.alive:
                raise


def _finish(process: SubmissionProcess, message: dict[str, Any], task: Task) -> None:
    for _ in process.ask(message, most=2 * task.limits.cell_output):
        pass


class _Tested:
    """The tests of one target, and the implementations of its sample in a secret order."""

    def __init__(self, probe: Probe, answered: Answered) -> None:
        sample = draw_sample(find_target(probe.target), probe.seed)
        self._target, self._expression, self.answered = sample.target, probe.expression, answered
        self._answers = Answers(sample.target, sample.implementations)
        self._order = SystemRandom().sample(range(CORRECT + MUTANTS), CORRECT + MUTANTS)
        self._left, self._outside = SECONDS, SECONDS_OUTSIDE

    def run(self, process: SubmissionProcess, number: int) -> None:
        """Run the tests against the next implementation.

        Raises:
            StoppedError: they have used up their time, ended their process, or called with what is not allowed.
        """
        begin = process.time.now().used
        try:
            self.answered.tests[self._order[number]] = self._outcomes(process, self._order[number])
        except StoppedError as stop:
            reason = TOO_SLOW if stop.verdict is Verdict.TIMEOUT else stop.reason
            raise StoppedError(stop.verdict, reason, starved=stop.starved) from None
        finally:
            self._left -= process.time.now().used - begin
        if self._left <= 0:
            raise StoppedError(Verdict.TIMEOUT, TOO_SLOW)

    def _outcomes(self, process: SubmissionProcess, implementation: int) -> list[Any]:
        outcomes: list[Any] = []
        nonce, calls = token_hex(16), 0
        for message in process.ask({"test": self._expression, "nonce": nonce}, seconds=self._left):
            if "output" in message:
                continue  # text printed by a test
            if message.get("nonce") != nonce or len(outcomes) > MAX_TESTS:
                raise StoppedError(Verdict.TAMPERED, "sent an answer that nobody asked for.")
            if "call" in message:
                calls += 1
                if calls > MAX_CALLS:
                    raise StoppedError(Verdict.GRADED, _refusal(TOO_MANY_CALLS))
                process.reply(self._reply(implementation, message["call"]))
            elif "outcome" in message:
                outcomes.append(message["outcome"])
            else:
                self.answered.facts = {"error": message.get("error")}
                raise StoppedError(Verdict.GRADED, "could not be found.")
        return outcomes

    def _reply(self, implementation: int, call: Any) -> dict[str, Any]:
        """Return the answer to a call, which takes the same time whichever implementation it is, in every round.

        The first time, all implementations are run. Afterwards it waits as long as that took. Otherwise, a test could
        tell from the time which calls were made in an earlier round, and so pass on what it learned there.
        """
        begin, clock = thread_time(), monotonic()
        try:
            arguments, options = data(call)
            answer = self._answers.answer(implementation, arguments, dict(options))
            sleep(max(0.0, self._answers.seconds - (monotonic() - clock)))
            self.answered.used |= self._target.kinds_of(arguments, options) if answer.error is None else set()
        except CallRefusedError as refused:
            raise StoppedError(Verdict.GRADED, _refusal(str(refused))) from None
        except (MessageError, TypeError, ValueError):
            raise StoppedError(Verdict.TAMPERED, "wrote into the channel that its answers go through.") from None
        self._outside -= thread_time() - begin
        if self._outside < 0:
            raise StoppedError(Verdict.GRADED, TOO_SLOW_OUTSIDE)
        changed = [[i, encode(x)] for i, x in answer.changed.items()]
        return {"value": encode(answer.value), "error": answer.error, "changed": changed}


def _refusal(text: str) -> str:
    """Return why a call is refused, as the end of a sentence about the tests."""
    return f"were stopped: {text[0].lower()}{text[1:]}"
