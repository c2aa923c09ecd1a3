"""What commands name and what does not exist: files, targets of make, programs and their options."""

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from grading.__main__ import _parser

ROOT = Path(__file__).parents[2]
SUFFIXES = ("py", "md", "yml", "toml", "json", "txt", "css", "bib", "cff", "js", "sh")
FILE = re.compile(  # a path, or the name of a file
    r"(?<![\w./$-])(?:[\w.*{},-]+/)+[\w.*{},-]*"
    rf"|(?<![\w./-])[\w*-]+\.(?:{'|'.join(SUFFIXES)})(?![\w/])"
)
MADE = ("_build/", ".venv/", "class/", "work/", "downloads/", "autograded/", "dist/", "../.venv/")  # by commands
PLACEHOLDER = re.compile(r"\b(ASSIGNMENT|CHAPTER|NAME|NOTEBOOK|STUDENT)\b")
PROGRAM = re.compile(r"\bpython (?:-m ([\w.]+)|([\w./-]+\.py))([^\n&|]*)")


def wrong_names(code: str) -> list[str]:
    """Return everything that commands or names in the text of a document refer to and that does not exist."""
    return [wrong for find in (wrong_files, wrong_targets, wrong_options, wrong_programs) for wrong in find(code)]


@cache
def tracked() -> frozenset[str]:
    """Return the paths of all tracked files and of their folders, and new files that Git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout
    files = [Path(name) for name in listed.strip("\0").split("\0") if (ROOT / name).exists()]
    return frozenset(str(path) for file in files for path in (file, *file.parents))


@cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][a-z-]*)(?=[ a-z-]*:(?!=))", (ROOT / "Makefile").read_text(), re.MULTILINE))


def expanded(pattern: str) -> list[str]:
    """Return a pattern of the shell without its braces: ``a{b,c}`` is ``ab`` and ``ac``."""
    braces = re.search(r"\{([^}]*)\}", pattern)
    if not braces:
        return [pattern]
    options = [pattern[: braces.start()] + option + pattern[braces.end() :] for option in braces[1].split(",")]
    return [name for option in options for name in expanded(option)]


def is_there(name: str) -> bool:
    """Tell whether there is a file or a folder of that path, or of that name in any folder."""
    wanted = str(Path(name)).replace("**/", "")
    return any(fnmatch(path, wanted) or ("/" not in wanted and fnmatch(path, f"*/{wanted}")) for path in tracked())


def wrong_files(code: str) -> Iterator[str]:
    without_addresses = re.sub(r"\w+[+\w]*://\S+", "", code)
    for name in FILE.findall(without_addresses):
        if not name.startswith(MADE) and not PLACEHOLDER.search(name):
            yield from (one for one in expanded(name.rstrip(".,")) if not is_there(one))


def wrong_targets(code: str) -> Iterator[str]:
    makefile = (ROOT / "Makefile").read_text()
    for words in re.findall(r"(?:^|\s)make((?: [\w=./-]+)+)", code):
        for word in words.split():
            variable, is_set, _ = word.partition("=")
            known = re.search(rf"\b{variable}\b", makefile) if is_set else word in make_targets()
            if not known:
                yield f"make {word}"


def about_command(module: str, arguments: str) -> str:
    """Return a text with all options of a module that is run, or '' if there is no such module or command of it."""
    if module == "grading":
        (commands,) = (action for action in _parser()._actions if action.choices)
        parser = commands.choices.get(arguments.split()[0])
        return parser.format_help() if parser else ""
    path = module.replace(".", "/")
    files = (ROOT / folder / name for folder in ("", "book") for name in (f"{path}.py", f"{path}/__main__.py"))
    return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), "")


def wrong_options(code: str) -> Iterator[str]:
    for module, script, arguments in PROGRAM.findall(code):
        if module in ("pytest", "pip", "http.server"):
            continue
        known = about_command(module or script.removesuffix(".py"), arguments)
        if not known:
            yield f"python {module or script}{arguments}"
        else:
            yield from (f"{module or script} {one}" for one in re.findall(r"--[\w-]+", arguments) if one not in known)


def wrong_programs(code: str) -> Iterator[str]:
    for name in re.findall(r"(?<![\w/])(?:\.\./)?\.venv/bin/([\w-]+)", code):
        if not (Path(sys.executable).parent / name).exists():
            yield f".venv/bin/{name}"
