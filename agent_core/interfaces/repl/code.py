"""Code in colors, line by line as it comes: drawn lines never change. Slow to import, like `render`.

The lexer sees one line at a time and keeps its place between two, so that no text makes it look far. Only lexers that
were measured are used, and only for lines that people write: everything else is drawn without colors.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from pygments.lexer import ExtendedRegexLexer, LexerContext  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.color import ColorSystem
from rich.style import Style
from rich.syntax import RICH_SYNTAX_THEMES, ANSISyntaxTheme

from agent_core.base.untrusted import visible

from ..columns import pieces, width

# Of the others, some need minutes for a line, and some have ways of their own to keep their place.
MEASURED = frozenset(
    {"Bash", "C", "C++", "CSS", "Diff", "Go", "HTML", "Java", "JavaScript", "Kotlin", "Python", "Ruby", "Rust", "SQL"}
    | {"Swift", "TOML", "TypeScript", "XML"}
)
_MARGIN = "  "
_LONGEST_LEXED = 500  # characters of a line: what is longer is data
_PLAIN = Style()

Part: TypeAlias = tuple[Style, str]


class CodeStream:
    """A block of code that is still being written."""

    def __init__(self, language: str, theme: str, *, coloured: bool) -> None:
        self._lexer: Any = _lexer(language) if coloured else None  # Any: pygments has no types
        self._styles = ANSISyntaxTheme(RICH_SYNTAX_THEMES[theme])
        self._stack = ["root"]

    @property
    def is_coloured(self) -> bool:
        """True if a lexer is used."""
        return self._lexer is not None

    def draw(self, text: str, columns: int) -> Iterator[str]:
        """Draw the next lines, row by row, folded to the width."""
        for parts in self.lines(text):
            yield from rows(parts, columns, _MARGIN)

    def lines(self, text: str) -> Iterator[list[Part]]:
        """Paint the next lines, one after another."""
        for line in visible(text.removesuffix("\n")).split("\n") if text else ():
            yield [(self._style(kind, part), part) for kind, part in self._tokens(line.expandtabs(4))]

    def _tokens(self, line: str) -> Iterator[tuple[Any, str]]:
        if self._lexer is None or len(line) > _LONGEST_LEXED:
            yield Token, line
            return
        context = LexerContext(f"{line}\n", 0, self._stack)
        position = 0
        for at, kind, part in ExtendedRegexLexer.get_tokens_unprocessed(self._lexer, context=context):
            if at == position:  # what a lexer says twice is drawn once
                yield kind, part.removesuffix("\n")
                position += len(part)
        self._stack = context.stack
        if position < len(line):
            yield Token, line[position:]

    def _style(self, kind: Any, part: str) -> Style:
        return self._styles.get_style_for_token(kind) if part.strip() and self._lexer is not None else _PLAIN


def rows(parts: Iterable[Part], columns: int, margin: str, first: str | None = None) -> Iterator[str]:
    """Fold one line behind a margin, which is `first` in the first row, and end each row with a newline."""
    room, used = max(columns - width(margin), 1), 0
    row = [margin if first is None else first]
    for style, text in parts:
        for number, piece in enumerate(pieces(text, room, used)):
            if number:
                yield f"{''.join(row)}\n"
                row, used = [margin], 0
            row.append(painted(style, piece))
            used += width(piece)
    yield f"{''.join(row).rstrip(' ')}\n"


def painted(style: Style, text: str) -> str:
    """Return the text in its colors."""
    return style.render(text, color_system=ColorSystem.STANDARD) if text and style is not _PLAIN else text


def _lexer(language: str) -> Any:
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        return None
    return lexer if lexer.name in MEASURED else None
