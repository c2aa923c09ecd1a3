"""Evaluate an answer: run every case, compare with the reference, compute the score, and name the mistake."""

import difflib
import functools
import math
import re
import sys
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib._extras import require
from attnlib.checks.calling.call_submission import GRADIENT_OF, Answer, call_submission
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import has_argument, named_arrays
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.crash_mistakes import recognise_crash
from attnlib.checks.catalogue.general_mistakes import Evidence, recognise_general_mistake
from attnlib.checks.catalogue.gradients import CUT_OFF, GRADIENTS, LESS_EXACT, NAN_GRADIENT
from attnlib.checks.differences import MISFIT, describe_difference, less_exact
from attnlib.checks.exercise import AGAIN, Exercise, Mistake
from attnlib.checks.forbidden_calls import watch_calls
from attnlib.checks.report import Failure, Report

TOLERANCE = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-4}
INTEGER_TOLERANCE = 1e-5  # where all that goes in are whole numbers

# How call_submission and torch say that no gradient gets through.
NO_GRADIENT_ERROR = re.compile(r"no gradient|numpy\(\) on Tensor|not require grad")

# How torch says that tensors of two dtypes met.
DTYPE_ERROR = re.compile(r"same dtype|expected scalar type")


def exercises() -> tuple[str, ...]:
    """Return the names of all exercises, in the order of the course."""
    return tuple(CATALOGUE)


def examine(
    name: str,
    implementation: Implementation,
    *,
    backend: str = "numpy",
    seed: int | None = None,
    unasked: str | None = None,
) -> Report:
    """Examine an implementation of an exercise, and report what is right, and which mistake was made.

    Args:
        name: an exercise, one of :func:`exercises`.
        implementation: a function, or a class, with the signature of ``attnlib``'s own of that name. What the exercise
            does not ask for may be left out, and costs nothing if it is there: what is wrong with it is a remark.
        backend: ``"numpy"`` or ``"torch"``: what the implementation is given and must return. A ``torch.nn.Module`` is
            always examined in torch.
        seed: of the random inputs; ``None`` draws new ones each time.
        unasked: an optional argument that counts in another notebook, and that this one does not ask for.

    Returns:
        A :class:`Report`, with ``.passed``, ``.score`` (0 to 1), ``.mistake`` (id or None) and ``.message``.

    Raises:
        ImportError: the backend is ``"torch"``, and torch or array-api-compat is not installed.
        ValueError: there is no such exercise or backend, or no notebook asks for the argument ``unasked``.
        TypeError: ``implementation`` cannot be called.
    """
    evaluation = prepare_evaluation(name, implementation, backend=backend, seed=seed, unasked=unasked)
    return evaluation.of(implementation)


def prepare_evaluation(
    name: str,
    implementation: Implementation,
    *,
    backend: str = "numpy",
    seed: int | None = None,
    unasked: str | None = None,
) -> "Evaluation":
    """Return the evaluation for an implementation; the arguments and errors are those of :func:`examine`."""
    exercise = find_exercise(name).without(unasked)
    backend = _checked_backend(exercise, implementation, backend)
    if not callable(implementation):
        raise TypeError(f"implementation is a {type(implementation).__name__}, but a function is needed: pass {name}")
    return Evaluation(exercise, backend, seed)


class Evaluation:
    """One set of cases of an exercise, with the expected answers, and the answers that the known mistakes give.

    The expected answers are computed before any student code has seen a case. Those of the mistakes are computed when
    they are first needed, and kept, because :mod:`attnlib.checks.confusion_matrix` examines many implementations on the
    same cases.
    """

    def __init__(self, exercise: Exercise, backend: str, seed: int | None) -> None:
        self.exercise, self.backend = exercise, backend
        self.cases = _cases(exercise, backend, seed)
        self.expected = [_expected(exercise, case) for case in self.cases]
        self.tolerances = [_tolerance(case) for case in self.cases]
        self._known: dict[tuple[str, int], Answer] = {}

    def of(self, implementation: Implementation) -> Report:
        """Examine an implementation."""
        return self.report(self._answers(implementation, self._asked_of(implementation)))

    def watched(self, implementation: Implementation, kept: Case | None = None) -> Report:
        """Examine an implementation, and note which calls grading does not allow. This takes twice as long.

        ``kept`` is a case that an earlier version of it failed, which is tried first.
        """
        kept_answer = SingleCase(self, kept).answer(implementation) if kept else None
        asked = self._asked_of(implementation)
        with watch_calls(self.exercise.forbidden) as calls:
            answers = self._answers(implementation, [i for i in asked if self.grades(i)])
        answers |= self._answers(implementation, [i for i in asked if not self.grades(i)])
        report = self.report(answers)
        if kept and kept_answer:
            report = self._with_kept(report, answers, kept, kept_answer)
        return replace(report, forbidden=calls[0] if calls else None)

    def _with_kept(self, report: Report, answers: dict[int, Answer], kept: Case, answer: Answer) -> Report:
        """Return the report with a case that was kept, if that is wrong; it counts only if all others are right."""
        single = SingleCase(self, kept)
        if single.is_right(answer):
            return report
        if report.passed:
            self.cases.append(replace(kept, name=f"the input that failed last time (found with {kept.name})"))
            self.expected.append(single.expected)
            self.tolerances.append(single.tolerance)
            report = self.report(answers | {len(self.cases) - 1: answer})
        return replace(report, kept=kept)

    def _asked_of(self, implementation: Implementation) -> list[int]:
        return self.asked({name for name in self.exercise.ungraded_options if has_argument(implementation, name)})

    def _answers(self, implementation: Implementation, asked: list[int]) -> dict[int, Answer]:
        return {i: call_submission(implementation, self.cases[i], self.exercise, backend=self.backend) for i in asked}

    def grades(self, i: int) -> bool:
        """Tell whether a case counts, by its number."""
        return self.exercise.grades(self.cases[i])

    def asked(self, has: Set[str]) -> list[int]:
        """Return the numbers of the cases for an implementation that has only these of the arguments not asked for."""
        return [i for i, case in enumerate(self.cases) if self.needs(case) <= has]

    def needs(self, case: Case) -> set[str]:
        """Return the arguments of a case that an implementation may lack at no cost."""
        return set(self.exercise.ungraded_options) & (case.options.keys() | case.setup.keys())

    def report(self, answers: dict[int, Answer]) -> Report:
        """Judge the answers to all cases that were asked, by their number.

        What is wrong with an argument that no notebook asks for is a remark, where all else is right.
        """
        correct = frozenset(i for i in answers if self._is_right(i, answers[i]))
        wrong = [i for i in answers if i not in correct]
        graded = [i for i in answers if self.grades(i)]
        score = _score(self.exercise, [self.cases[i] for i in graded], [i in correct for i in graded])
        failed = [i for i in graded if i not in correct]
        if failed:
            return self._report(score, answers, correct, failed, len(graded))
        remark = self._report(score, answers, correct, wrong, len(answers) - len(graded)) if wrong else None
        return Report(self.exercise.name, self.backend, score, None, None, remark=remark)

    def revealing(self, mistake: Mistake) -> list[int]:
        """Return the numbers of the cases that count and that a known mistake gets wrong."""
        numbers = range(len(self.cases))
        return [i for i in numbers if self.grades(i) and not self._is_right(i, self._answer(mistake, i))]

    def changes(self, mistake: Mistake, i: int) -> bool:
        """Tell whether a known mistake changes the inputs of a case that must stay as they are."""
        return bool(self._answer(mistake, i).changed)

    def _is_right(self, i: int, answer: Answer) -> bool:
        return _is_right(self.cases[i], answer, self.expected[i], self.tolerances[i])

    def _general_mistake(
        self, answers: dict[int, Answer], correct: frozenset[int], first: int, difference: str
    ) -> Mistake | None:
        """Return the mistake that the answers show, if it is one that can occur in every exercise."""
        cases, expected = {i: self.cases[i] for i in answers}, {i: self.expected[i] for i in answers}
        random = self.exercise.call_exact is not None
        pairs = ((i, j) for j in cases for i in cases if i < j and cases[j].name == again(cases[i]))
        repeated = () if random else tuple(pairs)
        evidence = Evidence(cases, answers, expected, correct, first, difference, repeated)
        found = recognise_general_mistake(evidence) or recognise_crash(answers[first])
        return replace(found, section=self.exercise.section) if found else None

    def _beyond_numbers(self, i: int, answer: Answer) -> Mistake | None:
        """Return what is wrong with the gradients, or with the digits, of numbers that may be right."""
        if self.cases[i].criterion == GRADIENTS:
            if _is_cut(answer):
                return CUT_OFF
            gradients = [x for name, x in answer.arrays.items() if name.startswith(GRADIENT_OF)]
            return NAN_GRADIENT if any(np.isnan(x).any() for x in gradients) else None
        right = answer.problem is None and _close(answer, self.expected[i], self.tolerances[i])
        return LESS_EXACT if right and less_exact(self.cases[i], answer) else None

    def _report(
        self, score: float, answers: dict[int, Answer], correct: frozenset[int], wrong: list[int], asked: int
    ) -> Report:
        """Report what went wrong first, and what else did, in so many cases that were asked."""
        first, exercise = wrong[0], self.exercise
        answer, expected, tolerance = answers[first], self.expected[first], self.tolerances[first]
        difference = describe_difference(exercise, self.cases[first], answer, expected, tolerance)
        named = self._name(answers, first) or self._general_mistake(answers, correct, first, difference)
        others = tuple(self.cases[i].name for i in self._others(answers, wrong, named))
        last_right = next((self.cases[i].name for i in reversed(answers) if i in correct and i < first), None)
        counts = asked - len(wrong), asked
        all_wrong = tuple(self.cases[i] for i in wrong)
        failure = Failure(
            self.cases[first], answer, expected, difference, exercise, tolerance, others, *counts, last_right, all_wrong
        )
        return Report(exercise.name, self.backend, score, named, failure)

    def _name(self, answers: dict[int, Answer], first: int) -> Mistake | None:
        """Return the mistake that answers as the student did, or None where there is none or more than one.

        First over all cases; then without the arguments that were not asked for; then over the cases up to the end of
        the first criterion that is not met, for a student who made this mistake and, independently, another one later.
        """
        if DTYPE_ERROR.search(answers[first].error or "") and any(_is_cut(answer) for answer in answers.values()):
            return replace(CUT_OFF, section=self.exercise.section)  # a detour that changes the dtype on the way
        beyond = self._beyond_numbers(first, answers[first])
        if beyond or self.cases[first].criterion == GRADIENTS:
            return replace(beyond, section=self.exercise.section) if beyond else None
        numbers = [i for i in answers if self.cases[i].criterion != GRADIENTS]
        asked = [i for i in numbers if not self.needs(self.cases[i])]
        end = max(i for i in numbers if self.cases[i].criterion == self.cases[first].criterion)
        up_to_here = [i for i in numbers if i <= end]
        near = [m for m in self.exercise.mistakes if self._same(first, answers[first], m)]
        for compared in (numbers, asked if first in asked else numbers, up_to_here):
            if all(_misfits(answers[i]) for i in compared):
                continue  # shapes that never fit tell nothing: many mistakes do that
            same = [m for m in near if all(self._same(i, answers[i], m) for i in compared)]
            if len(same) == 1:
                return same[0]
        return None

    def _answer(self, mistake: Mistake, i: int) -> Answer:
        """Return what a mistake makes of a case."""
        if (mistake.id, i) not in self._known:
            case = self.cases[i]
            case = replace(case, training=False) if case.training else case
            self._known[mistake.id, i] = call_submission(mistake.implementation, case, self.exercise.exact)
        return self._known[mistake.id, i]

    def _others(self, answers: dict[int, Answer], wrong: list[int], named: Mistake | None) -> list[int]:
        """Return the later cases that went wrong too, and not for the reason that was named."""
        later = [i for i in wrong[1:] if self.cases[i].criterion != GRADIENTS]
        if named not in self.exercise.mistakes:
            return later
        return [i for i in later if not self._same(i, answers[i], named)]

    def _same(self, i: int, answer: Answer, mistake: Mistake) -> bool:
        """Tell whether a student's answer to a case is that of a mistake."""
        return _same(self.cases[i], answer, self._answer(mistake, i), self.tolerances[i])


class SingleCase:
    """A case beside those of an evaluation, with the expected answer."""

    def __init__(self, evaluation: Evaluation, case: Case) -> None:
        self._exercise, self._backend, self._case = evaluation.exercise, evaluation.backend, case
        self.expected, self.tolerance = _expected(self._exercise, case), _tolerance(case)

    def answer(self, implementation: Implementation) -> Answer:
        """Call an implementation on the case."""
        return call_submission(implementation, self._case, self._exercise, backend=self._backend)

    def is_right(self, answer: Answer) -> bool:
        """Tell whether an answer to the case is right."""
        return _is_right(self._case, answer, self.expected, self.tolerance)

    def is_sound(self) -> bool:
        """Tell whether the reference gets the case right, in the case's own dtype and backend."""
        return self.expected.problem is None and self.is_right(self.answer(self._exercise.reference_in(self._backend)))


def _checked_backend(exercise: Exercise, implementation: Implementation, backend: str) -> str:
    """Return the backend; a torch module is examined in torch, whatever the argument says."""
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, but 'numpy' or 'torch' is needed")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(implementation, type) and issubclass(implementation, torch.nn.Module):
        backend = "torch"
    if backend not in exercise.backends:
        raise ValueError(f"backend is {backend!r}, but {exercise.name} is only for {exercise.backends[0]}")
    if backend == "torch":
        require("a check with backend='torch'", "torch", "array_api_compat")
    return backend


def find_exercise(name: str) -> Exercise:
    """Return an exercise by its name; if there is none, the error says which one was probably meant."""
    try:
        return CATALOGUE[name]
    except (KeyError, TypeError):
        near = difflib.get_close_matches(str(name), CATALOGUE, n=1)
        meant = f": did you mean {near[0]!r}?" if near and isinstance(name, str) else "."
        raise ValueError(f"there is no exercise {name!r}{meant} The exercises are: {', '.join(CATALOGUE)}") from None


def _cases(exercise: Exercise, backend: str, seed: int | None) -> list[Case]:
    rng = np.random.default_rng(seed)
    asked = [case for case in exercise.inputs(rng) if backend in case.backends]
    cases = [case for one in asked for case in (*_in_float64(one), one)]
    cases[2:2] = [replace(case, name=again(case)) for case in cases[1:2]]
    if backend == "torch" and exercise.gradients:
        # The second case is the plain one: neither so small nor so special that gradients hide.
        cases += [_with_gradients(exercise, case, rng) for n, case in enumerate(cases) if n == 1 or case.gradients]
    # What does not count comes last: if it breaks something, all that counts has been answered by then.
    return sorted(cases, key=exercise.grades, reverse=True)


def again(case: Case) -> str:
    """Return the name of a case that is asked a second time, which shows what is random or kept between calls."""
    return f"{case.name}{AGAIN}"


def _in_float64(case: Case) -> list[Case]:
    """Return a case in float32 in float64 as well, so that float32 is not blamed for what has another cause."""
    arrays = named_arrays(case.inputs)
    if not any(x.dtype == np.float32 for x in arrays.values()):
        return []
    shapes = [f"{name} {x.shape}" for name, x in arrays.items() if name in case.inputs]
    name = f"the shapes {', '.join(shapes)}" if shapes else f"{case.name.replace(' in float32', '')} (in float64)"
    return [replace(case, name=name, inputs=_doubled(case.inputs))]


def _doubled(inputs: dict[str, Any]) -> dict[str, Any]:
    doubled = {name: _doubled(x) if isinstance(x, dict) else x for name, x in inputs.items()}
    floats = {name: x for name, x in doubled.items() if isinstance(x, np.ndarray) and x.dtype == np.float32}
    return doubled | {name: x.astype(np.float64) for name, x in floats.items()}


def _with_gradients(exercise: Exercise, case: Case, rng: np.random.Generator) -> Case:
    """Return the case with a random gradient for each output, which is to be sent back."""
    upstream = {name: rng.normal(size=x.shape) for name, x in _expected(exercise, case).arrays.items()}
    return replace(case, name=f"the gradients for {case.name}", criterion=GRADIENTS, upstream=upstream)


def _expected(exercise: Exercise, case: Case) -> Answer:
    """Return the reference's answer: in float64, with gradients by hand or by autograd in torch."""
    inputs, options = _exact(case.inputs, exercise), _exact(case.options, exercise)
    exact = replace(case, inputs=inputs, options=options, training=False)  # the references leave nothing to chance
    if case.upstream is None:
        return call_submission(exercise.reference, exact, exercise.exact)
    if exercise.analytic_gradients:
        numbers = call_submission(exercise.reference, replace(exact, upstream=None), exercise)
        gradients = exercise.analytic_gradients(exact.inputs, exact.setup, case.upstream)
        return Answer(numbers.arrays | {GRADIENT_OF + name: x for name, x in gradients.items()}, numbers.problem)
    return call_submission(exercise.reference_in("torch"), exact, exercise, backend="torch")


def _exact(inputs: dict[str, Any], exercise: Exercise) -> dict[str, Any]:
    """Return the same inputs with every array of real numbers in float64."""
    exact = {name: _exact(x, exercise) if isinstance(x, dict) else x for name, x in inputs.items()}
    numbers = {name: x for name, x in exact.items() if isinstance(x, np.ndarray) and x.dtype.kind in "fi"}
    return exact | {name: x.astype(np.float64) for name, x in numbers.items() if name not in exercise.whole_numbers}


def _is_right(case: Case, answer: Answer, expected: Answer, tolerance: float) -> bool:
    if answer.problem is not None or (case.unchanged and answer.changed) or less_exact(case, answer):
        return False
    return _close(answer, expected, tolerance)


def _close(answer: Answer, other: Answer, tolerance: float, *, equal_nan: bool = False) -> bool:
    if answer.arrays.keys() != other.arrays.keys():
        return False
    pairs = [(answer.arrays[name], x) for name, x in other.arrays.items()]
    # Two wrong answers may share all results but one, so look at the start of each result before all of any. These are
    # loops, and not all(...), because an answer is compared with those of a hundred mistakes.
    for mine, theirs in pairs:
        if not _begin_alike(mine, theirs, tolerance):
            return False
    for mine, theirs in pairs:  # noqa: SIM110
        if not _near(mine, theirs, tolerance, equal_nan):
            return False
    return True


def _begin_alike(x: NDArray[Any], y: NDArray[Any], tolerance: float) -> bool:
    """Tell whether two arrays have one shape and kind, and first numbers that are near or not finite."""
    if x.shape != y.shape or (x.dtype.kind == "b") != (y.dtype.kind == "b"):
        return False
    return not x.size or not abs(x.item(0) - y.item(0)) > tolerance + tolerance * abs(y.item(0))


def _near(x: NDArray[Any], y: NDArray[Any], tolerance: float, equal_nan: bool) -> bool:
    """Do what numpy.allclose does in a tenth of its time: an answer is compared with those of a hundred mistakes."""
    if x.dtype.kind == "b":
        return np.array_equal(x, y)
    with np.errstate(all="ignore"):
        near = (np.abs(x - y) <= tolerance + tolerance * np.abs(y)) & np.isfinite(y)
    if near.all():
        return True
    near |= x == y  # infinity
    return bool((near | (np.isnan(x) & np.isnan(y)) if equal_nan else near).all())


def _tolerance(case: Case) -> float:
    if case.tolerance is not None:
        return case.tolerance
    arrays = [*named_arrays(case.inputs).values(), *named_arrays(case.options).values()]
    return max((TOLERANCE[x.dtype] for x in arrays if x.dtype.kind == "f"), default=INTEGER_TOLERANCE)


def _score(exercise: Exercise, cases: Sequence[Case], right: Sequence[bool]) -> float:
    """Return the share of the criteria that are met: those whose cases are all right. Without the first, it is 0.

    It is 0 as well without right gradients, if the exercise requires them.

    A criterion without any case is left out. Gradients, where they are asked for, weigh as much as all the rest,
    because they are what a torch exercise is about.
    """
    asked = {case.criterion for case in cases}
    weights = {criterion: weight for criterion, weight in exercise.rubric.items() if criterion in asked}
    if GRADIENTS in asked:
        weights[GRADIENTS] = sum(weights.values())
    failed = {case.criterion for case, is_right in zip(cases, right, strict=True) if not is_right}
    if next(iter(weights)) in failed or (exercise.gradients_required and GRADIENTS in failed):
        return 0.0
    return math.fsum(weights[criterion] for criterion in weights if criterion not in failed) / sum(weights.values())


def _same(case: Case, answer: Answer, other: Answer, tolerance: float) -> bool:
    if answer.problem is not None or other.problem is not None:
        return _outline(answer) == _outline(other)
    if case.unchanged and answer.changed != other.changed:
        return False
    return _close(answer, other, tolerance, equal_nan=True)


def _is_cut(answer: Answer) -> bool:
    """Tell whether no gradient got through."""
    return NO_GRADIENT_ERROR.search(f"{answer.problem} {answer.error}") is not None


def _misfits(answer: Answer) -> bool:
    """Tell whether shapes did not fit."""
    return answer.error is not None and _says_misfit(answer.error)


@functools.lru_cache(maxsize=256)  # the same few texts come from each case of each mistake
def _says_misfit(error: str) -> bool:
    return MISFIT.search(error) is not None


def _outline(answer: Answer) -> str | None:
    """Return what went wrong without the words that differ between backends."""
    if answer.error is not None:
        return "misfit" if _misfits(answer) else answer.error
    problem = answer.problem and answer.problem.replace("a list of", "a tuple of")
    return problem and re.sub("a NumPy array|a torch.Tensor|one ndarray|one Tensor", "one array", problem)
