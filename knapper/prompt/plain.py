"""Turns without a prompt: one message, or one per line of standard input; Ctrl-C ends the turn properly."""

import asyncio
import codecs
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.base import machine
from agent_core.base.errors import ModelError, WorkspaceError
from agent_core.base.late import LateModule
from agent_core.operations.attachments import as_sent, pasted
from agent_core.views.styled_lines import line, warned, write
from agent_core.workspace.scaffold import create
from knapper.terminal.control_sequences import (
    PASTE,
    PASTE_END,
    REST_S,
    ControlReader,
    Piece,
    typed_text,
)
from knapper.terminal.deciding import decide, is_attended
from knapper.terminal.dialog import forget_typed, show_mark

from .conversation import Conversation, greeting, opened
from .run_options import RunOptions
from .ui import JsonLines, Listener, ShapedText, Voice

if TYPE_CHECKING:
    from agent_core.model import tour

    from . import slash
else:  # a message needs neither the commands nor the tour
    tour = LateModule("agent_core.model.tour")
    slash = LateModule("knapper.prompt.slash")

MARK = "› "
_EMPTY = "Nothing was said: standard input is empty. Next: knapper run --message TEXT, or knapper run, where you type"
_ALONE = "Nobody types here, so the tour plays by itself, in a folder that is removed afterwards."


async def one_message(options: RunOptions, message: str | None) -> bool:
    """Run one turn, after resuming an interrupted one if requested. Return whether all ended with a reply."""
    heard: Listener | None = JsonLines() if options.as_json else None
    shape = options.shape
    approver = decide if is_attended() and (options.approve or not options.as_json) else None
    voice = Voice(approver=approver, agrees=options.yes)
    async with opened(options, voice) as conversation, asyncio.TaskGroup() as group:
        await _ready(conversation)
        with ctrl_c(group, conversation):
            await _before(conversation, options, heard)
            if message is not None and options.is_typed and slash.is_command(message):
                await slash.take(conversation, message)
            elif message is not None and not conversation.failed:
                conversation.pictures += options.pictures
                if shape is not None and heard is None:
                    heard = ShapedText(conversation.log, shape)
                if not await conversation.turn(message, heard, shape) and not conversation.left:
                    await conversation.drop_unanswered()
                if conversation.has_sent:
                    await conversation.finish_work(heard)
        return not conversation.failed


async def each_line(options: RunOptions) -> bool:
    """Run a turn for each line of standard input. Return whether all ended with a reply."""
    typed = Typed()
    voice = Voice(typed if sys.stdin.isatty() else None, agrees=options.yes)
    heard = JsonLines() if options.as_json else None
    async with (
        opened(options, voice) as conversation,
        conversation.awake(heard),
        asyncio.TaskGroup() as group,
    ):
        model = await _ready(conversation)
        with ctrl_c(group, conversation, typed):
            if sys.stdin.isatty() and not options.as_json:
                voice.aloud(greeting(model, await conversation.agent.user_texts()))
                if opening := await conversation.opening(options):
                    conversation.voice.aloud([line(("name", MARK), ("strong", opening))])
                    await slash.take(conversation, opening)
            await conversation.guarded(_before(conversation, options, heard))
            has_line = sys.stdin.isatty() or options.as_json or options.greet
            with typed.reading():
                while not conversation.left and (text := await typed.line(MARK)) is not None:
                    has_line = True
                    if options.as_json:
                        await conversation.turn(
                            as_sent(text) if sys.stdin.isatty() else text, JsonLines()
                        )
                    elif sys.stdin.isatty():
                        await conversation.guarded(slash.take(conversation, text))
                    else:
                        await slash.take(conversation, text)
        if not has_line:
            voice.aloud([line(("dim", _EMPTY))])
        return not conversation.failed


async def tour_alone(options: RunOptions) -> bool:
    """Run the tour with the user's lines typed from its script. Return whether everything succeeded.

    The workspace is temporary, because no user watches the changes that the tour makes.
    """
    with TemporaryDirectory(prefix="knapper-") as folder:
        root = Path(folder)
        create(root)
        async with (
            opened(replace(options, root=root), Voice()) as conversation,
            asyncio.TaskGroup() as group,
        ):
            conversation.voice.aloud([line(("dim", _ALONE))])
            with ctrl_c(group, conversation):
                for typed in tour.script().typed:
                    conversation.voice.lines(
                        [line(), line(("name", MARK), ("strong", typed.text)), line()]
                    )
                    await (
                        _edit(conversation, typed)
                        if typed.file
                        else slash.take(conversation, typed.text)
                    )
                    if conversation.failed:
                        return False
    return True


async def _edit(conversation: Conversation, typed: "tour.TypedLine") -> None:
    """Change and save a file like a user in an editor."""
    file = conversation.workspace.root / typed.file
    if not file.is_file():
        message = f"{typed.file} was not made, so the tour ends here."
        conversation.explain(WorkspaceError(message, fix="Can functions run here? knapper doctor"))
        return
    async with conversation.aside():
        file.write_text(file.read_text("utf-8").replace(typed.old, typed.new), "utf-8")
        await conversation.workspace.functions.reload()
    conversation.voice.lines(
        [
            line(
                (
                    "dim",
                    f"  in the editor: {typed.old} became {typed.new}, and {typed.file} was saved",
                )
            )
        ]
    )


async def _before(conversation: Conversation, options: RunOptions, heard: Listener | None) -> None:
    """Run everything that precedes the first message."""
    if options.resume:
        await conversation.resume(heard)
    await conversation.begin(options, heard)


async def _ready(conversation: Conversation) -> str:
    write(conversation.news(), sys.stderr)
    try:
        model = await conversation.agent.model_session.line()
    except ModelError:
        if not conversation.agent.has_others:  # take no messages that no model can answer
            raise
        return ""
    write(
        warned(conversation.agent.models.window_warning(only_news=True)), sys.stderr
    )  # not in every pipe
    return model


class _Stoppable(Protocol):
    @property
    def stoppable(self) -> bool: ...
    async def interrupt(self) -> None: ...


@contextmanager
def ctrl_c(
    group: asyncio.TaskGroup, conversation: _Stoppable, typed: "Typed | None" = None
) -> Iterator[None]:
    """Make Ctrl-C dismiss an open question, or end the running turn or command; without these, the program."""
    # Installed once, not for each line: a signal whose handler is removed before the loop gets to it is lost.
    before = signal.getsignal(signal.SIGINT)

    def stop() -> None:
        if typed is not None and typed.dismiss():
            return
        if conversation.stoppable:
            group.create_task(conversation.interrupt())
        elif callable(before):
            before(signal.SIGINT, None)

    machine.on_signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        machine.forget_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


# What is entered at a terminal that edits the line itself and passes it on at Enter. A line of a pasted text, which may
# be a stranger's, looks like one that a person typed: a command or the name of a file counts only if it came alone.

_TOGETHER_S: Final = 0.05  # within this time after a line, nobody types another one
_MOST_CHARS: Final = 4 << 20  # of one entry; the rest is the next one
_MARKS_PASTES, _MARKS_NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


def _tell_terminal(sequence: str) -> None:
    sys.stderr.write(sequence)
    sys.stderr.flush()


class _Entry:
    """What arrived together: a line that a person typed, or a paste with what was typed around it."""

    def __init__(self, *, is_rest: bool = False) -> None:
        self.began = time.monotonic()
        self.is_pasting = False
        self.size = 0
        self._parts: list[tuple[bool, str]] = []  # whether it is marked as pasted, and the text
        self._is_paste = is_rest  # whether all of it counts as pasted

    @property
    def is_whole(self) -> bool:
        """True if Enter was the last key."""
        return bool(self._parts) and self._parts[-1][1].endswith("\n")

    def add(self, pieces: list[Piece]) -> None:
        """Add what has arrived."""
        for piece in pieces:
            if piece.text == PASTE:
                self.is_pasting = True
            elif piece.text == PASTE_END:
                self._is_paste |= not self.is_pasting  # the end of one that began earlier
                self.is_pasting = False
            elif text := typed_text([piece]):
                self.size += len(text)
                self._parts.append((self.is_pasting, text))

    def text(self) -> str:
        """Return the text, with stand-ins where it was pasted."""
        text = "".join(part for _, part in self._parts)
        if (
            self._is_paste
            or text.count("\n") > 1
            or any(is_pasted and "\n" in part for is_pasted, part in self._parts)
        ):
            return pasted(text, sent_itself=True)
        return "".join(pasted(part) if is_pasted else part for is_pasted, part in self._parts)


def _entries(source: BufferedReader, terminal: int) -> Iterator[tuple[float, str]]:
    """Yield what is entered at a terminal until the end of input, each with the time when it began to arrive."""
    decoder, reader = (
        codecs.getincrementaldecoder("utf-8")("replace"),
        ControlReader(is_of_lines=True),
    )
    entry, is_rest = None, False
    while data := source.read1(1 << 16):
        entry = entry or _Entry(is_rest=is_rest)
        entry.add(reader.feed(decoder.decode(data)))
        is_rest = entry.size > _MOST_CHARS
        if is_rest or not _is_continued(
            entry, terminal, lambda data: reader.feed(decoder.decode(data))
        ):
            yield entry.began, entry.text()
            entry = None
    if entry is not None:
        yield entry.began, entry.text()


def _is_continued(entry: _Entry, terminal: int, read: Callable[[bytes], list[Piece]]) -> bool:
    """Tell whether more of an entry is there or will come: of half a line, the rest comes with the next Enter."""
    while entry.is_whole:
        if machine.has_input(terminal, _TOGETHER_S):
            return True
        if half := machine.read_typed(terminal):
            entry.add(read(half))
        elif not entry.is_pasting or not machine.has_input(terminal, REST_S):
            return False  # of a paste, too: the mark of its end is lost, as by the key Backspace
    return True


class Typed:
    """The lines of standard input as they arrive. Function files are still watched while this waits."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[tuple[float, str | None]] = (
            asyncio.Queue()
        )  # with the time when each arrived
        self._early: list[tuple[float, str | None]] = []
        self._since = 0.0  # earlier lines are not answers
        self._asked = self._is_dismissed = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read while the block runs. A terminal that can marks what is pasted."""
        # Not a thread from the loop's pool: a terminal's readline cannot be canceled, and exiting must not wait for it.
        threading.Thread(target=self._read, args=[asyncio.get_running_loop()], daemon=True).start()
        marks = (
            sys.stdin.isatty()
            and sys.stderr.isatty()
            and os.environ.get("TERM") not in (None, "", "dumb")
        )
        try:
            _tell_terminal(_MARKS_PASTES if marks else "")
            yield
        finally:
            _tell_terminal(_MARKS_NO_PASTES if marks else "")

    async def line(self, mark: str) -> str | None:
        """Return the next nonempty line, or None at the end."""
        while (text := await self._next(mark)) is not None:
            if text.strip():
                return text
        return None

    async def answer(self, question: str) -> str | None:
        """Return the user's answer, or None if the question is dismissed. Restore the lines that were set aside."""
        self._asked, self._is_dismissed = True, False
        try:
            typed = await self._next(question)
            return None if self._is_dismissed or typed is None else as_sent(typed)
        finally:
            self._asked, self._since = False, 0.0
            for entry in [
                *self._early,
                *[self._lines.get_nowait() for _ in range(self._lines.qsize())],
            ]:
                self._lines.put_nowait(entry)
            self._early = []

    def set_aside(self) -> bool:
        """Keep what was typed so far until after the next answer. Return whether that is at least one line."""
        forget_typed()
        self._since = time.monotonic()
        return not self._lines.empty()

    def dismiss(self) -> bool:
        """Dismiss an open question and return whether there was one."""
        if self._asked:
            self._is_dismissed = True
            self._lines.put_nowait((time.monotonic(), ""))
        return self._asked

    async def _next(self, mark: str) -> str | None:
        if sys.stdin.isatty():
            show_mark(mark)
        while True:
            moment, text = await self._lines.get()
            if text is None:
                self._lines.put_nowait((moment, None))  # the next reader also gets the end of input
                return None
            if moment >= self._since:
                return text.rstrip("\n")
            self._early.append((moment, text))

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        if sys.stdin.isatty() and isinstance(sys.stdin.buffer, BufferedReader):
            entries = _entries(sys.stdin.buffer, sys.stdin.fileno())
        else:
            entries = ((time.monotonic(), text) for text in iter(sys.stdin.readline, ""))
        for entry in entries:
            loop.call_soon_threadsafe(self._lines.put_nowait, entry)
        loop.call_soon_threadsafe(self._lines.put_nowait, (time.monotonic(), None))
