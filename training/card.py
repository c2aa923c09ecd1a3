"""The model's card: text written by hand, with parts between two comments that the judgement fills in."""

from pathlib import Path

CARD = Path(__file__).parents[1] / "model" / "stdlib_lm" / "README.md"


def fill_card(parts: dict[str, str], path: Path = CARD) -> None:
    """Replace the parts of a card.

    Args:
        parts: by name: ``<!-- NAME -->`` begins a part, and ``<!-- end of NAME -->`` ends it.
        path: the card.

    Raises:
        ValueError: the card has no such part.
    """
    card = path.read_text("utf-8")
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, begins, rest = card.partition(begin)
        _, ends, after = rest.partition(end)
        if not begins or not ends:
            raise ValueError(f"{path} has no part between {begin.strip()} and {end}: add these two lines")
        card = f"{before}{begin}\n{text}\n\n{end}{after}"
    path.write_text(card, "utf-8")
