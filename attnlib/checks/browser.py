"""Run a notebook where torch is missing: in a browser, whose Python (Pyodide) has none, or where it is not installed.

What needs torch is left out of a cell before it runs, and so is what needs something that was left out. The cell says
so in a sentence, and the rest of the notebook runs as everywhere.
"""

import ast
import os
import symtable
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from attnlib._extras import install_command
from attnlib.checks.book_links import BOOK_VARIABLE

TORCH, ATTNLIB_TORCH = "torch", "attnlib.torch"  # the library, and our module that is built on it
SENTENCE = "{absent} {what} left out, without an error and without points: {remedy} {kept}"
ANSWERS_ARE_KEPT = "What you write here is kept, and can be handed in."
IN_A_BROWSER = {
    "absent": "There is no PyTorch in a browser.",
    "remedy": "it needs a local install, as the book's page “Start here” describes.",
}
WITHOUT_TORCH = {
    "absent": "PyTorch is not installed here.",
    "remedy": "to include it, run make torch in the folder of the course, or {command}, and restart the kernel.",
}


def in_browser() -> bool:
    """Tell whether this Python runs in a browser."""
    return sys.platform == "emscripten"


def without_torch() -> bool:
    """Tell whether torch cannot be imported."""
    return find_spec(TORCH) is None


def begin() -> None:
    """In a notebook, leave out what needs torch if there is none; in a browser, link reports to the book around it."""
    if not without_torch():
        return
    if in_browser():
        site, folder, _ = _address().partition("/lite/")
        if folder:
            os.environ.setdefault(BOOK_VARIABLE, site)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        shell.ast_transformers.append(WithoutTorch())


def left_out(what: str = "This check is") -> str:
    """Return the sentence that says what was left out, and where it can be done."""
    reason = IN_A_BROWSER if in_browser() else WITHOUT_TORCH
    remedy = reason["remedy"].format(command=install_command("torch"))
    return SENTENCE.format(absent=reason["absent"], what=what, remedy=remedy, kept=ANSWERS_ARE_KEPT)


class WithoutTorch:
    """Takes out of every cell of a notebook what needs torch; IPython calls ``visit`` with a cell before it runs."""

    def __init__(self) -> None:
        self.absent: set[str] = set()  # the notebook's names that would be there, if torch were

    def visit(self, cell: ast.Module) -> ast.Module:
        """Return the cell without what needs torch, and say that something was taken out."""
        body = list(_singly(cell.body))
        try:
            kept = self._kept(body)
        except SyntaxError:  # Python says so itself, when the cell is run
            return cell
        if len(kept) < len(body):
            print(left_out("A part of this cell is" if kept else "This cell is"))
        cell.body = kept
        return cell

    def _kept(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements that do not need torch, and remember which names the others would have defined."""
        about_torch = any(map(_imports_torch, body))
        kept = []
        for statement in body:
            made = _bound(statement)
            if self._needs_torch(statement, about_torch):
                self.absent |= made
            else:
                self.absent -= made
                kept.append(statement)
        return kept

    def _needs_torch(self, statement: ast.stmt, about_torch: bool) -> bool:
        """Tell whether a statement needs torch: what a cell that imports it defines does, written or not."""
        if about_torch and isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return True
        if not self.absent.isdisjoint(_used(statement)):
            return True
        return _imports_torch(statement) and not isinstance(statement, ast.Try)  # which says what to do without


def _singly(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a cell. An import of several modules becomes one statement for each."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (ast.copy_location(ast.Import([alias]), statement) for alias in statement.names)
        else:
            yield statement


def _imports_torch(statement: ast.stmt) -> bool:
    """Tell whether a statement imports torch, anywhere in it, or uses our module that does."""
    for node in ast.walk(statement):
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        named += [ast.unparse(node)] if isinstance(node, ast.Attribute) else []
        if any(name in (TORCH, ATTNLIB_TORCH) or name.startswith(f"{TORCH}.") for name in named):
            return True
    return False


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a cell gives a value."""
    if isinstance(statement, ast.Import):
        (alias,) = statement.names
        if alias.name == ATTNLIB_TORCH and not alias.asname:
            return set()  # attnlib itself is there without it
    symbols = _table(statement).get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _used(statement: ast.stmt) -> Iterator[str]:
    """Yield the notebook's names that a statement uses, also inside functions. Parameters are not among them."""
    tables = [_table(statement)]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
                yield symbol.get_name()


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "<cell>", "exec")


def _address() -> str:
    """Return the address of the page's program that runs Python."""
    from js import location  # there in a browser alone

    return str(location.href)
