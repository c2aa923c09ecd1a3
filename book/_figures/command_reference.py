"""The commands, options and settings of the grader as tables, made from what the grader itself reads."""

import argparse
import re
from dataclasses import asdict

from _tools.notebook_helpers import table
from IPython.display import Markdown

from grading.__main__ import _parser
from grading.class_settings import TEMPLATE, ClassSettings

SETTING = re.compile(r"((?:^# .*\n)+)((?:^\w+ = .*\n)+)", re.MULTILINE)


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name."""
    (found,) = (action.choices for action in _parser()._actions if isinstance(action.choices, dict))
    return found


def command(name: str) -> Markdown:
    """Return what a command does, and a table of its arguments and options."""
    parser = commands()[name]
    formatter = parser._get_formatter()
    rows = [
        [_names(action), _in_table(formatter._expand_help(action))]
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction)
    ]
    return Markdown(f"{_in_table(str(parser.description))}\n\n{table(['argument', 'meaning'], *rows).data}")


def _names(action: argparse.Action) -> str:
    """Return how an argument is written: its names, and what follows them."""
    choices = "{" + ",".join(action.choices) + "}" if action.choices else ""
    value = "" if action.nargs == 0 else choices or str(action.metavar or action.dest.upper())
    several = f"{value} …" if action.nargs == "+" else value
    optional = f"[{several}]" if action.nargs == "?" else several
    return f"`{' '.join(filter(None, (', '.join(action.option_strings), optional)))}`"


def _in_table(text: str) -> str:
    """Return a text of the parser so that Markdown shows it as it is, but for code between backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = [re.sub(r"([*_<|\[\]$\\])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts)]
    return "".join(plain)


def settings() -> Markdown:
    """Return a table of the settings in ``course.toml``, with their default values, made from its comments."""
    defaults = asdict(ClassSettings())
    rows = []
    for comment, lines in SETTING.findall(TEMPLATE):
        meaning = " ".join(line.removeprefix("# ") for line in comment.splitlines())
        rows += [[f"`{key}`", f"`{defaults[key]!r}`", meaning] for key in re.findall(r"^\w+", lines, re.MULTILINE)]
    return table(["key", "default", "meaning"], *rows)
