"""The files of pictures by their format: the size and remarks in a header, and a copy without metadata.

A file is walked by the lengths of its own parts, each once; nothing is decoded.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from .records import dataclass

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_GIF_HEADS: Final = (b"GIF87a", b"GIF89a")
_OTHER_HEADS: Final = (
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\0\0\1\0", "ICO"),
    (b"8BPS", "PSD"),
)
_BRANDS: Final = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC", b"avif": "AVIF"}
_PNG_PRIVATE: Final = frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"})
_ANIMATED: Final = "animated: a model sees its first frame at most"
_CMYK: Final = "CMYK: a model may see other colors"
_TURNED: Final = "turned by its EXIF"
_SCAN: Final = 0xDA
_END: Final = 0xD9
_PIXEL_MARKS: Final = frozenset({0x00, 0xFF, *range(0xD0, 0xD8)})
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_MARKERS: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_COMMENT: Final = 0xFE
_APP1: Final = 0xE1
_EXIF: Final = b"Exif\0\0"
_ORIENTATION: Final = 0x0112
_MAX_TAGS: Final = 1_000
_LOOP_NAMES: Final = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
_MAX_FRAMES: Final = 10_000
_WEBP_PRIVATE: Final = frozenset({b"EXIF", b"XMP "})
_PRIVATE_FLAGS: Final = 0x08 | 0x04
_ANIMATION_FLAG: Final = 0x02


@dataclass(frozen=True, slots=True)
class PictureHeader:
    """What a file says of itself."""

    width: int
    height: int
    remark: str = ""


class BrokenPicture(Exception):
    """The file is cut off, or its parts contradict each other; the message says how."""


def media_type_of(head: bytes) -> str:
    """Return the type of a picture by its first bytes; empty if it is none that models read."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(_JPEG):
        return "image/jpeg"
    if head.startswith(_GIF_HEADS):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def other_type_of(head: bytes) -> str:
    """Return the format of a picture that no model reads, by its first bytes; empty if it is none that is known."""
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    return next((kind for mark, kind in _OTHER_HEADS if head.startswith(mark)), "")


def read_header(data: bytes, media_type: str) -> PictureHeader:
    """Return what the file of a picture says of itself.

    Raises:
        BrokenPicture: it is cut off, or its parts contradict each other.
    """
    try:
        return _FORMATS[media_type][0](data)
    except (struct.error, IndexError) as error:
        raise BrokenPicture("it is cut off") from error


def without_metadata(data: bytes, media_type: str) -> bytes:
    """Return the content without places, devices, times and comments; how a photo is turned stays.

    The content must be that of a picture whose header was read.
    """
    return b"".join(_FORMATS[media_type][1](data))


# PNG: chunks, each with its length, type, data and checksum.


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and all bytes of each chunk up to the end."""
    place = len(_PNG)
    while True:
        (length,) = struct.unpack_from(">I", data, place)
        kind = data[place + 4 : place + 8]
        end = place + 12 + length
        if end > len(data):
            raise BrokenPicture("it is cut off")
        yield kind, data[place:end]
        if kind == b"IEND":
            return
        place = end


def _read_png(data: bytes) -> PictureHeader:
    kinds = set[bytes]()
    header = b""
    for kind, chunk in _chunks(data):
        if not kinds:
            header = chunk
        kinds.add(kind)
    if header[4:8] != b"IHDR" or len(header) != 25:
        raise BrokenPicture("it does not begin with its header")
    if zlib.crc32(header[4:21]) != struct.unpack(">I", header[21:])[0]:
        raise BrokenPicture("its header has another checksum")
    if b"IDAT" not in kinds:
        raise BrokenPicture("it has no pixels")
    width, height = struct.unpack(">II", header[8:16])
    return PictureHeader(width, height, _ANIMATED if b"acTL" in kinds else "")


def _strip_png(data: bytes) -> Iterator[bytes]:
    yield _PNG
    for kind, chunk in _chunks(data):
        if kind not in _PNG_PRIVATE:
            yield chunk


# JPEG: segments, of which a scan is followed by its pixels; other pictures after its end are left out.


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the marker and all bytes of each segment up to the end, of a scan with its pixels."""
    place = 2
    has_pixels = False
    while True:
        if data[place] != 0xFF:
            raise BrokenPicture("a part of it does not begin where the one before ends")
        while data[place + 1] == 0xFF:
            place += 1
        marker = data[place + 1]
        if marker in _BARE_MARKERS:
            place += 2
            continue
        if marker == _END and has_pixels:
            yield marker, data[place : place + 2]
            return
        if marker == _END:
            raise BrokenPicture("it has no pixels")
        (length,) = struct.unpack_from(">H", data, place + 2)
        end = place + 2 + length
        if length < 2 or end > len(data):
            raise BrokenPicture("it is cut off")
        if marker == _SCAN:
            has_pixels = True
            end = _end_of_pixels(data, end)
        yield marker, data[place:end]
        place = end


def _end_of_pixels(data: bytes, place: int) -> int:
    """Return where the marker is that follows the pixels of a scan."""
    while 0 <= place < len(data):
        place = data.find(b"\xff", place)
        if 0 <= place < len(data) - 1 and data[place + 1] not in _PIXEL_MARKS:
            return place
        place += 1 if place >= 0 else 0
    raise BrokenPicture("it is cut off")


def _read_jpeg(data: bytes) -> PictureHeader:
    width = height = components = 0
    remarks = list[str]()
    for marker, segment in _segments(data):
        if marker in _FRAMES:
            height, width, components = struct.unpack_from(">HHB", segment, 5)
        if marker == _APP1 and _orientation(segment) > 1:
            remarks.append(_TURNED)
    if components == 4:
        remarks.append(_CMYK)
    return PictureHeader(width, height, ", ".join(dict.fromkeys(remarks)))


def _orientation(segment: bytes) -> int:
    """Return how a photo is turned, as its Exif segment says; 0 if it says nothing."""
    tiff = segment[4 + len(_EXIF) :]
    if segment[4 : 4 + len(_EXIF)] != _EXIF or tiff[:2] not in (b"II", b"MM"):
        return 0
    order = "<" if tiff[:2] == b"II" else ">"
    try:
        (place,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, place)
        for number in range(min(count, _MAX_TAGS)):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, place + 2 + 12 * number)
            if tag == _ORIENTATION and kind == 3 and 1 <= value <= 8:
                return int(value)
    except struct.error:
        return 0
    return 0


def _strip_jpeg(data: bytes) -> Iterator[bytes]:
    yield data[:2]
    for marker, segment in _segments(data):
        if marker == _APP1 and (turned := _orientation(segment)) > 1:
            tag = struct.pack(">HHIHH", _ORIENTATION, 3, 1, turned, 0)
            exif = _EXIF + b"MM\0*" + struct.pack(">IH", 8, 1) + tag + bytes(4)
            yield struct.pack(">BBH", 0xFF, _APP1, len(exif) + 2) + exif
        is_profile = segment[4:16] == b"ICC_PROFILE\0"
        is_private = marker == _COMMENT or (0xE1 <= marker <= 0xEF and marker != 0xEE)
        if is_profile or not is_private:
            yield segment


# GIF: blocks after the screen, each of parts with their lengths.


def _blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the first byte and all bytes of each block up to the end."""
    place = 13 + _table_size(data[10])
    while True:
        begin = place
        first = data[place]
        if first == 0x3B:
            yield first, data[begin : begin + 1]
            return
        if first == 0x2C:
            place += 11 + _table_size(data[place + 9])
        elif first == 0x21:
            place += 2
        else:
            raise BrokenPicture("a part of it does not begin where the one before ends")
        while size := data[place]:
            place += 1 + size
        place += 1
        if place > len(data):
            raise BrokenPicture("it is cut off")
        yield first, data[begin:place]


def _table_size(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_gif(data: bytes) -> PictureHeader:
    width, height = struct.unpack_from("<HH", data, 6)
    frames = 0
    for first, block in _blocks(data):
        if first == 0x2C:
            frames += 1
            left, top, wide, high = struct.unpack_from("<HHHH", block, 1)
            # Its frames may be larger than it says of itself.
            width = max(width, left + wide)
            height = max(height, top + high)
    if not frames:
        raise BrokenPicture("it has no pixels")
    if frames > _MAX_FRAMES:
        raise BrokenPicture(f"it has {frames:,} frames")
    return PictureHeader(width, height, _ANIMATED if frames > 1 else "")


def _strip_gif(data: bytes) -> Iterator[bytes]:
    yield data[: 13 + _table_size(data[10])]
    for first, block in _blocks(data):
        is_comment = first == 0x21 and block[1] == _COMMENT
        is_private = first == 0x21 and block[1] == 0xFF and block[3:14] not in _LOOP_NAMES
        if not (is_comment or is_private):
            yield block


# WebP: chunks in a RIFF file.


def _riff(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and all bytes of each chunk."""
    (size,) = struct.unpack_from("<I", data, 4)
    end = 8 + size
    if end > len(data):
        raise BrokenPicture("it is cut off")
    place = 12
    while place + 8 <= end:
        (length,) = struct.unpack_from("<I", data, place + 4)
        after = place + 8 + length + length % 2
        if place + 8 + length > end:
            raise BrokenPicture("it is cut off")
        yield data[place : place + 4], data[place:after]
        place = after


def _read_webp(data: bytes) -> PictureHeader:
    sizes = list[tuple[int, int]]()
    remark = ""
    for kind, chunk in _riff(data):
        match kind:
            case b"VP8X":
                sizes.append((_three(chunk, 12) + 1, _three(chunk, 15) + 1))
                remark = _ANIMATED if chunk[8] & _ANIMATION_FLAG else ""
            case b"VP8 " if chunk[11:14] == b"\x9d\x01\x2a":
                width, height = struct.unpack_from("<HH", chunk, 14)
                sizes.append((width & 0x3FFF, height & 0x3FFF))
            case b"VP8L" if chunk[8] == 0x2F:
                (bits,) = struct.unpack_from("<I", chunk, 9)
                sizes.append(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
            case b"ANMF":
                sizes.append((_three(chunk, 14) + 1, _three(chunk, 17) + 1))
    if not sizes:
        raise BrokenPicture("it has no pixels")
    width = max(wide for wide, _ in sizes)
    height = max(high for _, high in sizes)
    return PictureHeader(width, height, remark)


def _three(chunk: bytes, place: int) -> int:
    if place + 3 > len(chunk):
        raise BrokenPicture("it is cut off")
    return int.from_bytes(chunk[place : place + 3], "little")


def _strip_webp(data: bytes) -> Iterator[bytes]:
    chunks = list[bytes]()
    for kind, chunk in _riff(data):
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes([chunk[8] & ~_PRIVATE_FLAGS]) + chunk[9:]
        if kind not in _WEBP_PRIVATE:
            chunks.append(chunk)
    yield b"RIFF" + struct.pack("<I", 4 + sum(map(len, chunks))) + b"WEBP"
    yield from chunks


_FORMATS: Final[
    Mapping[
        str,
        tuple[Callable[[bytes], PictureHeader], Callable[[bytes], Iterator[bytes]]],
    ]
] = {
    "image/png": (_read_png, _strip_png),
    "image/jpeg": (_read_jpeg, _strip_jpeg),
    "image/gif": (_read_gif, _strip_gif),
    "image/webp": (_read_webp, _strip_webp),
}
