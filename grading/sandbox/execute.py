"""Run a task in a sandbox: all cells and probes in order, and again without a cell that ended its process.

The parts of attnlib that would answer a probe are withheld. They are sent once no later probe asks for them.
"""

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

from grading.sandbox.failures import HostLostError, StoppedError
from grading.sandbox.host import Host
from grading.sandbox.mutation import run_rounds
from grading.sandbox.outputs import CellOutputs
from grading.sandbox.submission_process import SubmissionProcess
from grading.sandbox.withheld import ALL_WITHHELD, parts, withheld
from grading.task import Answered, Probe, Result, Step, Task
from grading.verdict import Verdict

RUN_AGAIN = "this was run a second time"
MACHINE_BUSY = "other programs kept the processors busy"
STARVED = (
    f"{MACHINE_BUSY} both times, so a cell did not finish in time. Grade when the machine is "
    "less busy, or use a larger `--timeout`"
)


def execute(host: Host, task: Task) -> Result:
    """Run a task. Whatever the submission does, this returns within the time that the limits allow."""
    return _repeated(host, task)


def execute_alone(host: Host, task: Task) -> Result:
    """Rerun a task that could not get a processor the first time. Nothing else may be graded at the same time."""
    return _executed_again(host, task, f"{RUN_AGAIN}, on its own: {MACHINE_BUSY}")


def execute_again(host: Host, task: Task) -> Result:
    """Rerun a task that could not get a processor the first time, beside whatever else runs on this machine."""
    return _executed_again(host, task, f"{RUN_AGAIN}, beside whatever else ran on that machine: {MACHINE_BUSY}")


def _executed_again(host: Host, task: Task, again: str) -> Result:
    result = _repeated(host, task)
    result.again = again
    return Result(lost=STARVED) if result.starved else result


def _repeated(host: Host, task: Task) -> Result:
    """Run a task, and run it again if its process or its box was killed.

    If both are killed at once, it may look as if one was killed after the other. If the same one is killed twice, that
    is no accident, and the task is lost.
    """
    lost: dict[type[HostLostError], str] = {}
    while True:
        try:
            result = _executed(host, task)
        except HostLostError as error:
            if type(error) in lost:
                return Result(lost=str(error))
            lost[type(error)] = str(error)
            continue
        result.again = "".join(f"{RUN_AGAIN}: {why}" for why in list(lost.values())[:1])
        return result


def _executed(host: Host, task: Task) -> Result:
    host.ready()  # this does not count towards the submission's time
    run, left = _Run(task), task.limits.notebook
    for _ in range(task.limits.restarts + 1):
        with host.submission_process(left, task.limits) as process:
            if run.through(process):
                break
            left -= process.time.spent()
        if left <= 0:
            break
    run.give_up()
    run_rounds(host, task, run.result)
    return run.result


class _Run:
    def __init__(self, task: Task) -> None:
        self.task, self.result = task, Result()
        self.seen: set[int] = set()
        self.room = 2 * task.limits.notebook_output  # an honest process stops at half of this by itself

    def through(self, process: SubmissionProcess) -> bool:
        """Do each step that has not been stopped before. Return False if the process has ended."""
        there: frozenset[str] = frozenset()  # the parts of attnlib that this process has been sent
        for i, step in enumerate(self.task.steps):
            if i in self.result.stops or (step.probe and (step.probe.target or i in self.seen)):
                continue
            try:
                there = self._complete(process, i, there)
                self._do(process, i, step)
            except StoppedError as stop:
                if not (step.probe and _stopped_beyond_the_task(step.probe, self.result.answered.get(i), stop)):
                    self.result.stops[i] = (stop.verdict, stop.reason)
                    self.result.starved |= stop.starved
                if not stop.alive:
                    return False
            finally:
                self.seen.add(i)
        return True

    def give_up(self) -> None:
        """Record which probes were not reached."""
        for i, step in enumerate(self.task.steps):
            if step.probe and not step.probe.target and i not in self.seen:
                self.result.stops[i] = ("", "was not reached.")

    def _complete(self, process: SubmissionProcess, i: int, there: frozenset[str]) -> frozenset[str]:
        """Send the parts of attnlib that answer no probe from this step on. Return all that the process has then."""
        asked = {step.probe.exercise for step in self.task.steps[i:] if step.probe}
        free = ALL_WITHHELD - withheld(asked)
        if free - there:
            for _ in process.ask({"parts": parts(free - there)}, most=2 * self.task.limits.cell_output):
                pass
        return free

    def _do(self, process: SubmissionProcess, i: int, step: Step) -> None:
        if step.probe:
            answered = self.result.answered[i] = Answered()
            _send_probe(process, step.probe, answered)
        elif i in self.seen:  # it was run before, in a process that has ended, and its output from then is kept
            for _ in process.ask({"run": step.source}, most=2 * self.task.limits.cell_output):
                pass
        else:
            self._run(process, i, step.source)

    def _run(self, process: SubmissionProcess, i: int, source: str) -> None:
        most = min(2 * self.task.limits.cell_output, self.room)
        outputs = CellOutputs(most)
        self.result.outputs[i] = outputs.shown
        try:
            for message in process.ask({"run": source}, most):
                if not outputs.add(message.get("output")):
                    self.result.cut.add(i)
        finally:
            self.room -= max(most - process.left, outputs.size)
        if process.cut:
            self.result.cut.add(i)


def _send_probe(process: SubmissionProcess, probe: Probe, answered: Answered) -> None:
    """Send a probe: evaluate a choice, or inspect an implementation and call it on the cases that it can take."""
    nonce = token_hex(16)
    if not probe.cases:
        for message in _answers(process, {"evaluate": probe.expression, "nonce": nonce}, nonce):
            answered.facts = message
        return
    inspect = {"expression": probe.expression, "unasked": probe.unasked}
    for message in _answers(process, {"inspect": inspect, "nonce": nonce}, nonce):
        answered.facts = message
    if answered.facts and not answered.facts.get("error") and answered.facts.get("callable") is True:
        call = _call(probe, answered.facts)
        asked = {number for number, _ in call["cases"]}
        for message in _answers(process, {"call": call, "nonce": nonce}, nonce):
            number = message.get("case")
            if type(number) is not int or number not in asked or number in answered.answers:
                raise StoppedError(Verdict.TAMPERED, "sent an answer that nobody asked for.")
            answered.answers[number] = message.get("answer")


def _call(probe: Probe, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the request to call an implementation on the cases that suit its arguments."""
    backend = "torch" if facts.get("module") is True and "torch" in probe.cases else probe.backend
    has = facts["has"] if isinstance(facts.get("has"), list) else []
    numbered = enumerate(zip(probe.cases[backend], probe.needs[backend], strict=True))
    cases = [(i, case) for i, (case, needs) in numbered if all(name in has for name in needs)]
    facts["backend"] = backend
    settings = {"call": probe.call, "plain": probe.plain, "forbidden": probe.forbidden}
    return {"backend": backend, "cases": cases, **settings}


def _stopped_beyond_the_task(probe: Probe, answered: Answered | None, stop: StoppedError) -> bool:
    """Tell whether an answer was stopped by an argument that the task does not ask for: all that counts was answered.

    Cases that do not count come last. A process that forges answers is told all the same.
    """
    if stop.verdict is Verdict.TAMPERED or answered is None or "backend" not in (answered.facts or {}):
        return False
    numbers = {number for number, _ in _call(probe, answered.facts or {})["cases"]}
    needs = probe.needs[str((answered.facts or {})["backend"])]
    beyond = {number for number in numbers if needs[number]}
    return bool(beyond) and numbers - beyond <= answered.answers.keys()


def _answers(process: SubmissionProcess, message: dict[str, Any], nonce: str) -> Iterator[dict[str, Any]]:
    """Send a message, and yield the answers with the right number, which code that is still running cannot know."""
    for answer in process.ask(message):
        if "output" in answer:
            continue  # text printed while answering, which nobody asked for
        if answer.get("nonce") != nonce:
            raise StoppedError(Verdict.TAMPERED, "sent an answer with the wrong number.")
        yield answer
