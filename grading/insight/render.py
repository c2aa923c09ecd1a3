"""Fill in the templates of the class report: all text is escaped, and what a student made is printable and short."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import grading
from grading.outcome import plain
from grading.report import points
from grading.text import printable

TEMPLATES = Path(grading.__file__).with_name("templates") / "class-report"


def render(template: str, **values: Any) -> Markup:
    """Return a template with these values in it."""
    return Markup(ENVIRONMENT.get_template(template).render(values))


def name(student: str) -> Markup:
    """Return a name in a direction of its own: one in Hebrew turns nothing around that stands beside it."""
    return Markup("<bdi>{}</bdi>").format(plain(student))


def whole(text: str) -> Markup:
    """Return a text of any length."""
    return escape(printable(text))


def lines(code: str) -> Markup:
    """Return code whose lines are cut, rather than all of it."""
    return Markup("\n").join(plain(line) for line in code.split("\n"))


def decimals(value: float | None) -> str:
    """Return a number with two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _short(value: object) -> object:
    """Return what a template shows of a value, before it is escaped; markup is what a template has made."""
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
