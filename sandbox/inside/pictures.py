"""Facts about a picture that an example of a function can state: its type, its size, and its colors at nine points.

Two programs rarely draw the same bytes, and nobody writes them down; these facts can be written and compared.
"""

import io
import itertools
import pathlib
import struct
import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8"
_SIZES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of the color types of PNG
_PALETTE: Final = 3
_MAX_BYTES: Final = 4 << 20  # of pixels that are decoded here, which takes a second or two
_POINTS: Final = (0.05, 0.5, 0.95)  # of the width and the height
_DRAWN_MODULES: Final = frozenset({"matplotlib.figure", "PIL.Image"})


def is_drawn(value: object) -> bool:
    """Return whether a value is a figure of matplotlib or a picture of Pillow."""
    return not _DRAWN_MODULES.isdisjoint(base.__module__ for base in type(value).__mro__)


def png_of(drawn: Any) -> bytes:  # Any: a figure or picture
    """Return the bytes of a PNG file of a figure or picture."""
    file = io.BytesIO()
    if hasattr(drawn, "savefig"):
        drawn.savefig(file, format="png")
    else:
        drawn.save(file, "PNG")
    return file.getvalue()


def picture_facts(picture: Any) -> dict[str, Any]:  # Any: bytes, a path, a figure
    """Return the `type`, `width` and `height` of a picture, and, of a PNG, its `colors` at nine points, row by row.

    It is given as the bytes of a file, as the path of one, as a figure of matplotlib or as a picture of Pillow.
    """
    if is_drawn(picture):
        picture = png_of(picture)
    if not isinstance(picture, bytes):
        picture = pathlib.Path(picture).read_bytes()
    if picture.startswith(_PNG):
        return _png_facts(picture)
    if picture.startswith(_JPEG):
        width, height = _jpeg_size(picture)
        return {"type": "JPEG", "width": width, "height": height}
    raise ValueError("it is no PNG or JPEG picture")


def _png_facts(data: bytes) -> dict[str, Any]:
    width, height, depth, kind, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    facts: dict[str, Any] = {"type": "PNG", "width": width, "height": height}
    channels = _CHANNELS.get(kind, 0)
    size = (1 + width * channels) * height
    if depth != 8 or interlaced or not channels or size > _MAX_BYTES:
        return facts
    if "PIL.Image" in sys.modules:  # as with matplotlib
        return {**facts, "colors": _colors_by_pillow(data, width, height)}
    chunks = [*_chunks(data)]
    packed = b""
    palette = b""
    for name, body in chunks:
        if name == b"IDAT":
            packed += body
        elif name == b"PLTE":
            palette = body
    rows = _rows(zlib.decompressobj().decompress(packed, size), 1 + width * channels, channels)
    wanted = [int(height * part) for part in _POINTS]
    colors = list[str]()
    for number, row in enumerate(rows):
        for _ in range(wanted.count(number)):
            for part in _POINTS:
                place = int(width * part) * channels
                pixel = row[place : place + channels]
                if kind == _PALETTE:
                    pixel = palette[3 * pixel[0] : 3 * pixel[0] + 3]
                colors.append(_color(pixel))
    return {**facts, "colors": colors}


def _colors_by_pillow(data: bytes, width: int, height: int) -> list[str]:
    image = sys.modules["PIL.Image"].open(io.BytesIO(data)).convert("RGBA")
    points = itertools.product(_POINTS, _POINTS)
    return [_color(bytes(image.getpixel((int(width * x), int(height * y))))) for y, x in points]


def _color(pixel: bytes) -> str:
    """Return a color as `#rrggbb`; one of less than full opacity with its opacity, too."""
    opacity = b""
    if len(pixel) in (2, 4):
        opacity = pixel[-1:]
        pixel = pixel[:-1]
    if len(pixel) == 1:
        pixel = pixel * 3
    if opacity == b"\xff":
        opacity = b""
    return f"#{pixel.hex()}{opacity.hex()}"


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_PNG)
    while place + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        yield data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        place += 12 + length


def _rows(pixels: bytes, size: int, step: int) -> Iterator[bytes]:
    """Yield the rows of pixels without their filters; `step` is the number of bytes of a pixel."""
    above = bytes(size - 1)
    for start in range(0, len(pixels), size):
        row = bytearray(pixels[start + 1 : start + size])
        way = pixels[start]
        if way == 2:
            row = bytearray([(one + up) & 0xFF for one, up in zip(row, above, strict=True)])
        elif way:
            _unfilter(row, above, step, way)
        above = bytes(row)
        yield above


def _unfilter(row: bytearray, above: bytes, step: int, way: int) -> None:
    """Add to each byte of a row what its filter took away: of the bytes to the left, above, and above these."""
    left = bytearray(step)
    corner = bytearray(step)
    for place, one in enumerate(row):
        at = place % step
        before = left[at]
        up = above[place]
        if way == 1:
            taken = before
        elif way == 3:
            taken = (before + up) // 2
        else:
            taken = _nearest(before, up, corner[at])
        value = (one + taken) & 0xFF
        row[place] = value
        left[at] = value
        corner[at] = up


def _nearest(left: int, up: int, corner: int) -> int:
    """Return the one of three bytes that is nearest to what they predict."""
    of_left = abs(up - corner)
    of_up = abs(left - corner)
    of_corner = abs(left + up - 2 * corner)
    if of_left <= of_up and of_left <= of_corner:
        return left
    return up if of_up <= of_corner else corner


def _jpeg_size(data: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(data):
        marker = data[place + 1]
        (length,) = struct.unpack_from(">H", data, place + 2)
        if marker in _SIZES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 + length
    raise ValueError("it is a JPEG picture without a size")
