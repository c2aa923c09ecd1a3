"""Messages between the grader and the box: JSON of bounded size, its length in front.

Both sides use it, and the grader trusts nothing that it reads: what is not as it should be is a :class:`MessageError`.
"""

import json
import struct
from typing import Any

LENGTH = struct.Struct(">I")
MAX_MESSAGE_BYTES = 16_000_000  # of one message
MAX_MESSAGE_VALUES = 30_000  # of one message: lists within lists take twenty times the room of their text


class MessageError(ValueError):
    """What came is no message as it should be."""


def pack(message: Any) -> bytes:
    """Return a message as bytes, its length in front."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """Return the message in these bytes, which come without their length."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"no message: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise MessageError("a message has to be an object")
    if len(body) > 2 * MAX_MESSAGE_VALUES and _has_more_values(
        message, MAX_MESSAGE_VALUES
    ):  # each value takes two bytes at least
        raise MessageError(f"a message of more than {MAX_MESSAGE_VALUES} values")
    return message


def _has_more_values(x: Any, most: int) -> bool:
    waiting = [x]
    while waiting and most > 0:
        x = waiting.pop()
        most -= 1
        waiting.extend(x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())
    return bool(waiting)
