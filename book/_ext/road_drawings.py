"""The drawings of the chapters on the front page: strokes and fills of SVG in a square of 48."""


def _grid(cells: str, x: int = 9, y: int = 9, size: int = 6) -> str:
    """Return squares for a text of rows: `#` is filled, `+` is pale, `.` is empty."""
    look = {"#": "", "+": ' opacity=".4"'}
    return "".join(
        f'<rect class="fill" x="{x + j * size}" y="{y + i * size}" width="{size - 1}" height="{size - 1}"{look[cell]}/>'
        for i, row in enumerate(cells.split())
        for j, cell in enumerate(row)
        if cell in look
    )


def _dots(*places: tuple[float, float], r: float = 3) -> str:
    return "".join(f'<circle class="fill" cx="{x}" cy="{y}" r="{r}"/>' for x, y in places)


def _line(d: str, extra: str = "") -> str:
    return f'<path d="{d}"{extra}/>'


FAINT = ' opacity=".4"'
FOUR = [(8, 36), (19, 36), (30, 36), (41, 36)]


def _pane(x: int, y: int, top: int) -> str:
    """Return a window with an arc in it."""
    arc = f"M{x + 3} {y + 12}C{x + 5} {y + top} {x + 10} {y + top} {x + 12} {y + 12}"
    return _line(f"M{x} {y}h15v15h-15z") + _line(arc)


def _box(name: str, x: int) -> str:
    return f'<rect class="{name}" x="{x}" y="16" width="10" height="16" rx="2"/>'


THICK = ' stroke-width="3"'
DRAWINGS = {
    "start": _line("M10 8v32M10 10h24l-6 7 6 7H10"),
    "context-vectors": _dots(*FOUR) + _line("M11 36h5M22 36h5M33 36h5M41 32C38 14 22 12 14 14m6-5-7 5 6 6"),
    "self-attention": _dots(*FOUR)
    + _line("M8 32C12 8 36 8 41 32M19 32c2-10 18-10 21 0", THICK)
    + _line("M30 32c1-4 8-4 10 0", FAINT),
    "queries-keys-values": _box("query", 5) + _box("key", 19) + _box("value", 33),
    "many-heads": _pane(7, 7, 1) + _pane(26, 7, 5) + _pane(7, 26, 8) + _pane(26, 26, 3),
    "masks": _grid("#++++ ##+++ ###++ ####+ #####"),
    "positions": _line("M4 24C10 4 16 4 24 24s14 20 20 0")
    + _line("M4 24c4-16 7-16 10 0s6 16 10 0 6-16 10 0 6 16 10 0", FAINT),
    "transformer": _line("M12 34h24v8H12zM12 20h24v8H12zM12 6h24v8H12zM24 20v-6M24 34v-6"),
    "modern-block": _line("M8 40V14M8 40h34")
    + _line("M8 16c6 16 16 20 32 21", FAINT)
    + _line("M8 16c4 20 14 23 32 23"),
    "generating": _grid("####. ####. ####.", 9, 16) + _line("M40 15v19"),
    "a-model-that-writes": _line("M8 40h32M13 36V10M22 36V20M31 36v-9M38 36v-4", THICK),
    "looking-into-a-decoder": _line("M17 10h-5v28h5M31 10h5v28h-5") + _line("M14 24C18 16 30 16 34 24", FAINT),
    "applications": _line("M7 9h15v15H7zM26 9h15v15H26zM8 34h32M8 40h20M7 20l5-5 5 4 5-5"),
    "learned-queries": _line("M6 40C16 40 16 12 24 12s8 28 18 28") + _line("M24 8v34", FAINT),
    "looking-into-a-real-model": '<circle cx="20" cy="20" r="13"/>'
    + _line("M30 30l11 11", THICK)
    + _line("M12 24c3-9 12-9 16 0", FAINT),
    "gradients-by-hand": _line("M6 10h36M42 10c0 12-36 10-36 26m-4-6 4 7 6-5") + _dots((42, 38)),
    "tiles-and-the-gpu": _grid("##++. ##++. ++... ++... .....") + _line("M8 8h31v31H8z"),
    "slips": _line("M8 12h22M8 22h30M8 32h16") + _line("M30 30l9 9M39 30l-9 9", THICK),
}
