"""Decoding of bytes: by their byte order mark, by the declared encoding, as UTF-8, and at last as Windows' Latin-1."""

import codecs
import re
from typing import Final

from .errors import Unreadable

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE: Final = 1 << 16
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL: Final = 0.02
_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)


def decode(data: bytes, charset: str = "") -> tuple[str, tuple[str, ...]]:
    """The text, with line breaks as `\\n`, and notes on what had to be guessed.

    Raises:
        Unreadable: it is no text.
    """
    text, notes = _decoded(data, charset)
    sample = text[:_SAMPLE]
    if sample and len(_CONTROL.findall(sample)) > _MOST_CONTROL * len(sample):
        raise Unreadable("It is binary, and no text.", fix="Convert it to text, HTML or PDF first.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def charset_of_html(data: bytes) -> str:
    """Return the encoding that a page declares for itself."""
    match = _CHARSET.search(data[:2048])
    return match[1].decode("ascii") if match else ""


def _decoded(data: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    named = [name for mark, name in _MARKS if data.startswith(mark)]
    for name in [*named[:1], *_unmarked(data), *([charset] if _is_text_codec(charset) else []), "utf-8"]:
        try:
            return data.decode(name), ()
        except UnicodeError:
            continue
    text = data.decode("cp1252", "replace")
    return text, ("It is no UTF-8; it was read as Latin-1 (Windows-1252).",)


def _unmarked(data: bytes) -> list[str]:
    """Detect UTF-16 without a byte order mark: in Western text every other byte is zero."""
    sample = data[:_SAMPLE]
    for start, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros, others = sample[start::2].count(0), sample[1 - start :: 2].count(0)
        if len(sample) > 3 and zeros > len(sample) * 0.35 and others < len(sample) * 0.02:
            return [name]
    return []


def _is_text_codec(name: str) -> bool:
    """Check whether it names an encoding of text; Python also has codecs that unpack and escape."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return bool(name) and getattr(codec, "_is_text_encoding", False) and codec.name not in {"idna", "punycode"}
