"""Source code: a chunk for each function or class; Python by its syntax, other languages by their blank lines."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from sandbox.wire.lines import bare_lines

from .parts import LONGEST, SourcePart, SourceParts
from .prose import plain

_NAMED: Final = re.compile(
    r"^(?:[a-z]{2,12}[ \t]+){0,5}(?:func|function|fn|def|class|struct|interface|impl|trait|enum|type|module|namespace"
    r"|sub|proc|procedure)[ \t]+(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_$][\w$:.<>-]{0,80})",
    re.MULTILINE,
)
_TOP: Final = re.compile(r"\n[ \t]*\n(?=[^\s)}\]])")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_KINDS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def python(text: str) -> SourceParts:
    """Return each function and class with its decorators and the comments above; a long class method by method."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return split_blocks(text)
    lines = bare_lines(text)
    starts = sorted({0: "", **dict(_starts(tree.body, lines, 0, ""))}.items())
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    return SourceParts(tuple(_part(lines, begin, end, name) for (begin, name), end in zip(starts, ends, strict=True)))


def split_blocks(text: str) -> SourceParts:
    """Return the blocks between blank lines at the left margin, each named by what it defines."""
    parts, number, start = [], 1, 0
    for end in [*(match.end() for match in _TOP.finditer(text)), len(text)]:
        block = text[start:end]
        names = list(dict.fromkeys(_NAMED.findall(block)))
        title = ", ".join(names[:3])
        parts.append(SourcePart(block, title, "line", number, _first_line(block) if names else ""))
        number, start = number + block.count("\n"), end
    return SourceParts(tuple(parts)) if len(parts) > 1 else plain(text)


def _starts(body: Sequence[ast.stmt], lines: Sequence[str], after: int, within: str) -> Iterator[tuple[int, str]]:
    """Yield the line numbers, from 0, at which a part begins, with its name; code after a definition begins one,
    too.
    """
    before: ast.stmt | None = None
    for node in body:
        if isinstance(node, _KINDS):
            name = f"{within}{node.name}"
            yield _above(node, lines, after), name
            end = node.end_lineno or node.lineno
            if isinstance(node, ast.ClassDef) and _length(lines, node.lineno - 1, end) > LONGEST:
                methods = [member for member in node.body if isinstance(member, _KINDS)]
                yield from _starts(methods, lines, node.lineno, f"{name}.")
            after = end
        elif isinstance(before, _KINDS):
            yield after, ""
        before = node


def _above(node: _Definition, lines: Sequence[str], after: int) -> int:
    """Return the first line of a definition, from 0, with its decorators and the comments right above."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
    while first > after and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first


def _length(lines: Sequence[str], start: int, end: int) -> int:
    return sum(len(line) + 1 for line in lines[start:end])


def _part(lines: Sequence[str], begin: int, end: int, name: str) -> SourcePart:
    text = "\n".join(lines[begin:end]) + "\n"
    head = next((line for line in lines[begin:end] if line.lstrip().startswith(("def ", "class ", "async "))), "")
    return SourcePart(text, name, "line", begin + 1, head.rstrip() if name else "")


def _first_line(block: str) -> str:
    return next((line.rstrip() for line in block.split("\n") if line.strip()), "")
