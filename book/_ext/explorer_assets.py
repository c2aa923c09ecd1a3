"""A Sphinx extension: add the explorer's script to the pages that have an explorer, and to no others.

The explorer is written as modules, in ``_explorer``. While a page is opened as a file, which is how many open the book
first, browsers load no module from another file. So the modules become one script, which all pages share. A page loads
it when the reader comes near an element (``_explorer/near.js``). In print, the tables that Python wrote are kept.

The weights of all heads of a model are as large as the rest of a page. They get a script of their own, which runs
before the explorer's.

The script and the weights of a model that runs in a page are fetched only when the reader asks for them. The weights of
the decoder and of all-MiniLM-L6-v2 are megabytes, so they are files of their own, which the model's worker fetches and
the browser keeps. Pages share these files and scripts, so the configuration of such an element stays in its page.
"""

import gzip
import json
import re
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import stdlib_lm
from _tools import decoder, minilm
from sphinx.application import Sphinx

from attnlib.minilm import load_minilm

EXPLORER_SOURCES = Path(__file__).parents[1] / "_explorer"
SCRIPTS = {  # elements by the script that has them
    "explorer/explorer.js": {"attention-explorer": "explorer.js", "attention-heads": "heads.js"},
    "explorer/tiles.js": {"attention-tiles": "tiles.js"},
    "explorer/residual.js": {"attention-residual": "residual.js"},
}
ON_DEMAND = re.compile(
    r'(?<=<)(attention-(?:dates|decoder|minilm))><script type="application/json">(.*?)</script>', re.DOTALL
)
DECODER_WEIGHTS = "explorer/stdlib_lm.js"
MINILM_WEIGHTS = "explorer/minilm.bin"  # compressed, because not every server compresses what it sends
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
    """Write the scripts before any page, because Sphinx adds a digest of each to its address there."""
    if app.builder.name == "html":
        for script, elements in SCRIPTS.items():
            _write(app, script, bundle(EXPLORER_SOURCES / name for name in elements.values()).encode())


def add_to_page(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Add the scripts that the custom elements of a page need."""
    body = context.get("body", "")
    if app.builder.name != "html":
        return
    if any(f"<{element}>" in body for elements in SCRIPTS.values() for element in elements):
        app.add_js_file(None, body=bundle([EXPLORER_SOURCES / "near.js"]))
        context["body"] = with_scripts_named(app, page, context)
    if on_demand := ON_DEMAND.search(body):
        app.add_js_file(None, body=bundle([EXPLORER_SOURCES / "loader.js"]))
        told = ON_DEMAND_WRITERS[on_demand[1]](app, on_demand[2], context)
        attributes = "".join(f' data-{name}="{value}"' for name, value in told.items())
        kept = "" if on_demand[1] == "attention-dates" else on_demand[0].partition(">")[2]
        context["body"] = ON_DEMAND.sub(lambda _: f"{on_demand[1]}{attributes}>{kept}", context["body"], count=1)


def with_translator_apart(app: Sphinx, config: str, context: dict[str, Any]) -> dict[str, str]:
    """Write the script of the translator, and return what the page has to know about it."""
    script = model_script("DATE_TRANSLATOR", "translation_worker.js", "dates.js", f"config: {config}, ")
    return {
        "name": "translator", "prefix": "#dates?", "size": f"{_zipped(script) / 1000:.0f} kB",
        "script": _written(app, context, "explorer/dates.js", script),
    }  # fmt: skip


def with_decoder_apart(app: Sphinx, _config: str, context: dict[str, Any]) -> dict[str, str]:
    """Write the script of the decoder and the file of its weights, and return what the page has to know about them."""
    script = model_script("DECODER", "decoder_worker.js", "decoder.js")
    file, zipped = decoder_file()
    return {
        "prefix": "#decoder?", **_megabytes(app, context, DECODER_WEIGHTS, file, _zipped(script) + zipped),
        "script": _written(app, context, "explorer/decoder.js", script),
    }  # fmt: skip


@cache
def decoder_file() -> tuple[bytes, int]:
    """Return the file of the decoder's weights, and its size when it is compressed."""
    file = f"var DECODER_FILE = {json.dumps(decoder.packed(stdlib_lm.FOLDER), separators=(',', ':'))};\n"
    return file.encode(), _zipped(file)


@cache
def minilm_file() -> bytes:
    """Return the file of the weights of all-MiniLM-L6-v2."""
    return minilm.packed(load_minilm())


def with_minilm_apart(app: Sphinx, _config: str, context: dict[str, Any]) -> dict[str, str]:
    """Do what :func:`with_decoder_apart` does, but for all-MiniLM-L6-v2, whose file is already compressed."""
    script = model_script("MINILM", "minilm_worker.js", "minilm.js")
    file = minilm_file()
    return {
        "prefix": "#minilm?", **_megabytes(app, context, MINILM_WEIGHTS, file, _zipped(script) + len(file)),
        "script": _written(app, context, "explorer/minilm.js", script),
    }  # fmt: skip


def _megabytes(app: Sphinx, context: dict[str, Any], path: str, file: bytes, size: int) -> dict[str, str]:
    """Write the file of a model's weights, and return where it is and what the reader is told about its size."""
    _write(app, path, file)
    said = f"{size / 1e6:.1f} MB"
    return {
        "name": "model", "size": said, "weights": _address(context, path, file), "length": str(len(file)),
        "warning": f"This loads {said}, which may cost money on mobile data. Your browser keeps it for next time.",
    }  # fmt: skip


def _written(app: Sphinx, context: dict[str, Any], path: str, script: str) -> str:
    """Write a script that is fetched on demand, and return its address."""
    _write(app, path, script.encode())
    return _address(context, path, script.encode())


def _zipped(text: str) -> int:
    return len(gzip.compress(text.encode(), 6))


def with_scripts_named(app: Sphinx, page: str, context: dict[str, Any]) -> str:
    """Return the body of a page where each element names its scripts, in the order in which they have to run.

    The weights of heads are taken out of the body; they go into a script of the page that fills them in.
    """
    body: str = context["body"]
    first: list[str] = []
    if weights := HEAD_WEIGHTS.findall(body):
        path, fill = (
            f"explorer/{page.replace('/', '-')}.js",
            f"{{ const weights = {json.dumps(weights)};\n{FILL_HEADS} }}\n".encode(),
        )
        _write(app, path, fill)
        body, first = HEAD_WEIGHTS.sub("", body), [_address(context, path, fill)]
    for script, elements in SCRIPTS.items():
        content = Path(app.outdir, "_static", script).read_bytes()
        addresses = " ".join([*first, _address(context, script, content)])
        body = re.sub(rf"<({'|'.join(elements)})>", rf'<\1 data-scripts="{addresses}">', body)
    return body


def model_script(name: str, worker: str, element: str, config: str = "") -> str:
    """Return what a page fetches on demand: the code of an element and of its worker, and any configuration."""
    code = json.dumps(bundle([EXPLORER_SOURCES / worker]))
    return f"{{ const {name} = {{ {config}worker: {code} }};\n{bundle([EXPLORER_SOURCES / element])}}}\n"


def _address(context: dict[str, Any], path: str, content: bytes) -> str:
    """Return the address of a file in ``_static``, seen from a page; it changes with the content, as Sphinx's do."""
    return f"{context['pathto'](f'_static/{path}', resource=True)}?v={sha256(content).hexdigest()[:8]}"


def _write(app: Sphinx, path: str, content: bytes) -> None:
    file = Path(app.outdir, "_static", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


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


ON_DEMAND_WRITERS = {
    "attention-dates": with_translator_apart,
    "attention-decoder": with_decoder_apart,
    "attention-minilm": with_minilm_apart,
}
