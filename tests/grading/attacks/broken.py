"""Honest but broken, or not quite so honest, notebooks and files: what was not done wrong earns what it earns."""
# ruff: noqa: E501 (the lines are the attackers' own)

import json
import os
from pathlib import Path
from typing import Any

from attacks.case import Case
from attacks.course import NAME, RIGHT, submission

ALL = ("softmax", "dot", "choice", "attention")


def _text(file: Path) -> str:
    return json.dumps(submission(RIGHT))


def _written(text: str | bytes) -> Any:
    def put(file: Path) -> None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    return put


def _linked(file: Path) -> None:
    """Have the notebook be a link to that of somebody else."""
    file.symlink_to(file.parents[2] / "right" / NAME / f"{NAME}.ipynb")


def _folder_linked(file: Path) -> None:
    """Have the student's folder lead to that of somebody else."""
    file.parent.rmdir()
    file.parent.symlink_to(file.parents[2] / "right" / NAME)


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _folder(file: Path) -> None:
    file.mkdir()


def _device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _hole(file: Path) -> None:
    with file.open("wb") as stream:
        stream.write(b"{")
        stream.truncate(100_000_000)


def _gradebook(file: Path) -> None:
    """Bring files by the names of what the grader writes, beside a right notebook."""
    file.write_text(_text(file))
    for name in (
        "gradebook.db",
        "seed",
        f"{NAME}.html",
        ".unfinished",
        "timestamp.txt",
        "attnlib.py",
        "sitecustomize.py",
    ):
        (file.parent / name).write_text("1 / 0")
    (file.parent / "outcomes").symlink_to("/etc")


def _closed(file: Path) -> None:
    file.write_text(_text(file))
    file.chmod(0)


def _many_cells(notebook: dict[str, Any]) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}
    notebook["cells"] += [cell | {"id": f"n{n}"} for n in range(10_000)]


def _same_ids(notebook: dict[str, Any]) -> None:
    """Have every cell bear the same id, and its own name."""
    for cell in notebook["cells"]:
        cell["id"] = "same"


def _strange_names(notebook: dict[str, Any]) -> None:
    """Have cells of one's own with names and ids of strange characters."""
    for name in ("../../x", "\ud800", "\x00", "a" * 10_000, "<script>", "softmax\u200b", "\u202e"):
        given = {"grade_id": name, "grade": True, "points": float("1e308"), "solution": False, "schema_version": 3}
        cell = {"cell_type": "code", "id": name, "metadata": {"nbgrader": given}, "source": "1", "outputs": []}
        notebook["cells"].append(cell | {"execution_count": None})


def _strange_metadata(notebook: dict[str, Any]) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    notebook["metadata"] |= {"kernelspec": deep, "language_info": 3, "widgets": {"x": deep}}
    for cell in notebook["cells"]:
        cell["metadata"] |= {
            "tags": {"a": 1},
            "collapsed": deep,
            "nbgrader": cell["metadata"]["nbgrader"] | {"points": deep},
        }


CASES = (
    Case("unwritten", "leaves every answer as it was handed out", {name: "raise NotImplementedError" for name in RIGHT},
         base="right", loses=ALL, harmless=True),
    Case("empty", "leaves every answer empty", dict.fromkeys(RIGHT, ""), base="right", loses=ALL, harmless=True),
    Case("syntax-error", "has a syntax error in one answer", {"softmax": "def softmax(x:\n"}, base="right",
         loses=("softmax",), verdicts=("student-error",), harmless=True),
    Case("raises", "has an answer that raises", {"dot": "def dot(query, key):\n    return query @ key"}, base="right",
         loses=("dot",), harmless=True),
    Case("breaks-before", "has a cell of its own that raises before the answers", {"first": "1 / 0"}, base="right",
         verdicts=("student-error",), harmless=True),
    Case("returns-none", "forgets to return", {"softmax": "def softmax(x, axis=-1):\n    np.exp(x)"}, base="right",
         loses=("softmax",), harmless=True),
    Case("returns-lists", "returns lists where arrays are asked for",
         {"softmax": RIGHT["softmax"].replace("return ", "return np.ndarray.tolist(") + ")"}, base="right",
         loses=("softmax",), harmless=True),
    Case("other-library", "answers in torch where NumPy is asked for",
         {"dot": "def dot(query, key): return torch.tensor(query) @ torch.tensor(key).mT"}, base="right", loses=("dot",),
         harmless=True),
    Case("imports-edited", "imports modules that do not exist", {"imports": "import tensorflow as np"}, base="right",
         harmless=True),
    Case("prints-in-answers", "prints and warns in its answers", {"dot": RIGHT["dot"] + """
import warnings
right = dot
def dot(query, key):
    print("x" * 10_000); warnings.warn("odd")
    return right(query, key)"""}, base="right", harmless=True),
    Case("changes-settings", "makes every warning and every floating-point error of NumPy raise",
         {"first": "import warnings, numpy as np, torch\nwarnings.simplefilter('error')\nnp.seterr(all='raise')\n"
          "torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)"}, base="right", harmless=True),
    Case("random-seeds", "sets every seed there is", {"first": "import numpy as np, random, torch\nnp.random.seed(0); "
         "random.seed(0); torch.manual_seed(0)"}, base="right", harmless=True),
    Case("no-file", "hands in nothing", put=lambda file: None, base="right", loses=ALL, verdicts=("missing",)),
    Case("empty-file", "hands in an empty file", put=_written(""), loses=ALL, verdicts=("unreadable",)),
    Case("half-a-file", "hands in half a notebook", put=lambda file: _written(_text(file)[:900])(file), loses=ALL,
         verdicts=("unreadable",)),
    Case("other-file", "hands in a PDF under a notebook's name", put=_written(b"%PDF-1.7\n\xff\xfe\x00" * 100), loses=ALL,
         verdicts=("unreadable",)),
    Case("deep-file", "hands in lists within lists", put=_written("[" * 500_000), loses=ALL, verdicts=("unreadable",)),
    Case("deep-cells", "hands in cells within cells", put=_written('{"cells":' * 100_000), loses=ALL, verdicts=("unreadable",)),
    Case("huge-file", "hands in a hundred megabytes", put=_hole, loses=ALL, verdicts=("unreadable",)),
    Case("pipe", "hands in a pipe that nobody writes to", put=_pipe, loses=ALL, verdicts=("missing", "unreadable")),
    Case("folder", "hands in a folder under the notebook's name", put=_folder, loses=ALL, verdicts=("missing", "unreadable")),
    Case("device", "hands in a link to an endless device", put=_device, loses=ALL, verdicts=("missing", "unreadable")),
    Case("link", "hands in a link to another student's notebook", put=_linked, loses=ALL, verdicts=("missing", "unreadable")),
    Case("linked-folder", "hands in a link to another student's folder", put=_folder_linked, loses=ALL,
         verdicts=("missing", "unreadable")),
    Case("graders-files", "hands in files under the names of those that the grader writes", put=_gradebook, base="right"),
    Case("many-cells", "has ten thousand cells", edit=_many_cells, loses=ALL, verdicts=("unreadable",)),
    Case("same-ids", "has the same id in every cell", edit=_same_ids, base="right"),
    Case("strange-names", "has cells with strange names", edit=_strange_names, base="right"),
    Case("strange-metadata", "has metadata of strange types", edit=_strange_metadata, base="right"),
    Case("ünï cødé 学生 '\"&<b>", "has a name with many kinds of characters", base="right"),
)  # fmt: skip
