"""HTML by its headings: the visible text. Scripts and styles are omitted, nothing is loaded."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from .cutting import SourcePart, SourceParts

_BLOCKS: Final = """
address article aside blockquote body br caption dd details div dl dt fieldset figcaption figure footer form head
header hr html li main nav ol option p pre section summary table tbody tfoot thead title tr ul
"""
_BLOCK: Final = frozenset(_BLOCKS.split())
_HEADINGS: Final = frozenset(f"h{level}" for level in range(1, 7))
_APART: Final = frozenset({"p", "pre", "ul", "ol", "table", "section", "article", "blockquote", "title"})
_SILENT: Final = frozenset({"script", "style"})
_TITLE: Final = 80
_DECLARED: Final = re.compile(r"<![a-zA-Z][^<>]*>")
_MARKUP: Final = re.compile(r"<!\[CDATA\[|\]\]>|<[!?]")


def hypertext(text: str) -> SourceParts:
    """Return a part for each heading with the text below it."""
    reader = _Reader()
    bare = _MARKUP.sub(" ", _DECLARED.sub(" ", "".join(_without_comments(text))))
    last = bare.rfind(">") + 1  # after it no tag ends, and the parser would try each one that begins
    reader.feed(bare[:last] + bare[last:].replace("<", "&lt;"))
    reader.close()
    return SourceParts(tuple(reader.finished()))


def _without_comments(text: str) -> Iterator[str]:
    """Yield the text without comments; the parser would search for the end of each unclosed one again and again."""
    start = 0
    while (begin := text.find("<!--", start)) >= 0:
        yield text[start:begin]
        end = text.find("-->", begin + 2)
        if end < 0:
            return
        start = end + 3
    yield text[start:]


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
        """Handle an opening tag: it may break the line, begin a heading, or have text of its own."""
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
            self._path = [*(heading for heading in self._path if heading[0] < self._level), (self._level, title)]
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
