"""Resolve names through imports, aliases and scopes to the full path of a library's function.

What a student defines is the student's own, whatever it is called. Nothing here recurses: the code may be hostile.
"""

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

UNKNOWN_NAME = "?"  # stands for what is not known by name: the result of a call, an argument
USUAL_ALIASES = {"F": "torch.nn.functional", "nn": "torch.nn", "np": "numpy", "plt": "matplotlib.pyplot"}
USUAL_IMPORTS = (  # cells that were handed out may have imported these
    *("IPython", "attnlib", "math", "numpy", "scipy", "sklearn", "torch"),
    *("ctypes", "gc", "importlib", "inspect", "os", "subprocess", "sys"),
)
MAX_PATH_LENGTH = 200  # characters that an alias may stand for; real ones have fewer than 60
BUILTINS = frozenset(dir(builtins)) | {"__builtins__", "__file__", "get_ipython"}

BINDING = (  # the kinds of nodes that may bind a name
    *(ast.Import, ast.ImportFrom, ast.Assign, ast.NamedExpr, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Name, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
)
OPERATORS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)  # nodes that contain no others

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Scope:
    """The names of a function or of the notebook, each with its path, or None if it is the student's own.

    Names that are bound in the body of a class can be read elsewhere as attributes, which are not followed.
    """

    parent: "Scope | None" = None
    of_class: bool = False
    names: dict[str, str | None] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def bind(self, name: str, path: str | None) -> None:
        """Note a binding. A name that ever stands for a path of a library counts as that path."""
        self.names[name] = path if path and len(path) <= MAX_PATH_LENGTH else self.names.get(name)

    def resolve(self, name: str) -> tuple[str | None, bool]:
        """Return a name's path, None if it is the student's own or unknown, and whether it belongs to the notebook."""
        scope: Scope = self
        while scope.parent is not None:
            if name in scope.names:
                return scope.names[name], False
            scope = scope.parent
        return (scope.names[name] if name in scope.names else _predefined(name, scope.stars)), True


def _predefined(name: str, stars: Sequence[str]) -> str | None:
    """Return what a name stands for if none of the student's cells binds it."""
    if name in USUAL_ALIASES or name in USUAL_IMPORTS:
        return USUAL_ALIASES.get(name, name)
    if name in BUILTINS:
        return f"builtins.{name}"
    return f"{stars[-1]}.{name}" if stars else None


def bind_all(body: Sequence[ast.AST], scope: Scope) -> None:
    """Note all names that the nodes bind in their own scope, but not those bound inside functions and classes."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, BINDING):
            _bind(node, scope)
        if not isinstance(node, Function | ast.ClassDef):
            waiting.extend(reversed(children(node)))


def children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node, except operators. Most of the time is spent here."""
    found: list[ast.AST] = []
    for name in node._fields:
        below = getattr(node, name, None)
        if isinstance(below, list):
            found += [one for one in below if isinstance(one, ast.AST) and not isinstance(one, OPERATORS)]
        elif isinstance(below, ast.AST) and not isinstance(below, OPERATORS):
            found.append(below)
    return found


def _bind(node: ast.AST, scope: Scope) -> None:
    """Note what one node binds."""
    match node:
        case ast.Import(names=names):
            for item in names:
                scope.bind(item.asname or item.name.partition(".")[0], item.name if item.asname else root_of(item.name))
        case ast.ImportFrom(module=module, names=names):
            for item in names:
                if item.name == "*":
                    scope.stars.append(module or UNKNOWN_NAME)
                else:
                    scope.bind(item.asname or item.name, f"{module or UNKNOWN_NAME}.{item.name}")
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            scope.bind(name, library_path(value, scope))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            scope.bind(name, None)
        case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            scope.bind(name, None)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            scope.bind(name, None)


def scope_of(function: Function, parent: Scope) -> Scope:
    """Return the scope of a function: its arguments, and what its body binds, except what it declares as global."""
    scope, given = Scope(parent), function.args
    everything = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    scope.names.update(dict.fromkeys(x.arg for x in everything if x is not None))
    for name, default in defaults(given):
        scope.bind(name, library_path(default, parent))
    if not isinstance(function, ast.Lambda):
        bind_all(function.body, scope)
        for name in declared_global(function.body):
            scope.names.pop(name, None)
    return scope


def defaults(given: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a function's arguments that have a default value, with that value."""
    pairs = [*zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)]
    for argument, default in (*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
        if default is not None:
            yield argument.arg, default


def declared_global(body: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that a function's own statements declare as global or nonlocal."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        elif isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, Function | ast.ClassDef):
            waiting.extend(children(node))


def root_of(path: str) -> str:
    """Return the package that a path begins with."""
    return path.partition(".")[0]


def library_path(node: ast.AST, scope: Scope) -> str | None:
    """Return the path of an expression, or None if it does not begin with a name of a library.

    For ``torch if x else np``, return the more suspicious path: the one that is not NumPy's.
    """
    paths = [path_of(one, scope) for one in branches(node)]
    known = [path for path in paths if path is not None and not path.startswith(UNKNOWN_NAME)]
    return next((path for path in known if root_of(path) != "numpy"), known[0] if known else None)


def branches(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions that a conditional expression chooses from; for any other expression, yield it alone."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.IfExp):
            waiting += [one.orelse, one.body]
        else:
            yield one


def path_of(node: ast.AST, scope: Scope, walked: set[int] | None = None) -> str | None:
    """Return the path of a name, an attribute, or an equivalent such as ``getattr(a, "b")`` or ``vars(a)["b"]``.

    An attribute of what is not known by name has a path that begins with a question mark. The nodes on the way are
    added to ``walked`` by their ids: their paths are parts of this one, so they need not be walked again.
    """
    parts: list[str] = []
    walked = set() if walked is None else walked
    while not isinstance(node, ast.Name):
        module = _imported(node, scope)
        if module is not None:
            return ".".join((module, *reversed(parts)))
        step = _attribute_access(node, scope)
        if step is None:
            return ".".join((UNKNOWN_NAME, *reversed(parts))) if parts else None
        parts.append(step[0])
        walked.add(id(node))
        if isinstance(node, ast.Subscript) and not isinstance(step[1], ast.Name):
            walked.add(id(node.value))  # the middle part of a.__dict__["b"] or vars(a)["b"]
        node = step[1]
    base, _ = scope.resolve(node.id)
    return None if base is None and not parts else ".".join((base or UNKNOWN_NAME, *reversed(parts)))


def _imported(node: ast.AST, scope: Scope) -> str | None:
    """Return the name of the module that an expression imports, or finds among those already imported."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if refers_to(
            function, scope, "builtins.__import__", "importlib.import_module", "importlib.__import__"
        ):
            return name
        case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if refers_to(value, scope, "sys.modules"):
            return name
    return None


def _attribute_access(node: ast.AST, scope: Scope) -> tuple[str, ast.AST] | None:
    """Return the name of an attribute, and the object that has it."""
    match node:
        case ast.Attribute(value=value, attr=name):
            return name, value
        case ast.Call(func=function, args=[value, name, *_]) if refers_to(function, scope, "builtins.getattr"):
            text = constant_text(name)
            return None if text is None else (text, value)
        case ast.Subscript(value=ast.Call(func=function, args=[value]), slice=ast.Constant(value=str(name))) if (
            refers_to(function, scope, "builtins.vars")
        ):
            return name, value
        case ast.Subscript(value=ast.Attribute(value=value, attr="__dict__"), slice=ast.Constant(value=str(name))):
            return name, value
    return None


def refers_to(node: ast.AST, scope: Scope, *paths: str) -> bool:
    """Tell whether a name, or an attribute of a name, stands for one of these paths."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{scope.resolve(node.value.id)[0]}.{node.attr}" in paths
    return isinstance(node, ast.Name) and scope.resolve(node.id)[0] in paths


def constant_text(node: ast.AST) -> str | None:
    """Return the text of a string, or of a sum of strings."""
    texts, waiting = [], [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
            waiting += [part.right, part.left]
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            texts.append(part.value)
        else:
            return None
    return "".join(texts)
