"""An attack on what no longer exists would fail, and prove nothing: attacks name what there is, and would work."""

import re
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
from attacks.shortcuts import CASES as SHORTCUTS
from attacks.table import CASES

OURS = re.compile(r"(?<!vnd\.)\b(?:attnlib|grading)(?:\.(?!__)[a-zA-Z_]\w*)+")
ALIASES = re.compile(r'^(\w+) = sys\.modules\["([\w.]+)"\]', re.MULTILINE)
ATTRIBUTES = re.compile(r'sys\.modules\["([\w.]+)"\]\.(\w+)')
RESOLVE = """import pkgutil, sys
for name in sys.argv[1:]:
    try: pkgutil.resolve_name(name)
    except (ImportError, AttributeError) as error: print(name, error)
"""
LIBRARY = {
    case.name: case.cells
    for case in SHORTCUTS
    if "attnlib" in "".join(case.cells.values()) and "magic" not in case.name  # which only IPython runs
}


def names(source: str) -> set[str]:
    """Return the modules of ours that a cell names, and the attributes of them that it reads or replaces."""
    found = set(OURS.findall(source))
    found |= {f"{module}.{attribute}" for module, attribute in ATTRIBUTES.findall(source)}
    for alias, module in ALIASES.findall(source):
        found |= {f"{module}.{attribute}" for attribute in re.findall(rf"\b{alias}\.(\w+)", source)}
    return found


@pytest.mark.slow
def test_what_an_attack_names_exists():
    named = set(chain.from_iterable(names(source) for case in CASES.values() for source in case.cells.values()))
    assert {"grading.sandbox.inside.answers._as_message", "attnlib._numpy_kernels.softmax", "grading.judge"} <= named
    resolve = [sys.executable, "-c", RESOLVE, *sorted(named)]
    done = subprocess.run(resolve, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == ""


@pytest.mark.parametrize("name", LIBRARY)
def test_a_shortcut_through_the_library_works_where_nothing_is_withheld(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    there = {"np": np}
    for part in ("first", "softmax"):
        exec(LIBRARY[name].get(part, ""), there)
    x = np.log([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]])
    np.testing.assert_allclose(there["softmax"](x), [[1 / 8, 2 / 8, 5 / 8], [1 / 4, 1 / 4, 1 / 2]])
    np.testing.assert_allclose(there["softmax"](x, 0), [[1 / 2, 2 / 3, 5 / 7], [1 / 2, 1 / 3, 2 / 7]])
    for module in [module for module in sys.modules if module.partition(".")[0] == "mine"]:
        del sys.modules[module]
