"""Turns without a prompt: one message, or a line of standard input each; Ctrl-C ends the turn properly."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from .conversation import Conversation, opened
from .listeners import JsonLines, Listener
from .options import RunOptions
from .slash import take
from .spans import line, write
from .voice import PlainVoice


async def one_message(options: RunOptions, message: str) -> bool:
    """One turn and out; whether it ended with a reply."""
    async with opened(options, PlainVoice()) as talk, asyncio.TaskGroup() as group:
        await _ready(talk)
        with _ctrl_c(talk, group):
            return await talk.turn(message, _listener(options))


async def each_line(options: RunOptions) -> bool:
    """A turn for each line of standard input; whether all ended with a reply."""
    async with opened(options, PlainVoice()) as talk, asyncio.TaskGroup() as group:
        await _ready(talk)
        return await _lines(talk, group, options)


async def _lines(talk: Conversation, group: asyncio.TaskGroup, options: RunOptions) -> bool:
    async for text in _typed():
        with _ctrl_c(talk, group):
            if options.as_json:
                await talk.turn(text, JsonLines())
            else:
                await take(talk, text)
        if talk.left:
            break
    return not talk.failed


def _listener(options: RunOptions) -> Listener | None:
    return JsonLines() if options.as_json else None


async def _ready(talk: Conversation) -> None:
    told = [*talk.workspace.recovered, talk.agent.restored]
    write([line(("warn", f"! {sentence}")) for sentence in told if sentence], sys.stderr)
    await talk.agent.model_line()  # no message is taken up when there is nobody to answer it


@contextmanager
def _ctrl_c(talk: Conversation, group: asyncio.TaskGroup) -> Iterator[None]:
    """Ctrl-C ends the running turn; the default way of dying comes back after it."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, lambda: group.create_task(talk.interrupt()))
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


async def _typed() -> AsyncIterator[str]:
    """The lines of standard input that say something, as they come; functions go on being watched meanwhile."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for text in iter(sys.stdin.readline, ""):
            loop.call_soon_threadsafe(lines.put_nowait, text)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    # Not a thread of the loop's pool: a terminal's readline cannot be ended, and leaving must not wait for it.
    threading.Thread(target=read, daemon=True).start()
    while True:
        if sys.stdin.isatty():
            write([line("› ")], sys.stderr)
        text = await lines.get()
        if text is None:
            return
        if text.strip():
            yield text.rstrip("\n")
