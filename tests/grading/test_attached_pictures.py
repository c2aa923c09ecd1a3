"""Pictures that were pasted into an answer are kept, whatever they hold besides, and cost nobody anything else."""

import io
import json
import struct
import zlib
from base64 import b64decode, b64encode

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from PIL import Image, PngImagePlugin
from test_repair import NAME, TEMPLATE, answered, cell_of, kinds

from grading.feedback import markdown
from grading.repair import pictures
from grading.repair.notebook import repair_notebook
from grading.sanitize import sanitized

COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (9, 9, 9), (255, 255, 0), (0, 255, 255)]


def picture(kind="PNG", size=(3, 2), **more):
    image = Image.new("RGB", (3, 2))
    image.putdata(COLOURS)
    out = io.BytesIO()
    image.resize(size, Image.Resampling.NEAREST).save(out, kind, **more)
    return out.getvalue()


def encoded(content):
    return b64encode(content).decode()


@pytest.fixture
def handed_in(tmp_path):
    """Hand in a notebook with these attachments in the answer in words, and return what is admitted."""
    folder = tmp_path / "student" / "tiny"
    folder.mkdir(parents=True)

    def handed_in(attachments, notebook=None):
        notebook = notebook or answered()
        raw = json.loads(nbformat.writes(notebook))
        (cell,) = (cell for cell in raw["cells"] if cell["id"] == "words")
        cell["attachments"] = attachments
        (folder / NAME).write_text(json.dumps(raw))
        admitted = repair_notebook(folder, NAME, TEMPLATE)
        nbformat.validate(admitted.notebook)
        return admitted

    return handed_in


def kept(admitted, cell="words"):
    return cell_of(admitted.notebook, cell).get("attachments", {})


def shown(media):
    ((kind, text),) = media.items()
    return kind, Image.open(io.BytesIO(b64decode(text)))


def test_a_picture_in_an_answer_is_kept_as_it_looks(handed_in):
    admitted = handed_in({"image.png": {"image/png": encoded(picture())}})
    kind, image = shown(kept(admitted)["image.png"])
    assert (kind, image.format, image.size) == ("image/png", "PNG", (3, 2))
    assert [image.getpixel((x, y)) for y in range(2) for x in range(3)] == COLOURS
    assert admitted.repairs == ()


def test_a_picture_in_a_cell_of_their_own_is_kept_and_code_has_none(handed_in):
    notebook = answered()
    media = {"a b.png": {"image/png": encoded(picture())}}
    notebook.cells += [new_markdown_cell("![x](attachment:a%20b.png)", attachments=media), new_code_cell("1")]
    admitted = handed_in({}, notebook)
    assert "a%20b.png" in kept(admitted, "own-1")
    assert "attachments" not in cell_of(admitted.notebook, "own-2")


def test_a_photograph_is_scaled_down_and_stands_upright(handed_in, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_PICTURE_SIDE", 60)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it to the right
    exif[0x010E] = "where it was taken"
    content = picture("JPEG", (300, 200), exif=exif)
    kind, image = shown(kept(handed_in({"x.jpg": {"image/jpeg": encoded(content)}}))["x.jpg"])
    assert (kind, image.format, image.size) == ("image/jpeg", "JPEG", (40, 60))
    assert not image.getexif()
    assert all(abs(a - b) < 40 for a, b in zip(image.getpixel((30, 10)), COLOURS[0], strict=True))


def test_a_photograph_of_several_pictures_is_kept_as_its_first(handed_in):
    """Phones write MPO: a JPEG with a second one, such as a preview, behind it."""
    preview = Image.new("RGB", (300, 200))
    content = picture("MPO", (300, 200), save_all=True, append_images=[preview])
    assert Image.open(io.BytesIO(content)).format == "MPO"
    admitted = handed_in({"x.jpg": {"image/jpeg": encoded(content)}})
    kind, image = shown(kept(admitted)["x.jpg"])
    assert (kind, image.format, image.size) == ("image/jpeg", "JPEG", (300, 200))
    assert all(abs(a - b) < 40 for a, b in zip(image.getpixel((30, 30)), COLOURS[0], strict=True))
    assert admitted.repairs == ()


def rotated():
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it to the right
    exif[0x010E] = "where it was taken"
    return exif.tobytes()


BROKEN = [
    rotated()[:-9],
    rotated()[:20],
    rotated()[:9],
    b"Exif\0\0XX*\0" + bytes(9),
    rotated().replace(b"\x01\x0e\0\x02", b"\x01\x01\0\x02"),  # a text as the height, which Pillow fails on
]


@pytest.mark.parametrize("exif", BROKEN)
def test_a_broken_exif_block_costs_no_more_than_the_rotation(handed_in, exif):
    admitted = handed_in({"x.jpg": {"image/jpeg": encoded(picture("JPEG", (300, 200), exif=exif))}})
    kind, image = shown(kept(admitted)["x.jpg"])
    assert (kind, set(image.size)) == ("image/jpeg", {300, 200})
    assert admitted.repairs == ()


def test_a_warning_of_the_decoder_costs_nothing_unless_it_is_of_a_bomb(handed_in, monkeypatch):
    def wide(width=300, height=200):
        return handed_in({"x.jpg": {"image/jpeg": encoded(picture("JPEG", (width, height), exif=rotated()[:20]))}})

    with pytest.warns(UserWarning, match="Corrupt EXIF"):
        Image.open(io.BytesIO(picture("JPEG", exif=rotated()[:20]))).getexif()
    assert kept(wide())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 300 * 200 - 1)  # twice as many are an error, one more a warning
    assert not kept(wide())


def test_nothing_but_the_colours_is_kept(handed_in):
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "<script>alert(1)</script>")
    content = picture(pnginfo=notes, icc_profile=b"<script>") + b"<script>alert(2)</script>"
    media = kept(handed_in({"x": {"image/png": encoded(content)}}))["x"]
    assert b"script" not in b64decode(media["image/png"])


def bomb(width, height):
    """A PNG that says it is large, and holds a flood of zeros."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")
    )


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
BAD = {
    "text": {"image/png": encoded(b"no picture")},
    "cut off": {"image/png": encoded(picture(size=(300, 200))[:300])},
    "svg": {"image/svg+xml": encoded(SVG)},
    "svg that says it is a png": {"image/png": encoded(SVG)},
    "gif that says it is a png": {"image/png": encoded(picture("GIF"))},
    "bomb": {"image/png": encoded(bomb(60_000, 60_000))},
    "smaller bomb": {"image/png": encoded(bomb(9_000, 9_000))},
    "no base64": {"image/png": "\ud83d\ude00!"},
    "a number": {"image/png": 7},
    "a list of numbers": {"image/png": [7]},
    "not media": "image",
    "nothing": None,
    "many names": {"image/png": {"image/png": {}}},
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_picture_costs_itself_alone_and_is_told(handed_in, bad):
    admitted = handed_in({bad: BAD[bad], "good": {"image/png": encoded(picture())}})
    assert list(kept(admitted)) == ["good"]
    assert kinds(admitted) == {"picture-left-out"}
    assert bad in admitted.repairs[0].text
    assert cell_of(admitted.notebook, "words").source == "Since it is so."


def test_a_marker_and_the_student_see_the_picture(handed_in):
    notebook = answered()
    cell_of(notebook, "words").source = "As drawn: ![a sketch](attachment:my%20image.png)"
    admitted = handed_in({"my image.png": {"image/png": encoded(picture())}}, notebook)
    stored = cell_of(sanitized(admitted.notebook), "words")
    ((_, text),) = stored.attachments["my%20image.png"].items()
    assert f'src="data:image/png;base64,{text}"' in markdown({"cell": stored}, stored.source)


@pytest.mark.parametrize("attachments", [None, [], 7, "x", {}])
def test_attachments_that_are_none_are_no_matter(handed_in, attachments):
    assert "attachments" not in cell_of(handed_in(attachments).notebook, "words")


def test_pictures_are_bounded_in_number_bytes_and_names(handed_in, monkeypatch):
    one = {"image/png": encoded(picture())}
    many = handed_in({f"{i}.png": one for i in range(pictures.MAX_PICTURES + 3)})
    assert len(kept(many)) == pictures.MAX_PICTURES
    assert "there are more than 20" in many.repairs[0].text
    assert not kept(handed_in({"x" * 201: one, "a\nb": one}))
    size = len(b64decode(kept(handed_in({"x": one}))["x"]["image/png"]))
    monkeypatch.setattr(pictures, "MAX_PICTURE_BYTES", 2 * size)
    assert list(kept(handed_in({"a": one, "b": one, "c": one}))) == ["a", "b"]
    monkeypatch.setattr(pictures, "MAX_PICTURE_BYTES", 10)
    assert not kept(handed_in({"a": one}))
    monkeypatch.undo()
    monkeypatch.setattr(pictures, "MAX_PIXELS", 13)
    assert list(kept(handed_in({"a": one, "b": one, "c": one}))) == ["a", "b"]
