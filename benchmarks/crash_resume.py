"""A run that is killed at a random moment and goes on has to leave the same gradebook as one that nobody disturbed."""

import json
import random
import re
import signal
import sqlite3
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from contenders import ROOT, Contender, environment, run
from tqdm import tqdm

SEED = "0123456789abcdef" * 2  # of the runs that are compared: the inputs are drawn from it
DRAWN = re.compile(r"[0-9a-f]{32}")  # an id that nbgrader draws
EXIT_TIMEOUT = 10  # seconds that the processes of a killed run may take to be gone

Contents = dict[str, list[str]]  # the rows of each table, as text


@dataclass(frozen=True)
class Killed:
    """One run that was killed: after so many seconds, with so many graded, and what was wrong afterwards."""

    seconds: float
    graded: int
    left_behind: int
    differences: tuple[str, ...]


def kill(contender: Contender, total: int, kills: int) -> tuple[float, list[Killed]]:
    """Run once undisturbed, then kill and resume; return the seconds of the first, and what came of the others.

    Half of the moments lie anywhere in a run, the others after the first submission was graded.
    """
    seconds = _undisturbed(contender, total)
    wanted = contents(contender.database), outcomes(contender)
    chance, found = random.Random(0), []
    for number in tqdm(range(kills), desc="killed and resumed", unit="run", dynamic_ncols=True):
        seed(contender)
        after = chance.uniform(0, seconds) if number % 2 else None
        moment, graded, left = _killed(contender, after, chance)
        run(contender, total, "resumed")
        found.append(
            Killed(moment, graded, left, _differences(wanted, (contents(contender.database), outcomes(contender))))
        )
    return seconds, found


def _undisturbed(contender: Contender, total: int) -> float:
    seed(contender)
    return run(contender, total, "undisturbed").seconds


def seed(contender: Contender) -> None:
    """Make the class ready for a run, with a secret that is always the same."""
    contender.reset()
    file = contender.folder / "reports" / contender.assignment / "seed"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SEED, encoding="ascii")
    file.chmod(0o600)


def _killed(contender: Contender, after: float | None, chance: random.Random) -> tuple[float, int, int]:
    """Start a run and kill it; return when, how many were graded then, and how many processes outlived it."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(contender.command, cwd=ROOT, env=environment(), stdout=quiet, stderr=quiet)
    begin = time.perf_counter()
    try:
        if after is None:
            while process.poll() is None and not contender.graded():
                time.sleep(0.005)
            after = time.perf_counter() - begin + chance.uniform(0, 1)
        process.wait(max(0.0, begin + after - time.perf_counter()))
    except subprocess.TimeoutExpired:
        pass  # which is what should happen: it is not over yet
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=EXIT_TIMEOUT)
    return after, contender.graded(), len(alive)


def outcomes(contender: Contender) -> Contents:
    """Return the verdicts, by student."""
    return {
        file.stem: [json.dumps(json.loads(file.read_text()))] for file in sorted(contender.folder.glob(contender.done))
    }


def contents(database: Path) -> Contents:
    """Return every row of every table, without moments in time; in place of a drawn id stands the row that has it."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {name: _Table(connection, name) for name in names}
    return {name: sorted(repr(table.meaning(row, tables)) for row in table.rows) for name, table in tables.items()}


class _Table:
    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        self.columns = [column["name"] for column in columns if "DATE" not in column["type"].upper()]
        keys = connection.execute(f'PRAGMA foreign_key_list("{name}")').fetchall()
        self.elsewhere = {key["from"]: key["table"] for key in keys}
        self.rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        self._by_id = {row["id"]: row for row in self.rows if "id" in row.keys()}  # noqa: SIM118 (a row is no dictionary)

    def meaning(self, row: sqlite3.Row, tables: dict[str, "_Table"]) -> tuple[object, ...]:
        """Return the values of a row; in place of a reference the values of the row that is referred to."""
        values: list[object] = []
        for name in self.columns:
            value, elsewhere = row[name], tables.get(self.elsewhere.get(name, ""))
            if elsewhere is not None and value is not None:
                values.append((name, elsewhere.meaning(elsewhere._by_id[value], tables)))
            elif not (name == "id" and DRAWN.fullmatch(str(value))):
                values.append((name, value))
        return tuple(values)


def _differences(wanted: tuple[Contents, Contents], found: tuple[Contents, Contents]) -> tuple[str, ...]:
    """Return the names of the tables, and of the students' verdicts, that are not the same."""
    pairs = [(a, b, name) for a, b in zip(wanted, found, strict=True) for name in sorted(a.keys() | b.keys())]
    return tuple(name for a, b, name in pairs if a.get(name) != b.get(name))
