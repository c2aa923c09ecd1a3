"""Judge raw answers outside the process that they come from: what they earn, and which mistake was made.

It fails closed: an answer that is missing, late, or of the wrong type or shape is a wrong answer.
"""

import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from attnlib.checks.calling.call_submission import GRADIENT_OF, Answer
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import call_module
from attnlib.checks.calling.tested import NotWrittenError, Outcome
from attnlib.checks.evaluation import Evaluation
from attnlib.checks.exercise import Exercise
from attnlib.checks.mutation.kill_matrix import KillMatrix
from attnlib.checks.mutation.kill_report import KillReport
from attnlib.checks.mutation.sample import draw_sample
from attnlib.checks.mutation.target import Target
from attnlib.checks.questions import Choice
from attnlib.checks.report import Report
from grading._untyped import NotebookNode, new_output
from grading.course import GradingError
from grading.graded_cell import GradedCell
from grading.read_choice import read_choice
from grading.sandbox.inside import codec
from grading.sandbox.inside.frames import MessageError
from grading.task import Answered, Probe
from grading.text import printable

MAX_MESSAGE_LENGTH = 600  # characters of each text in an answer
NO_ANSWER = "NoAnswer"  # the error in a cell whose probe was not answered at all
EXECUTION_COUNT = 1  # nbgrader expects an execution count with a result, but any number will do


def error(name: str, reason: str) -> NotebookNode:
    """Return an error output: nbgrader gives no marks for it, and the feedback shows the reason."""
    return new_output("error", ename=name, evalue=reason, traceback=[f"{name}: {reason}"])


class Judge:
    """Knows the inputs of a run, drawn from its secret seed, and the answers to them.

    Everybody in a run gets the same inputs, so the expected answers, and those of the known mistakes, are computed only
    once.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._evaluations: dict[tuple[object, ...], Evaluation] = {}
        self._probes: dict[tuple[object, ...], Probe] = {}

    def probe(self, graded_cell: GradedCell) -> Probe:
        """Return what is sent into the sandbox for a graded cell: the inputs, and nothing about the answers."""
        exercise, target = graded_cell.exercise, graded_cell.target
        if target is not None:
            return Probe(graded_cell.expression, target=target.name, seed=self._seed_of(f"tests of {target.name}"))
        if exercise is None:
            return Probe(graded_cell.expression)
        key = (exercise.name, exercise.ungraded_options, graded_cell.expression, graded_cell.backend)
        if key not in self._probes:
            backends = {graded_cell.backend}
            if exercise.call is call_module:  # a torch module is checked in torch
                backends |= {"torch"} & set(exercise.backends)
            evaluations = {backend: self._evaluation(exercise, backend) for backend in backends}
            self._probes[key] = Probe(
                graded_cell.expression,
                exercise.name,
                exercise.call.__name__,
                exercise.plain,
                graded_cell.backend,
                exercise.forbidden,
                exercise.ungraded_options,
                {name: [_encoded(exercise, case) for case in each.cases] for name, each in evaluations.items()},
                {name: [sorted(each.needs(case)) for case in each.cases] for name, each in evaluations.items()},
            )
        return self._probes[key]

    def _evaluation(self, exercise: Exercise, backend: str) -> Evaluation:
        key = (exercise.name, exercise.ungraded_options, backend)
        if key not in self._evaluations:
            self._evaluations[key] = _sound(Evaluation(exercise, backend, self._seed_of(exercise.name)))
        return self._evaluations[key]

    def _seed_of(self, name: str) -> int:
        return int(np.random.SeedSequence([self._seed, zlib.crc32(name.encode())]).generate_state(1, np.uint64)[0])

    def outputs(self, graded_cell: GradedCell, answered: Answered | None, stop: str) -> list[NotebookNode]:
        """Return the outputs of a graded cell: the report, and what nbgrader reads the points from.

        ``stop`` says why some of it was not answered, if that is so.
        """
        facts = answered.facts if answered else None
        if graded_cell.target:
            return self._outputs_of_tests(graded_cell.target, graded_cell.points, answered, stop)
        if answered is None or facts is None:
            return [error(NO_ANSWER, stop or "There was no answer.")]
        if isinstance(wrong := facts.get("error"), dict):
            return [error(_text(wrong.get("name")) or "Error", _text(wrong.get("text")) or "")]
        if graded_cell.question:
            return _shown(read_choice(graded_cell, answered), graded_cell.points)
        if facts.get("callable") is not True:
            said = f"{graded_cell.expression} is of type {_text(facts.get('kind'))}, but a function is needed"
            return [error("TypeError", said)]
        return _shown(self._report(graded_cell, answered, stop), graded_cell.points)

    def options(self, graded_cell: GradedCell, answered: Answered) -> NotebookNode:
        """Return an output with the options of a question, as the student saw them."""
        shown = read_choice(graded_cell, answered).options.markdown()
        return new_output("display_data", data={"text/markdown": shown, "text/plain": shown})

    def _outputs_of_tests(
        self, target: Target, points: float, answered: Answered | None, stop: str
    ) -> list[NotebookNode]:
        wrong = (answered.facts or {}).get("error") if answered else None
        if not isinstance(wrong, dict):
            return _shown(self._kill_report(target, points, answered, stop), points)
        name, text = _text(wrong.get("name")) or "Error", _text(wrong.get("text")) or ""
        if name == NotWrittenError.__name__:
            return _shown(KillReport(target, None, unwritten=True, points=points), points)
        return [error(name, text)]

    def _kill_report(self, target: Target, points: float, answered: Answered | None, stop: str) -> KillReport:
        outcomes = {n: _outcomes(each) for n, each in answered.tests.items()} if answered else {}
        sample = draw_sample(target, self._seed_of(f"tests of {target.name}"))
        if not stop and len({len(each) for each in outcomes.values()}) > 1:
            stop = "were not the same list for each implementation."
        if stop or len(outcomes) < len(sample.implementations) or not all(outcomes.values()):
            return KillReport(target, None, stopped=f"The tests {stop or 'gave no answer.'}", points=points)
        used = frozenset(answered.used) if answered else frozenset()
        return KillReport(target, KillMatrix(sample, outcomes), used, points=points)

    def _report(self, graded_cell: GradedCell, answered: Answered, stop: str) -> Report:
        assert graded_cell.exercise is not None
        assert answered.facts is not None
        exercise = graded_cell.exercise
        torch = answered.facts.get("backend") == "torch" and "torch" in exercise.backends
        evaluation = self._evaluation(exercise, "torch" if torch else graded_cell.backend)
        has = answered.facts.get("has")
        asked = evaluation.asked(set(filter(_is_text, has)) if isinstance(has, list) else set())
        none = Answer(
            problem=f"your function gave no answer: the check {stop.rstrip('.')}" if stop else "no answer came"
        )
        answers = {i: none for i in asked if evaluation.grades(i)} | {
            i: _read(answered.answers[i]) for i in asked if i in answered.answers
        }
        for i, answer in answers.items():
            if answer.problem is None and not _complete(answer, evaluation.expected[i]):
                answers[i] = Answer(problem="sent no answer")
        return replace(evaluation.report(answers), points=graded_cell.points, hints=graded_cell.hints)


def _sound(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation if its reference answered every case; otherwise right answers would be marked wrong."""
    for case, expected in zip(evaluation.cases, evaluation.expected, strict=True):
        if expected.problem is not None:
            said = expected.error or expected.problem
            raise GradingError(f"the reference of {evaluation.exercise.name} fails with {case.name}: {said}")
    return evaluation


def _complete(answer: Answer, expected: Answer) -> bool:
    """Return whether all requested arrays came. If a shape is wrong, no gradients are expected."""
    if answer.arrays.keys() == expected.arrays.keys():
        return True
    numbers = {name: x for name, x in expected.arrays.items() if not name.startswith(GRADIENT_OF)}
    return answer.arrays.keys() == numbers.keys() and any(answer.arrays[n].shape != numbers[n].shape for n in numbers)


def _encoded(exercise: Exercise, case: Case) -> Any:
    """Return a case, encoded, with only what an implementation is given."""
    given = {"name": "", "criterion": "", "inputs": case.inputs, "options": case.options, "setup": case.setup}
    ways = {"outputs": exercise.outputs_of(case), "unchanged": case.unchanged, "upstream": case.upstream}
    return codec.encode(given | ways | {"training": case.training})


def _read(message: Any) -> Answer:
    """Return an answer as it came; anything that is not an answer counts as a wrong one."""
    if not isinstance(message, dict) or not isinstance(arrays := message.get("arrays"), dict):
        return Answer(problem="sent no answer")
    try:
        read = {name: codec.array(x) for name, x in arrays.items()}
    except MessageError as error:
        return Answer(problem=f"sent {error}")
    changed = message.get("changed")
    names = tuple(filter(_is_text, changed)) if isinstance(changed, list) else ()
    problem, said, line = (_text(message.get(name)) for name in ("problem", "error", "line"))
    return Answer(read, problem if read else problem or "sent no answer", said, line, names)


def _outcomes(sent: list[Any]) -> list[Outcome]:
    """Return what tests came to; one whose outcome makes no sense counts as one that rejects everything."""
    found = [one if isinstance(one, dict) else {"error": "sent no answer"} for one in sent]
    texts = [{name: _text(one.get(name)) for name in ("test", "error", "line")} for one in found]
    return [Outcome(one["test"] or "a test", one["error"], one["line"]) for one in texts]


def _is_text(x: object) -> bool:
    return isinstance(x, str)


def _text(x: Any) -> str | None:
    """Return text that is fit to be shown, or None if it is not text."""
    return printable(x[:MAX_MESSAGE_LENGTH], also="\n") if isinstance(x, str) else None


def _shown(report: Report | Choice | KillReport, points: float) -> list[NotebookNode]:
    shown = new_output("display_data", data=report._repr_mimebundle_())
    if report.score == 0:
        return [shown, error("CheckFailed", report.headline())]
    earned = {"text/plain": repr(float(report.score * points))}
    return [shown, new_output("execute_result", data=earned, execution_count=EXECUTION_COUNT)]
