"""Files that are replaced as a whole, so that whoever reads them, or is killed, finds either the old one or the new."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which takes the place of the old one if the block ends without an error."""
    new = path.with_name(f"{path.name}.new")
    yield new
    new.replace(path)
