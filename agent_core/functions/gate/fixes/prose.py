"""A docstring as it is in the source: its lines without their margin, and how to put them back."""

import ast
import re
from dataclasses import dataclass
from textwrap import dedent

from agent_core.base.characters import escaped, stray_characters

from ..tree import FunctionNode, first_line
from .view import View, offset

_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break
_LITERAL = re.compile(r"""^([rRuU]?)(\"\"\"|'''|"|')(.*)\2$""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prose:
    """The raw lines of a docstring, escapes as written; `start` and `end` are its positions in the text."""

    lines: tuple[str, ...]
    prefix: str
    start: int
    end: int
    indent: str

    def rewritten(self, text: str, lines: list[str]) -> str:
        """Return the text with other lines in place of this docstring's."""
        while lines and not lines[-1].strip():
            lines.pop()
        body = "\n".join(
            f"{self.indent}{line}".rstrip() if index and line else line for index, line in enumerate(lines)
        )
        close = f"\n{self.indent}" if len(lines) > 1 else ""
        return f'{text[: self.start]}{self.prefix}"""{body}{close}"""{text[self.end :]}'


def prose(text: str, node: FunctionNode) -> Prose | None:
    """Return the docstring of a function; None if it has none, or one that cannot be rewritten safely."""
    if ast.get_docstring(node, clean=False) is None:
        return None
    literal = node.body[0]
    start = offset(text, literal.lineno, literal.col_offset)
    margin = text[:start].rpartition("\n")[2]
    end = offset(text, literal.end_lineno or 0, literal.end_col_offset or 0)
    match = _LITERAL.match(text[start:end])
    if not match or '"""' in match[3] or match[3].endswith(('"', "\\")) or margin.strip():
        return None
    is_plain = "\n" not in match[3] and "r" not in match[1].lower()
    first, _, remainder = (_BREAK.sub("\\1\n", match[3]) if is_plain else match[3]).partition("\n")
    lines = (
        (first.strip(), *(line.rstrip() for line in dedent(remainder.expandtabs()).split("\n")))
        if remainder
        else (first.strip(),)
    )
    return Prose(lines, match[1], start, end, margin)


def add_description(view: View) -> str:
    """Return the text with the separate description as the docstring, if the function has none or only examples."""
    text, node, words = view.text, view.node, view.description.strip()
    if not words or ">>>" in words or view.described.text:
        return text
    if view.words:
        return _above_examples(view, words)
    start = offset(text, first_line(node.body[0]), node.body[0].col_offset)
    line = text[:start].rpartition("\n")[2]
    if line.strip():
        return text
    lines = _escaped(words)
    body = "\n".join(
        f"{line}{text_line.strip()}".rstrip() if index else text_line for index, text_line in enumerate(lines)
    )
    close = f"\n{line}" if len(lines) > 1 or body.endswith('"') else ""
    return f'{text[:start]}"""{body}{close}"""\n{line}{text[start:]}'


def _above_examples(view: View, words: str) -> str:
    written = prose(view.text, view.node)
    if written is None or "r" in written.prefix.lower():
        return view.text
    lines = list(written.lines)
    while lines and not lines[0].strip():
        lines.pop(0)
    return written.rewritten(view.text, [*(line.strip() for line in _escaped(words)), "", *lines])


def _escaped(words: str) -> list[str]:
    plain = words.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    strays = {*stray_characters(plain)}
    return "".join(escaped(char) if at in strays else char for at, char in enumerate(plain)).split("\n")
