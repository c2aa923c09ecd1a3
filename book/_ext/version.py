"""A Sphinx extension: the book has the version of the package, and says so at the foot of each page."""

from sphinx.application import Sphinx
from sphinx.config import Config

import attnlib


def setup(app: Sphinx) -> dict[str, bool]:
    """Ask Sphinx to be called once, before the theme reads its options."""
    app.connect("config-inited", set_version, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def set_version(_app: Sphinx, config: Config) -> None:
    """Set the version, and put it in front of the text that every page ends with."""
    config.version = config.release = attnlib.__version__
    options = config.html_theme_options
    options["extra_footer"] = f"Version {attnlib.__version__}. {options['extra_footer']}"
