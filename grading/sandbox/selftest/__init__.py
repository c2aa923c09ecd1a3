"""Tests the sandbox from inside: tries to escape as student code would, and says what succeeded."""

from collections.abc import Iterator

from grading._untyped import tqdm
from grading.course import Course
from grading.outcome import plain
from grading.sandbox import bubblewrap
from grading.sandbox.bubblewrap import NoSandboxError
from grading.sandbox.failures import HostLostError, StoppedError
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits
from grading.sandbox.selftest.attempt import AttemptResult, missed, prepare, run_attempt, shown
from grading.sandbox.selftest.canaries import Canaries, lay_canaries
from grading.sandbox.selftest.escapes import escape_attempts
from grading.sandbox.selftest.exceed_limits import EXCESSES, exceeded
from grading.sandbox.selftest.honest import WORKS, worked
from grading.verdict import Verdict

UNSAFE_MACHINE = (
    "Do not grade on this machine as it is: any submission can do what is marked ✗. Update bubblewrap and the kernel, "
    "keep class folders and the repository out of /usr and out of Python's own folders, or grade in a virtual machine."
)
COLUMNS = (8, 17, 41, 19)  # characters


def require_isolation(host: Host, course: Course | None = None) -> None:
    """Start a sandbox, unless it is running, and make sure that student code cannot get out or reach the course.

    Raises:
        NoSandboxError: it does not start, or something gets out of it, which is named.
    """
    with lay_canaries(course) as canaries:
        _start(host)
        try:
            out = missed(list(_escape_results(host, canaries)))
        except (HostLostError, StoppedError) as error:
            raise NoSandboxError(
                f"no sandbox: the isolation failed: it {error} {bubblewrap.UNSANDBOXED_WARNING}"
            ) from error
    if out:
        said = "; ".join(f"{each.family} {each.name}: {plain(each.happened)}" for each in out)
        advice = "`python -m grading selftest` shows all results"
        raise NoSandboxError(
            f"no sandbox: student code could get out of it ({said}). {advice}. {bubblewrap.UNSANDBOXED_WARNING}"
        )


def selftest(course: Course | None = None) -> int:
    """Test isolation and limits, show a table, and return 0 if everything held."""
    found = []
    with lay_canaries(course) as canaries, Host(Limits()) as host:
        print("Starting the sandbox takes a few seconds.")
        _start(host)
        total = len(escape_attempts(canaries)) + len(EXCESSES) + len(WORKS)
        with tqdm(total=total, unit="attempt", desc="selftest", dynamic_ncols=True, leave=False) as bar:
            try:
                for one in _all(host, canaries):
                    bar.set_postfix_str(one.name, refresh=False)
                    bar.update()
                    found.append(one)
            except (HostLostError, StoppedError) as error:
                raise NoSandboxError(
                    f"no sandbox: the isolation failed: it {error} {bubblewrap.UNSANDBOXED_WARNING}"
                ) from error
    print(_line("family", "attempt", "tried", "expected", "happened", " "))
    for one in found:
        print(_line(one.family, one.name, one.tried, one.expected, one.happened, "✓" if one.held else "✗"))
    out = missed(found)
    if out:
        print(UNSAFE_MACHINE)
    print(f"{len(found) - len(out)} of {len(found)} held")
    return 1 if out else 0


def _start(host: Host) -> None:
    try:
        host.ready()
    except HostLostError as error:
        raise NoSandboxError(
            bubblewrap.why_not() or f"no sandbox: {error}. {bubblewrap.UNSANDBOXED_WARNING}"
        ) from error


def _all(host: Host, canaries: Canaries) -> Iterator[AttemptResult]:
    yield from _escape_results(host, canaries)
    yield from (exceeded(host, excess) for excess in EXCESSES)
    yield from (worked(host, work) for work in WORKS)


def _escape_results(host: Host, canaries: Canaries) -> Iterator[AttemptResult]:
    """Run all attempts to escape in one process, while another one leaves things for them to find."""
    attempts = escape_attempts(canaries)
    with host.submission_process() as other, host.submission_process() as process:
        prepare(other)
        for attempt in attempts:
            if attempt.before and (said := shown(other, attempt.before)):
                raise StoppedError(Verdict.INFRASTRUCTURE, f"could not prepare {attempt.name}: {said}")
        prepare(process)
        yield from (run_attempt(process, attempt) for attempt in attempts)


def _line(*columns: str) -> str:
    *texts, mark = columns
    fitted = [plain(text)[:width].ljust(width) for text, width in zip(texts, COLUMNS, strict=False)]
    return "  ".join([mark, *fitted, plain(texts[-1])[:160]])
