"""What the code of a notebook refers to, by its full name and line. The code is read, never run.

After ``import attnlib as a`` and ``s = a.softmax``, a call of ``s`` refers to ``attnlib.softmax``. The code may be
hostile: what cannot be parsed is read word by word, and nothing here recurses.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from grading.static_checks.scopes import (
    UNKNOWN_NAME,
    Function,
    Scope,
    bind_all,
    branches,
    children,
    constant_text,
    declared_global,
    defaults,
    library_path,
    path_of,
    refers_to,
    root_of,
    scope_of,
)

MAX_CELL_LENGTH = 30_000  # characters of a cell that are read; the longest of the course has a tenth of that
MAGIC_LINE = re.compile(r"^[ \t]*+(?:[%!?].*|.*\?)[ \t]*$", re.MULTILINE)
WORD_TOKEN = re.compile(
    r"\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|\"[^\"\n]*\"|'[^'\n]*'|\#[^\n]*"  # strings and comments
    r"|(?P<name>[^\W\d]\w*(?:[ \t]*\.[ \t]*[^\W\d]\w*)*)"
)
IMPORT_STATEMENT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+([^#\n]+)", re.MULTILINE)
DEFINED_NAME = re.compile(r"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*=[^=]", re.MULTILINE)
TELLING_TEXT = re.compile(  # the location of a library, the grader's modules, and attributes that Python reserves
    r"site-packages|dist-packages|attnlib[/\\]|[/\\]attnlib|grading[./\\]sandbox|solver_guard|^__\w+__$"
)
# Functions that neither return nor keep their first argument, nor pass it to a method of another, as isinstance does.
LOOKING = ("dir", "getattr", "hasattr", "help", "id", "print", "repr", "str", "type", "vars")
LOOKING_PATHS = tuple(f"builtins.{name}" for name in LOOKING)

Kind = Literal["use", "value", "module", "from", "patch", "computed", "text", "magic", "length"]


@dataclass(frozen=True)
class Reference:
    """Something that code refers to: a path such as ``attnlib.softmax`` or ``?.softmax``, and in which way.

    ``kind`` is ``use``; ``value`` if it may become part of something else, such as a list, in which it is not followed;
    ``module`` for ``import x`` and ``from`` for ``from x import y``; ``patch`` for an assignment to it; ``computed``
    for an attribute of it whose name is computed; ``text`` for a string that names a file, a module or an attribute;
    ``magic`` for a line that only IPython understands; ``length`` for a cell that is too long to be read to its end.
    """

    line: int
    path: str
    kind: Kind


@dataclass
class Statement:
    """A statement at the top of a cell: the names that it binds or changes, those that it uses, and its references.

    ``methods`` are the methods and attributes that it gives to objects, at any depth; ``defines`` is its own name if it
    is a plain def or class.
    """

    cell: str
    binds: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    references: list[Reference] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    defines: str | None = None


def statements(cells: Sequence[tuple[str, str]]) -> list[Statement]:
    """Return the statements at the top of all cells, given as (id, source), in order."""
    notebook, found = Scope(), []
    read = [(cell, *_parsed(source)) for cell, source in cells]
    for _, source, tree, _ in read:
        if tree is not None:
            bind_all(tree.body, notebook)
        else:
            _bind_words(source, notebook)
    for cell, source, tree, others in read:
        found += [_read_words(cell, source, notebook)] if tree is None else []
        found += [_Reader(cell, notebook).read(statement) for statement in (tree.body if tree else ())]
        found += [Statement(cell, references=others)] if others else []
    return found


def _parsed(source: str) -> tuple[str, ast.Module | None, list[Reference]]:
    """Return a cell's source, cut to what is read; its code, or None if it cannot be parsed; and what is not code."""
    if len(source) > MAX_CELL_LENGTH:
        return source[:MAX_CELL_LENGTH], None, [Reference(1, "", "length")]
    tree = _tree(source)
    if tree is not None:
        return source, tree, []
    magics = [Reference(_line(source, magic), magic.group().strip(), "magic") for magic in MAGIC_LINE.finditer(source)]
    return source, _tree(MAGIC_LINE.sub(_passing, source)), magics


def _tree(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those about invalid escapes in strings
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two if it is nested too deeply
            return None


def names_in(expression: str) -> set[str]:
    """Return the names in an expression, as in that of a check."""
    return {word["name"].partition(".")[0].strip() for word in WORD_TOKEN.finditer(expression) if word["name"]}


def _passing(magic: re.Match[str]) -> str:
    text = magic.group()
    return text[: len(text) - len(text.lstrip())] + "pass"


def _line(source: str, match: re.Match[str]) -> int:
    return source.count("\n", 0, match.start()) + 1


# Reading -------------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads one statement at the top of a cell."""

    def __init__(self, cell: str, notebook: Scope) -> None:
        self.found, self.notebook = Statement(cell), notebook
        self.waiting: list[tuple[ast.AST, Scope]] = []
        self.walked: set[int] = set()  # nodes whose path is part of one that has been noted
        self.followed: set[int] = set()  # nodes whose value is not passed on, or only to a name that stands for it

    def read(self, statement: ast.stmt) -> Statement:
        """Return what the statement binds, uses and refers to."""
        own = Scope()
        bind_all([statement], own)
        self.found.binds.update(own.names)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.found.defines = statement.name
        self.waiting.append((statement, self.notebook))
        while self.waiting:
            self._visit(*self.waiting.pop())
        return self.found

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return self._enter(node, scope)
            case ast.ClassDef():
                return self._enter_class(node, scope)
            case ast.Expr(value=ast.Constant()):  # a docstring, which is not code
                return None
            case ast.Name(id=name):
                return self._name(node, name, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Import() | ast.ImportFrom():
                return self._import(node)
        self._look(node, scope)
        return self._wait(children(node), scope)

    def _look(self, node: ast.AST, scope: Scope) -> None:
        """Note what a node refers to before its parts are visited."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not scope.of_class:
                self._follow(name, value, scope, scope)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                isinstance(op, ast.Is | ast.IsNot) for op in ops
            ):
                self.followed.update(map(id, (left, *others)))
            case ast.Call():
                self._call(node, scope)
            case ast.Subscript():
                self._subscript(node, scope)
            case ast.Constant(value=str(text)) if TELLING_TEXT.search(text):
                self._note(node, text, "text")

    def _follow(self, name: str, value: ast.expr, scope: Scope, inside: Scope) -> None:
        """Mark the parts of a value that a name stands for once the value is assigned to it in the scope ``inside``."""
        path, _ = inside.resolve(name)
        self.followed.update(id(one) for one in branches(value) if path and path_of(one, scope) == path)

    def _wait(self, nodes: Sequence[ast.AST], scope: Scope) -> None:
        self.waiting.extend((node, scope) for node in reversed(nodes))

    def _enter(self, function: Function, scope: Scope) -> None:
        """Read a function's body in a scope of its own, and the rest, such as defaults, in the enclosing scope."""
        inside = scope_of(function, scope)
        for name, default in defaults(function.args):
            self._follow(name, default, scope, inside)
        self._wait([function.args], scope)
        if isinstance(function, ast.Lambda):
            return self._wait([function.body], inside)
        self.found.binds.update(declared_global(function.body))
        self._wait([*function.decorator_list, *([function.returns] if function.returns else [])], scope)
        return self._wait(function.body, inside)

    def _enter_class(self, node: ast.ClassDef, scope: Scope) -> None:
        """Read a class: its methods do not see the names of its body."""
        inside = Scope(scope, of_class=True)
        bind_all(node.body, inside)
        self._wait([*node.bases, *node.keywords, *node.decorator_list], scope)
        self.found.methods.update(child.name for child in node.body if isinstance(child, ast.FunctionDef))
        for child in node.body:
            self._wait([child], scope if isinstance(child, Function) else inside)

    def _note(self, node: ast.AST, path: str, kind: Kind) -> None:
        line = getattr(node, "end_lineno" if isinstance(node, ast.Attribute) else "lineno", None)
        self.found.references.append(Reference(line or 1, path, kind))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for item in node.names:
            if isinstance(node, ast.ImportFrom):
                self._note(node, f"{node.module or UNKNOWN_NAME}.{item.name}", "from")
            else:
                self._note(node, item.name, "module")

    def _name(self, node: ast.AST, name: str, scope: Scope) -> None:
        path, of_notebook = scope.resolve(name)
        if of_notebook:
            self.found.uses.add(name)
        if path is not None and isinstance(getattr(node, "ctx", None), ast.Load):
            self._note(node, path, "use" if id(node) in self.followed else "value")

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        """Read a chain of attributes once, from its end, and go on with the object that it begins with."""
        patched = not isinstance(node.ctx, ast.Load)
        self.found.methods.update([node.attr] if patched else [])
        if id(node) not in self.walked:
            path = path_of(node, scope, self.walked) or UNKNOWN_NAME
            read: Kind = "use" if id(node) in self.followed else "value"
            self._note(node, path, "patch" if patched else read)
        base: ast.AST = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name):
            self._owner(base, scope, changed=patched)
        else:
            self._wait([base], scope)

    def _owner(self, base: ast.Name, scope: Scope, *, changed: bool) -> None:
        """Note the name at the beginning of a path. If it is the student's own, it may be changed here."""
        path, of_notebook = scope.resolve(base.id)
        if of_notebook:
            self.found.uses.add(base.id)
            if changed and path is None:
                self.found.binds.add(base.id)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> None:
        changed = not isinstance(node.ctx, ast.Load)
        if isinstance(node.value, ast.Name) and changed:
            self._owner(node.value, scope, changed=True)
        path = None if id(node) in self.walked else path_of(node, scope, self.walked)
        if path is not None:
            self._note(node, path, "patch" if changed else "use")

    def _call(self, node: ast.Call, scope: Scope) -> None:
        """Note attributes that are read or set by their names, and methods that may change an object."""
        function = node.func
        if refers_to(function, scope, *LOOKING_PATHS):
            self.followed.update(map(id, node.args[:1]))
        if id(node) in self.walked:
            return
        path = path_of(node, scope, self.walked)
        if path is not None:
            self._note(node, path, "use")
        elif node.args and refers_to(function, scope, "builtins.getattr"):
            self._note(node, library_path(node.args[0], scope) or UNKNOWN_NAME, "computed")
        elif node.args and refers_to(function, scope, "builtins.vars"):
            self._note(node, f"{library_path(node.args[0], scope) or UNKNOWN_NAME}.__dict__", "use")
        elif len(node.args) > 1 and refers_to(function, scope, "builtins.setattr", "builtins.delattr"):
            self._note(
                node,
                f"{library_path(node.args[0], scope) or UNKNOWN_NAME}.{constant_text(node.args[1]) or '*'}",
                "patch",
            )
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            kept = any(library_path(value, scope) for value in given)
            self._owner(function.value, scope, changed=kept or scope is self.notebook)


# Word by word --------------------------------------------------------------------------------------------------------


def _bind_words(source: str, scope: Scope) -> None:
    """Note the names that broken code imports and defines."""
    for found in IMPORT_STATEMENT.finditer(source):
        for item in found[2].split(","):
            name, _, alias = item.strip(" \t()\\").partition(" as ")
            name, path = name.strip(), f"{found[1]}.{name.strip()}" if found[1] else name.strip()
            if name:
                scope.bind(alias.strip() or root_of(name), path if alias or found[1] else root_of(name))
    for found in DEFINED_NAME.finditer(source):
        scope.bind(found[1] or found[2], None)


def _read_words(cell: str, source: str, scope: Scope) -> Statement:
    """Return what broken code seems to refer to, as one statement."""
    found = Statement(cell, {a or b for a, b in DEFINED_NAME.findall(source)})
    imports = {_line(source, statement) for statement in IMPORT_STATEMENT.finditer(source)}
    line, end = 1, 0
    for word in WORD_TOKEN.finditer(source):
        line, end = line + source.count("\n", end, word.start()), word.start()
        if word["name"] is None:
            continue
        first, *rest = re.split(r"[ \t]*\.[ \t]*", word["name"])
        path, _ = scope.resolve(first)
        found.uses.add(first)
        if path is not None or rest:
            kind: Kind = "use" if line in imports else "value"
            found.references.append(Reference(line, ".".join((path or UNKNOWN_NAME, *rest)), kind))
    return found
