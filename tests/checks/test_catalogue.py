"""Every exercise of the catalogue is in the file of its name, in the folder of its assignment."""

import re
from pathlib import Path

import pytest

from attnlib.checks import catalogue
from attnlib.checks.catalogue import ASSIGNMENTS

FOLDER = Path(catalogue.__file__).parent
OF_ASSIGNMENT = [(folder, exercise) for folder in ASSIGNMENTS.values() for exercise in folder.EXERCISES]


def file_name(exercise: str) -> str:
    """Return the name of an exercise in snake case. For the class MultiHeadAttention, a function has taken it."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", exercise).lower()
    return f"{name}_module.py" if exercise == "MultiHeadAttention" else f"{name}.py"


@pytest.mark.parametrize(("folder", "exercise"), OF_ASSIGNMENT, ids=lambda one: getattr(one, "name", None))
def test_an_exercise_is_in_the_file_of_its_name(folder, exercise):
    file = Path(folder.__file__).parent / file_name(exercise.name)
    assert f'\n    name="{exercise.name}",\n' in file.read_text(encoding="utf-8")


def test_a_folder_holds_no_other_exercises():
    defined = {file.name for file in FOLDER.rglob("*.py") if "\nEXERCISE = " in file.read_text(encoding="utf-8")}
    assert defined == {file_name(exercise.name) for _, exercise in OF_ASSIGNMENT}
