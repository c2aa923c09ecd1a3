"""A Sphinx extension: give the pages that have an explorer its style and its script, and no other page.

The explorer is written as modules, in ``_explorer``. While a page is opened as a file, which is how many open the book
first, browsers load no module from another file. So the modules become one script, which all pages share. In print, the
tables that Python wrote are kept.

The weights of all heads of a model are as large as the rest of a page. They get a script of their own, which runs
before the explorer's, so that the text need not wait for them.

The translator of dates is fetched only when the reader asks for it: its script, its weights and its style.
"""

import gzip
import json
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

EXPLORER_SOURCES = Path(__file__).parents[1] / "_explorer"
ELEMENTS = {"attention-explorer": "explorer.js", "attention-heads": "heads.js"}
EXPLORER_SCRIPT = "explorer/explorer.js"
EXPLORER_STYLE = "explorer.css"
TRANSLATOR = re.compile(r'(?<=<attention-dates)><script type="application/json">(.*?)</script>', re.DOTALL)
TRANSLATOR_SCRIPT = "explorer/dates.js"
HEAD_WEIGHTS = re.compile(r'(?<=<attention-heads><script type="application/json">).*?(?=</script>)', re.DOTALL)
FILL_HEADS = (
    """document.querySelectorAll("attention-heads > script").forEach((one, n) => (one.textContent = weights[n]));"""
)
JS_IMPORT = re.compile(r'^import [^;]*? from "\./([\w.]+)"[^;\n]*;\n', re.MULTILINE)
JSON_IMPORT = re.compile(r'^import (\w+) from "\./([\w.]+\.json)"[^;\n]*;\n', re.MULTILINE)
JS_COMMENT = re.compile(
    r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)[ \t]*\n", re.MULTILINE | re.DOTALL
)  # on lines of its own
JS_EXPORT = re.compile(r"^export (?=\w)", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Ask Sphinx to be called once, and then for each page."""
    app.connect("builder-inited", write_script)
    app.connect("html-page-context", add_to_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_script(app: Sphinx) -> None:
    """Write the script before any page, because Sphinx adds a digest of it to its address there."""
    if app.builder.name == "html":
        _write(app, EXPLORER_SCRIPT, bundle(EXPLORER_SOURCES / name for name in ELEMENTS.values()))


def add_to_page(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Add script and style to a page that has an element."""
    body = context.get("body", "")
    if app.builder.name != "html":
        return
    if any(f"<{element}>" in body for element in ELEMENTS):
        app.add_css_file(EXPLORER_STYLE)
        app.add_js_file(EXPLORER_SCRIPT)
        context["body"] = with_weights_apart(app, f"explorer/{page.replace('/', '-')}.js", body)
    if translator := TRANSLATOR.search(body):
        app.add_js_file(None, body=bundle([EXPLORER_SOURCES / "date_loader.js"]))
        attributes = with_translator_apart(app, translator[1], context)
        context["body"] = TRANSLATOR.sub(f"{attributes}>", context["body"], count=1)


def with_translator_apart(app: Sphinx, config: str, context: dict[str, Any]) -> str:
    """Write the script of the translator, and return the attributes that say where it is and how large."""
    script = translator_script(config)
    _write(app, TRANSLATOR_SCRIPT, script)
    style = (EXPLORER_SOURCES.parent / "_static" / EXPLORER_STYLE).read_text(encoding="utf-8")
    data = {
        "script": _address(context, TRANSLATOR_SCRIPT, script),
        "style": _address(context, EXPLORER_STYLE, style),
        "size": round(len(gzip.compress(script.encode())) / 1000),
    }
    return "".join(f' data-{name}="{value}"' for name, value in data.items())


def with_weights_apart(app: Sphinx, path: str, body: str) -> str:
    """Return the body of a page without the weights of heads; they go into a script that fills them in."""
    weights = HEAD_WEIGHTS.findall(body)
    if not weights:
        return body
    _write(app, path, f"{{ const weights = {json.dumps(weights)};\n{FILL_HEADS} }}\n")
    app.add_js_file(path, priority=400)  # before the explorer's script
    return HEAD_WEIGHTS.sub("", body)


def translator_script(config: str) -> str:
    """Return what the page of the translator fetches on demand: its configuration with the weights, and its code."""
    worker = bundle([EXPLORER_SOURCES / "translation_worker.js"])
    code = bundle([EXPLORER_SOURCES / "dates.js"])
    return f"{{ const DATE_TRANSLATOR = {{ config: {config}, worker: {json.dumps(worker)} }};\n{code}}}\n"


def _address(context: dict[str, Any], path: str, content: str) -> str:
    """Return the address of a file in ``_static``, seen from a page; it changes with the content, as Sphinx's do."""
    return f"{context['pathto'](f'_static/{path}', resource=True)}?v={sha256(content.encode()).hexdigest()[:8]}"


def _write(app: Sphinx, path: str, script: str) -> None:
    file = Path(app.outdir, "_static", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script, encoding="utf-8")


def bundle(modules: Iterable[Path]) -> str:
    """Return modules as one script, each after those that it imports. Top-level names of all modules must differ."""
    found: dict[Path, str] = {}  # in the order in which they have to run
    for module in modules:
        _collect(module, found)
    return "(() => {\n" + "\n".join(found.values()) + "})();\n"


def _collect(module: Path, found: dict[Path, str]) -> None:
    """Add a module to those found, after the ones that it imports."""
    text = module.read_text(encoding="utf-8")
    for name in JS_IMPORT.findall(text):
        if not name.endswith(".json") and module.with_name(name) not in found:
            _collect(module.with_name(name), found)
    text = JSON_IMPORT.sub(lambda data: f"const {data[1]} = {_json(module.with_name(data[2]))};\n", text)
    found[module] = JS_COMMENT.sub("", JS_EXPORT.sub("", JS_IMPORT.sub("", text)))


def _json(file: Path) -> str:
    return json.dumps(json.loads(file.read_text(encoding="utf-8")), ensure_ascii=False, separators=(",", ":"))
