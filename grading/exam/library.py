"""The part of attnlib for students in an exam: it takes answers and draws figures, and judges nothing.

attnlib's functions are the answers to the exercises, and its checks know the mistakes. Students could reset a variable
that kept the checks quiet. So the wheel for an exam holds only the files below, checks that cannot judge
(`grading.exam.checks`), and the options of the exam's own questions.
"""

import ast
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlib import __version__
from attnlib.checks.catalogue import QUESTIONS
from attnlib.checks.options import option_texts
from grading.class_settings import toml
from grading.course import GradingError
from grading.exam import checks

# The wheel for an exam holds these files of attnlib, and no others.
KEPT = ("_arrays.py", "_extras.py", "_page_svg.py", "plotting.py", "py.typed", "checks/options.py", "checks/student.py")
CHECKS = Path(checks.__file__)
SCRIPTS = re.compile(r"^\[project\.scripts\]\n(?:.+\n)+", re.MULTILINE)  # which run a notebook with the ordinary checks
ASKS = re.compile(r"""(?:show_options|check_choice)\(["']([\w-]+)["']""")
NOT_SILENT = (
    "{}: the cell {!r} imports {}. This is withheld in an exam, because it contains answers or judges them. The "
    "notebook of an exam may import attnlib.plotting and, from attnlib.checks, {}"
)
ABOUT = "The part of attnlib that an exam needs: its checks take answers, and say nothing about them."


def require_silent(notebooks: Mapping[str, bytes]) -> list[str]:
    """Check that an exam's notebooks need no more of attnlib than students have, and return the exam's questions.

    Raises:
        GradingError: a cell imports something else, which would be an answer, or would say something about one.
    """
    asked = list[str]()
    for path, content in notebooks.items():
        for cell in json.loads(content)["cells"]:
            source = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
            if odd := sorted(set(_imported(source)) - _allowed()):
                raise GradingError(NOT_SILENT.format(path, cell.get("id"), ", ".join(odd), ", ".join(checks.__all__)))
            asked += ASKS.findall(source)
    return [name for name in QUESTIONS if name in asked]


def _allowed() -> set[str]:
    return {"attnlib.plotting", *(f"attnlib.checks.{name}" for name in checks.__all__)}


def _imported(source: str) -> Iterator[str]:
    """Yield what a cell imports of attnlib: modules, and names of the checks. A cell that is not Python yields none."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "attnlib")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnlib":
            plotting = node.module == "attnlib.plotting"
            yield from ("attnlib.plotting" if plotting else f"{node.module}.{alias.name}" for alias in node.names)


def reduce_to_exam(source: Path, asked: list[str]) -> None:
    """Reduce a copy of attnlib's source to what students have in an exam that asks these questions."""
    attnlib = source / "attnlib"
    kept = {name: (attnlib / name).read_bytes() for name in KEPT}
    kept["__init__.py"] = f'"""{ABOUT}"""\n\n__version__ = "{__version__}+exam"\n'.encode()
    kept["checks/__init__.py"] = CHECKS.read_bytes()
    kept["checks/questions.json"] = json.dumps({name: _question(name) for name in asked}, indent=1).encode()
    kept["checks/catalogue/options.toml"] = "\n".join(map(_texts, asked)).encode()
    shutil.rmtree(attnlib)
    (source / "README.md").write_text(f"# attnlib for an exam\n\n{ABOUT}\n", encoding="utf-8")
    project = source / "pyproject.toml"
    project.write_text(SCRIPTS.sub("", project.read_text(encoding="utf-8")), encoding="utf-8")
    for name, content in kept.items():
        (attnlib / name).parent.mkdir(parents=True, exist_ok=True)
        (attnlib / name).write_bytes(content)


def _texts(name: str) -> str:
    """Return the options of a question as a table of TOML."""
    return f"[{name}]\n" + "".join(f"{letter} = {toml(text)}\n" for letter, text in option_texts()[name].items())


def _question(name: str) -> dict[str, Any]:
    question = QUESTIONS[name]
    numbers = question.numbers
    sets = [dict(one) for one in numbers.sets] if numbers else []
    return {"options": question.options, "given": numbers.given if numbers else "", "sets": sets}
