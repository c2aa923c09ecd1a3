"""Package, changelog, citation and book have one version, and torch is pinned in one place."""

import importlib.metadata
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import yaml
from _ext import version

import attnlib

ROOT = Path(__file__).parents[2]
RELEASED = re.compile(r"^## (.+)$", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def test_the_changelog_begins_with_the_version_of_the_package_and_goes_back_in_time():
    first, *others = releases = RELEASED.findall(text("book/changelog.md"))
    assert first == attnlib.__version__
    assert others
    assert releases == sorted(releases, key=numbers, reverse=True)


def test_the_citation_names_the_version_of_the_package():
    assert yaml.safe_load(text("CITATION.cff"))["version"] == attnlib.__version__


def test_the_book_has_the_version_of_the_package_at_the_foot_of_each_page():
    sphinx = yaml.safe_load(text("_config.yml"))["sphinx"]["config"]
    config = SimpleNamespace(html_theme_options=dict(sphinx["html_theme_options"]))
    version.set_version(None, config)
    assert version.__name__ in sphinx["extensions"]
    assert config.release == attnlib.__version__
    assert config.html_theme_options["extra_footer"].startswith(f"Version {attnlib.__version__}. Code under")


def lines_with(pattern: str) -> set[tuple[str, str]]:
    """Return the tracked lines that match, with the names of their files."""
    measured = (":!benchmarks/README.md", ":!model/stdlib_lm/run.json", ":!training/*.csv")  # with that day's versions
    command = ["git", "grep", "--perl-regexp", pattern, "--", ".", *measured]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout
    return {tuple(line.split(":", 1)) for line in found.splitlines()}


def test_the_version_of_the_package_is_written_in_three_places_and_nowhere_else():
    found = lines_with(rf"(?<![\d.]){re.escape(attnlib.__version__)}(?![\d.])")
    names = sorted(name for name, _ in found if name != "requirements.txt")
    assert names == ["CITATION.cff", "attnlib/__init__.py", "book/changelog.md"]


def test_torch_is_pinned_in_one_line_from_which_the_lock_is_made():
    pinned = re.search(r'^    "(torch==(.+))",$', text("pyproject.toml"), re.MULTILINE)
    short = r"\.".join(pinned[2].split(".")[:2])
    assert lines_with(rf"torch\D{{0,12}}{short}(?!\d)") == {
        ("pyproject.toml", pinned[0]),
        ("requirements.txt", pinned[1]),
    }
    assert importlib.metadata.version("torch").split("+")[0] == pinned[2]
