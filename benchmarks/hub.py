"""Try the course on a real JupyterHub with nbgrader's exchange: two students, an instructor, and the grader's account.

`sudo env PATH="$PATH" .venv/bin/python benchmarks/hub.py --create-accounts` creates four accounts and two groups
on this machine, starts a hub with the files in `deploy/jupyterhub/`, does there what the book's page *Run it on a
server* says, and tries what a student must not be able to do. It takes five minutes, and removes the accounts and their
files at the end. It needs Linux, root, JupyterHub in the same environment, and configurable-http-proxy on the PATH.
"""

import argparse
import csv
import json
import re
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hub_machine import (
    ACCOUNTS,
    ADA,
    BELA,
    BIN,
    GRADER,
    ROOT,
    accounts,
    free_port,
    hub,
    prepare,
    require_machine,
    require_readable,
)
from hub_session import Session

ASSIGNMENT, NOTEBOOK = "02-self-attention", "self-attention.ipynb"
NAMES = "id,first_name,last_name"
TIME_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
GRADING = f"{BIN}/python -m grading"
FORBIDDEN = (403, 404)


class Trial:
    """The checks on the hub, printed one per line; ``failed`` counts those that do not hold."""

    def __init__(self) -> None:
        self.failed, self._begun = 0, time.monotonic()

    def check(self, claim: str, holds: bool, found: object = "") -> None:
        """Print a claim, and whether it holds; if it does not, print what was found."""
        self.failed += not holds
        print(f"{time.monotonic() - self._begun:5.0f} s  {'ok    ' if holds else 'FAILED'}  {claim}", flush=True)
        if not holds:
            print(f"                {found}", flush=True)

    def done(self, claim: str, who: Session, command: str, server: str = "") -> str:
        """Run a command on a server, check that it succeeds, and return what it prints."""
        status, said = who.run(command, server)
        self.check(claim, status == 0, said)
        return said


def open_servers(emmy: Session, ada: Session, bela: Session, trial: Trial) -> None:
    """Everybody starts a server; the instructor starts the grader's, which students may not do."""
    trial.check("an instructor starts the grader's server", emmy.start(GRADER) not in FORBIDDEN)
    for student in (ada, bela):
        trial.check(f"{student.name} starts a server", student.start(student.name) not in FORBIDDEN)
        status = student.start(GRADER), student.call("GET", f"/user/{GRADER}/api/contents").status_code
        trial.check(
            f"{student.name} may neither start nor open the grader's server", set(status) <= {*FORBIDDEN}, status
        )
    who = emmy.run("id --user --name", GRADER)[1], ada.run("id --user --name")[1]
    trial.check("each server runs as its own account", who == (GRADER, ADA), who)


def hand_out(emmy: Session, ada: Session, bela: Session, trial: Trial) -> None:
    """The grader sets up a class and releases an assignment; one student fetches it in the list, one in a terminal."""
    due = (datetime.now(UTC) + timedelta(days=1)).strftime(TIME_FORMAT)
    about = f'--name Attention --term Trial --penalty 0.1 --roster ~/students.csv --due {ASSIGNMENT}="{due}"'
    emmy.run(f"printf '{NAMES}\\n{ADA},Ada,Lovelace\\n{BELA},Bela,Bartok\\n' > ~/students.csv", GRADER)
    trial.done("the grader sets up a class", emmy, f'{GRADING} new-course "$ATTENTION_CLASS" {about}', GRADER)
    trial.done("the sandbox holds", emmy, f"{GRADING} selftest", GRADER)
    release = f"{GRADING} release {ASSIGNMENT} && {BIN}/nbgrader release_assignment {ASSIGNMENT}"
    trial.done("the grader releases the assignment", emmy, release, GRADER)
    for claim, action, status in (
        ("sees the assignment in the list", "", "released"),
        ("fetches it", "fetch", "fetched"),
    ):
        listed = [(one["assignment_id"], one["status"]) for one in ada.assignments(action, ASSIGNMENT)]
        trial.check(f"a student {claim}", listed == [(ASSIGNMENT, status)], listed)
    trial.done("another one fetches it in a terminal", bela, f"nbgrader fetch_assignment {ASSIGNMENT}")


def hand_in(ada: Session, bela: Session, trial: Trial) -> None:
    """A student solves a part, submits, solves the rest, and submits again; another one solves a part."""
    path = f"{ASSIGNMENT}/{NOTEBOOK}"
    given = ada.read(path)
    whole = _solved(given, json.loads((ROOT / "solutions" / path).read_text(encoding="utf-8")))
    part = given | {"cells": whole["cells"][:10] + given["cells"][10:]}
    bela.save(path, part)
    for notebook in (part, whole):
        ada.save(path, notebook)
        ada.assignments("submit", ASSIGNMENT)
    submissions = [one for each in ada.assignments() for one in each.get("submissions", ())]
    trial.check("a student submits twice", len(submissions) == 2, submissions)
    execute = f"jupyter nbconvert --execute --to notebook --stdout {path}"
    said = trial.done("the notebook runs in a student's server", ada, f"{execute} | grep --count '✓'")
    trial.check("and its checks say what is right", int(said.split()[-1]) > 3, said)


def _solved(given: dict[str, Any], solution: dict[str, Any]) -> dict[str, Any]:
    """Return a student's notebook with the answers of the instructor's, by the names of the cells."""
    about = [(cell["metadata"].get("nbgrader", {}), cell["source"]) for cell in solution["cells"]]
    answers = {nbgrader["grade_id"]: source for nbgrader, source in about if nbgrader.get("solution")}
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in given["cells"]]
    cells = [
        cell | {"source": answers.get(name, cell["source"])} for name, cell in zip(names, given["cells"], strict=True)
    ]
    return given | {"cells": cells}


def attack(place: Path, ada: Session, bela: Session, trial: Trial) -> None:
    """A student tries what must not work, and submits under another name, which nbgrader allows."""
    exchange = place / "exchange" / "attention"
    for what, command in {
        "list what was submitted": f"ls {exchange}/inbound",
        "read a submission whose name is not known": f"cat {exchange}/inbound/{ADA}+*/{NOTEBOOK}",
        "read the folder of the class": f"ls {place}/class",
        "read the gradebook": f"cat {place}/class/gradebook.db",
        "read the solutions": f"cat {place}/attention/solutions/{ASSIGNMENT}/{NOTEBOOK}",
        "read another student's notebook": f"cat /home/{ADA}/{ASSIGNMENT}/{NOTEBOOK}",
        "change what is released": f"touch {exchange}/outbound/{ASSIGNMENT}/{NOTEBOOK}",
        "replace the folder of the course": f"mv {exchange} {exchange}-away",
        "replace the folder of the submissions": f"mv {exchange}/inbound {exchange}/away",
        "read the secrets of the hub": f"cat {place}/hub/jupyterhub_cookie_secret",
    }.items():
        status, said = bela.run(command)
        trial.check(f"a student cannot {what}", status != 0, said)
    trial.done("(a student can submit as somebody else)", ada, f"nbgrader submit {ASSIGNMENT} --student {BELA}")


def collect(place: Path, emmy: Session, bela: Session, trial: Trial) -> None:
    """The due date passes, a student submits late and backdates a copy, and the grader collects."""
    inbound = place / "exchange" / "attention" / "inbound"
    time.sleep(2)
    now = datetime.now(UTC)
    due, early = now.strftime(TIME_FORMAT), (now - timedelta(hours=1)).strftime(TIME_FORMAT)
    time.sleep(2)
    set_due = f'{BIN}/nbgrader db assignment add {ASSIGNMENT} --duedate "{due}"'
    trial.done("the due date passes", emmy, set_due, GRADER)
    trial.done("a student submits late", bela, f"nbgrader submit {ASSIGNMENT}")
    copy = f"cp --recursive {ASSIGNMENT} '{inbound}/{BELA}+{ASSIGNMENT}+{early}+x'"
    trial.done("(a student can backdate a submission)", bela, copy)
    said = trial.done("the grader collects", emmy, f"{GRADING} collect {ASSIGNMENT} {inbound} --from nbgrader", GRADER)
    trial.check("what was submitted as somebody else is refused", f"owned by {ADA}" in said, said)
    trial.check("what was backdated is reported", f"{early}+x" in said and "the time is wrong" in said, said)


def grade(place: Path, emmy: Session, trial: Trial) -> None:
    """The grader grades the class, whose marks are those that the submissions deserve."""
    trial.done("the grader grades", emmy, f"{GRADING} run {ASSIGNMENT}", GRADER)
    table = place / "class" / "reports" / ASSIGNMENT / "grades.csv"
    with table.open(newline="", encoding="utf-8") as stream:
        rows = {row["student"]: row for row in csv.DictReader(stream)}
    for student, when, score, penalty in ((ADA, "in time", "26.0", "0.0"), (BELA, "late by", "3.6", "0.4")):
        found = rows[student]["handed in"], rows[student]["score"], rows[student]["penalty"]
        trial.check(f"{student} was {when}", when in found[0] and found[1:] == (score, penalty), found)
    answer = emmy.call("GET", f"/user/{GRADER}/formgrader/api/assignments")
    listed = [one["num_submissions"] for one in answer.json() if one["name"] == ASSIGNMENT] if answer.ok else []
    trial.check("Formgrader shows two submissions", listed == [2], answer.text)


def give_back(place: Path, emmy: Session, ada: Session, bela: Session, trial: Trial) -> None:
    """The grader releases the feedback, and each student fetches a page of their own."""
    trial.done("the grader releases the feedback", emmy, f"{BIN}/nbgrader release_feedback {ASSIGNMENT}", GRADER)
    ada.assignments("fetch_feedback", ASSIGNMENT)
    trial.done("a student fetches it in a terminal", bela, f"nbgrader fetch_feedback {ASSIGNMENT}")
    status, said = bela.run(f"test -d {place}/exchange/attention/feedback && ls {place}/exchange/attention/feedback")
    trial.check("a student cannot list the pages of others", status == 2, said)  # what ls returns if it may not
    for student, points in ((ada, "26 / 29"), (bela, "3.6 / 29")):
        pages = student.run(f"find {ASSIGNMENT}/feedback -name '*.html'")[1].splitlines()
        texts = [re.sub(r"<style.*?</style>|<[^>]+>", " ", student.read(page), flags=re.DOTALL) for page in pages]
        found = [" ".join(text.split())[:500] for text in texts]
        trial.check(f"{student.name} reads {points} on a page", len(found) == 1 and points in found[0], found)


def main() -> int:
    """Try it, and return 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--create-accounts", action="store_true", help="create accounts here, and remove them at the end"
    )
    if not parser.parse_args().create_accounts:
        parser.error(f"this creates the accounts {', '.join(ACCOUNTS)} for some minutes: pass --create-accounts")
    proxy, port, trial = require_machine(), free_port(), Trial()
    with accounts() as passwords, tempfile.TemporaryDirectory(prefix="hub-", dir="/tmp") as folder:
        place = Path(folder)
        config = prepare(place, port, proxy)
        require_readable(place)
        with hub(config, port) as address:
            emmy, ada, bela = (Session(address, name, password) for name, password in passwords.items())
            trial.check("nobody signs in with a wrong password", not Session(address, ADA, "wrong").signed_in)
            open_servers(emmy, ada, bela, trial)
            hand_out(emmy, ada, bela, trial)
            hand_in(ada, bela, trial)
            attack(place, ada, bela, trial)
            collect(place, emmy, bela, trial)
            grade(place, emmy, trial)
            give_back(place, emmy, ada, bela, trial)
    return int(trial.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
