"""Plain text, and Markdown by its headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .parts import GOAL, Part, Parts

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.{0,300}?)[ \t]*#*[ \t]*")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = 80
_LONGEST_HEADING: Final = 400


def plain(text: str) -> Parts:
    """Paragraphs, joined up to a good size."""
    parts, number = [], 1
    for paragraph in _paragraphs(text):
        parts.append(Part(paragraph, "", "line", number))
        number += paragraph.count("\n")
    return Parts(tuple(parts), GOAL * 3 // 4)


def markdown(text: str) -> Parts:
    """A part for each heading with what is below it; a heading with nothing below goes with the next one."""
    path: list[tuple[int, str]] = []
    parts: list[Part] = []
    lines: list[str] = []
    begins, lead, has_body = 1, "", False

    def part() -> Part:
        return Part("".join(lines), " > ".join(title[:_TITLE] for _, title in path if title), "line", begins, lead)

    for number, each in enumerate(_lines(text), 1):
        if each.level:
            if has_body:
                parts.append(part())
                begins, lines, has_body = number, [], False
            path = [*(one for one in path if one[0] < each.level), (each.level, each.title)]
            lead = f"{'#' * each.level} {each.title}"
        has_body = has_body or not (each.is_heading or not each.text.strip())
        lines.append(f"{each.text}\n")
    return Parts((*parts, part()))


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    level: int = 0
    title: str = ""
    is_heading: bool = False


def _lines(text: str) -> Iterator[_Line]:
    """Each line; where one is a heading, its level and title. An underline belongs to its heading."""
    fence, is_under, lines = "", False, text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        level, title = (0, "") if fence or is_under else _heading(line, following)
        yield _Line(line, level, title, bool(level) or is_under)
        is_under = bool(level) and not _HEADING.fullmatch(line[:_LONGEST_HEADING])
        fence = _fenced(line, fence)


def _heading(line: str, following: str) -> tuple[int, str]:
    if found := _HEADING.fullmatch(line[:_LONGEST_HEADING]):
        return len(found[1]), found[2].strip()
    under = _UNDERLINE.fullmatch(following[:200])
    is_text = line.strip() and len(line) < 200 and line.lstrip()[0] not in "#>-*+|`=" and not line.startswith("    ")
    if under and is_text and len(under[1]) > 1:
        return (1 if under[1][0] == "=" else 2), line.strip()
    return 0, ""


def _fenced(line: str, fence: str) -> str:
    """The fence that is open after this line."""
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    is_end = found and found[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if is_end else fence


def _paragraphs(text: str) -> Iterator[str]:
    """The text at its blank lines, every character of it."""
    start = 0
    for found in re.finditer(r"\n[ \t]*\n\s*", text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]
