"""Whether the layers of a language model in torch are still as the library made them, and nothing watches them.

A part may have been replaced by an adapter or a quantized layer, a class may have been given another ``forward``, and a
hook may be waiting for the call of a module: such layers have to be called. The check costs little, so every pass
repeats it.
"""

from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from torch import nn
from torch.nn.modules import module as all_modules

KINDS_OF_HOOKS = ("forward", "forward_pre", "backward", "backward_pre")
GLOBAL_HOOKS = [getattr(all_modules, f"_global_{kind}_hooks") for kind in KINDS_OF_HOOKS]
forward_of = attrgetter("forward")
hooks_of = itemgetter(*(f"_{kind}_hooks" for kind in KINDS_OF_HOOKS))
projections_of = itemgetter("q_proj", "k_proj", "v_proj", "out_proj")
FORWARDS: dict[type, Any] = {}  # of each class of layers, as the library made it
Parameters = dict[str, Any]  # of a linear layer: the weight and the bias, which may be None


class Kinds(NamedTuple):
    """The library's classes of layers and their parts."""

    layer: type
    attention: type
    feed_forward: type
    norms: frozenset[type]


class Layer(NamedTuple):
    """What a layer computes with: the parameters of its linear layers, and its norms. What the layer lacks is None."""

    attend: Any
    feed_forward: Any
    q_proj: Parameters
    k_proj: Parameters
    v_proj: Parameters
    out_proj: Parameters
    up_proj: Parameters
    down_proj: Parameters
    gate_proj: Parameters | None
    norm1: nn.Module
    norm2: nn.Module
    post_norm1: nn.Module | None
    post_norm2: nn.Module | None
    q_norm: nn.Module | None
    k_norm: nn.Module | None


def remember(*classes: type) -> None:
    """Remember the ``forward`` of each class, to notice later if it has been replaced."""
    FORWARDS.update((kind, forward_of(kind)) for kind in classes)


def are_unpatched() -> bool:
    """Tell whether the remembered classes still have their ``forward``, which profilers and tests may replace."""
    return [*map(forward_of, FORWARDS)] == [*FORWARDS.values()]


def unpatched_classes() -> list[type]:
    """Return the remembered classes that still have their ``forward``."""
    return [kind for kind, forward in FORWARDS.items() if forward_of(kind) is forward]


class UnchangedLayers:
    """The layers of a model as they were found, all of the given classes.

    What is kept are the dictionaries that hold the parameters, so a parameter that replaces another counts at once.

    Raises:
        LookupError: a layer or a part is not of the library's classes, or is missing.
    """

    def __init__(self, stack: nn.ModuleList, kinds: Kinds) -> None:
        self.layers: list[Layer] = []
        self._called: list[nn.Module] = []
        self._containers = [_parts(stack)]
        for layer in stack:
            self._add(layer, kinds)
        self._parts = [*chain.from_iterable(map(dict.values, self._containers))]
        self._types = [*map(type, self._called)]
        self._attributes = [module.__dict__ for module in self._called]
        self._counts = [*map(len, self._attributes)]  # an attribute that was added may be called instead
        if any(map(has_own_call, self._attributes)):
            raise LookupError
        self._hooks = [*GLOBAL_HOOKS, *chain.from_iterable(map(hooks_of, self._attributes))]

    def are_current(self, stack: nn.ModuleList) -> bool:
        """Tell whether a model's layers are these, with the same parts as when they were found, and have no hooks."""
        return (
            _parts(stack) is self._containers[0]
            and [*chain.from_iterable(map(dict.values, self._containers))] == self._parts
            and [*map(type, self._called)] == self._types  # a parametrization changes the class of a module
            and [*map(len, self._attributes)] == self._counts
            and not any(self._hooks)
            and are_unpatched()
        )

    def _add(self, layer: nn.Module, kinds: Kinds) -> None:
        """Add what a layer consists of."""
        parts = _parts(layer)
        attend, ff = parts["self_attn"], parts["ff"]
        of_attend, of_ff = _parts(attend), _parts(ff)
        linears = [*projections_of(of_attend), of_ff["up_proj"], of_ff["down_proj"], of_ff.get("gate_proj")]
        norms = [parts["norm1"], parts["norm2"], *map(parts.get, ("post_norm1", "post_norm2"))]
        norms += map(of_attend.get, ("q_norm", "k_norm"))
        if (type(layer), type(attend), type(ff)) != kinds[:3]:
            raise LookupError
        if not (_are(linears, {nn.Linear}) and _are(norms, kinds.norms)):
            raise LookupError
        self._containers += [parts, of_attend, of_ff]
        self._called += [part for part in (layer, attend, ff, *linears, *norms) if part is not None]
        self.layers.append(Layer(attend, ff, *(part and part.__dict__["_parameters"] for part in linears), *norms))


def has_own_call(attributes: dict[str, Any]) -> bool:
    """Tell whether a module, given its attributes, calls something other than its class does."""
    return "forward" in attributes or "_compiled_call_impl" in attributes


def _are(parts: list[Any], kinds: set[type] | frozenset[type]) -> bool:
    """Tell whether every part that exists has one of these classes."""
    return all(part is None or type(part) in kinds for part in parts)


def _parts(module: nn.Module) -> dict[str, Any]:
    """Return the parts of a module by name."""
    parts: dict[str, Any] = module.__dict__["_modules"]
    return parts
