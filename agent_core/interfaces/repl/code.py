"""Code in colours, line by line as it comes: what is drawn stays, whatever follows. Heavy, as `render` is.

The lexer keeps its place between two parts; one that cannot goes on without colours.
"""

from collections.abc import Iterator
from typing import Any

from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.color import ColorSystem
from rich.syntax import RICH_SYNTAX_THEMES, ANSISyntaxTheme

from agent_core.untrusted import visible

from ..columns import width

_MARGIN = "  "
_LONGEST_LEXED = 2_000  # characters of a line: what is longer is data


class Code:
    """One stretch of code that is still being written."""

    def __init__(self, language: str, theme: str, *, coloured: bool) -> None:
        self._lexer: Any = _lexer(language) if coloured else None  # Any: pygments has no types
        self._styles = ANSISyntaxTheme(RICH_SYNTAX_THEMES[theme])
        self._stack = ["root"]

    def draw(self, text: str, columns: int) -> str:
        """The next lines, folded to the width."""
        drawn, room = [_MARGIN], columns - len(_MARGIN)
        used = 0
        for kind, part in self._tokens(visible(text).expandtabs(4)):
            for start, piece in _folded(part, used, room):
                drawn.append(f"\n{_MARGIN}" if start else "")
                drawn.append(self._painted(kind, piece))
                used = (0 if start else used) + width(piece)
        return "".join(drawn).removesuffix(f"\n{_MARGIN}") + "\n" if text else ""

    def _tokens(self, text: str) -> Iterator[tuple[Any, str]]:
        if self._lexer is None or any(len(line) > _LONGEST_LEXED for line in text.split("\n")):
            yield Token, text
            return
        context = LexerContext(text, 0, self._stack)
        taken = 0
        try:
            for at, kind, part in ExtendedRegexLexer.get_tokens_unprocessed(self._lexer, context=context):
                if at == taken:  # what a lexer says twice is drawn once
                    yield kind, part
                    taken += len(part)
        except (TypeError, KeyError, AttributeError):  # a lexer with ways of its own
            self._lexer = None
        self._stack = context.stack
        if taken < len(text):
            yield Token, text[taken:]

    def _painted(self, kind: Any, text: str) -> str:
        style = self._styles.get_style_for_token(kind)
        if not text.strip() or self._lexer is None:
            return text
        return str(style.render(text, color_system=ColorSystem.STANDARD))


def _lexer(language: str) -> Any:
    try:
        found = get_lexer_by_name(language or "text")
    except ClassNotFound:
        return None
    return found if isinstance(found, RegexLexer) else None


def _folded(text: str, used: int, room: int) -> Iterator[tuple[bool, str]]:
    """The pieces of a token: whether each begins a row, and its text."""
    for number, line in enumerate(text.split("\n")):
        starts, piece = number > 0, ""
        used = 0 if starts else used
        for character in line:
            cells = width(character)
            if used + cells > room and used:
                yield starts, piece
                starts, piece, used = True, "", 0
            piece += character
            used += cells
        yield starts, piece
