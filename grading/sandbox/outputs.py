"""The outputs of a cell, made from what its process sends: bounded, and only in forms that notebooks know."""

from typing import Any

from grading.sandbox.failures import StoppedError
from grading.verdict import Verdict

SHOWN_MIME_TYPES = {
    *("text/plain", "text/html", "text/markdown", "text/latex"),
    *("image/png", "image/jpeg", "image/svg+xml"),
}
MAX_OUTPUTS = 2_000  # per cell; nobody reads more, and each may still be updated
MIME_BUNDLES = ("display_data", "execute_result", "update_display_data")

Output = dict[str, Any]


def add_output(outputs: list[Output], sent: Any) -> bool:
    """Add an output to those of a cell, in the notebook format. Return False if there are too many.

    Raises:
        StoppedError: what was sent is not an output.
    """
    output = _checked(sent)
    kind = output["output_type"]
    if kind == "clear_output":
        outputs.clear()
    elif kind == "update_display_data":
        _update(outputs, output)
    elif kind == "stream" and outputs and outputs[-1].get("name") == output["name"]:  # only streams have a name
        outputs[-1]["text"] += output["text"]
    elif len(outputs) < MAX_OUTPUTS:
        outputs.append(output)
    else:
        return False
    return True


def _update(outputs: list[Output], output: Output) -> None:
    """Give earlier displays with the same id their new content."""
    for shown in outputs:
        if shown.get("display_id") == output["display_id"] is not None:
            shown["data"] = output["data"]


def _checked(sent: Any) -> Output:
    """Return an output with only what the notebook format allows and pages may show."""
    kind = sent.get("output_type") if isinstance(sent, dict) else None
    output = None
    if kind == "clear_output":
        output = {"output_type": kind}
    elif kind == "stream":
        output = _stream(sent)
    elif kind == "error":
        output = _error(sent)
    elif isinstance(kind, str) and kind in MIME_BUNDLES:
        output = _bundle(kind, sent)
    if output is None:
        raise StoppedError(Verdict.TAMPERED, "wrote into the channel that its outputs go through.")
    return output


def _stream(sent: Output) -> Output | None:
    name, text = sent.get("name"), sent.get("text")
    if name not in ("stdout", "stderr") or not isinstance(text, str):
        return None
    return {"output_type": "stream", "name": name, "text": _writable(text)}


def _error(sent: Output) -> Output | None:
    name, value, lines = sent.get("ename"), sent.get("evalue"), sent.get("traceback")
    if not isinstance(name, str) or not isinstance(value, str) or not isinstance(lines, list):
        return None
    if not all(isinstance(line, str) for line in lines):
        return None
    texts = {"ename": _writable(name), "evalue": _writable(value)}
    return {"output_type": "error", **texts, "traceback": [_writable(line) for line in lines]}


def _bundle(kind: str, sent: Output) -> Output | None:
    """Return what is displayed, in the formats that pages may show."""
    if not isinstance(sent.get("data"), dict):
        return None
    data = {name: _writable(x) for name, x in sent["data"].items() if name in SHOWN_MIME_TYPES and isinstance(x, str)}
    name = sent.get("display_id")
    return {"output_type": kind, "data": data, "display_id": name if isinstance(name, str) else None}


def _writable(text: str) -> str:
    """Return text that a file can hold: lone surrogates, which JSON can express, are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
