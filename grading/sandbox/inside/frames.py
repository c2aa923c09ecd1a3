"""Messages between the grader and the box: JSON of bounded size, preceded by its length.

Both sides use it, and the grader trusts nothing that it reads. Anything malformed raises a :class:`MessageError`.
"""

import json
import struct
from typing import Any

LENGTH = struct.Struct(">I")
MAX_MESSAGE_BYTES = 16_000_000  # for one message
MAX_MESSAGE_VALUES = 30_000  # nested lists take twenty times as much memory as their text


class MessageError(ValueError):
    """A message is malformed."""


def pack(message: Any) -> bytes:
    """Return a message as bytes, preceded by its length."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """Return the message in these bytes, from which the length has been removed."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"no message: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise MessageError("a message has to be an object")
    if len(body) > 2 * MAX_MESSAGE_VALUES and _has_more_values(
        message, MAX_MESSAGE_VALUES
    ):  # each value takes at least two bytes
        raise MessageError(f"a message of more than {MAX_MESSAGE_VALUES} values")
    return message


def _has_more_values(x: Any, most: int) -> bool:
    waiting = [x]
    while waiting and most > 0:
        x = waiting.pop()
        most -= 1
        waiting.extend(x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())
    return bool(waiting)
