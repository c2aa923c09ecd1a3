"""An attempt to escape from the sandbox: what is tried, what is expected, and what happened."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import getsource
from typing import Any

from grading.sandbox.failures import StoppedError
from grading.sandbox.selftest.attempts import calls, files, harness, network, processes
from grading.sandbox.submission_process import SubmissionProcess
from grading.verdict import Verdict

HELD = "refused"


@dataclass(frozen=True)
class Attempt:
    """An attempt to escape: a function of :mod:`grading.sandbox.selftest.attempts`, and what it is called with.

    ``before`` runs first, in another process, which stays alive.
    """

    family: str
    name: str
    tried: str
    function: str
    arguments: Mapping[str, Any]
    before: str = ""


@dataclass(frozen=True)
class AttemptResult:
    """The result of an attempt of any kind, and whether it is as expected."""

    family: str
    name: str
    tried: str
    expected: str
    happened: str
    held: bool


def prepare(process: SubmissionProcess) -> None:
    """Define the functions of all attempts in a submission's process."""
    lines = ["import types", getsource(harness)]
    for module in (files, network, processes, calls):
        name = module.__name__.rpartition(".")[2]
        lines += [f"{name} = types.ModuleType({name!r})", f"exec({getsource(module)!r}, {name}.__dict__)"]
    said = shown(process, "\n".join(lines))
    if said:
        raise StoppedError(Verdict.INFRASTRUCTURE, f"could not be prepared: {said}")


def run_attempt(process: SubmissionProcess, attempt: Attempt) -> AttemptResult:
    """Run an attempt in a process that is prepared. An attempt that reports nothing counts as a successful escape."""
    try:
        said = shown(process, f"attempt({attempt.function}(**{dict(attempt.arguments)!r}))")
    except StoppedError as stop:
        said = f"{stop.verdict}: {stop}"
    happened, held = _understood(said)
    return AttemptResult(attempt.family, attempt.name, attempt.tried, HELD, happened, held)


def _understood(said: str) -> tuple[str, bool]:
    try:
        told = json.loads(said)
        reached, count = str(told["reached"]), int(told["tried"])
    except (ValueError, KeyError, TypeError):
        return f"could not be tried: {said.strip()[-160:] or 'nothing was said'}", False
    if not count:
        return "nothing was tried", False
    return (f"reached {reached}", False) if reached else (f"{count} refused" if count > 1 else HELD, True)


def shown(process: SubmissionProcess, source: str) -> str:
    """Run a cell, and return what it printed, and the error that it raised."""
    outputs = [answer["output"] for answer in process.ask({"run": source}) if "output" in answer]
    return "".join(_text(output) for output in outputs)


def _text(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return str(output.get("text", ""))


def missed(found: Sequence[AttemptResult]) -> list[AttemptResult]:
    """Return the results that are not as expected."""
    return [each for each in found if not each.held]
