"""Cut a font down to the characters that the pages show."""

import logging
from pathlib import Path

from fontTools import subset


def write_font(source: Path, target: Path, signs: set[int]) -> None:
    """Write the part of a font that draws these code points, with its licence."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # otherwise it reports each table that it cuts
    options = subset.Options(flavor="woff", layout_features=[], glyph_names=False, notdef_outline=True, name_IDs=["*"])
    with subset.load_font(str(source), options) as font:
        cut = subset.Subsetter(options)
        cut.populate(unicodes=signs)
        cut.subset(font)
        subset.save_font(font, str(target), options)
