"""Find the mistakes that an evaluation confuses, from as few answers as that takes."""

from collections.abc import Hashable, Mapping, Set

from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.evaluation import Evaluation


def confused(evaluation: Evaluation, has: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Return the mistakes that pass, or that answer every case like another one, with the ids of those others.

    A check passes what is right in every case, and names the one mistake that answers like the student in all of them.
    A mistake that was wrong once, and has differed from every other one, is named whatever it answers to more cases.

    Args:
        evaluation: the evaluation of an exercise.
        has: the optional arguments that each mistake takes, and so the cases that it is asked.
    """
    mistakes = {mistake.id: mistake for mistake in evaluation.exercise.mistakes}
    passing, rivals = set(mistakes), {one: mistakes.keys() - {one} for one in mistakes}
    for i, case in reversed(list(enumerate(evaluation.cases))):  # the last cases are the special ones, and tell most
        open_ones = [one for one in mistakes if (rivals[one] or one in passing) and evaluation.needs(case) <= has[one]]
        compared = set(open_ones).union(*(rivals[one] for one in open_ones))
        answers = {one: evaluation._answer(mistakes[one], i) for one in compared}
        same = _same(evaluation, i, answers)
        for one in open_ones:
            rivals[one] = rivals[one] & same[one]
        passing -= {one for one in passing.intersection(open_ones) if not evaluation._is_right(i, answers[one])}
    return {one: rivals[one] for one in mistakes if rivals[one] or one in passing}


def _same(evaluation: Evaluation, i: int, answers: Mapping[str, Answer]) -> dict[str, Set[str]]:
    """Return for each mistake those that answer a case like it. Of answers that are equal bit for bit, compare one."""
    mistakes = {mistake.id: mistake for mistake in evaluation.exercise.mistakes}
    equal: dict[Hashable, list[str]] = {}
    for one, answer in answers.items():
        equal.setdefault(_bits(answer), []).append(one)
    same: dict[str, Set[str]] = {}
    for ids in equal.values():
        answer = answers[ids[0]]
        alike = [others for others in equal.values() if evaluation._same(i, answer, mistakes[others[0]])]
        same |= dict.fromkeys(ids, set().union(*alike))
    return same


def _bits(answer: Answer) -> Hashable:
    arrays = tuple((name, x.shape, x.dtype.str, x.tobytes()) for name, x in answer.arrays.items())
    return answer.problem, answer.error, answer.changed, arrays
