"""A Sphinx extension: pages are written in parallel, by as many processes as there are processors.

They are read one by one: processes that read pages side by side would all write into the cache of executed pages, and
nobody would notice that two pages define the same label.
"""

import os

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def write_in_parallel(app: Sphinx, _env: BuildEnvironment) -> list[str]:
    """Let Sphinx start several processes from now on; reading has ended."""
    app.parallel = os.cpu_count() or 1
    return []  # no further pages have to be written


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("env-updated", write_in_parallel)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
