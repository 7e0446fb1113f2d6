"""Pictures: the bounds that they must keep, what is known of one, and where entries and messages name them.

Nothing is decoded: sizes are read from headers.
"""

import hashlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .errors import UsageError
from .picture_formats import BrokenPicture, media_type_of, other_type_of, read_header
from .records import dataclass, replace
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
        head = "data:;base64"
        rest = data
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


def as_past(picture: Picture) -> Picture:
    """Return a picture that the model is not shown any longer."""
    return replace(picture, is_past=True)


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


def is_picture(head: bytes) -> bool:
    """Return whether the first bytes are those of a picture, also of one that no model reads."""
    return bool(media_type_of(head[:HEAD_BYTES]) or other_type_of(head[:HEAD_BYTES]))


def read_picture(data: bytes, name: str = "") -> Picture:
    """Return the picture in a file's content.

    Raises:
        UnusablePicture: it is none, is cut off, or is too large.
    """
    name = one_line(name, _MAX_NAME_CHARS)
    what = name or "The picture"
    media_type = media_type_of(data)
    if not media_type:
        kind = other_type_of(data[:HEAD_BYTES])
        is_kind = f"is a {kind} picture" if kind else "is no picture"
        raise UnusablePicture(f"{what} {is_kind}.", fix=_CONVERT)
    if len(data) > MAX_BYTES:
        message = f"{what} has more than {MAX_BYTES:,} bytes, the most that is sent."
        raise UnusablePicture(message, fix=_SMALLER)
    try:
        header = read_header(data, media_type)
    except BrokenPicture as error:
        raise UnusablePicture(f"{what} is broken: {error}.", fix=_AGAIN) from error
    width = header.width
    height = header.height
    if width < 1 or height < 1:
        raise UnusablePicture(f"{what} is broken: it has {width} × {height} pixels.", fix=_AGAIN)
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        most = f"at most {MAX_SIDE:,} on a side and {MAX_PIXELS:,} in all are sent"
        message = f"{what} has {width:,} × {height:,} pixels, and {most}."
        raise UnusablePicture(message, fix=_SMALLER)
    digest = hashlib.sha256(data).hexdigest()
    return Picture(digest, media_type, width, height, len(data), name, header.remark)


def caption_of(data: bytes) -> str:
    """Return the caption of a picture, or an empty text for any other content."""
    with suppress(UnusablePicture):
        return read_picture(data).caption
    return ""


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
