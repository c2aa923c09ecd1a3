"""Files that are replaced as a whole: even if the program is killed, a reader finds either the old or the new one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which takes the place of the old one if the block ends without an error."""
    new = path.with_name(f"{path.name}.new")
    yield new
    new.replace(path)
