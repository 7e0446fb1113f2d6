"""Plain text, Markdown by its headings, and Python by its definitions."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent_core.base import syntax
from sandbox.wire.lines import bare_lines

from .cutting import GOAL, LONGEST, SourcePart, SourceParts

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.{0,300}?)[ \t]*#*[ \t]*")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = 80
_LONGEST_HEADING: Final = 400


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
        match = _FENCE.match(line)
        if not fence:
            fence = match[1] if match else ""
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""


def _heading(line: str, following: str) -> tuple[int, str]:
    if match := _HEADING.fullmatch(line[:_LONGEST_HEADING]):
        return len(match[1]), match[2].strip()
    under = _UNDERLINE.fullmatch(following[:200])
    is_text = line.strip() and len(line) < 200 and line.lstrip()[0] not in "#>-*+|`=" and not line.startswith("    ")
    if under and is_text and len(under[1]) > 1:
        return (1 if under[1][0] == "=" else 2), line.strip()
    return 0, ""


_NAMED: Final = re.compile(
    r"^(?:[a-z]{2,12}[ \t]+){0,5}(?:func|function|fn|def|class|struct|interface|impl|trait|enum|type|module|namespace"
    r"|sub|proc|procedure)[ \t]+(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_$][\w$:.<>-]{0,80})",
    re.MULTILINE,
)
_TOP: Final = re.compile(r"\n[ \t]*\n(?=[^\s)}\]])")
_KINDS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def python(text: str) -> SourceParts:
    """Return each function and class with its decorators and the comments above; a long class method by method."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return split_blocks(text)
    lines = bare_lines(text)
    starts = sorted({0: "", **dict(_starts(tree.body, lines, 0, ""))}.items())
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    parts = []
    for (begin, name), end in zip(starts, ends, strict=True):
        own = lines[begin:end]
        head = next((line for line in own if line.lstrip().startswith(("def ", "class ", "async "))), "")
        parts.append(SourcePart("\n".join(own) + "\n", name, "line", begin + 1, head.rstrip() if name else ""))
    return SourceParts(tuple(parts))


def split_blocks(text: str) -> SourceParts:
    """Return the blocks between blank lines at the left margin, each named by its definitions."""
    parts, number, start = [], 1, 0
    for end in [*(match.end() for match in _TOP.finditer(text)), len(text)]:
        block = text[start:end]
        names = list(dict.fromkeys(_NAMED.findall(block)))
        first = next((line.rstrip() for line in block.split("\n") if line.strip()), "")
        parts.append(SourcePart(block, ", ".join(names[:3]), "line", number, first if names else ""))
        number, start = number + block.count("\n"), end
    return SourceParts(tuple(parts)) if len(parts) > 1 else plain(text)


def _starts(body: Sequence[ast.stmt], lines: Sequence[str], after: int, within: str) -> Iterator[tuple[int, str]]:
    """Yield the line numbers, from 0, at which a part begins, with its name; code after a definition is a part, too."""
    before: ast.stmt | None = None
    for node in body:
        if isinstance(node, _KINDS):
            name = f"{within}{node.name}"
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            while first > after and lines[first - 1].lstrip().startswith("#"):
                first -= 1
            yield first, name
            end = node.end_lineno or node.lineno
            if isinstance(node, ast.ClassDef) and len("\n".join(lines[node.lineno - 1 : end])) >= LONGEST:
                methods = [member for member in node.body if isinstance(member, _KINDS)]
                yield from _starts(methods, lines, node.lineno, f"{name}.")
            after = end
        elif isinstance(before, _KINDS):
            yield after, ""
        before = node
