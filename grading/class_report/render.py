"""Fill in the templates of the class report: text is escaped, and what students wrote is made printable and short."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import grading
from grading.outcome import MAX_TABLE_TEXT, plain
from grading.text import JOINERS, points, printable

TEMPLATES = Path(grading.__file__).with_name("templates") / "class-report"


def render(template: str, **values: Any) -> Markup:
    """Return a template, filled in with these values."""
    return Markup(ENVIRONMENT.get_template(template).render(values))


def name(student: str) -> Markup:
    """Return a name with a text direction of its own, so that a Hebrew name does not reverse the text around it."""
    return Markup("<bdi>{}</bdi>").format(printable(student[:MAX_TABLE_TEXT], JOINERS))


def whole(text: str) -> Markup:
    """Return a text as HTML without shortening it."""
    return escape(printable(text))


def lines(code: str) -> Markup:
    """Return code in which each line is shortened, rather than the code as a whole."""
    return Markup("\n").join(plain(line) for line in code.split("\n"))


def decimals(value: float | None) -> str:
    """Return a number with two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _short(value: object) -> object:
    """Return a value as a template shows it, before it is escaped; markup is unchanged, because a template made it."""
    return value if isinstance(value, Markup) else plain(str(value))


ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_short,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.filters |= {"decimals": decimals, "lines": lines, "name": name, "points": points, "whole": whole}
