"""The kind of a source: by the server's content type, by its name, and by its beginning. Data in, data out.

Bytes are decoded by their byte order mark, by the declared encoding, as UTF-8, and finally as Windows' Latin-1. The
readers are here, too: of plain text, Markdown by its headings, Python by its definitions, HTML, records, tables and
PDF. As a program, this is the process that reads sources: limited in memory, without a key, network access or writable
files.
"""

import ast
import codecs
import csv
import io
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from pathlib import PurePath
from typing import Any, Final

from agent_core.base import syntax
from agent_core.base.programs import serve
from agent_core.base.records import dataclass
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import DEEPEST_ROW, Malformed, Strictness, read_json, whole_characters

from .cutting import GOAL, LONGEST, Cut, SourcePart, SourceParts, Unreadable, cut

_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = 80
_LONGEST_HEADING: Final = 300


def plain(text: str) -> SourceParts:
    """Return the paragraphs, joined up to a good size."""
    parts, number, start = [], 1, 0
    for end in [*(match.end() for match in re.finditer(r"\n[ \t]*\n\s*", text)), len(text)]:
        if paragraph := text[start:end]:  # none after a last blank line
            parts.append(SourcePart(paragraph, "", "line", number))
        number, start = number + paragraph.count("\n"), end
    return SourceParts(tuple(parts), GOAL * 3 // 4)


def markdown(text: str) -> SourceParts:
    """Return a part for each heading with the text below it; a heading without text is joined with the next one."""
    path: list[tuple[int, str]] = []
    parts: list[SourcePart] = []
    lines: list[str] = []
    begins, lead, has_body = 1, "", False

    def part() -> SourcePart:
        return SourcePart(
            "".join(lines),
            " > ".join(title[:_TITLE] for _, title in path if title),
            "line",
            begins,
            lead,
        )

    for number, line in enumerate(_marked_lines(text), 1):
        if line.level:
            if has_body:
                parts.append(part())
                begins, lines, has_body = number, [], False
            path = [
                *(heading for heading in path if heading[0] < line.level),
                (line.level, line.title),
            ]
            lead = f"{'#' * line.level} {line.title}"
        has_body = has_body or not (line.is_heading or not line.text.strip())
        lines.append(f"{line.text}\n")
    return SourceParts((*parts, part()))


@dataclass(frozen=True, slots=True)
class _MarkedLine:
    text: str
    level: int = 0
    title: str = ""
    is_heading: bool = False


def _marked_lines(text: str) -> Iterator[_MarkedLine]:
    """Yield each line, with the level and title of a heading. An underline belongs to its heading."""
    fence, is_under, lines = "", False, text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        level, title = (0, "") if fence or is_under else _heading(line, following)
        yield _MarkedLine(line, level, title, bool(level) or is_under)
        is_under = bool(level) and not _hash_heading(line)[0]
        match = _FENCE.match(line)
        if not fence:
            fence = match[1] if match else ""
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""


def _heading(line: str, following: str) -> tuple[int, str]:
    if (heading := _hash_heading(line))[0]:
        return heading
    under = _UNDERLINE.fullmatch(following[:200])
    is_text = (
        line.strip()
        and len(line) < 200
        and line.lstrip()[0] not in "#>-*+|`="
        and not line.startswith("    ")
    )
    if under and is_text and len(under[1]) > 1:
        return (1 if under[1][0] == "=" else 2), line.strip()
    return 0, ""


def _hash_heading(line: str) -> tuple[int, str]:
    """Return the level and the title of a heading such as `## Title ##`; 0 if it is none."""
    marked = line.lstrip(" ")
    text = marked.lstrip("#")
    level = len(marked) - len(text)
    title = text.strip(" \t").rstrip("#").strip()
    is_heading = len(line) - len(marked) <= 3 and 1 <= level <= 6 and text.startswith((" ", "\t"))
    return (level, title) if is_heading and len(title) <= _LONGEST_HEADING else (0, "")


_DEFINED: Final = re.compile(
    r"^(?:[a-z]{2,12}[ \t]+){0,5}(?:func|function|fn|def|class|struct|interface|impl|trait|enum|type|module|namespace"
    r"|sub|proc|procedure)[ \t]+(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_$][\w$:.<>-]{0,80})",
    re.MULTILINE,
)
_BLOCK_END: Final = re.compile(r"\n[ \t]*\n(?=[^\s)}\]])")
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def python(text: str) -> SourceParts:
    """Return each function and class with its decorators and the comments above; a long class method by method."""
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        return split_blocks(text)
    lines = bare_lines(text)
    starts = sorted({0: "", **dict(_starts_of_parts(tree.body, lines, 0, ""))}.items())
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    parts = []
    for (begin, name), end in zip(starts, ends, strict=True):
        own = lines[begin:end]
        head = next(
            (line for line in own if line.lstrip().startswith(("def ", "class ", "async "))), ""
        )
        parts.append(
            SourcePart(
                "\n".join(own) + "\n", name, "line", begin + 1, head.rstrip() if name else ""
            )
        )
    return SourceParts(tuple(parts))


def split_blocks(text: str) -> SourceParts:
    """Return the blocks between blank lines at the left margin, each named by its definitions."""
    parts, number, start = [], 1, 0
    for end in [*(match.end() for match in _BLOCK_END.finditer(text)), len(text)]:
        block = text[start:end]
        names = list(dict.fromkeys(_DEFINED.findall(block)))
        first = next((line.rstrip() for line in block.split("\n") if line.strip()), "")
        parts.append(
            SourcePart(block, ", ".join(names[:3]), "line", number, first if names else "")
        )
        number, start = number + block.count("\n"), end
    return SourceParts(tuple(parts)) if len(parts) > 1 else plain(text)


def _starts_of_parts(
    body: Sequence[ast.stmt], lines: Sequence[str], after: int, within: str
) -> Iterator[tuple[int, str]]:
    """Yield the line numbers, from 0, at which a part begins, with its name; code after a definition is a part, too."""
    before: ast.stmt | None = None
    for node in body:
        if isinstance(node, _DEFINITIONS):
            name = f"{within}{node.name}"
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            while first > after and lines[first - 1].lstrip().startswith("#"):
                first -= 1
            yield first, name
            end = node.end_lineno or node.lineno
            if (
                isinstance(node, ast.ClassDef)
                and len("\n".join(lines[node.lineno - 1 : end])) >= LONGEST
            ):
                methods = [member for member in node.body if isinstance(member, _DEFINITIONS)]
                yield from _starts_of_parts(methods, lines, node.lineno, f"{name}.")
            after = end
        elif isinstance(before, _DEFINITIONS):
            yield after, ""
        before = node


_DEEPEST: Final = 64
_AS_WRITTEN: Final = Strictness(
    unique=False, constants=False, finite=False, whole=False, numbers=False
)


def records(text: str) -> SourceParts:
    """Return the records of a list, or the entries of an object."""
    try:
        return SourceParts(tuple(_parts(read_json(text, _AS_WRITTEN, deepest=DEEPEST_ROW))), GOAL)
    except Malformed:
        return _as_text(text)


def lines(text: str) -> SourceParts:
    """Return one record per line."""
    try:
        rows = [
            read_json(line, _AS_WRITTEN, deepest=DEEPEST_ROW)
            for line in text.split("\n")
            if line.strip()
        ]
        return SourceParts(tuple(_parts(rows)), GOAL)
    except Malformed:
        return _as_text(text)


def _as_text(text: str, note: str = "It is not valid JSON; it was read as text.") -> SourceParts:
    return SourceParts(plain(text).parts, GOAL * 3 // 4, (note,))


def _parts(value: Any) -> Iterator[SourcePart]:  # Any: JSON
    if isinstance(value, list):
        yield from _list_records("", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and any(isinstance(entry, dict | list) for entry in item):
                yield from _list_records(key, item)
            else:
                yield SourcePart("\n".join(_flat(item, key, 0)), key)
    else:
        yield SourcePart(_word(value))


def _list_records(title: str, values: list[Any]) -> Iterator[SourcePart]:  # Any: JSON
    for number, record in enumerate(values, 1):
        yield SourcePart("; ".join(_flat(record, "", 0)), title, "record", number, title)


def _flat(value: Any, path: str, depth: int) -> Iterator[str]:  # Any: JSON
    """Yield the leaves of a value as `path: value`."""
    if depth >= _DEEPEST:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and all(not isinstance(element, dict | list) for element in value):
        yield _line(path, ", ".join(map(_word, value)))
    elif isinstance(value, list):
        for number, element in enumerate(value, 1):
            yield from _flat(element, f"{path}[{number}]", depth + 1)
    else:
        yield _line(path, _word(value))


def _line(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _word(value: Any) -> str:  # Any: JSON
    return value if isinstance(value, str) else "" if value in ({}, []) else json.dumps(value)


_TABLE_SAMPLE: Final = 1 << 13
_DELIMITERS: Final = (",", ";", "\t", "|")
_NUMBER: Final = re.compile(r"[-+]?[\d.,]{1,40}%?")
_LONGEST_CELL: Final = 1 << 20


def table(text: str, delimiter: str = "") -> SourceParts:
    """Return the rows, numbered from 1 below the header, which precedes each chunk of them."""
    if not delimiter:  # the one that splits each of the first lines into the most columns
        first = [line for line in text[:_TABLE_SAMPLE].split("\n")[:20] if line.strip()]
        first = first[:-1] if len(first) > 2 else first
        delimiter = max(
            _DELIMITERS, key=lambda mark: min((line.count(mark) for line in first), default=0)
        )
    csv.field_size_limit(_LONGEST_CELL)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for line in lines if any(row := [" ".join(cell.split()) for cell in line])]
    except csv.Error as error:
        return _as_text(text, f"It is not a table that can be read ({error}); read as text.")
    top = rows[0] if rows else []
    is_header = (
        len(top) > 1
        and not any(_NUMBER.fullmatch(cell) for cell in top)
        and len({*top}) == len(top)
    )
    header = " | ".join(top) if is_header else ""
    body = rows[1:] if header and len(rows) > 1 else rows
    lead = header if body is not rows else ""
    if len(lead) > GOAL // 3:  # too long to precede each chunk: it becomes a row
        lead, body = "", rows
    return SourceParts(
        tuple(
            SourcePart(" | ".join(row), "", "row", number, lead)
            for number, row in enumerate(body, 1)
        ),
        GOAL,
    )


_BLOCKS: Final = """
address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form head
header hr html li main nav ol option p pre section summary table tbody tfoot thead title tr ul
"""
_BLOCK: Final = frozenset(_BLOCKS.split())
_HEADINGS: Final = frozenset(f"h{level}" for level in range(1, 7))
_APART: Final = frozenset(
    {"p", "pre", "ul", "ol", "table", "section", "article", "blockquote", "title"}
)
_SILENT: Final = frozenset({"script", "style"})
_DECLARED: Final = re.compile(r"<![a-zA-Z][^<>]*>")
_MARKUP: Final = re.compile(r"<!\[CDATA\[|\]\]>|<[!?]")


def hypertext(text: str) -> SourceParts:
    """Return a part for each heading with the visible text below it; nothing is loaded."""
    # Without comments: the parser would search for the end of each unclosed one again and again.
    kept: list[str] = []
    start = 0
    while (begin := text.find("<!--", start)) >= 0:
        kept.append(text[start:begin])
        end = text.find("-->", begin + 2)
        start = end + 3 if end >= 0 else len(text)
    kept.append(text[start:])
    reader = _Reader()
    bare = _MARKUP.sub(" ", _DECLARED.sub(" ", "".join(kept)))
    last = (
        bare.rfind(">") + 1
    )  # after it no tag ends, and the parser would try each one that begins
    reader.feed(bare[:last] + bare[last:].replace("<", "&lt;"))
    reader.close()
    return SourceParts(tuple(reader.finished()))


class _Reader(HTMLParser):
    """A parser that collects the text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[SourcePart] = []
        self._path: list[tuple[int, str]] = []
        self._said: list[str] = []
        self._heading: list[str] | None = None
        self._level = 0
        self._is_silent = False
        self._title: list[str] | None = None
        self._called = ""
        self._pre = 0
        self._has_body = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Handle an opening tag: it may break the line, begin a heading, or have its own text."""
        if tag in _HEADINGS:
            level = int(tag[1])
            self._end_heading()
            if self._has_body:
                self._close()
            self._said.append("\n\n")
            self._heading, self._level = [], level
        elif tag in _SILENT:
            self._is_silent = True
        elif tag in _BLOCK:
            self._break(tag)
            self._pre += tag == "pre"
            self._title = [] if tag == "title" and not self._called else self._title
        elif tag in {"td", "th"}:
            self._said.append(" | " if self._said and not self._said[-1].endswith("\n") else "")
        elif tag == "img":
            self.handle_data(f" {dict(attrs).get('alt') or ''} ")

    def handle_endtag(self, tag: str) -> None:
        """Handle a closing tag."""
        if tag in _HEADINGS:
            self._end_heading()
        elif tag in _SILENT:
            self._is_silent = False
        elif tag in _BLOCK:
            if tag == "title" and self._title:
                self._called, self._title = " ".join("".join(self._title).split()), None
            self._break(tag)
            self._pre = max(0, self._pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """Handle text."""
        if self._is_silent:
            return
        text = data if self._pre else re.sub(r"\s+", " ", data)
        for heard in (self._heading, self._title):
            if heard is not None:
                heard.append(text)
        self._said.append(text)
        self._has_body = self._has_body or (self._heading is None and not text.isspace())

    def finished(self) -> list[SourcePart]:
        """Return the parts of the page."""
        self._end_heading()
        self._close()
        return self._parts

    def _end_heading(self) -> None:
        if self._heading is not None:
            title = " ".join("".join(self._heading).split())
            self._path = [
                *(heading for heading in self._path if heading[0] < self._level),
                (self._level, title),
            ]
            self._heading = None
            self._said.append("\n")

    def _break(self, tag: str) -> None:
        self._said.append("\n\n" if tag in _APART else "\n")

    def _close(self) -> None:
        lines = [line.strip(" ") for line in "".join(self._said).split("\n")]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        if text:
            titles = [title for _, title in self._path if title]
            title = " > ".join(title[:_TITLE] for title in titles) or self._called[:_TITLE]
            self._parts.append(SourcePart(text, title, lead=titles[-1] if titles else ""))
        self._said, self._has_body = [], False


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
_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=[\s"']*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE
)


def decode(data: bytes, charset: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the text, with line breaks as `\\n`, and notes about guesses.

    Raises:
        Unreadable: it is not text.
    """
    notes: tuple[str, ...] = ()
    begin = data[:_SAMPLE]
    guessed: list[
        str
    ] = []  # UTF-16 without a byte order mark: in Western text every other byte is zero
    for start, name in ((0, "utf-16-be"), (1, "utf-16-le")):
        zeros, others = begin[start::2].count(0), begin[1 - start :: 2].count(0)
        if len(begin) > 3 and zeros > len(begin) * 0.35 and others < len(begin) * 0.02:
            guessed.append(name)
    named = [name for mark, name in _MARKS if data.startswith(mark)]
    for name in [*named[:1], *guessed, *([charset] if _is_text_codec(charset) else []), "utf-8"]:
        with suppress(UnicodeError):
            text = data.decode(name)
            break
    else:
        text, notes = (
            data.decode("cp1252", "replace"),
            ("It is not UTF-8; it was read as Latin-1 (Windows-1252).",),
        )
    sample = text[:_SAMPLE]
    if sample and len(_CONTROL.findall(sample)) > _MOST_CONTROL * len(sample):
        raise Unreadable("It is binary, not text.", fix="Convert it to text, HTML or PDF first.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def charset_of_html(data: bytes) -> str:
    """Return the encoding that a page declares for itself."""
    match = _CHARSET.search(data[:2048])
    return match[1].decode("ascii") if match else ""


def _is_text_codec(name: str) -> bool:
    """Check whether a name is a text encoding; Python also has codecs that unpack and escape."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return False
    return (
        bool(name)
        and getattr(codec, "_is_text_encoding", False)
        and codec.name not in {"idna", "punycode"}
    )


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
_HTML: Final = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html)\b", re.I | re.S
)
_PDF_WITHIN: Final = 1024
_MOST_TEXT: Final = 64 << 20
_MOST_PAGES: Final = 20_000

# The reader of each kind except PDF, which is not read as text.
_READERS: Final[Mapping[str, Callable[[str], SourceParts]]] = {
    "text": plain,
    "markdown": markdown,
    "html": hypertext,
    "python": python,
    "code": split_blocks,
    "csv": table,
    "tsv": partial(table, delimiter="\t"),
    "json": records,
    "jsonl": lines,
}


def kind_of(name: str, data: bytes, content_type: str = "") -> str:
    """Return the kind as which a source is read."""
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    media_type = content_type.partition(";")[0].strip().lower()
    by_name = _SUFFIXES.get(PurePath(name).suffix.lower(), "")
    if media_type == "text/html" or (
        not media_type and not by_name and _HTML.match(data[:_PDF_WITHIN])
    ):
        return "html"
    return by_name or _TYPES.get(media_type) or ("json" if media_type.endswith("+json") else "text")


def read(name: str, data: bytes, content_type: str = "") -> Cut:
    """Return a source as chunks.

    Raises:
        Unreadable: it is not text, or not what it claims to be.
    """
    kind = kind_of(name, data, content_type)
    notes: tuple[str, ...] = ()
    if kind == "pdf":
        parts = pages_of(data)
    else:
        for mark, description in _FOREIGN:
            if data.startswith(mark):
                raise Unreadable(
                    f"It is {description}, and no text.",
                    fix="Convert it to text, HTML or PDF first.",
                )
        match = re.search(r"charset=\"?([\w.:-]{2,40})", content_type)
        text, notes = decode(
            data, match[1] if match else charset_of_html(data) if kind == "html" else ""
        )
        parts = _READERS[kind](text)
    chunks = tuple(cut(parts))
    if not chunks:
        raise Unreadable("It contains no text.")
    return Cut(kind, chunks, (*notes, *parts.notes))


def pages_of(data: bytes) -> SourceParts:
    """Return the pages of a PDF that contain text.

    Raises:
        Unreadable: it is none, locked, broken, or contains only images.
    """
    if b"%PDF-" not in data[:_PDF_WITHIN]:  # pypdf would search the whole file
        raise Unreadable("It is not a PDF.")
    import pypdf  # noqa: PLC0415 - it is slow to import
    from pypdf.errors import DependencyError, PyPdfError  # noqa: PLC0415

    logging.disable(logging.CRITICAL)  # pypdf logs every fault that it corrects
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is locked by a password.", fix="Save it without one first.")
        if len(reader.pages) > _MOST_PAGES:
            raise Unreadable(
                f"The PDF says that it has {len(reader.pages)} pages; {_MOST_PAGES} are read at most."
            )
        pages: list[str] = []
        size = 0
        for page in reader.pages:
            pages.append(page.extract_text())
            size += len(pages[-1])
            if size > _MOST_TEXT:
                raise Unreadable(
                    f"The PDF contains more than {_MOST_TEXT >> 20} MiB of text.", fix="Divide it."
                )
    except DependencyError as error:
        raise Unreadable(
            f"Reading the PDF needs a package that is not installed: {error}."
        ) from error
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        ArithmeticError,
    ) as error:
        raise Unreadable(f"The PDF is broken: {error or type(error).__name__}.") from error
    parts = [
        SourcePart(text, "", "page", number) for number, text in enumerate(pages, 1) if text.strip()
    ]
    if not parts:
        fix = "Scanned pages are images: run OCR first."
        raise Unreadable("The PDF contains no text.", fix=fix)
    empty = len(pages) - len(parts)
    return SourceParts(
        tuple(parts), notes=(f"{empty} of {len(pages)} pages hold no text.",) if empty else ()
    )


_MEMORY: Final = 1 << 30


def _answer(order: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:  # Any: JSON
    try:
        found = read(order["name"], data, order["content_type"])
    except Unreadable as error:
        yield {"error": error.message, "fix": error.fix}
        return
    yield from (
        {"chunk": [whole_characters(chunk.text), whole_characters(chunk.place)]}
        for chunk in found.chunks
    )
    yield {"kind": found.kind, "notes": [*map(whole_characters, found.notes)]}


if __name__ == "__main__":
    serve(_answer, _MEMORY)
