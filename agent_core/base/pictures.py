"""Pictures: what a file's own header says of it, the bounds that it must keep, and what of it leaves this machine.

Nothing is decoded here: sizes are read from headers, and a file is walked by the lengths of its own parts, each once.
A copy that is sent has no place, device or comment in it; how a photo is turned stays.
"""

import hashlib
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .errors import UsageError
from .records import dataclass
from .untrusted import one_line

MAX_BYTES: Final = 5_000_000
MAX_SIDE: Final = 8_000
MAX_PIXELS: Final = 25_000_000
MAX_PICTURES: Final = 20  # of one message, and in sight of a model
PICTURES: Final = "pictures"
"""The key of an entry or an event for its pictures."""
_MAX_NAME_CHARS: Final = 200
_TOKEN_PIXELS: Final = 750  # of which one costs a token, at the endpoints that say so
_MAX_TOKENS: Final = 1_600
HEAD_BYTES: Final = 16
"""The bytes at its beginning by which a picture is known."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
_GIFS: Final = (b"GIF87a", b"GIF89a")
_OTHERS: Final = (
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\0\0\1\0", "ICO"),
    (b"8BPS", "PSD"),
)
_BRANDS: Final = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC", b"avif": "AVIF"}
_CONVERT: Final = "Models read PNG, JPEG, GIF and WebP: save it as one of these."
_SMALLER: Final = "Make it smaller first."
_AGAIN: Final = "Save or send it again."


class UnusablePicture(UsageError):
    """A picture that is not sent; the message says why."""

    code = "picture"


@dataclass(frozen=True, slots=True, repr=False)
class PictureFile:
    """The content of a picture that is not kept yet, and the name of its file."""

    data: bytes
    name: str = ""


def decoded(data: str, name: str = "") -> PictureFile:
    """Return a picture in base64, or at an address `data:…;base64,…`, as JSON holds it.

    Raises:
        UnusablePicture: it is neither, or at another address, of which nothing is fetched.
    """
    head, comma, rest = data.partition(",")
    if not comma and ":" not in data:
        head, rest = "data:;base64", data
    if not (head.startswith("data:") and head.endswith(";base64")):
        fix = "Send its content, as data:image/png;base64,…"
        raise UnusablePicture("A picture at another address is not fetched.", fix=fix)
    try:
        return PictureFile(b64decode(rest, validate=True), name)
    except ValueError as error:
        raise UnusablePicture("The picture is not in base64.", fix="Encode its content.") from error


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is kept: its SHA-256, type, size in pixels and bytes, and what is to be said of it."""

    digest: str
    media_type: str
    width: int
    height: int
    size: int
    name: str = ""
    remark: str = ""
    is_past: bool = False
    """True if so many followed that the model is not shown it any longer."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Picture":  # Any: JSON
        """Return the picture in a row of an entry; raise ValueError if there is none."""
        texts = {key: row.get(key, "") for key in ("digest", "media_type", "name", "remark")}
        numbers = {key: row.get(key) for key in ("width", "height", "size")}
        is_whole = all(isinstance(text, str) for text in texts.values())
        if not is_whole or any(type(number) is not int for number in numbers.values()):
            raise ValueError("it is no picture")
        return cls(**texts, **numbers)  # type: ignore[arg-type]  # as was just checked

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return it as a row of an entry."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}

    @property
    def caption(self) -> str:
        """The words that stand for it: `photo.png: PNG, 640 × 480, 12 KiB`."""
        kind = self.media_type.partition("/")[2].upper()
        size = f"{self.size / 1024:,.0f} KiB" if self.size >= 1024 else f"{self.size} bytes"
        facts = [kind, f"{self.width:,} × {self.height:,}", size, self.remark]
        return f"{self.name or 'picture'}: {', '.join(filter(None, facts))}"

    @property
    def line(self) -> str:
        """The caption as a line of a message."""
        return f"[picture {self.caption}]"

    @property
    def tokens(self) -> int:
        """The tokens that it takes in a model's window, approximately."""
        return min(-(-self.width * self.height // _TOKEN_PIXELS), _MAX_TOKENS)


@dataclass(frozen=True, slots=True)
class _Header:
    """What a file says of itself."""

    media_type: str
    width: int
    height: int
    remark: str = ""


def pictures_in(payload: Mapping[str, Any]) -> tuple[Picture, ...]:  # Any: JSON
    """Return the pictures that an entry or an event names; others may have written it."""
    rows = payload.get(PICTURES)
    pictures = list[Picture]()
    for row in rows[:MAX_PICTURES] if isinstance(rows, list) else ():
        with suppress(ValueError):
            pictures.append(Picture.from_json(row if isinstance(row, dict) else {}))
    return tuple(pictures)


def with_pictures(
    payload: Mapping[str, Any], pictures: Sequence[Picture]
) -> dict[str, Any]:  # Any: JSON
    """Return the payload of an entry or an event that names these pictures, and has their captions in its text."""
    if not pictures:
        return dict(payload)
    return with_rows({**payload, "text": captioned(str(payload["text"]), pictures)}, pictures)


def with_rows(
    payload: Mapping[str, Any], pictures: Sequence[Picture]
) -> dict[str, Any]:  # Any: JSON
    """Return the payload with the rows of pictures, whose captions its text has already."""
    rows = {PICTURES: [picture.to_json() for picture in pictures]} if pictures else {}
    return {**payload, **rows}


def captioned(text: str, pictures: Sequence[Picture]) -> str:
    """Return a text followed by the captions of pictures."""
    return "\n".join(filter(None, [text, *(picture.line for picture in pictures)]))


class _Broken(Exception):
    """The file is cut off, or its parts contradict each other; the message says how."""


def media_type_of(head: bytes) -> str:
    """Return the type of a picture by its first bytes; empty if it is none that models read."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(_JPEG):
        return "image/jpeg"
    if head.startswith(_GIFS):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""


def is_picture(head: bytes) -> bool:
    """Return whether the first bytes are those of a picture, also of one that no model reads."""
    return bool(media_type_of(head[:HEAD_BYTES]) or _other_type(head[:HEAD_BYTES]))


def _other_type(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    return next((kind for mark, kind in _OTHERS if head.startswith(mark)), "")


def read_picture(data: bytes, name: str = "") -> Picture:
    """Return the picture in a file's content.

    Raises:
        UnusablePicture: it is none, is cut off, or is too large.
    """
    name = one_line(name, _MAX_NAME_CHARS)
    what = name or "The picture"
    media_type = media_type_of(data)
    if not media_type:
        kind = _other_type(data)
        is_kind = f"is a {kind} picture" if kind else "is no picture"
        raise UnusablePicture(f"{what} {is_kind}.", fix=_CONVERT)
    if len(data) > MAX_BYTES:
        message = f"{what} has more than {MAX_BYTES:,} bytes, the most that is sent."
        raise UnusablePicture(message, fix=_SMALLER)
    try:
        header = _READERS[media_type](data)
    except (_Broken, struct.error, IndexError) as error:
        reason = str(error) if isinstance(error, _Broken) else "it is cut off"
        raise UnusablePicture(f"{what} is broken: {reason}.", fix=_AGAIN) from error
    width, height = header.width, header.height
    if width < 1 or height < 1:
        raise UnusablePicture(f"{what} is broken: it has {width} × {height} pixels.", fix=_AGAIN)
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        most = f"at most {MAX_SIDE:,} on a side and {MAX_PIXELS:,} in all are sent"
        message = f"{what} has {width:,} × {height:,} pixels, and {most}."
        raise UnusablePicture(message, fix=_SMALLER)
    digest = hashlib.sha256(data).hexdigest()
    return Picture(digest, media_type, width, height, len(data), name, header.remark)


def check_count(pictures: Sequence[object]) -> None:
    """Check that a message has not too many pictures.

    Raises:
        UnusablePicture: it has.
    """
    if len(pictures) > MAX_PICTURES:
        message = (
            f"The message has {len(pictures):,} pictures, and at most {MAX_PICTURES} are sent."
        )
        raise UnusablePicture(message, fix="Send some of them with the next message.")


def without_metadata(data: bytes, media_type: str) -> bytes:
    """Return the content without places, devices, times and comments; how a photo is turned stays.

    The content must be that of a picture that was read.
    """
    return b"".join(_STRIPPERS[media_type](data))


# PNG: chunks, each with its length, type, data and checksum.

_PNG_PRIVATE: Final = frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"})


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and all bytes of each chunk up to the end."""
    place = len(_PNG)
    while True:
        (length,) = struct.unpack_from(">I", data, place)
        kind = data[place + 4 : place + 8]
        end = place + 12 + length
        if end > len(data):
            raise _Broken("it is cut off")
        yield kind, data[place:end]
        if kind == b"IEND":
            return
        place = end


def _read_png(data: bytes) -> _Header:
    kinds = set[bytes]()
    header = b""
    for kind, chunk in _chunks(data):
        if not kinds:
            header = chunk
        kinds.add(kind)
    if header[4:8] != b"IHDR" or len(header) != 25:
        raise _Broken("it does not begin with its header")
    if zlib.crc32(header[4:21]) != struct.unpack(">I", header[21:])[0]:
        raise _Broken("its header has another checksum")
    if b"IDAT" not in kinds:
        raise _Broken("it has no pixels")
    width, height = struct.unpack(">II", header[8:16])
    return _Header("image/png", width, height, _ANIMATED if b"acTL" in kinds else "")


def _strip_png(data: bytes) -> Iterator[bytes]:
    yield _PNG
    for kind, chunk in _chunks(data):
        if kind not in _PNG_PRIVATE:
            yield chunk


# JPEG: segments, of which a scan is followed by its pixels; other pictures after its end are left out.

_ANIMATED: Final = "animated: a model sees its first frame at most"
_CMYK: Final = "CMYK: a model may see other colors"
_TURNED: Final = "turned by its EXIF"
_SCAN: Final = 0xDA
_END: Final = 0xD9
_IN_PIXELS: Final = frozenset({0x00, 0xFF, *range(0xD0, 0xD8)})
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_COMMENT: Final = 0xFE
_APP1: Final = 0xE1
_EXIF: Final = b"Exif\0\0"
_ORIENTATION: Final = 0x0112
_MAX_TAGS: Final = 1_000


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the marker and all bytes of each segment up to the end, of a scan with its pixels."""
    place = 2
    has_pixels = False
    while True:
        if data[place] != 0xFF:
            raise _Broken("a part of it does not begin where the one before ends")
        while data[place + 1] == 0xFF:
            place += 1
        marker = data[place + 1]
        if marker in _ALONE:
            place += 2
            continue
        if marker == _END and has_pixels:
            yield marker, data[place : place + 2]
            return
        if marker == _END:
            raise _Broken("it has no pixels")
        (length,) = struct.unpack_from(">H", data, place + 2)
        end = place + 2 + length
        if length < 2 or end > len(data):
            raise _Broken("it is cut off")
        if marker == _SCAN:
            has_pixels = True
            end = _end_of_pixels(data, end)
        yield marker, data[place:end]
        place = end


def _end_of_pixels(data: bytes, place: int) -> int:
    """Return where the marker is that follows the pixels of a scan."""
    while 0 <= place < len(data):
        place = data.find(b"\xff", place)
        if 0 <= place < len(data) - 1 and data[place + 1] not in _IN_PIXELS:
            return place
        place += 1 if place >= 0 else 0
    raise _Broken("it is cut off")


def _read_jpeg(data: bytes) -> _Header:
    width = height = components = 0
    remarks = list[str]()
    for marker, segment in _segments(data):
        if marker in _FRAMES:
            height, width, components = struct.unpack_from(">HHB", segment, 5)
        if marker == _APP1 and _orientation(segment) > 1:
            remarks.append(_TURNED)
    if components == 4:
        remarks.append(_CMYK)
    return _Header("image/jpeg", width, height, ", ".join(dict.fromkeys(remarks)))


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

_LOOPS: Final = (b"NETSCAPE2.0", b"ANIMEXTS1.0")
_MAX_FRAMES: Final = 10_000


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
            raise _Broken("a part of it does not begin where the one before ends")
        while size := data[place]:
            place += 1 + size
        place += 1
        if place > len(data):
            raise _Broken("it is cut off")
        yield first, data[begin:place]


def _table_size(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_gif(data: bytes) -> _Header:
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
        raise _Broken("it has no pixels")
    if frames > _MAX_FRAMES:
        raise _Broken(f"it has {frames:,} frames")
    return _Header("image/gif", width, height, _ANIMATED if frames > 1 else "")


def _strip_gif(data: bytes) -> Iterator[bytes]:
    yield data[: 13 + _table_size(data[10])]
    for first, block in _blocks(data):
        is_comment = first == 0x21 and block[1] == _COMMENT
        is_private = first == 0x21 and block[1] == 0xFF and block[3:14] not in _LOOPS
        if not (is_comment or is_private):
            yield block


# WebP: chunks in a RIFF file.

_WEBP_PRIVATE: Final = frozenset({b"EXIF", b"XMP "})
_HAS_PRIVATE: Final = 0x08 | 0x04
_HAS_FRAMES: Final = 0x02


def _riff(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and all bytes of each chunk."""
    (size,) = struct.unpack_from("<I", data, 4)
    end = 8 + size
    if end > len(data):
        raise _Broken("it is cut off")
    place = 12
    while place + 8 <= end:
        (length,) = struct.unpack_from("<I", data, place + 4)
        after = place + 8 + length + length % 2
        if place + 8 + length > end:
            raise _Broken("it is cut off")
        yield data[place : place + 4], data[place:after]
        place = after


def _read_webp(data: bytes) -> _Header:
    sizes = list[tuple[int, int]]()
    remark = ""
    for kind, chunk in _riff(data):
        match kind:
            case b"VP8X":
                sizes.append((_three(chunk, 12) + 1, _three(chunk, 15) + 1))
                remark = _ANIMATED if chunk[8] & _HAS_FRAMES else ""
            case b"VP8 " if chunk[11:14] == b"\x9d\x01\x2a":
                width, height = struct.unpack_from("<HH", chunk, 14)
                sizes.append((width & 0x3FFF, height & 0x3FFF))
            case b"VP8L" if chunk[8] == 0x2F:
                (bits,) = struct.unpack_from("<I", chunk, 9)
                sizes.append(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
            case b"ANMF":
                sizes.append((_three(chunk, 14) + 1, _three(chunk, 17) + 1))
    if not sizes:
        raise _Broken("it has no pixels")
    width = max(wide for wide, _ in sizes)
    height = max(high for _, high in sizes)
    return _Header("image/webp", width, height, remark)


def _three(chunk: bytes, place: int) -> int:
    if place + 3 > len(chunk):
        raise _Broken("it is cut off")
    return int.from_bytes(chunk[place : place + 3], "little")


def _strip_webp(data: bytes) -> Iterator[bytes]:
    chunks = list[bytes]()
    for kind, chunk in _riff(data):
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes([chunk[8] & ~_HAS_PRIVATE]) + chunk[9:]
        if kind not in _WEBP_PRIVATE:
            chunks.append(chunk)
    yield b"RIFF" + struct.pack("<I", 4 + sum(map(len, chunks))) + b"WEBP"
    yield from chunks


_READERS: Final[Mapping[str, Callable[[bytes], _Header]]] = {
    "image/png": _read_png,
    "image/jpeg": _read_jpeg,
    "image/gif": _read_gif,
    "image/webp": _read_webp,
}
_STRIPPERS: Final[Mapping[str, Callable[[bytes], Iterator[bytes]]]] = {
    "image/png": _strip_png,
    "image/jpeg": _strip_jpeg,
    "image/gif": _strip_gif,
    "image/webp": _strip_webp,
}
