"""A test of every mistake that the checks know."""

from collections.abc import Callable
from typing import Any

import pytest

from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.exercise import Mistake


def of_every_mistake(test: Callable[[str, Mistake], None]) -> Any:
    """Turn a test of one mistake into one of all that an exercise knows; what fails says of which it is.

    A test each would be twelve thousand, and to keep their books takes longer than they do.
    """

    @pytest.mark.parametrize("name", CATALOGUE, scope="module")  # runs an exercise's tests together: they share reports
    def of_all(name: str) -> None:
        for mistake in CATALOGUE[name].mistakes:
            try:
                test(name, mistake)
            except Exception as error:
                error.add_note(f"The mistake is {name}: {mistake.id}.")
                raise

    return of_all
