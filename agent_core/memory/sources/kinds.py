"""The kind of a source: by the server's content type, by its name, and by its beginning. Data in, data out.

Bytes are decoded by their byte order mark, by the declared encoding, as UTF-8, and finally as Windows' Latin-1. As a
program, this is the process that reads sources: limited in memory, without a key, network access or writable files.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

from agent_core.base.reader_process import serve
from agent_core.base.untrusted import whole_characters

from .cutting import Cut, SourceParts, Unreadable, cut
from .hypertext import hypertext
from .prose import markdown, plain, python, split_blocks
from .records import lines, read_tabbed, records, table

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
    """Return the text, with line breaks as `\\n`, and notes about guesses.

    Raises:
        Unreadable: it is not text.
    """
    notes: tuple[str, ...] = ()
    named = [name for mark, name in _MARKS if data.startswith(mark)]
    for name in [*named[:1], *_guess_utf_16(data), *([charset] if _is_text_codec(charset) else []), "utf-8"]:
        with suppress(UnicodeError):
            text = data.decode(name)
            break
    else:
        text, notes = data.decode("cp1252", "replace"), ("It is not UTF-8; it was read as Latin-1 (Windows-1252).",)
    sample = text[:_SAMPLE]
    if sample and len(_CONTROL.findall(sample)) > _MOST_CONTROL * len(sample):
        raise Unreadable("It is binary, not text.", fix="Convert it to text, HTML or PDF first.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def charset_of_html(data: bytes) -> str:
    """Return the encoding that a page declares for itself."""
    match = _CHARSET.search(data[:2048])
    return match[1].decode("ascii") if match else ""


def _guess_utf_16(data: bytes) -> list[str]:
    """Detect UTF-16 without a byte order mark: in Western text every other byte is zero."""
    sample = data[:_SAMPLE]
    for start, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros, others = sample[start::2].count(0), sample[1 - start :: 2].count(0)
        if len(sample) > 3 and zeros > len(sample) * 0.35 and others < len(sample) * 0.02:
            return [name]
    return []


def _is_text_codec(name: str) -> bool:
    """Check whether a name is a text encoding; Python also has codecs that unpack and escape."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return bool(name) and getattr(codec, "_is_text_encoding", False) and codec.name not in {"idna", "punycode"}


_SUFFIXES: Final[Mapping[str, str]] = {
    f".{suffix}": kind
    for kind, suffixes in {
        "markdown": "md markdown mdx mkd",
        "html": "html htm xhtml",
        "pdf": "pdf",
        "python": "py pyi",
        "csv": "csv",
        "tsv": "tsv tab",
        "json": "json geojson ipynb",
        "jsonl": "jsonl ndjson",
        "code": "c h cc cpp cxx hpp hh cs java kt kts scala go rs js jsx mjs cjs ts tsx swift m mm php rb pl pm lua r"
        " jl hs ml mli ex exs erl clj el lisp scm dart zig nim v sh bash zsh fish ps1 sql proto vue svelte css scss",
    }.items()
    for suffix in suffixes.split()
}
_TYPES: Final[Mapping[str, str]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
_FOREIGN: Final = (
    (b"PK\x03\x04", "a ZIP archive (Word and other office files are such)"),
    (b"\x1f\x8b", "compressed by gzip"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a database"),
    (b"\xd0\xcf\x11\xe0", "an old office file"),
    (b"7z\xbc\xaf", "an archive"),
)
_HTML: Final = re.compile(rb"\s*(?:\xef\xbb\xbf)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html)\b", re.I | re.S)
_PDF_WITHIN: Final = 1024

# The reader of each kind except PDF, which is imported at first use because pypdf is slow to import.
_READERS: Final[Mapping[str, Callable[[str], SourceParts]]] = {
    "text": plain,
    "markdown": markdown,
    "html": hypertext,
    "python": python,
    "code": split_blocks,
    "csv": table,
    "tsv": read_tabbed,
    "json": records,
    "jsonl": lines,
}


def kind_of(name: str, data: bytes, content_type: str = "") -> str:
    """Return the kind as which a source is read."""
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    media_type = content_type.partition(";")[0].strip().lower()
    by_name = _SUFFIXES.get(PurePath(name).suffix.lower(), "")
    if media_type == "text/html" or (not media_type and not by_name and _HTML.match(data[:_PDF_WITHIN])):
        return "html"
    return by_name or _TYPES.get(media_type) or ("json" if media_type.endswith("+json") else "text")


def read(name: str, data: bytes, content_type: str = "") -> Cut:
    """Return a source as chunks.

    Raises:
        Unreadable: it is not text, or not what it claims to be.
    """
    kind = kind_of(name, data, content_type)
    parts, notes = _read_pages(data) if kind == "pdf" else _text(kind, data, content_type)
    chunks = tuple(cut(parts))
    if not chunks:
        raise Unreadable("It contains no text.")
    return Cut(kind, chunks, (*notes, *parts.notes))


def _read_pages(data: bytes) -> tuple[SourceParts, tuple[str, ...]]:
    if b"%PDF-" not in data[:_PDF_WITHIN]:
        raise Unreadable("It is not a PDF.")
    from . import paged  # noqa: PLC0415 - the reader of PDF is slow to import

    return paged.document(data), ()


def _text(kind: str, data: bytes, content_type: str) -> tuple[SourceParts, tuple[str, ...]]:
    for mark, description in _FOREIGN:
        if data.startswith(mark):
            raise Unreadable(f"It is {description}, and no text.", fix="Convert it to text, HTML or PDF first.")
    match = re.search(r"charset=\"?([\w.:-]{2,40})", content_type)
    text, notes = decode(data, match[1] if match else charset_of_html(data) if kind == "html" else "")
    return _READERS[kind](text), notes


_MEMORY: Final = 1 << 30


def _answer(order: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:  # Any: JSON
    try:
        found = read(order["name"], data, order["content_type"])
    except Unreadable as error:
        yield {"error": error.message, "fix": error.fix}
        return
    yield from ({"chunk": [whole_characters(chunk.text), whole_characters(chunk.place)]} for chunk in found.chunks)
    yield {"kind": found.kind, "notes": [*map(whole_characters, found.notes)]}


if __name__ == "__main__":
    serve(_answer, _MEMORY)
