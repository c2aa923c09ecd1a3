"""No public signature says Any, under whatever name, except where a reason is given here."""

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import attnlib
import attnlib.embeddings
import attnlib.hf
import attnlib.minilm
import attnlib.numpy
import attnlib.plotting
import attnlib.torch
import attnlib.triton

MODULES = [
    attnlib,
    attnlib.embeddings,
    attnlib.hf,
    attnlib.numpy,
    attnlib.torch,
    attnlib.triton,
    attnlib.minilm,
    attnlib.plotting,
]
FLAG = "the flag is not known before the program runs: a union would make every caller tell the two types apart"
ANY_LAYER = "each layer has its own arguments, and a type checker sees those of the subclass"
LOOSE = {
    "scaled_dot_product_attention(return)": FLAG,
    "MultiHeadAttention.forward(return)": FLAG,
    "TransformerBlock.forward(return)": FLAG,
    "DecoderBlock.forward(return)": FLAG,
    "Encoder.forward(return)": FLAG,
    "BertEncoder.forward(return)": FLAG,
    "Module.forward(args)": ANY_LAYER,
    "Module.forward(options)": ANY_LAYER,
    "Module.forward(return)": ANY_LAYER,
    "Module.__call__(args)": ANY_LAYER,
    "Module.__call__(options)": ANY_LAYER,
    "Module.__call__(return)": ANY_LAYER,
    "load(return)": "the backend is not known before the program runs, as for the flags",
    "load_minilm(return)": "the backend is not known before the program runs, as for the flags",
}


def public_objects() -> dict[str, Any]:
    """Return every function and class that a caller imports, by name."""
    found = {}
    for module in MODULES:
        own = [name for name, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__]
        names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return found


def functions(x: Any) -> Iterator[Any]:
    """Yield the function, or the public methods of the class, its own and those that it inherits from attnlib."""
    if inspect.isfunction(x):
        yield x
    if inspect.isclass(x):
        for kind in x.__mro__:
            if kind.__module__.startswith("attnlib"):
                yield from (
                    inspect.unwrap(f)
                    for name, f in vars(kind).items()
                    if inspect.isfunction(f) and (not name.startswith("_") or name in ("__init__", "__call__"))
                )


def says_any(annotation: Any) -> bool:
    """Tell whether a type contains Any; NumPy's own types, as ArrayLike, may, for dtypes and shapes."""
    if isinstance(annotation, str):
        return "Any" in annotation.replace("NDArray[Any]", "")
    if annotation is Any or annotation is inspect.Parameter.empty:
        return True
    if isinstance(annotation, list):  # the arguments of a Callable
        return any(map(says_any, annotation))
    kind, parts = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if typing.is_typeddict(kind):  # further arguments by name
        parts += tuple(kind.__annotations__.values())
    return not getattr(kind, "__module__", "").startswith("numpy") and any(map(says_any, parts))


def loose(function: Any) -> set[str]:
    """Return the arguments of a function whose type is not known, and "return" if that of its result is not."""
    signature = inspect.signature(function)
    types = {name: p.annotation for name, p in signature.parameters.items() if name not in ("self", "cls")}
    if function.__name__ != "__init__":
        types["return"] = signature.return_annotation
    return {f"{function.__qualname__}({name})" for name, annotation in types.items() if says_any(annotation)}


def test_public_signatures_say_any_only_where_there_is_a_reason():
    found = set()
    for x in public_objects().values():
        for function in functions(x):
            for version in typing.get_overloads(function) or [function]:
                found |= loose(version)
    assert found == set(LOOSE)
