"""Markdown, code and turns as terminal text, rendered with rich. Slow to import: loaded in the background.

The input is untrusted and passes through `visible` first, and the output does again, because Markdown has entities for
every character. Links are shown as text, never as escape sequences; HTML, pictures and definitions are shown as source.
"""

import io
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from pygments.lexer import ExtendedRegexLexer, LexerContext  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from rich.color import ColorSystem
from rich.console import Console, JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.theme import Theme

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.pictures import pictures_in
from agent_core.base.untrusted import one_line, visible
from agent_core.views.call_log import (
    CallLog,
    call_line,
    call_lines,
    ended_lines,
    verdict_part,
    was_told,
)
from agent_core.views.faults import with_options
from agent_core.views.function_view import MARK, SourceRow, quarantine_lines
from agent_core.views.grant_question import denied_lines, function_question_lines
from agent_core.views.styled_lines import Line, cut, folded, indented, line, pieces, plain, width
from agent_core.views.styled_lines import painted as painted_lines
from agent_core.views.verdicts import SLASH, coloured, hints, printed_lines
from knapper.terminal.pictures import shown_pictures
from knapper.terminal.progress import WAITING, reading_text, waiting_text
from sandbox.wire.lines import bare_lines

from .live import MOST_CHARS, MOST_SPANS, DrawnBlock, Live, RunningCall, WrittenCall, spans
from .prompt import Made

# Code in colors, line by line as it arrives: drawn lines never change. The lexer gets one line at a time and keeps its
# state between lines, so that no text makes it scan far. Only lexers with measured speed are used, and only for lines
# of normal length; everything else is drawn without colors.

# Of the other lexers, some need minutes for a line, and some keep their state differently.
MEASURED = frozenset(
    {
        "Bash",
        "C",
        "C++",
        "CSS",
        "Diff",
        "Go",
        "HTML",
        "Java",
        "JavaScript",
        "Kotlin",
        "Python",
        "Ruby",
        "Rust",
        "SQL",
    }
    | {"Swift", "TOML", "TypeScript", "XML"}
)
_MARGIN = "  "
_LONGEST_LEXED = 500  # characters of a line; longer lines are data
_PLAIN = Style()

# Colors that can be read on a dark and on a light screen: neither bright ones nor blue.
_CODE: Final = ANSISyntaxTheme(
    {
        (): Style(),
        ("Comment",): Style(dim=True),
        ("Keyword",): Style(color="magenta"),
        ("Keyword", "Type"): Style(color="cyan"),
        ("Operator", "Word"): Style(color="magenta"),
        ("Name", "Builtin"): Style(color="cyan"),
        ("Name", "Exception"): Style(color="cyan"),
        ("Name", "Function"): Style(color="green"),
        ("Name", "Class"): Style(color="green", underline=True),
        ("Name", "Decorator"): Style(color="magenta", bold=True),
        ("Name", "Tag"): Style(color="magenta"),
        ("Name", "Attribute"): Style(color="cyan"),
        ("Literal", "String"): Style(color="yellow"),
        ("Literal", "Number"): Style(color="cyan"),
        ("Generic", "Deleted"): Style(color="red"),
        ("Generic", "Inserted"): Style(color="green"),
        ("Generic", "Heading"): Style(bold=True),
        ("Error",): Style(color="red", underline=True),
    }
)
Part: TypeAlias = tuple[Style, str]


class CodeStream:
    """A block of code that is still being written."""

    def __init__(self, language: str) -> None:
        self._lexer: Any = None  # Any: pygments has no types
        with suppress(ClassNotFound):
            if takes_colour() and (lexer := get_lexer_by_name(language or "text")).name in MEASURED:
                self._lexer = lexer
        self._stack = ["root"]

    def draw(self, text: str, columns: int) -> Iterator[str]:
        """Draw the next lines row by row, wrapped to the width."""
        for parts in self.lines(text):
            yield from rows(parts, columns, _MARGIN)

    def lines(self, text: str) -> Iterator[list[Part]]:
        """Color the next lines one by one."""
        for row in visible(text.removesuffix("\n")).split("\n") if text else ():
            yield [
                (self._style(kind, part), part) for kind, part in self._tokens(row.expandtabs(4))
            ]

    def _tokens(self, line: str) -> Iterator[tuple[Any, str]]:
        if self._lexer is None or len(line) > _LONGEST_LEXED:
            yield Token, line
            return
        context = LexerContext(f"{line}\n", 0, self._stack)
        position = 0
        for at, kind, part in ExtendedRegexLexer.get_tokens_unprocessed(
            self._lexer, context=context
        ):
            if at == position:  # draw a token only once if the lexer repeats it
                yield kind, part.removesuffix("\n")
                position += len(part)
        self._stack = context.stack
        if position < len(line):
            yield Token, line[position:]

    def _style(self, kind: Any, part: str) -> Style:
        return (
            _CODE.get_style_for_token(kind) if part.strip() and self._lexer is not None else _PLAIN
        )


def rows(
    parts: Iterable[Part], columns: int, margin: str, first: str | None = None
) -> Iterator[str]:
    """Wrap a line behind a margin, which is `first` in the first row, and end each row with a newline."""
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
    return (
        style.render(text, color_system=ColorSystem.STANDARD)
        if text and style is not _PLAIN
        else text
    )


_THEME = Theme(
    {"markdown.code": "bold cyan"}
)  # the default has a black background, a bar on light screens
_MARKED, _NEXT, _DIM = Style.parse("red"), Style.parse("bold yellow"), Style.parse("dim")
_LONGEST_PAINTED = 100_000  # characters of a source; reaching its last line takes two seconds
_MARKS = frozenset("|:- \t")  # of the row below the head of a table
_SGR = re.compile("(\x1b\\[[0-9;]*m)")
# Without the rules for elements that would be invisible in a terminal.
_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable(["image", "reference"])
)


def _keep_line_breaks(state: StateCore) -> None:
    """Draw each line of a paragraph on a line of its own, as chats do: rich would join them."""
    for token in chain.from_iterable(token.children or () for token in state.tokens):
        if token.type == "softbreak":
            token.type = "hardbreak"


_PARSER.core.ruler.push("keep_line_breaks", _keep_line_breaks)


def _indented_table(state: StateBlock, first: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the signature of a rule
    """Read a table whose head is indented: models align its first cell, which may be empty, under the others."""
    marks = state.getLines(first + 1, first + 2, 0, keepLastLF=False) if first + 1 < end else ""
    if not marks.strip() or not _MARKS.issuperset(marks):
        return False
    indents = state.sCount[first : first + 2]
    state.sCount[first : first + 2] = [state.blkIndent] * 2
    is_table = table(state, first, end, silent)
    state.sCount[first : first + 2] = indents
    return is_table


_PARSER.block.ruler.at("table", _indented_table, {"alt": ["paragraph", "reference"]})


class _Title(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}  # headings are left-aligned


class _Reply(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Title,
    }


_DOCUMENT = _Reply("", code_theme=_CODE, hyperlinks=False)  # type: ignore[arg-type]  # it is handed on to `Syntax`


def markdown(text: str, columns: int) -> Iterator[str]:
    """Render one block of Markdown to the width. A block that would take long is drawn as source, row by row."""
    if len(text) > MOST_CHARS or sum(map(spans, text.split("\n"))) > MOST_SPANS:
        for row in folded(
            (line(raw_line) for raw_line in text.strip("\n").split("\n")), columns, 0
        ):
            yield plain([row])
        return
    document = copy(_DOCUMENT)  # a new document would create a new parser
    document.parsed = _PARSER.parse(visible(text))
    console = Console(
        file=io.StringIO(),
        theme=_THEME,
        width=columns,
        force_terminal=takes_colour(),
        color_system="standard" if takes_colour() else None,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(document)
    split_lines = [_SGR.split(line.rstrip(" ")) for line in captured.get().split("\n")]
    lines = [
        "".join(part if _SGR.fullmatch(part) else visible(part) for part in parts)
        for parts in split_lines
    ]
    while lines and not _SGR.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    yield "".join(f"{line}\n" for line in lines)


def drawn(lines: Iterable[Line], columns: int) -> Iterator[str]:
    """Draw lines row by row, wrapped to the width."""
    return (painted_lines([row], sys.stdout) for row in folded(lines, columns))


def takes_colour() -> bool:
    """Check whether the user wants colors."""
    return not os.environ.get("NO_COLOR")


def source(code: str, first: int, columns: int, marked: Collection[int] = ()) -> Iterator[str]:
    """Draw Python source with line numbers and colors, row by row; `marked` are line numbers."""
    text = "\n".join(bare_lines(code)).rstrip("\n")
    digits = len(str(first + text.count("\n")))
    margin = " " * (len(MARK) + digits + 1)
    for number, parts in enumerate(_python(text), first):
        mark = painted(_MARKED, MARK) if number in marked else " " * len(MARK)
        yield from rows(parts, columns, margin, f"{mark}{painted(_DIM, f'{number:{digits}} ')}")


def listing(code: str, shown: Sequence[SourceRow], columns: int) -> Iterator[str]:
    """Draw some lines of a source with their marks, in the colors from the complete source."""
    lines, others = _painting(code)
    for row in shown:
        while len(lines) < row.number and (following := next(others, None)) is not None:
            lines.append(following)
            yield ""
        parts = lines[row.number - 1] if row.number <= len(lines) else [(_PLAIN, row.text)]
        room = columns - len(row.gutter)
        drawn = (
            [painted(_NEXT if row.is_next else _DIM, row.gutter)]
            if takes_colour()
            else [row.gutter]
        )
        for style, text in parts:
            fitting = cut(visible(text), room)
            drawn.append(painted(style, fitting))
            room -= width(fitting)
            if fitting != text:
                break
        yield f"{''.join(drawn)}\n"


@lru_cache(maxsize=4)
def _painting(code: str) -> tuple[list[list[Part]], Iterator[list[Part]]]:
    """Return the lines already colored, and an iterator over the rest."""
    return [], _python("\n".join(bare_lines(code)) if len(code) <= _LONGEST_PAINTED else "")


def _python(text: str) -> Iterator[list[Part]]:
    return CodeStream("python").lines(text)


# A turn: finished blocks above the prompt, the rest in the live area.


class TurnRenderer:
    """A listener that updates the screen and the live area with a turn's events."""

    def __init__(
        self,
        log: CallLog,
        live: Live,
        columns: Callable[[], int],
        write: Callable[[Made], None],
        moved: Callable[[], None],
    ) -> None:
        """Create the listener: it gives finished text to `write`, and calls `moved` when the live area has changed."""
        self._log, self._live, self._columns = log, live, columns
        self._print, self._moved = write, moved
        self._began = time.monotonic()
        self._said: list[str] = []
        self._code: CodeStream | None = None
        self._step = 0
        self._is_apart = True

    def hear(self, event: Event) -> None:
        """Show an event."""
        if not isinstance(event, events.Writing):
            self._live.written.clear()
        if event.step != self._step:
            self._finish_text()
            self._step = event.step
            self._live.waiting = WAITING if self._live.waiting else ""
        match event:
            case events.TurnStarted():
                self._live.wait(WAITING)
                self._said = []
            case events.Text():
                self._text(event.text)
            case events.Thought():
                self._live.waiting = WAITING
                self._live.think(event.text)
            case events.Writing():
                self._live.written.setdefault(event.place, WrittenCall(event.name)).hear(
                    event.arguments
                )
            case events.CallStarted():
                self._finish_text()
                self._live.thought = ""
                self._log.started(event)
                self._live.calls[event.call_id] = RunningCall(
                    event.name, event.arguments, time.monotonic()
                )
            case events.Progress() if event.call_id in self._live.calls:
                running, total = self._live.calls[event.call_id], event.total
                running.done, running.note = event.done, event.note
                running.total = total if isinstance(total, int | float) and total > 0 else None
            case events.Printed() if event.call_id in self._live.calls:
                self._live.calls[event.call_id].hear(event.text)
            case events.CallAnswered():
                self._show_answer(event)
            case _:
                self._aside(event)
        self._moved()

    def _aside(self, event: Event) -> None:
        match event:
            case events.Warned():
                self._finish_text()  # what was said so far stands above what became of it
                self._lines([line(("warn", f"! {with_options(event.text)}"))])
            case events.SpeakerChosen():
                self._finish_text()
                self._lines([line(("name", event.agent), ("dim", f" · {one_line(event.reason)}"))])
            case events.Reading():
                self._live.thought, self._live.waiting = "", reading_text(event)
            case events.Waiting():
                self._live.wait(waiting_text(event) or WAITING)
            case events.Quarantined():
                self._finish_text()
                self._lines(quarantine_lines(event, SLASH))
            case events.GrantAnswered():
                self._finish_text()
                self._lines(denied_lines([event]))
            case events.FunctionAsked() | events.FunctionAnswered():
                self._finish_text()
                self._lines(function_question_lines(event))
            case events.TurnEnded():
                self._finish_text()
                self._live.clear()
                if not was_told(event.reply, "".join(self._said)):
                    self._said = []
                    self._text(event.reply)
                    self._finish_text()
                self._lines(
                    [*ended_lines(event, time.monotonic() - self._began, self._columns()), line("")]
                )
            case _:
                pass

    def _text(self, text: str) -> None:
        self._said.append(text)
        self._live.thought = ""
        for block in self._live.blocks.feed(text):
            self._block(block)

    def _finish_text(self) -> None:
        for block in self._live.blocks.end():
            self._block(block)

    def _block(self, block: DrawnBlock) -> None:
        if not self._is_apart:  # separate the answer from the calls above it
            self._is_apart = True
            self._print("\n")
        code = None
        if block.code is not None:
            code = self._code = self._code or CodeStream(block.code)
        self._print(self._draw_block(block, code))
        if block.ends:
            self._code = None

    def _draw_block(self, block: DrawnBlock, code: CodeStream | None) -> Iterator[str]:
        if code is None:
            yield from markdown(block.text, self._columns())
        else:
            yield from code.draw(block.text, self._columns())
        if block.ends:
            yield "\n"

    def _show_answer(self, event: events.CallAnswered) -> None:
        self._live.answered(event.call_id)
        call = self._log.answered(event)
        self._is_apart = False
        if not self._log.is_full:
            self._lines(call_lines(call, self._columns()))
            self._show_pictures(event)
            return
        self._lines([call_line(call, self._columns())])
        if call.diff and len(call.diff) < len(bare_lines(call.source)):
            self._lines(indented(coloured(call.diff)))
        elif call.source and not (call.earlier and call.earlier.source == call.source):
            self._print(source(call.source, 1, self._columns()))
        told = (
            [hint for hint in hints(call.verdict) if hint not in call.hints] if call.verdict else []
        )
        self._lines([*verdict_part(call, told), *printed_lines(call.detail.get("output") or "")])
        self._show_pictures(event)

    def _show_pictures(self, event: events.CallAnswered) -> None:
        pictures = pictures_in(event.detail)
        for shown in shown_pictures(pictures, self._log.pictures, is_terminal=True):
            if isinstance(shown, str):
                self._print(shown)
            else:
                self._lines([shown])

    def _lines(self, lines: list[Line]) -> None:
        if lines:
            self._print(drawn(lines, self._columns()))
