"""Call a part of a layer, which may have been replaced by an adapter, or by a quantized, offloaded or sharded layer.

Nothing of a part is read before it is called: until then its parameters may be on another device or of another type.
They are compared with the input only if the call fails, in order to say why.
"""

from typing import Any

from attnlib._arrays import Array, array_namespace, is_array, is_floating


def call_part(name: str, part: Any, argument: str, x: Array) -> Any:
    """Return ``part(x)``, where x was passed to the layer as ``argument``.

    Raise TypeError or ValueError if the call fails and the part's parameters do not fit x.
    """
    try:
        return part(x)
    except Exception as error:
        mismatch = find_mismatch(name, part, argument, x)
        if mismatch is None:
            raise
        raise mismatch from error


def refuse_mismatch(name: str, part: Any, argument: str, x: Array) -> None:
    """Raise the error that :func:`find_mismatch` returns, if there is one."""
    mismatch = find_mismatch(name, part, argument, x)
    if mismatch is not None:
        raise mismatch


def find_mismatch(name: str, part: Any, argument: str, x: Array) -> Exception | None:
    """Return an error about the first of a part's parameters, if they all differ from x in library, dtype or device.

    Only floating-point parameters count. If one of them fits, or if there is none, the part itself knows what is wrong.
    """
    mismatches: list[Exception] = []
    for parameter, weight in part.named_parameters() if hasattr(part, "named_parameters") else ():
        if is_array(weight) and is_floating(weight):
            try:
                array_namespace(**{argument: x, f"{name}.{parameter}": weight})
            except (TypeError, ValueError) as error:
                mismatches.append(error)
            else:
                return None
    return mismatches[0] if mismatches else None
