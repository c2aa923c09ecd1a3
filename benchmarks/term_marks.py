"""What the marks of a simulated term have to be, computed from the plan alone, in exact fractions."""

from collections.abc import Mapping
from fractions import Fraction

from term_plan import Attempt, Homework, Plan, Work

PENALTY = Fraction(1, 10)  # the share of the score that a day costs
LATE_DAYS = 2  # days that each student may be late in the whole term
CANVAS, MOODLE, EXCHANGE = "canvas", "moodle", "nbgrader"
SYSTEMS = (EXCHANGE, CANVAS, MOODLE)  # the system of the first assignment, the second, the third, the fourth, ...

Marks = dict[tuple[str, str], Fraction]


def system_of(plan: Plan, homework: Homework) -> str:
    """Return through which system an assignment is handed in."""
    return SYSTEMS[plan.homework.index(homework) % len(SYSTEMS)]


def expected_marks(plan: Plan, penalty: Fraction = PENALTY) -> Marks:
    """Return the final mark for each student and assignment for which something was handed in."""
    marks: Marks = {}
    for student in plan.students:
        left = LATE_DAYS
        for homework in plan.homework:  # in the order of the due dates
            if work := plan.work.get((student.id, homework.name)):
                mark, used = _mark(homework, work, left, penalty, system_of(plan, homework))
                marks[student.id, homework.name] = mark
                left -= used
    return marks


def _mark(homework: Homework, work: Work, left: int, penalty: Fraction, system: str) -> tuple[Fraction, int]:
    """Return the mark of the attempt with the most points after its penalty, and the late days that it used."""
    found = []
    for attempt in work.attempts:
        late = days_late(attempt, work, system)
        used = min(left, late)
        keeps = max(Fraction(0), 1 - penalty * (late - used))
        earned = earned_points(homework, work, attempt)
        found.append((sum(earned.values()) * keeps, earned, keeps, used))
    _, earned, keeps, used = max(found, key=lambda one: one[0])  # the first of equals
    if work.disputed and work.granted:
        (task,) = (task for task in homework.tasks if task.cell == work.disputed)
        earned[task.cell] = task.points
    return (sum(earned.values()) + work.written) * keeps, used


def days_late(attempt: Attempt, work: Work, system: str) -> int:
    """Return by how many days an attempt is late, as far as the system says.

    Moodle's download gives no time. Canvas's says only that a file is late, which counts as one day. Canvas is told
    about extensions.
    """
    late = max(0, attempt.days - work.extension)
    return {CANVAS: min(1, late), MOODLE: 0, EXCHANGE: late}[system]


def earned_points(homework: Homework, work: Work, attempt: Attempt) -> dict[str, int]:
    """Return the points for each task. In a multiple-choice question, the first choice counts in every attempt."""
    first = work.attempts[0]
    missed = {task.cell: (first if task.is_choice else attempt) for task in homework.tasks}
    return {
        task.cell: 0 if task.cell in missed[task.cell].undone | missed[task.cell].wrong else task.points
        for task in homework.tasks
    }


def differences(
    expected: Mapping[tuple[str, str], Fraction], found: Mapping[tuple[str, str], float], tolerance: float
) -> list[str]:
    """Return a line for each mark that is missing, superfluous, or wrong by more than the tolerance."""
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        should, has = expected.get(key), found.get(key)
        if should is None or has is None or abs(float(should) - has) > tolerance + 1e-9:
            said = "nothing" if should is None else f"{float(should):g}"
            lines.append(f"{key[0]}, {key[1]}: expected {said}, found {'nothing' if has is None else f'{has:g}'}")
    return lines
