"""Keep the pictures that were pasted into an answer, within bounds, and re-encode them.

What is kept is a PNG or JPEG that this process wrote, which holds only the visible colours.
"""

import binascii
import io
import warnings
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from PIL import Image, ImageOps

from grading.repair.messages import Repair, listed

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg"}
MAX_PICTURES = 20  # in a notebook
MAX_PICTURE_BYTES = 10_000_000  # for one picture as it came, and for all those of a notebook as they are kept
MAX_PIXELS = 40_000_000  # in all pictures of a notebook together, as they are decoded
MAX_PICTURE_SIDE = 2000  # pixels; a larger picture is scaled down
MAX_PICTURE_NAME = 200  # characters

Attachments = dict[str, dict[str, str]]  # name -> type of media -> base64, as notebooks have it


class NoPictureError(Exception):
    """An attachment cannot be kept."""


class Pictures:
    """Takes the pictures of one notebook, as long as there is room for them."""

    def __init__(self) -> None:
        self._count = self._bytes = self._pixels = 0
        self._left_out: list[str] = []

    def kept(self, attachments: object) -> Attachments:
        """Return those attachments of a cell that are pictures, re-encoded."""
        kept: Attachments = {}
        for name, media in attachments.items() if isinstance(attachments, Mapping) else ():
            try:
                kept[name] = self._drawn(name, media)
            except Exception as wrong:  # a decoder may raise anything on a student's bytes; only the picture is lost
                why = str(wrong) if isinstance(wrong, NoPictureError) else "it is not a complete PNG or JPEG"
                self._left_out.append(f"{name} ({why})")
        return kept

    def repairs(self) -> tuple[Repair, ...]:
        """Return what to say of those that were left out."""
        if not self._left_out:
            return ()
        text = f"Attachments were left out: {listed(self._left_out)}. Ask for them if an answer needs them."
        return (Repair("picture-left-out", text),)

    def _drawn(self, name: str, media: object) -> dict[str, str]:
        self._count += 1
        if self._count > MAX_PICTURES:
            raise NoPictureError(f"there are more than {MAX_PICTURES} pictures")
        if len(name) > MAX_PICTURE_NAME or not name.isprintable():
            raise NoPictureError("its name is not a valid file name")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that could be decoded is kept, even if it has a fault
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            kind, content = self._again(_content(media))
        if self._bytes + len(content) > MAX_PICTURE_BYTES:
            raise NoPictureError(f"together with the others, it has more than {MAX_PICTURE_BYTES} bytes")
        self._bytes += len(content)
        return {FORMATS[kind]: b64encode(content).decode()}

    def _again(self, content: bytes) -> tuple[str, bytes]:
        """Decode a picture and encode it again; return its format and bytes."""
        with Image.open(io.BytesIO(content), formats=tuple(FORMATS)) as image:
            kind = "PNG" if image.format == "PNG" else "JPEG"  # or MPO, in which phones put a preview behind a JPEG
            # A large JPEG is decoded at a fraction of its size.
            image.draft("RGB", (MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
            pixels = image.width * image.height
            if self._pixels + pixels > MAX_PIXELS:
                raise NoPictureError(f"together with the others, it has more than {MAX_PIXELS} pixels")
            self._pixels += pixels
            drawn = _upright(image).convert("RGBA" if image.has_transparency_data else "RGB")
        drawn.thumbnail((MAX_PICTURE_SIDE, MAX_PICTURE_SIDE))
        drawn.info.clear()
        out = io.BytesIO()
        drawn.save(out, kind)
        return kind, out.getvalue()


def _upright(image: Image.Image) -> Image.Image:
    """Turn a photograph as its EXIF data says, or leave it as it is if the data cannot be read."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a student may have written anything there; a fault of the picture itself is raised again
        return image


def _content(media: Any) -> bytes:
    """Return the bytes of an attachment, which a notebook has as base64, in one text or in lines."""
    texts = (media.get(kind) for kind in FORMATS.values())
    text = next((text for text in texts if text), None)
    if isinstance(text, list):
        text = "".join(text)
    if not isinstance(text, str):
        raise NoPictureError("it is neither PNG nor JPEG")
    if len(text) > MAX_PICTURE_BYTES * 4 // 3:
        raise NoPictureError(f"it has more than {MAX_PICTURE_BYTES} bytes")
    return binascii.a2b_base64(text)
