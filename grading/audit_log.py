"""An append-only log of a class's gradings. Each entry holds the digest of the one before, so edits are detected.

An entry is written before the gradebook and the outcome. If the grader is killed, each of these is therefore either
what the entry says or what it was before. Once a run is complete, its secret seed is no longer needed, and is revealed,
so that anybody can draw the same inputs again. Until then the entries hold only its digest.

The digests have no key. Anyone who can write to the class's folder can forge a new, consistent log. Only the digest of
an entry that was written down elsewhere can reveal this.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from grading.safe_files import PRIVATE_MODE, SafeFolder
from grading.version import catalogue, engine

DIGEST_BEFORE_FIRST = "0" * 64  # stands for the digest of the entry before the first one, which does not exist
MAX_LOG_BYTES = 500_000_000  # An entry has about 600 bytes, so this is enough for a large class over many years.


@dataclass(frozen=True)
class Entry:
    """A line of the log: its number, its digest, and what it says, or nothing if a full disk or a power cut tore it."""

    number: int
    digest: str
    said: dict[str, Any]


class AuditLog:
    """The log of one assignment. Only a run that holds the class's lock may write to it."""

    def __init__(self, files: SafeFolder, file: Path) -> None:
        self._files, self._file = files, file
        self._last: bytes | None = None  # the last line, once it has been read
        self._whole = True

    def graded(
        self, *, student: str, submission: str, verdict: str, outcome: str, score: float, seed: int, sandboxed: bool
    ) -> None:
        """Record that a submission is about to be stored with this verdict and this score, in points.

        ``submission`` and ``outcome`` are digests.
        """
        said = {"student": student, "submission": submission, "verdict": verdict, "outcome": outcome}
        versions = {"engine": engine(), "catalogue": catalogue()}
        run = {"seed": _commitment(seed), "walled": sandboxed}
        self._append(said | {"score": round(score, 6)} | run | versions)

    def finished(self, seed: int, settled: Callable[[dict[str, Any]], bool]) -> None:
        """Record that the run is complete, and reveal its seed, if anybody was graded.

        ``settled`` tells whether the result that an entry announces has been stored. If a run was killed and the next
        one was for other students, some results have not been stored.
        """
        said = [entry.said for entry in self.entries()[0] if is_of_run(entry)]
        if said and "student" in said[-1]:
            last = {one["student"]: one for one in said if "student" in one}
            unsettled = [student for student, one in last.items() if not settled(one)]
            self._append({"revealed": f"{seed:032x}", "unsettled": unsettled})

    def noted(self, said: dict[str, Any]) -> None:
        """Record what a person has decided or changed: who did it, what it was, and why."""
        assert not {"student", "revealed"} & said.keys()
        self._append(said)

    def erase(self, chosen: Callable[[Entry], bool], by: str, why: str) -> int:
        """Replace what entries say by their digests, record who did it and why, and return how many there were."""
        entries, lines = self.entries()[0], self._read().splitlines()
        erased = [entry for entry in entries if chosen(entry)]
        if not erased:
            return 0
        for entry in erased:
            stub = {"previous": entry.said["previous"], "erased": entry.digest}
            lines[entry.number - 1] = json.dumps(stub).encode()
        self._files.write(self._file, b"".join(line + b"\n" for line in lines), PRIVATE_MODE)
        self._last = None
        self.noted({"erasure": len(erased), "by": by, "why": why})
        return len(erased)

    def entries(self) -> tuple[list[Entry], list[str]]:
        """Return the entries, and what is wrong with their order."""
        lines = self._read().splitlines()
        entries, wrong, previous = [], [], DIGEST_BEFORE_FIRST
        for number, line in enumerate(lines, 1):
            entry = Entry(number, _digest(line), _said(line))
            if entry.said and entry.said.get("previous") != previous:
                wrong.append(
                    f"entry {number} does not follow the one before it: an entry was changed, removed or moved"
                )
            entries.append(entry)
            previous = entry.digest
        return entries, wrong

    def _append(self, said: dict[str, Any]) -> None:
        end = self._end()
        previous = _digest(end) if end else DIGEST_BEFORE_FIRST
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"previous": previous, "time": time, **said}, ensure_ascii=False).encode()
        torn = b"" if self._whole else b"\n"
        # If the disk is full, only a part of the line may be written, and the end has to be read again.
        self._last = None
        self._files.append(self._file, torn + line + b"\n", PRIVATE_MODE)
        self._last, self._whole = line, True

    def _end(self) -> bytes:
        """Return the last line, and remember whether it is whole."""
        if self._last is None:
            content = self._read()
            self._whole = not content or content.endswith(b"\n")
            self._last = content.splitlines()[-1] if content else b""
        return self._last

    def _read(self) -> bytes:
        try:
            return self._files.read(self._file, MAX_LOG_BYTES)
        except FileNotFoundError:
            return b""


def is_of_run(entry: Entry) -> bool:
    """Tell whether an entry comes from a run: what a person changed is not, nor is a line that was cut off."""
    return bool({"student", "revealed"} & entry.said.keys())


def allowed(entries: Sequence[Entry]) -> dict[str, list[dict[str, Any]]]:
    """Return, for each student, the entries that the stored outcome and score may match.

    That is the last entry and, if its run was not finished, those before it as well.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if "student" in entry.said:
            found.setdefault(str(entry.said["student"]), [{}]).append(entry.said)
        elif "revealed" in entry.said:
            for student in found.keys() - set(_texts(entry.said.get("unsettled"))):
                found[student] = found[student][-1:]
    return found


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _digest(line: bytes) -> str:
    """Return the digest of a line: that of the original one, if what it said was erased, and nothing else is there."""
    said = _said(line)
    return str(said["erased"]) if said.keys() == {"previous", "erased"} else sha256(line).hexdigest()


def _said(line: bytes) -> dict[str, Any]:
    """Return the entry in a line, or an empty dict if there is none."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) and isinstance(said.get("previous"), str) else {}


def _commitment(seed: int) -> str:
    return sha256(f"{seed:032x}".encode()).hexdigest()
