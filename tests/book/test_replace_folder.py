"""A folder is replaced as a whole, also where an earlier call was killed: what was there is there, or what is new."""

from pathlib import Path

import pytest
from _tools.replace_folder import recover_folder, replace_folder


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def folder(place: Path, text: str) -> Path:
    place.mkdir()
    (place / "index.html").write_text(text)
    return place


@pytest.fixture
def site(tmp_path) -> Path:
    """A site, with JupyterLite in it."""
    site = folder(tmp_path / "html", "old")
    folder(site / "lite", "lite")
    return site


def replace(site: Path, text: str) -> None:
    replace_folder(folder(site.with_name(text), text), site, keep=["lite"])


def shown(site: Path) -> tuple[str, str]:
    return (site / "index.html").read_text(), (site / "lite" / "index.html").read_text()


def replace_and_be_killed(site: Path, after: int, monkeypatch) -> None:
    """Replace a site, and end after so many renames."""
    real, left = Path.rename, iter(range(after))

    def rename(self, target):
        if next(left, None) is None:
            raise Killed
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with pytest.raises(Killed):
            replace(site, "killed")


def test_the_new_folder_is_there_with_what_is_kept_and_nothing_lies_beside_it(site):
    replace(site, "new")
    assert shown(site) == ("new", "lite")
    assert list(site.parent.iterdir()) == [site]


@pytest.mark.parametrize("after", range(3))
def test_what_a_killed_call_left_is_replaced_by_the_next_one_and_nothing_that_is_kept_is_lost(site, after, monkeypatch):
    replace_and_be_killed(site, after, monkeypatch)
    replace(site, "new")
    assert shown(site) == ("new", "lite")
    assert not site.with_name("html.old").exists()


@pytest.mark.parametrize("after", range(3))
def test_after_a_killed_call_a_whole_folder_is_there_before_anything_is_built(site, after, monkeypatch):
    replace_and_be_killed(site, after, monkeypatch)
    recover_folder(site, keep=["lite"])
    assert shown(site) == ("killed" if after == 2 else "old", "lite")


def test_where_nothing_was_there_before_nothing_is_put_back(tmp_path):
    recover_folder(tmp_path / "html")
    assert list(tmp_path.iterdir()) == []
    replace_once = folder(tmp_path / "new", "new")
    replace_folder(replace_once, tmp_path / "html")
    assert (tmp_path / "html" / "index.html").read_text() == "new"
