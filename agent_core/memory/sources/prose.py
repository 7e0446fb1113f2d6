"""Plain text, and Markdown by its headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .parts import GOAL, SourcePart, SourceParts

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.{0,300}?)[ \t]*#*[ \t]*")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = 80
_LONGEST_HEADING: Final = 400


def plain(text: str) -> SourceParts:
    """Return the paragraphs, joined up to a good size."""
    parts, number = [], 1
    for paragraph in _paragraphs(text):
        parts.append(SourcePart(paragraph, "", "line", number))
        number += paragraph.count("\n")
    return SourceParts(tuple(parts), GOAL * 3 // 4)


def markdown(text: str) -> SourceParts:
    """Return a part for each heading with the text below it; a heading without text goes with the next one."""
    path: list[tuple[int, str]] = []
    parts: list[SourcePart] = []
    lines: list[str] = []
    begins, lead, has_body = 1, "", False

    def part() -> SourcePart:
        return SourcePart(
            "".join(lines), " > ".join(title[:_TITLE] for _, title in path if title), "line", begins, lead
        )

    for number, line in enumerate(_lines(text), 1):
        if line.level:
            if has_body:
                parts.append(part())
                begins, lines, has_body = number, [], False
            path = [*(heading for heading in path if heading[0] < line.level), (line.level, line.title)]
            lead = f"{'#' * line.level} {line.title}"
        has_body = has_body or not (line.is_heading or not line.text.strip())
        lines.append(f"{line.text}\n")
    return SourceParts((*parts, part()))


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    level: int = 0
    title: str = ""
    is_heading: bool = False


def _lines(text: str) -> Iterator[_Line]:
    """Yield each line, with the level and title of a heading. An underline belongs to its heading."""
    fence, is_under, lines = "", False, text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        level, title = (0, "") if fence or is_under else _heading(line, following)
        yield _Line(line, level, title, bool(level) or is_under)
        is_under = bool(level) and not _HEADING.fullmatch(line[:_LONGEST_HEADING])
        fence = _fenced(line, fence)


def _heading(line: str, following: str) -> tuple[int, str]:
    if match := _HEADING.fullmatch(line[:_LONGEST_HEADING]):
        return len(match[1]), match[2].strip()
    under = _UNDERLINE.fullmatch(following[:200])
    is_text = line.strip() and len(line) < 200 and line.lstrip()[0] not in "#>-*+|`=" and not line.startswith("    ")
    if under and is_text and len(under[1]) > 1:
        return (1 if under[1][0] == "=" else 2), line.strip()
    return 0, ""


def _fenced(line: str, fence: str) -> str:
    """Return the fence that is open after this line."""
    match = _FENCE.match(line)
    if not fence:
        return match[1] if match else ""
    is_end = match and match[1].startswith(fence) and not line.strip().strip(fence[0])
    return "" if is_end else fence


def _paragraphs(text: str) -> Iterator[str]:
    """Split the text at its blank lines, keeping every character."""
    start = 0
    for match in re.finditer(r"\n[ \t]*\n\s*", text):
        yield text[start : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]
