"""Gives the pages that have an explorer its modules: the only ones that load them. An extension of Sphinx.

The modules go into the page in one piece. Browsers load none from another file while a page is opened as a file, and
that is how many open the book first. What is printed keeps the tables for those without JavaScript.
"""

import re
from pathlib import Path
from typing import Any

STATIC = Path(__file__).with_name("_static")
ELEMENTS = {"attention-explorer": "explorer/explorer.js", "attention-heads": "explorer/heads.js"}
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Ask Sphinx to be called for each page."""
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Add modules and style to a page that has an element."""
    wanted = [path for tag, path in ELEMENTS.items() if f"<{tag}>" in context.get("body", "")]
    if wanted and app.builder.name == "html":
        app.add_css_file("explorer/explorer.css")
        app.add_js_file(None, body=in_one_piece(*wanted), type="module")


def in_one_piece(*paths: str) -> str:
    """Return modules as one, each after those it imports. Their names at the top must differ; an import is one line."""
    found: dict[Path, str] = {}  # in the order in which they have to run
    for path in paths:
        collect(STATIC / path, found)
    return "\n".join(found.values())


def collect(path: Path, found: dict[Path, str]) -> None:
    """Add a module to those found, after the ones that it imports."""
    text = path.read_text(encoding="utf-8")
    for other in IMPORT.findall(text):
        if path.with_name(other) not in found:
            collect(path.with_name(other), found)
    found[path] = re.sub(r"^export (?=\w)", "", IMPORT.sub("", text), flags=re.MULTILINE)
