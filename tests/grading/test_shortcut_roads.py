"""Short cuts to every exercise: each earns nothing or is flagged. And who writes an answer is hardly ever flagged."""

import ast
import importlib
from functools import cache

import pytest
from attacks.shortcuts import CASES, ROADS, Road, T
from honest import Written, other_answers, right_answers

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.examiner import Examination
from grading.mentions import statements
from grading.roads import _reached, other_roads
from grading.sandbox.inside import guard
from grading.sandbox.inside.guard import forbidding

for module in (*guard.PRELOAD, *guard.LATE):
    importlib.import_module(module)

WANTED = 0.01  # false flags, of all answers


def suspicious(exercise: str, name: str, source: str) -> list[str]:
    """Return why an answer is flagged."""
    flags = other_roads([("cell", source)], {name: CATALOGUE[exercise].forbidden})
    return [flag.why for flag in flags if flag.level == "suspicious"]


def earned(exercise: str, backend: str, implementation: object) -> tuple[float, str]:
    """Return what an answer scores while what would solve its exercise is forbidden, and what the check says."""
    examination = _examination(exercise, backend)
    with forbidding(CATALOGUE[exercise].forbidden):
        report = examination.of(implementation)
    return report.score, report.message


@cache
def _examination(exercise: str, backend: str) -> Examination:
    return Examination(CATALOGUE[exercise], backend, seed=0)


def test_there_are_many_and_of_every_kind():
    assert len(CASES) + len(ROADS) >= 90
    writing = {"attention_shapes", "attention_cost", "equivariance_gap"}  # nobody has these ready
    assert {road.exercise for road in ROADS} == set(CATALOGUE) - writing


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", ROADS, ids=lambda road: f"{road.exercise}: {road.does}")
def test_no_short_cut_goes_unseen(road: Road):
    names: dict[str, object] = {"__name__": "cell"}
    source = T + road.source
    flagged = suspicious(road.exercise, "answer", source)
    try:
        exec(compile(source, "cell", "exec"), names)
        score, _ = earned(road.exercise, road.backend, names["answer"])
    except (ImportError, OSError):
        score = 1.0  # what is not installed here has to be flagged
    assert flagged or score == 0


@cache
def _statements(source: str):
    return statements([("cell", source)]), [ast.unparse(one) for one in ast.parse(source).body]


def cell(written: Written) -> str:
    """Return the answer and what it uses, as a cell."""
    found, texts = _statements(written.source)
    imports = [text for text in texts if text.startswith(("import ", "from "))]
    kept = [texts[i] for i in sorted(_reached(found, written.name)) if i < len(texts)]
    return "\n".join(dict.fromkeys([*imports, *kept]))


def false_flags(answers) -> tuple[int, list[str]]:
    """Return how many answers there are of which nobody can say that a short cut was taken, and those flagged."""
    count, flagged = 0, []
    for written in answers:
        why = suspicious(written.exercise, written.name, cell(written))
        if why and "asks you to write" in earned(written.exercise, written.backend, written.implementation)[1]:
            continue  # it does what is forbidden, and a flag is right
        count += 1
        if why:
            flagged.append(f"{written.exercise}, {written.style}: {why[0]}")
    return count, flagged


@pytest.mark.filterwarnings("ignore")
def test_right_answers_are_hardly_ever_flagged():
    count, flagged = false_flags(right_answers())
    assert count > 300
    assert len(flagged) <= WANTED * count, flagged


@pytest.mark.filterwarnings("ignore")
def test_wrong_answers_are_hardly_ever_flagged():
    count, flagged = false_flags(other_answers())
    assert count > 400
    assert len(flagged) <= WANTED * count, flagged
