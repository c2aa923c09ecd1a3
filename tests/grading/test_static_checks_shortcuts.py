"""Shortcuts to every exercise: each earns nothing or is flagged. Answers of honest students are hardly ever flagged."""

import ast
import importlib
from functools import cache

import pytest
from attacks.shortcuts import CASES, SHORTCUTS, Shortcut, T
from honest import Written, other_answers, right_answers

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.evaluation import Evaluation
from grading.sandbox.inside import solver_guard
from grading.sandbox.inside.solver_guard import forbidding
from grading.static_checks.flags import _reachable, find_flags
from grading.static_checks.references import statements

WANTED = 0.01  # false flags, of all answers


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import what is forbidden, since only an imported function can be blocked. Other tests do not need it."""
    for module in (*solver_guard.PRELOAD, *solver_guard.LATE_MODULES):
        importlib.import_module(module)


def suspicious(exercise: str, name: str, source: str) -> list[str]:
    """Return why an answer is flagged."""
    flags = find_flags([("cell", source)], {name: CATALOGUE[exercise].forbidden})
    return [flag.why for flag in flags if flag.level == "suspicious"]


def earned(exercise: str, backend: str, implementation: object) -> tuple[float, str]:
    """Return what an answer scores while what would solve its exercise is forbidden, and what the check says."""
    evaluation = _evaluation(exercise, backend)
    with forbidding(CATALOGUE[exercise].forbidden):
        report = evaluation.of(implementation)
    return report.score, report.message


@cache
def _evaluation(exercise: str, backend: str) -> Evaluation:
    return Evaluation(CATALOGUE[exercise], backend, seed=0)


def test_there_are_many_and_of_every_kind():
    assert len(CASES) + len(SHORTCUTS) >= 90
    solved_elsewhere = {name for name, exercise in CATALOGUE.items() if exercise.forbidden}
    assert solved_elsewhere <= {shortcut.exercise for shortcut in SHORTCUTS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shortcut", SHORTCUTS, ids=lambda shortcut: f"{shortcut.exercise}: {shortcut.does}")
def test_no_shortcut_goes_unseen(shortcut: Shortcut):
    names: dict[str, object] = {"__name__": "cell"}
    source = T + shortcut.source
    flagged = suspicious(shortcut.exercise, "answer", source)
    try:
        exec(compile(source, "cell", "exec"), names)
        score, _ = earned(shortcut.exercise, shortcut.backend, names["answer"])
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
    kept = [texts[i] for i in sorted(_reachable(found, written.name)) if i < len(texts)]
    return "\n".join(dict.fromkeys([*imports, *kept]))


def false_flags(answers) -> tuple[int, list[str]]:
    """Return how many answers there are of which nobody can say that a shortcut was taken, and those flagged."""
    count, flagged = 0, []
    for written in answers:
        why = suspicious(written.exercise, written.name, cell(written))
        if why and "asks you to write" in earned(written.exercise, written.backend, written.implementation)[1]:
            continue  # it does what is forbidden, and a flag is right
        count += 1
        if why:
            flagged.append(f"{written.exercise}, {written.style}: {why[0]}")
    return count, flagged


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_right_answers_are_hardly_ever_flagged():
    count, flagged = false_flags(right_answers())
    assert count > 300
    assert len(flagged) <= WANTED * count, flagged


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wrong_answers_are_hardly_ever_flagged():
    count, flagged = false_flags(other_answers())
    assert count > 400
    assert len(flagged) <= WANTED * count, flagged
