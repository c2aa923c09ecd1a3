"""Tests of the limits: a submission that takes too much of something, and the verdict that it leads to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grading.sandbox.execute import execute
from grading.sandbox.host import Host
from grading.sandbox.limits import MB, Limits
from grading.sandbox.selftest.attempt import AttemptResult
from grading.task import Result, Step, Task
from grading.verdict import Verdict

SMALL_LIMITS = Limits(cell=10, notebook=20, grace=0.3, memory=200 * MB, processes=12, files=48, restarts=0)
FILL = "import time\nheld = bytearray(150_000_000)\nfor i in range(0, len(held), 4096): held[i] = 1\n"


@dataclass(frozen=True)
class Excess:
    """Cells that take too much, the limits that they run under, and the expected result."""

    name: str
    tried: str
    expected: str
    cells: Sequence[str]
    limits: Limits = SMALL_LIMITS


def _many(grow: str, *, talk: str = "") -> str:
    """Return a cell that starts eight processes, each of which is within its own limit."""
    child = f"exec({grow!r})\n        time.sleep(20)\n        os._exit(0)"
    return (
        f"import os, mmap, time\nfor _ in range(8):\n    if not os.fork():\n        {child}\n"
        f"for _ in range(150):\n    time.sleep(0.05){talk}"
    )


def _short(**changes: Any) -> Limits:
    return replace(SMALL_LIMITS, **changes)


SHARED = "import time\nheld = mmap.mmap(-1, 150_000_000)\nfor i in range(0, len(held), 4096): held[i] = 1\n"
DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
FORKS = "import os, time\nfor _ in range(40):\n    if not os.fork(): time.sleep(9)"
FILES = "kept = [open('/dev/null') for _ in range(200)]"
LARGE = "with open('large', 'wb') as file:\n    for _ in range(9): file.write(b'x' * 1_000_000)"
DISK = "for i in range(9):\n    with open(f'/tmp/{i}', 'wb') as file: file.write(b'x' * 900_000)"
NODES = "import os\nfor i in range(20_000): os.close(os.open(f'/tmp/{i}', os.O_CREAT | os.O_WRONLY))"
FLOOD = """import json, os, stat, struct
output = {"output_type": "stream", "name": "stdout", "text": "x" * 500_000}
body = json.dumps({"output": output}).encode()
for name in range(3, 48):
    try: socket = stat.S_ISSOCK(os.fstat(name).st_mode)
    except OSError: continue
    while socket: os.write(name, struct.pack(">I", len(body)) + body)
"""
RAISE = "import resource\nfor n in range(16):\n    soft, hard = resource.getrlimit(n)\n    if hard >= 0:\n"
RAISE += "        try: resource.setrlimit(n, (hard, hard + 1))\n        except (ValueError, OSError): continue\n"
RAISE += "        print('raised', n)\nprint(resource.getrlimit(resource.RLIMIT_CPU)[1] > 0)"
PRINT = "print('x' * 90_000)"

EXCESSES = (
    Excess("cell time", "a loop that never ends", Verdict.TIMEOUT, ["while True: pass"], _short(cell=0.5)),
    Excess("deaf", "a loop that ignores interrupts", Verdict.TIMEOUT, [DEAF], _short(cell=0.5)),
    Excess("notebook time", "cells that together take too long", Verdict.TIMEOUT, ["import time; time.sleep(0.5)"] * 3,
           _short(notebook=1, clock=1)),
    Excess("processor time", "a process that never stops computing", Verdict.TIMEOUT, ["while True: pass"],
           _short(processor=1)),
    Excess("limits", "raising the limits again", "True", [RAISE]),
    Excess("memory", "one array", Verdict.OUT_OF_MEMORY, ["import numpy; numpy.ones(10**9)"]),
    Excess("memory of many", "processes that together fill the memory", Verdict.OUT_OF_MEMORY, [_many(FILL)]),
    Excess("shared memory", "memory that processes share", Verdict.OUT_OF_MEMORY, [_many(SHARED)]),
    Excess("memory and talk", "the same, printing without a pause", Verdict.OUT_OF_MEMORY,
           [_many(FILL, talk="; print('.', flush=True)")]),
    Excess("processes", "forty processes", "BlockingIOError", [FORKS]),
    Excess("open files", "two hundred files", "Too many open files", [FILES]),
    Excess("file size", "a file of nine megabytes", "OSError", [LARGE], _short(file_size=4 * MB)),
    Excess("disk", "files that together fill the disk", "No space left", [DISK], _short(file_size=4 * MB)),
    Excess("number of files", "twenty thousand files", "No space left", [NODES]),
    Excess("output of a cell", "two megabytes of text", Verdict.OUTPUT_LIMIT, ["print('x' * 2_000_000)"]),
    Excess("output of all", "text in every cell", Verdict.OUTPUT_LIMIT, [PRINT] * 4, _short(notebook_output=200_000)),
    Excess("channel", "megabytes past the limit on output", Verdict.OUTPUT_LIMIT, [FLOOD]),
    Excess("end", "ending the process", Verdict.CRASHED, ["import os; os._exit(0)"]),
)  # fmt: skip


def exceeded(host: Host, excess: Excess) -> AttemptResult:
    """Run cells that take too much, and return what happened."""
    steps = tuple(Step(str(i), source) for i, source in enumerate(excess.cells))
    happened = verdict(execute(host, Task(steps, excess.limits)))
    held = excess.expected in happened
    return AttemptResult("limit", excess.name, excess.tried, excess.expected, happened, held)


def verdict(result: Result) -> str:
    """Return in words what happened to cells: the verdict on the first that stopped, or else what was shown."""
    for stopped, _ in result.stops.values():
        return stopped
    if result.lost:
        return result.lost
    if result.cut:
        return Verdict.OUTPUT_LIMIT
    outputs = [output for i in sorted(result.outputs) for output in result.outputs[i]]
    for output in outputs:
        if output["output_type"] == "error":
            said = f"{output['ename']}: {output['evalue']}"[:120]
            return f"{Verdict.OUT_OF_MEMORY} ({said})" if "emory" in said else said
    return "".join(str(output.get("text", "")) for output in outputs).strip()[:120] or "nothing was refused"
