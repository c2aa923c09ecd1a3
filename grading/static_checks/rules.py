"""Which references are suspicious because they may be a way around the checks, and how suspicious each is."""

import re
import sys
from typing import Literal

import attnlib.checks
from grading.static_checks.arithmetic import beyond_arithmetic
from grading.static_checks.references import Reference

Level = Literal["notice", "suspicious"]

# No honest solution needs these, whichever cell they are in.
SUSPICIOUS = {
    "builtins.__builtins__": "accesses Python's built-ins directly",
    "builtins.__file__": "looks up the path of a file",
    "builtins.__import__": "imports a module by name",
    "builtins.compile": "turns text into code",
    "builtins.eval": "runs text as code",
    "builtins.exec": "runs text as code",
    "code": "runs text as code",
    "codeop": "turns text into code",
    "ctypes": "reaches into the memory of the process",
    "gc.get_objects": "looks for objects in memory",
    "gc.get_referents": "looks for objects in memory",
    "gc.get_referrers": "looks for objects in memory",
    "grading": "refers to the grading system",
    "dis": "looks inside a function",
    "imp": "imports a module by name",
    "importlib": "imports a module by name",
    "inspect.currentframe": "inspects the call stack",
    "inspect.getclosurevars": "looks inside a function",
    "inspect.getfile": "looks up the path of a file",
    "inspect.getouterframes": "inspects the call stack",
    "inspect.getsource": "reads the source of a function",
    "inspect.getsourcefile": "looks up the path of a file",
    "inspect.getsourcelines": "reads the source of a function",
    "inspect.stack": "inspects the call stack",
    "marshal": "turns bytes into code",
    "nbgrader": "refers to the grading system",
    "numpy.ctypeslib": "reaches into the memory of the process",
    "numpy.f2py": "makes functions in another language",
    "numpy.testing.runstring": "runs text as code",
    "pkgutil": "imports a module by name",
    "pydoc": "imports a module by name",
    "runpy": "imports a module by name",
    "sys._current_frames": "inspects the call stack",
    "sys._getframe": "inspects the call stack",
    "sys.executable": "runs another Python",
    "sys.meta_path": "changes how modules are imported",
    "sys.modules": "looks up modules by name",
    "sys.path_hooks": "changes how modules are imported",
    "sys.setprofile": "traces the calls of the process",
    "sys.settrace": "traces the calls of the process",
    "torch._C": "bypasses torch's functions",
    "torch._VF": "bypasses torch's functions",
    "torch.compile": "makes functions in another language",
    "torch.export": "makes functions in another language",
    "torch.fx": "builds functions from other functions",
    "torch.hub": "runs code from files",
    "torch.jit": "makes functions in another language",
    "torch.library": "changes torch's functions",
    "torch.ops": "bypasses torch's functions",
    "torch.package": "runs code from files",
    "torch.overrides": "changes how torch's functions are called",
    "torch.utils.cpp_extension": "makes functions in another language",
    "tracemalloc": "interferes with the measurement of memory",
    "types.CodeType": "builds functions from code objects",
    "types.FunctionType": "builds functions from code objects",
    "unittest.mock": "changes a library while it runs",
}
# These may be honest in a cell that a student added. No answer needs any of them.
SUSPICIOUS_IN_ANSWERS = {
    "IPython": "reaches into IPython",
    "asyncio": "runs something alongside the answer",
    "atexit": "runs something after the answer",
    "builtins.get_ipython": "reaches into IPython",
    "builtins.globals": "accesses all names in the notebook",
    "builtins.open": "opens a file",
    "concurrent": "runs something alongside the answer",
    "io.open": "opens a file",
    "linecache": "reads a file",
    "multiprocessing": "runs something alongside the answer",
    "numpy.fromfile": "reads a file",
    "numpy.genfromtxt": "reads a file",
    "numpy.load": "reads a file",
    "numpy.loadtxt": "reads a file",
    "numpy.memmap": "reads a file",
    "operator.attrgetter": "computes the name of an attribute",
    "operator.methodcaller": "computes the name of a method",
    "os": "accesses the operating system",
    "pathlib": "works on files",
    "pickle": "reads or writes objects",
    "shutil": "works on files",
    "signal": "changes how the process is stopped",
    "socket": "opens a connection",
    "subprocess": "runs another program",
    "sys.path": "changes where Python looks for modules",
    "threading": "runs something alongside the answer",
    "torch.load": "reads a file",
    "typing.ForwardRef": "runs text as code",
    "typing.get_type_hints": "runs text as code",
    "urllib": "opens a connection",
}
SUSPICIOUS_ATTRIBUTES = {  # attributes, of any object
    "DisableTorchFunction": "bypasses torch's functions",
    "DisableTorchFunctionSubclass": "bypasses torch's functions",
    "_sys": "reaches sys through another object",
    "bltns": "reaches Python's built-ins through another object",
    "builtins": "reaches Python's built-ins through another object",
    "importlib": "reaches importlib through another object",
    "sys": "reaches sys through another object",
    "__base__": "walks through classes",
    "__bases__": "walks through classes",
    "__builtins__": "accesses Python's built-ins directly",
    "__closure__": "looks inside a function",
    "__code__": "looks inside a function",
    "__file__": "looks up the path of a file",
    "__func__": "looks inside a method",
    "__getattribute__": "looks up an attribute by its name",
    "__globals__": "looks inside a function",
    "__loader__": "imports a module by name",
    "__mro__": "walks through classes",
    "__path__": "looks up the path of a file",
    "__self__": "looks inside a method",
    "__spec__": "imports a module by name",
    "__subclasses__": "walks through classes",
    "__wrapped__": "looks inside a function",
    "co_code": "looks inside a function",
    "co_consts": "looks inside a function",
    "f_back": "inspects the call stack",
    "f_globals": "inspects the call stack",
    "f_locals": "inspects the call stack",
    "gi_frame": "inspects the call stack",
    "tb_frame": "inspects the call stack",
}
# Attributes that may be honest in a cell that a student added.
SUSPICIOUS_ATTRIBUTES_IN_ANSWERS = {
    "read_bytes": "reads a file",
    "read_text": "reads a file",
    "run_cell": "has IPython run text",
    "run_cell_magic": "has IPython run text",
    "run_line_magic": "has IPython run text",
    "safe_execfile": "has IPython run a file",
}
# Magics that run files or other programs, write modules, or show the source of a library.
SUSPICIOUS_MAGIC = re.compile(
    r"%%?(run|load|loadpy|load_ext|writefile|pycat|psource|pfile|pinfo2|python3?|pypy|script|bash|sh|cython)\b|!.*\bpython"
)
# Modules with suspicious parts. Honest code shows which parts it uses.
TOOLS = frozenset(path.partition(".")[0] for path in SUSPICIOUS) - {"numpy", "torch"}
# Modules with parts that solve exercises. Once one is in a list, say, the source does not show which parts are used.
# Honest code for both NumPy and torch does this, too, and forbidden parts raise an error when they are called.
SOLVERS = ("attnlib", "attnlib.numpy", "attnlib.torch", "torch", "torch.nn", "torch.nn.functional", "torch.special")
GRADER_TEXT = re.compile(r"grading[./\\]sandbox|solver_guard")
WATCHED_LIBRARIES = ("attnlib", "builtins", "math", "numpy", "scipy", "sklearn", "sys", "torch")
DISPLAY_MODULE = "IPython.display"
CHECKS_MODULE = "attnlib.checks"


def match_rule(reference: Reference, *, in_answer: bool) -> tuple[Level, str] | None:
    """Return how suspicious a reference is and why, or None. ``in_answer`` says whether an answer uses it."""
    soft: Level = "suspicious" if in_answer else "notice"
    root, *parts = reference.path.split(".")
    hidden: Level = "suspicious" if root in TOOLS else soft
    match reference.kind:
        case "text":
            return _by_text(reference.path)
        case "value" if reference.path in TOOLS or reference.path in SOLVERS:
            level: Level = "suspicious" if reference.path in TOOLS else "notice"
            return level, f"passes {reference.path} on, so that the source does not show which parts of it are used"
        case "length":
            return "suspicious", "is too long to be read to its end"
        case "magic":
            aimed = any(name in reference.path for name in ("attnlib", "site-packages", "grading"))
            aimed = aimed or SUSPICIOUS_MAGIC.match(reference.path) is not None
            return ("suspicious" if aimed else "notice"), "is a command for IPython"
        case "patch" if root in WATCHED_LIBRARIES or root in sys.stdlib_module_names:
            settings = reference.path.startswith("torch.backends.")
            return ("notice" if settings else "suspicious"), f"changes {root} while it runs"
        case "computed" if root in WATCHED_LIBRARIES or root in TOOLS:
            return hidden, f"computes the name of what it uses from {root}"
    inside = next((SUSPICIOUS_ATTRIBUTES[part] for part in parts if part in SUSPICIOUS_ATTRIBUTES), None)
    if inside is not None:
        return "suspicious", inside
    tool = next(
        (SUSPICIOUS_ATTRIBUTES_IN_ANSWERS[part] for part in parts if part in SUSPICIOUS_ATTRIBUTES_IN_ANSWERS), None
    )
    if tool is not None:
        return soft, tool
    found = _by_path(reference, soft) or _by_library(root, parts, soft)
    beyond = beyond_arithmetic(root, parts) if in_answer and reference.kind != "module" else None
    return found or (("suspicious", beyond) if beyond else None)


def _by_text(text: str) -> tuple[Level, str] | None:
    """Judge a string that names a file, a module of the grader, or an attribute that Python reserves."""
    if GRADER_TEXT.search(text):
        return "suspicious", "refers to the grading system"
    if text.startswith("__") and text.endswith("__"):
        return ("suspicious", SUSPICIOUS_ATTRIBUTES[text]) if text in SUSPICIOUS_ATTRIBUTES else None
    return "suspicious", "names the location of a library's files"


def _by_path(reference: Reference, soft: Level) -> tuple[Level, str] | None:
    """Judge by the tables. Importing a module without using it is only worth a notice."""
    path = reference.path
    if path == DISPLAY_MODULE or path.startswith(DISPLAY_MODULE + ".") or path == "IPython":
        return None
    if path.startswith(CHECKS_MODULE + ".") and path.split(".")[2] not in attnlib.checks.__all__:
        return "suspicious", "refers to the grading system"
    parts = path.split(".")
    for n in range(1, min(len(parts), 3) + 1):  # no path in the tables is longer
        name = ".".join(parts[:n])
        if name in SUSPICIOUS:
            mild = reference.kind == "module" and SUSPICIOUS[name] != SUSPICIOUS["grading"]
            return ("notice" if mild else "suspicious"), SUSPICIOUS[name]
        if name in SUSPICIOUS_IN_ANSWERS:
            return ("notice" if reference.kind == "module" else soft), SUSPICIOUS_IN_ANSWERS[name]
    return None


def _by_library(root: str, parts: list[str], soft: Level) -> tuple[Level, str] | None:
    """Judge the use of a library's private parts, and of the dictionary of everything in it."""
    if "__dict__" in parts and (root in WATCHED_LIBRARIES or root in TOOLS):
        return ("suspicious" if root in TOOLS else soft), f"accesses everything in {root}"
    private = any(part.startswith("_") and part[1:2] != "_" for part in (root, *parts))
    if private and (root in ("attnlib", "numpy", "torch") or root in sys.stdlib_module_names):
        return ("suspicious" if root == "sys" else soft), f"uses a private part of {root}"
    return None
