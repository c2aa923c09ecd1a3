"""What is sent to the process that runs a submission, and what comes back: cells, inputs and raw answers, no secrets.

Both are plain data, so that they can go to another process or another machine as they are.
"""

from dataclasses import dataclass, field
from typing import Any

from grading.sandbox.limits import Limits


@dataclass(frozen=True)
class Probe:
    """What is asked of a student's answer instead of running a graded cell.

    ``exercise`` is the exercise's name, which the box is not told. ``cases`` holds the encoded inputs for each backend;
    ``unasked`` are the optional arguments that the task does not ask for, and ``needs`` lists those among them that an
    implementation must have for a case to apply. A case that needs one of them costs no points, whatever happens in it.
    The probe of a multiple-choice question has no cases. If there is a ``target``, the expression is a list of tests of
    it, and ``seed`` says which implementations they are run against; the box is told neither.
    """

    expression: str
    exercise: str = ""
    call: str = ""
    plain: bool = False
    backend: str = ""
    forbidden: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    cases: dict[str, list[Any]] = field(default_factory=dict)
    needs: dict[str, list[list[str]]] = field(default_factory=dict)
    target: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Step:
    """A code cell: either its source is run, or its probe is sent instead."""

    cell: str
    source: str = ""
    probe: Probe | None = None


@dataclass(frozen=True)
class Task:
    """A notebook to be run."""

    steps: tuple[Step, ...]
    limits: Limits
    sandboxed: bool = True


@dataclass
class Answered:
    """What came back from a probe: facts about an implementation and its answers by case, or the value of a choice.

    ``tests`` holds the outcomes of tests by the number of the implementation, and ``used`` the kinds of their inputs.
    The rest does not come from the box: ``first`` is the option that counts because an earlier submission chose it,
    ``student`` the id in whose order of options the answer is read, ``stated`` the one that the notebook states,
    ``differs`` says whether the notebook was saved with the options in another order, and ``exam`` whether only letters
    of that order count.
    """

    facts: dict[str, Any] | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    tests: dict[int, list[Any]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    first: str | None = None
    student: str = ""
    stated: str = ""
    differs: bool = False
    exam: bool = False


@dataclass
class Result:
    """The result of a task, by the position of the step.

    ``stops`` says why a step did not finish, as (verdict, reason), and ``cut`` holds the steps whose output was cut.
    ``lost`` says why the box itself failed, if it did. ``starved`` is whether a step ran out of time because other
    programs occupied the processors. ``again`` says why the task was run a second time, if it was.
    """

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    answered: dict[int, Answered] = field(default_factory=dict)
    stops: dict[int, tuple[str, str]] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)
    lost: str = ""
    starved: bool = False
    again: str = ""
