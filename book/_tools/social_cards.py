"""Draw the card that other sites show beside a link to the course, and the icons of a browser's tab and of a phone.

``python -m _tools.social_cards book/_static`` writes them; a test compares them with what this draws.
"""

import re
import sys
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from PIL import Image

import attnlib
from attnlib.embeddings import ppmi_vectors, small_town
from attnlib.plotting import heatmap, use_style

LOGO = Path(__file__).parents[1] / "_static" / "logo.svg"
WORDS = ["bark", "is", "very", "cute", "and", "he", "is", "a", "dog"]
BACKGROUND, BLUE, GREY = "#ffffff", "#3b82c4", "#5a6472"
MARGIN = 0.055  # of the card's width


def card() -> Figure:
    """Return the card: the course's name beside the weights of the sentence at the end of its second chapter."""
    use_style()
    figure = Figure(figsize=(12, 6.3), facecolor=BACKGROUND, layout="none")  # type: ignore[arg-type]
    _, weights = attnlib.self_attention(ppmi_vectors(small_town())[WORDS])
    ax = figure.add_axes((0.575, 0.06, 0.4, 0.76))
    with mpl.rc_context({"font.size": 15}):
        heatmap(weights, WORDS, WORDS, ax=ax, digits=1)
    ax.tick_params(labelsize=15)
    logo(figure.add_axes((MARGIN - 0.006, 0.66, 0.105, 0.2)))
    figure.text(MARGIN, 0.47, "Attention,\nfrom the ground up", size=33, weight="bold", linespacing=1.15, va="center")
    line = "A course in Python, with exercises:\nfrom context vectors to a transformer\nyou can read."
    figure.text(MARGIN, 0.2, line, size=18.5, color=GREY, linespacing=1.4, va="center")
    return figure


def logo(ax: Axes) -> None:
    """Draw the logo from the squares in its file."""
    ax.set(xlim=(0, 96), ylim=(96, 0), aspect="equal")
    ax.axis("off")
    for x, y, opacity in re.findall(r'<rect x="(\d+)" y="(\d+)"[^>]*?(?: opacity="([.\d]+)")?/>', LOGO.read_text()):
        round_corners = "round,pad=0,rounding_size=4"
        strength = float(opacity or 1)
        ax.add_patch(FancyBboxPatch((int(x), int(y)), 24, 24, round_corners, color=BLUE, alpha=strength, lw=0))


def icon(pixels: int, paper: str) -> Figure:
    """Return the logo as a square picture."""
    figure = Figure(figsize=(pixels / 100, pixels / 100), facecolor=paper, layout="none")  # type: ignore[arg-type]
    logo(figure.add_axes((0, 0, 1, 1)))
    return figure


def pictures() -> dict[str, Figure]:
    """Return every picture, by the name of its file."""
    return {"social.png": card(), "apple-touch-icon.png": icon(180, BACKGROUND), "favicon.png": icon(48, "none")}


def png(figure: Figure) -> bytes:
    """Return a picture as a PNG file with 128 colours, which are enough here and make a third of the size."""
    drawn, file = BytesIO(), BytesIO()
    with mpl.rc_context({"savefig.facecolor": "auto"}):
        figure.savefig(drawn, format="png", dpi=100)
    Image.open(drawn).quantize(128, method=Image.Quantize.FASTOCTREE).save(file, format="png", optimize=True)
    return file.getvalue()


if __name__ == "__main__":
    for name, picture in pictures().items():
        Path(sys.argv[1], name).write_bytes(png(picture))
