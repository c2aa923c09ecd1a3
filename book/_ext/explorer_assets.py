"""Gives the pages that have an explorer its modules: the only ones that load them. An extension of Sphinx.

The modules go into the page in one piece. Browsers load none from another file while a page is opened as a file, and
that is how many open the book first. What is printed keeps the tables for those without JavaScript.

The weights of all heads of a model are as much as the rest of a page. They get a script of their own, which runs before
the modules do, so that the text need not wait for them.
"""

import json
import re
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parents[1] / "_static"
ELEMENTS = {"attention-explorer": "explorer/explorer.js", "attention-heads": "explorer/heads.js"}
HEADS = re.compile(r'(?<=<attention-heads><script type="application/json">).*?(?=</script>)', re.DOTALL)
FILL = """document.querySelectorAll("attention-heads > script").forEach((one, n) => (one.textContent = weights[n]));"""
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
        context["body"] = with_weights_apart(app, f"explorer/{name.replace('/', '-')}.js", context["body"])
        app.add_js_file(None, body=in_one_piece(*wanted), type="module")


def with_weights_apart(app: Any, path: str, body: str) -> str:
    """Return the body of a page without the weights of heads; they go into a script that fills them in."""
    weights = HEADS.findall(body)
    if not weights:
        return body
    script = Path(app.outdir, "_static", path)
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f"{{ const weights = {json.dumps(weights)};\n{FILL} }}\n", encoding="utf-8")
    app.add_js_file(path, priority=400)  # before the modules
    return HEADS.sub("", body)


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
