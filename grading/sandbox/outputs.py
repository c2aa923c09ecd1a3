"""The outputs of a cell, made from what its process sends: bounded, and only in forms that notebooks know."""

import json
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


class CellOutputs:
    """The outputs of a cell, in the notebook format, which take at most ``most`` bytes.

    What is stored counts, not what was sent: an update is sent once, but changes every display with its id.

    Attributes:
        shown: the outputs.
        size: how many bytes they take.
    """

    def __init__(self, most: int) -> None:
        self.shown: list[Output] = []
        self.size, self._most = 0, most
        self._sizes: list[int] = []  # of each output

    def add(self, sent: Any) -> bool:
        """Add an output. Return False if there are too many, or if they would be too large.

        Raises:
            StoppedError: what was sent is not an output.
        """
        output = _checked(sent)
        kind = output["output_type"]
        if kind == "clear_output":
            self.shown.clear()
            self._sizes.clear()
            self.size = 0
            return True
        if kind == "update_display_data":
            return self._update(output)
        size = _size(output)
        # Only streams have a name, so the last output is a stream, too.
        continues = kind == "stream" and bool(self.shown) and self.shown[-1].get("name") == output["name"]
        if self.size + size > self._most or (len(self.shown) >= MAX_OUTPUTS and not continues):
            return False
        if continues:
            self.shown[-1]["text"] += output["text"]
            self._sizes[-1] += size
        else:
            self.shown.append(output)
            self._sizes.append(size)
        self.size += size
        return True

    def _update(self, output: Output) -> bool:
        """Give earlier displays with the same id their new content. Return False if the outputs would be too large."""
        name = output["display_id"]
        same = [i for i, one in enumerate(self.shown) if one.get("display_id") == name is not None]
        size = _size(output)
        more = sum(size - self._sizes[i] for i in same)
        if self.size + more > self._most:
            return False
        self.size += more
        for i in same:
            self.shown[i]["data"], self._sizes[i] = output["data"], size
        return True


def _size(output: Output) -> int:
    return len(json.dumps(output))


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
