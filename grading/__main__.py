"""Import a class list, release an assignment, grade a class, report on it, export the grades, or test the sandbox."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from grading.class_settings import COLUMNS
from grading.course import FOLDER_VARIABLE, Course, GradingError, importing, log_file
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.text import counted
from grading.verdict import Verdict

# A command imports whatever else it needs when it is called. That takes seconds, in which a box can start.

ABOUT_NEW_COURSE = "Set up the folder of a class. In a terminal, the command asks for whatever the options leave out."
ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say. Return 0, or 1 if something has to be put right first."""
    asked = _parser().parse_args(arguments)
    try:
        return COMMANDS[asked.command](Course.at(ROOT, asked.course), asked)
    except GradingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped. What was graded is saved: run the same command again to go on from here", file=sys.stderr)
        return 130
    except Exception as error:
        from grading.environment_errors import explained

        if not (said := explained(error)):
            raise
        print(f"error: {said} Then run the same command again: what was graded is saved", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _command(commands, "release", "write the student's version of an assignment into exercises/", "?")
    copied = "copy an assignment to work on, without ever overwriting one that is already there"
    work = _command(commands, "work", copied, "?")
    work.add_argument("--to", type=Path, metavar="FOLDER", help="where to copy it (default: work/)")
    work.add_argument("--student", default="", metavar="ID", help="whose copy it is, which sets the order of options")
    new = commands.add_parser("new-course", help="set up the folder of a class", description=ABOUT_NEW_COURSE)
    _new_course_options(new)
    _class_command(commands, "doctor-course", "say what is missing before a class can be graded, and what to do")
    students = "write one file for students: the notebooks, attnlib and the versions of what they need"
    _bundle_options(_class_command(commands, "bundle", students))
    window = "declare an assignment as an exam, move its window, or show the window and who has more time"
    _exam_options(_command(commands, "exam", window))
    _roster_options(_class_command(commands, "roster", "put a class list into the gradebook, and show what changes"))
    downloads = "read downloads of submissions, keep every attempt, and put the last one in place for grading"
    _collect_options(_command(commands, "collect", downloads))
    times = "bring extensions, late days and penalties up to date, or show what that would change"
    _deadlines_options(_class_command(commands, "deadlines", times))
    requests = "list regrade requests, add one, grade the submissions again, or decide on a request"
    _regrade_options(_command(commands, "regrade", requests))
    back = _command(commands, "return", "pack the feedback for Canvas, for Moodle, in folders and for mail merge")
    back.add_argument("--unfinished", action="store_true", help="also return work with answers that nobody has marked")
    divided = "divide the written answers among assistants, take the marks from their files, or count named comments"
    _marking_options(_command(commands, "marking", divided))
    _student_options(_class_command(commands, "student", "show what is kept about a student, export it, or erase it"))
    sample = _command(commands, "sample", "write a class of made-up students, right and wrong in known ways")
    files = "write there, in place of a class, the class list and the zip that a learning management system exports"
    sample.add_argument("--download", type=Path, metavar="DIR", help=files)
    again = "show the grades and write the feedback again, with the marks given by hand since the run"
    report = _command(commands, "report", again)
    report.add_argument("--by", metavar="NAME", help="log that this person gave the marks that are not in the log yet")
    doctor = _command(commands, "doctor", "say what has to be repaired in each submission, and what cannot be graded")
    doctor.add_argument("--students", nargs="+", metavar="STUDENT", help="only these students: names or patterns")
    export = _command(commands, "export", "write the grades for a spreadsheet, Canvas or Moodle, and show what changes")
    export.add_argument("--canvas", type=Path, metavar="FILE", help="the gradebook that Canvas exported, as CSV")
    export.add_argument("--moodle", type=Path, metavar="FILE", help="the grading worksheet that Moodle exported")
    export.add_argument("--lti", type=Path, metavar="FILE.toml", help="send the grades through LTI 1.3")
    export.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: next to the report)")
    verify = _command(commands, "verify", "compare the log of all gradings with the gradebook and the submissions")
    known = "the digest of the last entry, as an earlier `verify` printed it"
    verify.add_argument("--known", default="", metavar="DIGEST", help=known)
    _class_command(commands, "selftest", "test the sandbox from inside, and whether it hides the files of a class")
    whole = "copy a gradebook, with all marks and comments, into the one that ATTENTION_DB names"
    migrate = _class_command(commands, "migrate", whole)
    source = "the gradebook to copy: sqlite:///FILE, or another SQLAlchemy address"
    migrate.add_argument("--from", dest="source", required=True, metavar="URL", help=source)
    _run_options(_command(commands, "run", "grade submissions, write a feedback page for each, and report"))
    return parser


def _new_course_options(new: argparse.ArgumentParser) -> None:
    new.add_argument("course", type=Path, metavar="DIR", help="the folder of the class, such as class")
    new.add_argument("--name", help="what the course is called")
    new.add_argument("--term", help="when it is taught")
    new.add_argument("--book", metavar="URL", help="the address where the book is published")
    new.add_argument("--penalty", metavar="SHARE", help="the share of the score that a day of lateness costs: 0.1, say")
    due = 'when an assignment is due, such as 02-self-attention="2030-01-31 23:59 UTC"; may be given several times'
    new.add_argument("--due", action="append", default=[], metavar="ASSIGNMENT=DATE", help=due)
    new.add_argument("--roster", type=Path, metavar="FILE.csv", help="the class list, as for the command roster")


def _bundle_options(bundle: argparse.ArgumentParser) -> None:
    bundle.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: in the class's folder)")
    only = "write the file for this exam, which gives no answers away"
    bundle.add_argument("--exam", default="", metavar="ASSIGNMENT", type=_folder, help=only)


def _exam_options(exam: argparse.ArgumentParser) -> None:
    exam.add_argument("--begin", default="", metavar="DATE", help='when it begins, such as "2030-01-31 09:00 UTC"')
    ends = "when it ends for the class, which becomes its due date in the gradebook"
    exam.add_argument("--end", default="", metavar="DATE", help=ends)


def _roster_options(roster: argparse.ArgumentParser) -> None:
    roster.add_argument("file", type=Path, metavar="FILE.csv", help="what Canvas, Moodle or Blackboard exported, say")
    roster.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    whole = "the file lists the whole class: whoever is on the class list, but not in the file, has left"
    roster.add_argument("--complete", action="store_true", help=whole)
    for column in COLUMNS:
        title = f"the title of the column with the {column.replace('_', ' ')} (default: recognised)"
        roster.add_argument(f"--{column.replace('_', '-')}", metavar="COLUMN", default="", help=title)


def _collect_options(collect: argparse.ArgumentParser) -> None:
    what = "folders, or zips from Canvas, Moodle or Blackboard, or the folder `inbound` of nbgrader's exchange"
    collect.add_argument("sources", nargs="+", type=Path, metavar="SOURCE", help=what)
    systems = ("canvas", "moodle", "blackboard", "nbgrader", "folders")
    told = "the system that named the files (default: inferred from the names)"
    collect.add_argument("--from", dest="told", choices=systems, default="", help=told)
    zone = "the zone of times given without one, such as Europe/Berlin (default: time_zone in course.toml, or else UTC)"
    collect.add_argument("--time-zone", metavar="ZONE", default="", help=zone)
    collect.add_argument(
        "--unlisted", action="store_true", help="also collect from students who are not on the class list"
    )
    collect.add_argument("--dry-run", action="store_true", help="show what would be collected, and write nothing")


def _deadlines_options(deadlines: argparse.ArgumentParser) -> None:
    deadlines.add_argument("--grant", metavar="STUDENT", help="add a row to the table for this student")
    which = "for which assignment (default: for all, as an accommodation)"
    deadlines.add_argument("--assignment", metavar="ASSIGNMENT", default="*", type=_folder, help=which)
    deadlines.add_argument("--days", default="", metavar="N", help="how many more days; 0 revokes an extension")
    deadlines.add_argument("--due", default="", metavar="DATE", help='the new due date: "2030-02-03 23:59 UTC", say')
    deadlines.add_argument("--by", default="", metavar="NAME", help="who grants it")
    deadlines.add_argument("--why", default="", metavar="TEXT", help="the reason")
    deadlines.add_argument("--dry-run", action="store_true", help="show which marks would change, and write nothing")


def _regrade_options(regrade: argparse.ArgumentParser) -> None:
    regrade.add_argument(
        "--request", metavar="STUDENT", help="add a request from this student, with --question and --why"
    )
    regrade.add_argument(
        "--question", default="", metavar="QUESTION", help="the question, as in the columns of grades.csv"
    )
    regrade.add_argument(
        "--why", default="", metavar="TEXT", help="the student's reason, or the reason for the decision"
    )
    both = "grade the submissions of open requests with the checks as they are now, and show both results"
    regrade.add_argument("--rerun", action="store_true", help=both)
    regrade.add_argument("--decide", type=_positive, metavar="NUMBER", help="decide this request, with --by and --why")
    points = "the points that the question earns from now on (default: the mark stays)"
    regrade.add_argument("--points", type=float, metavar="P", help=points)
    regrade.add_argument("--by", default="", metavar="NAME", help="who decides")


def _marking_options(marking: argparse.ArgumentParser) -> None:
    marking.add_argument("--assistants", nargs="+", metavar="NAME", help="write a file of answers for each of them")
    groups = "an assistant marks all answers of a student, or everybody's answers to a question (default: %(default)s)"
    marking.add_argument("--by", choices=("student", "question"), default="student", help=groups)
    second = "the share of the answers that a second assistant marks as well, without knowing it (default: 0)"
    marking.add_argument("--second", type=float, default=0.0, metavar="SHARE", help=second)
    taken = "files of assistants, with marks: write the marks to the gradebook, and compare where two people marked"
    count = "show the named comments in comments.toml, and how often each is used"
    marking.add_argument("--comments", action="store_true", help=count)
    marking.add_argument("--take", nargs="+", type=Path, metavar="FILE.csv", help=taken)


def _student_options(student: argparse.ArgumentParser) -> None:
    student.add_argument("student", metavar="STUDENT", help="the id of the student")
    student.add_argument("--export", type=Path, metavar="FILE.zip", help="write everything that is kept into a zip")
    student.add_argument("--erase", action="store_true", help="erase everything, with --by and --why")
    student.add_argument("--by", default="", metavar="NAME", help="who erases it")
    student.add_argument("--why", default="", metavar="TEXT", help="the reason")


def _run_options(run: argparse.ArgumentParser) -> None:
    whom = "grade only these students: names, or patterns such as 'a*' (default: everybody)"
    run.add_argument("--students", nargs="+", metavar="STUDENT", help=whom)
    run.add_argument("--jobs", type=_positive, default=1, metavar="N", help="grade N students at a time (default: 1)")
    run.add_argument("--scheduler", metavar="URL", help="grade on the workers of a dask cluster: tcp://HOST:8786")
    seconds = "seconds of processor time that one cell may use (default: %(default)s)"
    run.add_argument("--timeout", type=_positive, default=int(Limits().cell), metavar="S", help=seconds)
    again = "grade unchanged submissions again as well; marks given by hand then have to be checked again"
    run.add_argument("--regrade", action="store_true", help=again)
    run.add_argument("--no-feedback", action="store_true", help="make no feedback pages; `report` makes them later")
    bare = "grade without a sandbox: student code can then read your files and award itself marks"
    run.add_argument("--unsandboxed", action="store_true", help=bare)


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str, nargs: str | None = None
) -> argparse.ArgumentParser:
    command = _class_command(commands, name, text)
    which = "its name, such as 02-self-attention" + (" (default: every assignment)" if nargs else "")
    command.add_argument("assignment", metavar="ASSIGNMENT", nargs=nargs, type=_folder, help=which)
    return command


def _class_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    _take_course(command)
    return command


def _take_course(command: argparse.ArgumentParser) -> None:
    where = (
        f"the class's folder (default: the environment variable {FOLDER_VARIABLE}, or else class/ next to solutions/)"
    )
    command.add_argument("--course", type=Path, metavar="DIR", help=where)


def _folder(text: str) -> str:
    """Return the name of a folder without the slash that shell completion adds."""
    return text.rstrip("/") or text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _release(course: Course, asked: argparse.Namespace) -> int:
    from grading.handout import hand_out

    if asked.assignment:
        course.require(asked.assignment)
    print("\n".join(hand_out(course, asked.assignment) or ["exercises/ already holds what is released"]))
    return 0


def _work(course: Course, asked: argparse.Namespace) -> int:
    from grading.handout import WORK_FOLDER, start_work

    print("\n".join(start_work(course, asked.assignment, asked.to or course.root / WORK_FOLDER, asked.student)))
    return 0


def _new_course(course: Course, asked: argparse.Namespace) -> int:
    from grading.new_course import Answers, new_course

    given = {"name": asked.name, "term": asked.term, "book": asked.book, "penalty": asked.penalty}
    print(new_course(course, Answers(given, ask=input if sys.stdin.isatty() else None), asked.due, asked.roster))
    return 0


def _doctor_course(course: Course, asked: argparse.Namespace) -> int:
    from grading.doctor_course import examine

    findings = examine(course)
    for finding in findings:
        print(finding)
    return int(any(finding.missing for finding in findings))


def _bundle(course: Course, asked: argparse.Namespace) -> int:
    from grading.bundle import bundle

    print(bundle(course, asked.out, asked.exam))
    return 0


def _exam(course: Course, asked: argparse.Namespace) -> int:
    from grading.exam.command import set_window, shown

    course.require(asked.assignment)
    if asked.begin or asked.end:
        for said in set_window(course, asked.assignment, asked.begin, asked.end):
            print(said)
    print(shown(course, asked.assignment))
    return 0


def _roster(course: Course, asked: argparse.Namespace) -> int:
    from grading.roster.importing import import_roster

    told = {column: title for column in COLUMNS if (title := getattr(asked, column))}
    print(import_roster(course, asked.file, told, complete=asked.complete, dry_run=asked.dry_run))
    return 0


def _collect(course: Course, asked: argparse.Namespace) -> int:
    from grading.class_settings import read_class
    from grading.collect.collect import collect
    from grading.timestamp import time_zone

    zone = time_zone(asked.time_zone or read_class(course).time_zone)
    how = {"told": asked.told, "unlisted": asked.unlisted, "dry_run": asked.dry_run}
    print(collect(course, asked.assignment, asked.sources, zone, **how))
    if read_class(course).attempts == "best" and not asked.dry_run:
        from grading.collect.best import choose_best
        from grading.run import How

        print(choose_best(course, asked.assignment, How(pages=False)))
    return 0


def _deadlines(course: Course, asked: argparse.Namespace) -> int:
    from grading.deadlines.table import Grant
    from grading.deadlines.update import update

    row = Grant(asked.grant, asked.assignment, asked.due, asked.days, asked.by, asked.why) if asked.grant else None
    print(update(course, row, dry_run=asked.dry_run))
    return 0


def _regrade(course: Course, asked: argparse.Namespace) -> int:
    from grading.regrade.decide import decide
    from grading.regrade.requests import ask, listed

    course.require(asked.assignment)
    if asked.rerun:
        from grading.regrade.rerun import rerun
        from grading.run import How

        print(rerun(course, asked.assignment, How(pages=False)))
    elif asked.request:
        print(ask(course, asked.assignment, asked.request, asked.question, asked.why))
    elif asked.decide:
        print(decide(course, asked.assignment, asked.decide, asked.points, asked.by, asked.why))
    else:
        print(listed(course, asked.assignment))
    return 0


def _return(course: Course, asked: argparse.Namespace) -> int:
    from grading.return_feedback.pack import return_feedback
    from grading.run import refresh

    course.require(asked.assignment)
    refresh(course, asked.assignment)  # marks may have changed since the pages were made
    print(return_feedback(course, asked.assignment, unfinished=asked.unfinished))
    return 0


def _marking(course: Course, asked: argparse.Namespace) -> int:
    course.require(asked.assignment)
    if asked.take:
        from grading.marking.take import take

        print(take(course, asked.assignment, asked.take))
    elif asked.comments:
        from grading.marking.comments import uses

        print(uses(course, asked.assignment))
    elif asked.assistants:
        from grading.marking.shares import divide

        print(divide(course, asked.assignment, asked.assistants, asked.by, asked.second))
    else:
        raise GradingError(
            "name the assistants, as in --assistants mary john, or pass the files with their marks to --take"
        )
    return 0


def _student(course: Course, asked: argparse.Namespace) -> int:
    from grading.student_data.erase import erase, kept
    from grading.student_data.export import export_student

    if asked.export:
        print(export_student(course, asked.student, asked.export))
    if asked.erase:
        print(erase(course, asked.student, asked.by, asked.why))
    if not (asked.export or asked.erase):
        print(kept(course, asked.student))
    return 0


def _sample(course: Course, asked: argparse.Namespace) -> int:
    from grading.sample import write_class
    from grading.sample.download import write_download

    if asked.download:
        print(write_download(course, asked.assignment, asked.download))
        return 0
    students = write_class(course, asked.assignment)
    print(f"{counted(len(students), 'student')} in {course.folder / 'submitted'}: {', '.join(students)}")
    print(f"Grade them with: python -m grading run {asked.assignment} --course {course.folder}")
    return 0


def _run(course: Course, asked: argparse.Namespace) -> int:
    course.require(asked.assignment)
    limits, sandboxed = Limits().with_cell(asked.timeout), not asked.unsandboxed
    with Host(limits, sandboxed=sandboxed) as host, ExitStack() as stack:
        if not asked.scheduler:
            host.launch()
        with importing():
            from grading.pool import Boxes
            from grading.run import How, run
        how = How(asked.jobs, limits, asked.scheduler, asked.regrade, sandboxed, not asked.no_feedback)
        pool = None if asked.scheduler else stack.enter_context(closing(Boxes(asked.jobs, host, course)))
        outcomes = run(course, asked.assignment, asked.students, how, pool=pool)
    _show(course, asked)
    if asked.unsandboxed:
        print("\nUNSANDBOXED: nothing kept the students' code from your files, or from awarding itself marks.")
    failed = [outcome.student for outcome in outcomes if outcome.verdict is Verdict.INFRASTRUCTURE]
    if failed:
        raise GradingError(
            f"the grader failed on {', '.join(failed)}: {course.log(asked.assignment)} says why. Run it again for them"
        )
    return 0


def _report(course: Course, asked: argparse.Namespace) -> int:
    from grading.marking.sums import different_sums
    from grading.run import refresh

    course.require(asked.assignment)
    if asked.by:
        from grading.hand_marks import log_marks

        print(log_marks(course, asked.assignment, asked.by))
    refresh(course, asked.assignment)
    shown = _show(course, asked)
    for line in different_sums(course, asked.assignment):
        print(f"warning: {line}", file=sys.stderr)
    return shown


def _show(course: Course, asked: argparse.Namespace) -> int:
    from grading.class_list import differences
    from grading.class_report.export import csv_text
    from grading.class_report.integrity.page import integrity_page
    from grading.class_report.page_data import page
    from grading.class_report.similarity import compare_submissions
    from grading.class_settings import book_address, read_class
    from grading.report import rows, table
    from grading.submission_folders import not_graded

    graded = rows(course, asked.assignment)
    folder = course.reports(asked.assignment)
    handed_in = [row.outcome.student for row in graded if not row.absent]
    alike = compare_submissions(course, asked.assignment, handed_in)
    refused = not_graded(course)
    listed = differences(course, asked.assignment, handed_in)
    labels = {row.outcome.student: row.label for row in graded}
    title, book = read_class(course).title, book_address(course)
    shown = page(graded, asked.assignment, folder, alike, title=title, book=book, refused=refused, listed=listed)
    course.files.write(folder / "grades.csv", csv_text(graded).encode())
    course.files.write(folder / "grades.html", shown.encode())
    evidence = integrity_page(course, asked.assignment, graded, alike, folder, book)
    course.files.write(folder / "integrity.html", evidence.encode())
    print(table(graded))
    for student, why in refused.items():
        print(f"Not graded: {student!a}: {why}")
    for what, who in listed.named():
        print(f"{what} ({len(who)}): {', '.join(labels[student] for student in who)}")
    print(f"\nTable:    {folder / 'grades.csv'}\nPage:     {folder / 'grades.html'}")
    print(f"Evidence: {folder / 'integrity.html'}")
    print(f"Feedback: {course.feedback('STUDENT', asked.assignment)}")
    return 0


def _doctor(course: Course, asked: argparse.Namespace) -> int:
    from grading.outcome import plain
    from grading.read_submission import read_submission
    from grading.release import notebook_templates, register
    from grading.repair.messages import RefusedError
    from grading.run import chosen
    from grading.timestamp import handed_in

    course.require(asked.assignment)
    register(course, asked.assignment, log_file(course, asked.assignment))
    for student in chosen(course, asked.assignment, asked.students):
        for template in notebook_templates(course, asked.assignment):
            folder = course.submitted(student, asked.assignment)
            try:
                said = [repair.text for repair in read_submission(folder, template).repaired.repairs]
            except RefusedError as refused:
                said = [f"{refused.verdict}: {refused.reason}"]
            print(f"{plain(student)}: {template.name}: {' '.join(said) or 'as it should be'}")
        if problem := handed_in(course.submitted(student, asked.assignment)).problem:
            print(f"{plain(student)}: {problem}")
    return 0


def _verify(course: Course, asked: argparse.Namespace) -> int:
    from grading.gradebook.agreement import require_agreement
    from grading.gradebook.assignment import AssignmentGradebook
    from grading.verify import verify

    course.require(asked.assignment)
    require_agreement(course, asked.assignment)
    with AssignmentGradebook(course, asked.assignment, log_file(course, asked.assignment)) as gradebook:
        found = verify(course, asked.assignment, gradebook, asked.known)
    for line in [*found.wrong, *(f"note: {note}" for note in found.notes)]:
        print(line)
    if found.wrong:
        raise GradingError(f"the log of {asked.assignment} does not match what was found: see the lines above")
    size = f"entries: {found.entries}, students: {found.students}"
    print(f"The log agrees with the outcomes, the gradebook and the submissions ({size}).")
    print(f"Write down the digest of this last entry elsewhere, and pass it with --known next time: {found.last}")
    return 0


def _export(course: Course, asked: argparse.Namespace) -> int:
    from grading.class_report.export import export
    from grading.submission_folders import not_graded

    for student, why in not_graded(course).items():
        print(f"Not graded: {student!a}: {why}", file=sys.stderr)
    if asked.lti:
        from grading.lti.passback import send_grades

        print(send_grades(course, asked.assignment, asked.lti))
        return 0
    print(export(course, asked.assignment, canvas=asked.canvas, moodle=asked.moodle, out=asked.out))
    return 0


def _migrate(course: Course, asked: argparse.Namespace) -> int:
    from grading.gradebook.migrate import migrate

    copied = migrate(course, asked.source)
    print("Copied (each count is the same before and after):")
    for name, count in copied.items():
        print(f"  {count:6} {name}")
    return 0


def _selftest(course: Course, asked: argparse.Namespace) -> int:
    from grading.sandbox.selftest import selftest

    return selftest(course)


COMMANDS = {
    "release": _release,
    "work": _work,
    "new-course": _new_course,
    "doctor-course": _doctor_course,
    "bundle": _bundle,
    "exam": _exam,
    "roster": _roster,
    "collect": _collect,
    "deadlines": _deadlines,
    "regrade": _regrade,
    "return": _return,
    "marking": _marking,
    "student": _student,
    "sample": _sample,
    "run": _run,
    "report": _report,
    "doctor": _doctor,
    "export": _export,
    "verify": _verify,
    "migrate": _migrate,
    "selftest": _selftest,
}

if __name__ == "__main__":
    sys.exit(main())
