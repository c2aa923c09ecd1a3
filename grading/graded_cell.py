"""Read a graded cell, such as ``check("softmax", softmax, points=4)``, as a question; it is never run as code.

A test that ran beside a student's code could be forged there. So a graded cell has to be one call of ``check``,
``check_choice`` or ``check_tests``. It is answered in the box, by arrays, and judged outside.
"""

import ast
from dataclasses import dataclass

from attnlib.checks.catalogue import CATALOGUE, QUESTIONS
from attnlib.checks.exercise import Exercise
from attnlib.checks.mutation.target import Target
from attnlib.checks.mutation.targets import TARGETS
from attnlib.checks.options import Question
from grading._untyped import NotebookNode, is_grade, is_solution
from grading.answer_keys import answer_key
from grading.course import GradingError

CHECK_OPTIONS = {
    "check": {"points", "backend", "hint", "unasked"},
    "check_choice": {"points"},
    "check_tests": {"points"},
}


@dataclass(frozen=True)
class GradedCell:
    """A graded cell as a question: about an implementation, the letter of an option, or tests of a target."""

    cell: str
    expression: str
    points: float
    exercise: Exercise | None = None
    question: Question | None = None
    backend: str = "numpy"
    hints: int = 1
    target: Target | None = None


def is_autograded(cell: NotebookNode) -> bool:
    """Return whether a cell is graded automatically."""
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def is_students(cell: NotebookNode) -> bool:
    """Return whether a cell is a student's: an answer, or a cell that the student added."""
    return "nbgrader" not in cell.metadata or is_solution(cell)


def read_graded_cell(cell: NotebookNode) -> GradedCell:
    """Return what an autograded cell asks.

    Raises:
        GradingError: it is not one call of ``check``, ``check_choice`` or ``check_tests`` with known arguments.
    """
    call = _call(cell)
    name, options = _arguments(call, cell)
    asked = {"cell": cell.metadata.nbgrader.grade_id, "expression": ast.unparse(call.args[1])}
    points = float(cell.metadata.nbgrader.points)
    if options.get("points", points) != points:
        raise _not_a_question(cell, f"the call says points={options['points']}, but its metadata says {points:g}")
    if call.func.id == "check_choice":  # type: ignore[attr-defined]
        if name not in QUESTIONS:
            raise _not_a_question(cell, f"there is no question {name!r}")
        answer_key(name)  # without a key, nothing could be graded, so say so now
        return GradedCell(**asked, points=points, question=QUESTIONS[name])
    if call.func.id == "check_tests":  # type: ignore[attr-defined]
        if name not in TARGETS:
            raise _not_a_question(cell, f"there is no target {name!r} of tests")
        return GradedCell(**asked, points=points, target=TARGETS[name])
    return _about_an_exercise(cell, name, asked, points, options)


def _about_an_exercise(
    cell: NotebookNode, name: str, asked: dict[str, str], points: float, options: dict[str, object]
) -> GradedCell:
    if name not in CATALOGUE:
        raise _not_a_question(cell, f"there is no exercise {name!r}")
    backend, hints = options.get("backend", "numpy"), options.get("hint", 1)
    if backend not in CATALOGUE[name].backends:
        known = " and ".join(CATALOGUE[name].backends)
        raise _not_a_question(cell, f"the exercise has no backend {backend!r}, only {known}")
    if hints not in (1, 2):
        raise _not_a_question(cell, f"hint={hints!r} is neither 1 nor 2")
    try:
        exercise = CATALOGUE[name].without(options.get("unasked"))  # type: ignore[arg-type]  # refused unless a name
    except ValueError as error:
        raise _not_a_question(cell, str(error)) from None
    about = {"exercise": exercise, "backend": str(backend), "hints": 2 if hints == 2 else 1}
    return GradedCell(**asked, points=points, **about)  # type: ignore[arg-type]


def _call(cell: NotebookNode) -> ast.Call:
    try:
        body = ast.parse(cell.source).body
    except SyntaxError as error:
        raise _not_a_question(cell, f"it is not valid Python ({error})") from None
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CHECK_OPTIONS):
        raise _not_a_question(cell, "this cell holds something else")
    return call


def _arguments(call: ast.Call, cell: NotebookNode) -> tuple[str, dict[str, object]]:
    """Return the name and the options of a call, all of which must be literals."""
    constants = [call.args[0] if call.args else None, *(keyword.value for keyword in call.keywords)]
    if len(call.args) != 2 or not all(isinstance(x, ast.Constant) for x in constants):
        raise _not_a_question(cell, "its arguments are not a name, an implementation, and plain options")
    options: dict[str, object] = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    unknown = options.keys() - CHECK_OPTIONS[call.func.id]  # type: ignore[attr-defined]
    if unknown:
        raise _not_a_question(cell, f"it has unknown options: {', '.join(sorted(unknown))}")
    return str(ast.literal_eval(call.args[0])), options


def _not_a_question(cell: NotebookNode, reason: str) -> GradingError:
    name = cell.metadata.nbgrader.grade_id
    return GradingError(
        f"the graded cell {name!r} cannot be graded outside of the student's process: it has to be one call, "
        'check("name", implementation, points=…), check_choice("name", answer, points=…) or '
        f'check_tests("name", [test, …], points=…), but {reason}. '
        "A test that runs beside a student's code can be forged there"
    )
