"""A docstring as it stands in the source: its lines without their margin, and how to put them back."""

import ast
import re
from dataclasses import dataclass
from textwrap import dedent

from ...characters import escaped, stray_characters
from ..tree import FunctionNode, first_line
from .signature import offset
from .view import View

_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")  # an escaped line break
_LITERAL = re.compile(r"""^([rRuU]?)(\"\"\"|'''|"|')(.*)\2$""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prose:
    """The raw lines of a docstring, escapes as written; `start` and `end` are its places in the text."""

    lines: tuple[str, ...]
    prefix: str
    start: int
    end: int
    indent: str

    def rewritten(self, text: str, lines: list[str]) -> str:
        """The text with other lines in place of this docstring's."""
        while lines and not lines[-1].strip():
            lines.pop()
        body = "\n".join(
            f"{self.indent}{line}".rstrip() if index and line else line for index, line in enumerate(lines)
        )
        close = f"\n{self.indent}" if len(lines) > 1 else ""
        return f'{text[: self.start]}{self.prefix}"""{body}{close}"""{text[self.end :]}'


def prose(text: str, node: FunctionNode) -> Prose | None:
    """The docstring of a function; None if it has none, or one that cannot be rewritten safely."""
    if ast.get_docstring(node, clean=False) is None:
        return None
    literal = node.body[0]
    start = offset(text, literal.lineno, literal.col_offset)
    margin = text[:start].rpartition("\n")[2]
    end = offset(text, literal.end_lineno or 0, literal.end_col_offset or 0)
    found = _LITERAL.match(text[start:end])
    if not found or '"""' in found[3] or found[3].endswith(('"', "\\")) or margin.strip():
        return None
    is_plain = "\n" not in found[3] and "r" not in found[1].lower()
    first, _, rest = (_BREAK.sub("\\1\n", found[3]) if is_plain else found[3]).partition("\n")
    lines = (
        (first.strip(), *(line.rstrip() for line in dedent(rest.expandtabs()).split("\n")))
        if rest
        else (first.strip(),)
    )
    return Prose(lines, found[1], start, end, margin)


def add_description(view: View) -> str:
    """The text with words that came beside it as the docstring of a function that has none, or one of examples only."""
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
    body = "\n".join(f"{line}{one.strip()}".rstrip() if index else one for index, one in enumerate(lines))
    close = f"\n{line}" if len(lines) > 1 or body.endswith('"') else ""
    return f'{text[:start]}"""{body}{close}"""\n{line}{text[start:]}'


def _above_examples(view: View, words: str) -> str:
    written = prose(view.text, view.node)
    if written is None or "r" in written.prefix.lower():
        return view.text
    kept = list(written.lines)
    while kept and not kept[0].strip():
        kept.pop(0)
    return written.rewritten(view.text, [*(one.strip() for one in _escaped(words)), "", *kept])


def _escaped(words: str) -> list[str]:
    plain = words.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    strays = {*stray_characters(plain)}
    return "".join(escaped(char) if at in strays else char for at, char in enumerate(plain)).split("\n")
