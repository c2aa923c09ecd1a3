"""The student's side of a check: look up what a name stands for, call it on inputs, and send back raw answers.

A list of tests is run here, but the implementation that they call is elsewhere: its calls are sent, and answered.

It has only the inputs and a number that is used once. Whether an answer is right is decided elsewhere.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlib.checks.calling import (
    call_submission,
    conventions,
    decoder,
    generation,
    kv_cache,
    memory,
    sampling,
    tested,
)
from attnlib.checks.calling.case import Case
from grading.sandbox.inside.codec import MAX_ARRAY_BYTES, decode, encode
from grading.sandbox.inside.solver_guard import forbidding

CONVENTIONS = (
    conventions.call_function,
    conventions.call_module,
    kv_cache.call_kv_cache,
    memory.call_within_memory,
    sampling.call_sampler,
    generation.call_generate,
    decoder.call_decoder,
)
CONVENTION_BY_NAME = {call.__name__: call for call in CONVENTIONS}
MAX_ANSWER_TEXT = 300  # characters

call_submission.LIBRARY_PREFIXES += (f"{Path(__file__).parents[3]}{os.sep}",)  # our own lines are never to blame


@dataclass(frozen=True)
class _CallSpec:
    call: conventions.CallingConvention
    plain: bool

    def outputs_of(self, case: Case) -> tuple[str, ...]:
        """Return the names of the results, which come with each case."""
        return case.outputs or ()


class Answers:
    """Answers probes of the names in a shell. ``receive`` returns the grader's next message."""

    def __init__(
        self, shell: Any, send: Callable[[dict[str, Any]], None], receive: Callable[[], dict[str, Any] | None]
    ) -> None:
        self._shell, self._send, self._receive = shell, send, receive
        self._implementation: Any = None

    def give(self, message: dict[str, Any]) -> None:
        """Answer a probe: the value of a choice, what an implementation is, or what it returns for cases."""
        for kind, answer in (
            ("evaluate", self._evaluate),
            ("inspect", self._inspect),
            ("call", self._call),
            ("test", self._test),
        ):
            if kind in message:
                answer(message[kind], message["nonce"])

    def _evaluated(self, expression: str) -> tuple[Any, dict[str, str] | None]:
        try:
            return eval(expression, self._shell.user_ns), None
        except Exception as error:
            return None, {"name": type(error).__name__, "text": str(error)[:MAX_ANSWER_TEXT]}

    def _evaluate(self, expression: str, nonce: str) -> None:
        value, error = self._evaluated(expression)
        text = value if isinstance(value, str) else None if value is None else repr(value)
        self._send({"nonce": nonce, "value": text and text[:MAX_ANSWER_TEXT], "error": error})

    def _inspect(self, wanted: dict[str, Any], nonce: str) -> None:
        self._implementation, error = self._evaluated(wanted["expression"])
        torch = sys.modules["torch"]
        is_class = isinstance(self._implementation, type)
        facts = {
            "callable": callable(self._implementation),
            "kind": type(self._implementation).__name__[:MAX_ANSWER_TEXT],
            "module": is_class and issubclass(self._implementation, torch.nn.Module),
            "has": [name for name in wanted["unasked"] if error is None and self._has_argument(name)],
        }
        self._send({"nonce": nonce, "error": error, **facts})

    def _has_argument(self, name: str) -> bool:
        return conventions.has_argument(self._implementation, name)

    def _call(self, wanted: dict[str, Any], nonce: str) -> None:
        """Answer one case after another, so that the answers before a crash are kept."""
        exercise = _CallSpec(CONVENTION_BY_NAME[wanted["call"]], wanted["plain"])
        with forbidding(wanted["forbidden"]):
            for number, sent in wanted["cases"]:
                case, backend = Case(**decode(sent)), wanted["backend"]
                answer = call_submission.call_submission(self._implementation, case, exercise, backend=backend)
                self._send({"nonce": nonce, "case": number, "answer": _as_message(answer)})

    def _test(self, expression: str, nonce: str) -> None:
        """Run tests one after the other, against an implementation that is called through the grader."""

        def ask(arguments: Sequence[Any], options: Mapping[str, Any]) -> tuple[Any, str | None, Mapping[int, Any]]:
            self._send({"nonce": nonce, "call": [encode(list(arguments)), encode(dict(options))]})
            reply = self._receive() or {"value": None, "error": "ConnectionError", "changed": []}
            return decode(reply["value"]), reply["error"], {i: decode(x) for i, x in reply["changed"]}

        tests, error = self._evaluated(expression)
        try:
            functions = [] if error else tested.checked_tests(tests)
        except tested.TestsError as wrong:
            error = {"name": type(wrong).__name__, "text": str(wrong)}
        if error:
            self._send({"nonce": nonce, "error": error})
            return
        for test in functions:
            outcome = tested.run_test(test, tested.Implementation(ask))
            self._send({"nonce": nonce, "outcome": asdict(outcome)})


def _as_message(answer: call_submission.Answer) -> dict[str, Any]:
    problem = answer.problem
    for name, x in answer.arrays.items():
        if x.nbytes > MAX_ARRAY_BYTES:
            problem = f"returned {x.size} numbers as {name}, far more than were asked for"
    arrays = {} if problem else {name: encode(_plain(x)) for name, x in answer.arrays.items()}
    texts = {"problem": problem, "error": answer.error, "line": answer.line}
    return {"arrays": arrays, "changed": list(answer.changed)} | {
        name: text and text[: 2 * MAX_ANSWER_TEXT] for name, text in texts.items()
    }


def _plain(x: Any) -> Any:
    """Return an array in a type that both sides know: the widest floats are rounded."""
    return np.asarray(x, np.float64) if x.dtype.kind == "f" and x.dtype.itemsize > 8 else np.asarray(x)
