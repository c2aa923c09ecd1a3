"""One submission in its own process: run cells, answer what is asked about them, and send everything to the grader."""

import io
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from grading.sandbox.inside.answers import Answers
from grading.sandbox.inside.frames import LENGTH, pack
from grading.sandbox.inside.install_withheld import install
from grading.sandbox.inside.solver_guard import import_late_modules

CHUNK = 16_000  # characters of printed text to collect before sending them


class CellRunner:
    """Serves the grader until it hangs up. ``wanted`` holds the limits on output, in bytes."""

    def __init__(self, shell: Any, channel: int, wanted: dict[str, Any]) -> None:
        self.shell = shell
        self.channel = socket.socket(fileno=channel)
        self.most, self.left = wanted["cell_output"], wanted["notebook_output"]
        self.shown, self.cut = 0, False
        self.printed: list[tuple[str, str]] = []
        self.waiting = 0
        self.written = _catch_what_goes_past_python()
        self.answers = Answers(shell, self.send, self._next)
        shell.sink = self.show
        sys.stdout, sys.stderr = _Stream(self.print, self.flush, "stdout"), _Stream(self.print, self.flush, "stderr")

    def serve(self) -> None:
        """Do what the grader asks, one thing after another. Interrupts count only while student code runs."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while message := self._next():
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                self._do(message)
            except KeyboardInterrupt:
                self.send({"interrupted": True})
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.send({"done": True, "cut": self.cut})

    def _do(self, message: dict[str, Any]) -> None:
        if "run" in message:
            self._run(message["run"])
        elif "parts" in message:
            install(message["parts"])
        else:
            self.answers.give(message)

    def _next(self) -> dict[str, Any] | None:
        head = self._read(LENGTH.size)
        return json.loads(self._read(LENGTH.unpack(head)[0])) if head else None  # the grader's messages can be trusted

    def _read(self, size: int) -> bytes:
        parts = []
        while size and (part := self.channel.recv(min(size, 1 << 16))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the grader."""
        self.channel.sendall(pack(message))

    def _run(self, source: str) -> None:
        self.shown, self.cut = 0, False
        self.shell.source = source
        try:
            import_late_modules(source)
            self.shell.run_through(source)
        finally:
            self._send_written()
            self.flush()

    def show(self, output: dict[str, Any]) -> None:
        """Send an output of the cell, unless there have been too many."""
        self.flush()
        self._send_output(output)

    def print(self, name: str, text: str) -> None:
        """Collect printed text, so that small pieces are sent together."""
        self.printed.append((name, text))
        self.waiting += len(text)
        if self.waiting > CHUNK:
            self.flush()

    def flush(self) -> None:
        """Send the text that was printed."""
        printed, self.printed, self.waiting = self.printed, [], 0
        while printed:
            name = printed[0][0]
            same = next((i for i, (other, _) in enumerate(printed) if other != name), len(printed))
            text = "".join(part for _, part in printed[:same])
            printed = printed[same:]
            self._send_output({"output_type": "stream", "name": name, "text": text})

    def _send_output(self, output: dict[str, Any]) -> None:
        if self.cut:
            return
        room = min(self.most - self.shown, self.left)
        size = len(pack(output))
        if size > room:
            self.cut = True
            if output["output_type"] != "stream":
                return
            output = output | {"text": output["text"][: room // 2]}
            size = room
        self.shown += size
        self.left -= size
        self.send({"output": output})

    def _send_written(self) -> None:
        """Send what did not come through Python's own streams, but from child processes or C libraries."""
        os.lseek(self.written, 0, os.SEEK_SET)
        text = os.read(self.written, self.most).decode("utf-8", "replace")
        os.ftruncate(self.written, 0)
        os.lseek(self.written, 0, os.SEEK_SET)
        if text:
            self.print("stdout", text)


def _catch_what_goes_past_python() -> int:
    """Redirect the process's own output into a nameless file, and leave it nothing to read."""
    with tempfile.TemporaryFile() as written, open(os.devnull, "rb") as nothing:
        for file, target in ((nothing, 0), (written, 1), (written, 2)):
            os.dup2(file.fileno(), target)
        kept = os.dup(written.fileno())
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    return kept


class _Stream(io.TextIOBase):
    """Python's standard output, or standard error, of a cell."""

    def __init__(self, print_text: Callable[[str, str], None], flush: Callable[[], None], name: str) -> None:
        self._print, self._flush, self._name = print_text, flush, name

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes text, not {type(text).__name__}")
        self._print(self._name, text)
        return len(text)

    def flush(self) -> None:
        self._flush()
