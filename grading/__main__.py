"""The command line: release an assignment, make a sample class, grade a class, report on it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from grading.course import FOLDER, Course, GradingError
from grading.page import write_page
from grading.release import release
from grading.report import rows, table, write_csv
from grading.run import TIMEOUT, log_file, refresh, run
from grading.sample import write_class

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say. Returns 0, or 1 where something has to be put right first."""
    asked = _parser().parse_args(arguments)
    command = {"release": _release, "sample": _sample, "run": _run, "report": _report}[asked.command]
    try:
        return command(Course.at(ROOT, asked.course), asked)
    except GradingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _command(commands, "release", "write the student's version of an assignment into exercises/", "?")
    _command(commands, "sample", "write a class of made-up students, right and wrong in known ways")
    _command(
        commands, "report", "show the grades and write the feedback again, with what a person has graded since the run"
    )
    grade = _command(commands, "run", "grade submissions, write a feedback page for each, and report")
    grade.add_argument("--students", nargs="+", metavar="STUDENT", help="grade these alone (default: everybody)")
    grade.add_argument("--jobs", type=_positive, default=1, metavar="N", help="grade N at the same time (default: 1)")
    grade.add_argument(
        "--timeout",
        type=_positive,
        default=TIMEOUT,
        metavar="S",
        help="seconds that one cell may take (default: %(default)s)",
    )
    again = "grade unchanged submissions again as well; what was graded by hand then waits to be looked at again"
    grade.add_argument("--again", action="store_true", help=again)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str, nargs: str | None = None
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    which = "a folder of solutions/" + (" (default: every one)" if nargs else "")
    command.add_argument("assignment", metavar="ASSIGNMENT", nargs=nargs, help=which)
    where = f"the class's folder (default: the environment variable {FOLDER}, or else class/ beside solutions/)"
    command.add_argument("--course", type=Path, metavar="DIR", help=where)
    return command


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _release(course: Course, asked: argparse.Namespace) -> int:
    for assignment in [asked.assignment] if asked.assignment else course.assignments():
        print(release(course, assignment, course.root / "exercises", log_file(course, assignment)))
    return 0


def _sample(course: Course, asked: argparse.Namespace) -> int:
    students = write_class(course, asked.assignment)
    print(f"{len(students)} students in {course.folder / 'submitted'}: {', '.join(students)}")
    print(f"Grade them with: python -m grading run {asked.assignment} --course {course.folder}")
    return 0


def _run(course: Course, asked: argparse.Namespace) -> int:
    outcomes = run(course, asked.assignment, asked.students, jobs=asked.jobs, timeout=asked.timeout, again=asked.again)
    _show(course, asked)
    failed = [outcome.student for outcome in outcomes if outcome.verdict == "infrastructure"]
    if failed:
        raise GradingError(
            f"the grader failed on {', '.join(failed)}: {course.log(asked.assignment)} says why. Run it again for them"
        )
    return 0


def _report(course: Course, asked: argparse.Namespace) -> int:
    course.require(asked.assignment)
    refresh(course, asked.assignment)
    return _show(course, asked)


def _show(course: Course, asked: argparse.Namespace) -> int:
    graded = rows(course, asked.assignment)
    folder = course.reports(asked.assignment)
    write_csv(graded, folder / "grades.csv")
    write_page(graded, asked.assignment, folder / "grades.html")
    print(table(graded))
    print(f"\nTable:    {folder / 'grades.csv'}\nPage:     {folder / 'grades.html'}")
    print(f"Feedback: {course.feedback('STUDENT', asked.assignment)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
