"""While a graded cell is answered, functions that would solve its exercise by themselves raise an exception.

A Python function gets different code for that time, so that it raises whatever name or reference it is called by, even
one that was saved before. In a class, all functions of its body get it. What torch has in C is replaced in its
dispatcher, which every call goes through: from Python, from TorchScript, from other operators, while gradients are
computed, and in all threads. A C function of any other module is replaced in that module. In the box, this module is
taken out of ``sys.modules`` before student code runs. None of this stops anybody who is determined to get past it. It
makes sure that nobody takes a shortcut by accident, or without leaving a trace in the source.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from grading.sandbox.inside.refusals import Forbidden

# What the process imports before any student's code runs. A function is stopped only if its module has been imported
# before a graded cell is answered; one that is imported meanwhile would go unnoticed.
PRELOAD = ("attnlib.heads", "attnlib.numpy", "attnlib.torch", "attnlib.triton")
# What takes too long to import for everybody. It is imported for students whose cells contain this word. For others, it
# cannot be imported at all while a graded cell is answered.
LATE_MODULES = {
    "scipy.spatial.distance": "scipy",
    "scipy.special": "scipy",
    "sklearn.metrics.pairwise": "sklearn",
    "sklearn.utils.extmath": "sklearn",
    "torch.nn.attention.flex_attention": "flex_attention",
}
# The torch operators that do the work of a function, in addition to the one of the same name.
OPERATORS_BY_FUNCTION = {
    "cdist": ("_cdist_forward", "_euclidean_dist"),
    "log_softmax": ("_log_softmax", "special_log_softmax", "_sparse_log_softmax"),
    "logsumexp": ("special_logsumexp",),
    "multi_head_attention_forward": ("_native_multi_head_attention",),
    "pdist": ("_pdist_forward",),
    "scaled_dot_product_attention": (
        *("_fused_sdp_choice", "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu"),
    ),
    "softmax": ("_softmax", "_safe_softmax", "_masked_softmax", "_sparse_softmax", "special_softmax"),
    "TransformerEncoderLayer": ("_transformer_encoder_layer_fwd",),
}
# The dispatch keys that hold an operator's code on a machine without a GPU or the like.
DISPATCH_KEYS = (
    *("CPU", "SparseCPU", "SparseCsrCPU", "MkldnnCPU", "NestedTensorCPU", "AutogradCPU", "AutocastCPU"),
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    *("CompositeImplicitAutogradNestedTensor", "AutogradNestedTensor", "FuncTorchBatched"),
)
GUARD_FILE, REASON_PLACEHOLDER = "<guard>", "the reason"


def import_late_modules(source: str) -> None:
    """Import the late modules that a cell mentions, so that their forbidden functions can be stopped."""
    for module, word in LATE_MODULES.items():
        if word in source and module not in sys.modules:
            with suppress(Exception):  # it is not installed, or the student has replaced it
                import_module(module)


@contextmanager
def forbidding(names: Sequence[str]) -> Iterator[None]:
    """Make the functions and classes of these names, such as ``"torch.Tensor.softmax"``, raise within this context.

    A name whose module has not been imported is left out, and a late module that has not been imported cannot be
    imported meanwhile. Calls may be nested, and afterwards everything is restored.

    Raises:
        Forbidden: one of them was called.
    """
    with ExitStack() as stack:
        of_torch: dict[str, str] = {}
        for module in LATE_MODULES:
            if module not in sys.modules and any(name.startswith(f"{module}.") for name in names):
                stack.callback(sys.modules.pop, module, None)
                sys.modules[module] = None  # type: ignore[assignment]
        for name in names:
            owner, found = _find(name)
            package, last = name.partition(".")[0], name.rpartition(".")[2]
            reason = f"{package}'s {last} does what this exercise asks you to write, so it cannot be used here"
            functions = _functions(found)
            for function in functions:
                _stop(function, reason, stack)
            if package == "torch" and callable(found):
                of_torch |= dict.fromkeys((last, *OPERATORS_BY_FUNCTION.get(last, ())), reason)
            elif callable(found) and not functions:
                stack.callback(setattr, owner, last, found)
                setattr(owner, last, _refusal(reason))
        if of_torch:
            _dispatch_to_refusals(of_torch, stack)
        yield


def _find(name: str) -> tuple[Any, Any]:
    """Return what contains the object of that name, and the object, or None if it is missing. Nothing is imported."""
    parts = name.split(".")
    modules = [n for n in range(1, len(parts)) if sys.modules.get(".".join(parts[:n]))]
    if not modules:
        return None, None
    owner: Any = None
    found: Any = sys.modules[".".join(parts[: modules[-1]])]
    for part in parts[modules[-1] :]:
        owner = found
        found = vars(found).get(part) if isinstance(found, ModuleType) else getattr(found, part, None)
    return owner, found


def _functions(found: Any) -> list[FunctionType]:
    """Return the Python functions that make up a function, or a class and those of its bases that share its name."""
    if isinstance(found, FunctionType):
        return [found]
    if not isinstance(found, type):
        return []
    bodies = [vars(base) for base in found.__mro__ if base.__name__ == found.__name__]
    return [x for body in bodies for x in body.values() if isinstance(x, FunctionType)]


def _stop(function: FunctionType, reason: str, stack: ExitStack) -> None:
    """Give a function code that raises an exception, until the stack is closed."""
    before = function.__code__
    code = _raising(len(before.co_freevars))
    constants = tuple(reason if constant == REASON_PLACEHOLDER else constant for constant in code.co_consts)
    stack.callback(setattr, function, "__code__", before)
    function.__code__ = code.replace(co_consts=constants)


@cache
def _raising(free: int) -> CodeType:
    """Return code that raises an exception, for a function with ``free`` closure variables and any arguments.

    It runs with the globals of the function that it is given to, so it imports the exception. Python accepts only code
    with as many closure variables as the function has.
    """
    variables = ", ".join(f"variable{n}" for n in range(free))
    body = f"({variables}); from {Forbidden.__module__} import Forbidden; raise Forbidden({REASON_PLACEHOLDER!r})"
    code = compile(f"def outer({variables}):\n def refused(*args, **options): {body}", GUARD_FILE, "exec")
    for _ in range(2):  # the code of an inner function is a constant of the outer code
        (code,) = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return code


def _refusal(reason: str) -> Any:
    def refused(*args: Any, **options: Any) -> NoReturn:
        raise Forbidden(reason)

    return refused


def _dispatch_to_refusals(reasons: Mapping[str, str], stack: ExitStack) -> None:
    """Make torch's operators of these names, if there are any, raise an exception until the stack is closed."""
    import torch  # it has been imported already, or no torch name would have been found

    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    stack.callback(library._destroy)
    has_code = torch._C._dispatch_has_kernel_for_dispatch_key
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that an operator's code is replaced
        for name, reason in reasons.items():
            operator = getattr(torch.ops.aten, name, None)
            for overload in operator.overloads() if operator else ():
                full = f"aten::{name}" if overload == "default" else f"aten::{name}.{overload}"
                if not torch._C._dispatch_has_kernel(full):
                    continue  # only TorchScript has it
                for key in DISPATCH_KEYS:
                    if has_code(full, key):
                        library.impl(full, _refusal(reason), key)
