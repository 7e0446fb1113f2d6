"""The kind of a source: by what a server says of it, by its name, and by how it begins. Data in, data out."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import PurePath
from typing import Final

from . import cutting
from .decoding import charset_of_html, decode
from .errors import Unreadable
from .parts import Cut, SourceParts

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

# The reader of each kind: its module is imported when it is first used, for pypdf takes its time.
_READERS: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("prose", "plain"),
    "markdown": ("prose", "markdown"),
    "html": ("hypertext", "hypertext"),
    "python": ("program", "python"),
    "code": ("program", "other"),
    "csv": ("tables", "table"),
    "tsv": ("tables", "tabbed"),
    "json": ("records", "records"),
    "jsonl": ("records", "lines"),
}


def kind_of(name: str, data: bytes, content_type: str = "") -> str:
    """Return the kind of source to read it as."""
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
        Unreadable: it is no text, or not what it says it is.
    """
    kind = kind_of(name, data, content_type)
    parts, notes = _paged(data) if kind == "pdf" else _text(kind, data, content_type)
    chunks = tuple(cutting.cut(parts))
    if not chunks:
        raise Unreadable("It holds no text.")
    return Cut(kind, chunks, (*notes, *parts.notes))


def _paged(data: bytes) -> tuple[SourceParts, tuple[str, ...]]:
    if b"%PDF-" not in data[:_PDF_WITHIN]:
        raise Unreadable("It is no PDF.")
    parts: SourceParts = import_module(f"{__package__}.paged").document(data)
    return parts, ()


def _text(kind: str, data: bytes, content_type: str) -> tuple[SourceParts, tuple[str, ...]]:
    for mark, description in _FOREIGN:
        if data.startswith(mark):
            raise Unreadable(f"It is {description}, and no text.", fix="Convert it to text, HTML or PDF first.")
    match = re.search(r"charset=\"?([\w.:-]{2,40})", content_type)
    text, notes = decode(data, match[1] if match else charset_of_html(data) if kind == "html" else "")
    module, name = _READERS[kind]
    reader: Callable[[str], SourceParts] = getattr(import_module(f"{__package__}.{module}"), name)
    return reader(text), notes
