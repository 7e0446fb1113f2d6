"""Server-sent events of one agent: what is in the journal with its number, and live pieces without one."""

import json
from collections.abc import AsyncGenerator
from typing import Final

from agent_core.access.grants.desk import asking
from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.json_form import to_json
from agent_core.storage import TurnStore

from .agent_host import AgentHost, Listening
from .journal_events import JournalReader, NumberedEvent, is_on_disk

KEEP_ALIVE_S: Final = 15.0
_PIECES: Final = (events.Text, events.Thought)
_BEHIND: Final = "You were too slow: live pieces were left out. What is on disk follows."


async def event_stream(host: AgentHost, store: TurnStore, agent: str, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the events of an agent after a number, and then those that come, until the server stops.

    A piece of text without a number is provisional: after a reconnect, all that follows the last number comes again.
    """
    reader = JournalReader(store, agent, after)
    whole = set[tuple[str, int]]()  # the steps whose text came from disk while their pieces may wait to be heard
    with host.listen(agent) as listening:
        async for frame in _caught_up(host, store, reader, agent, listening, whole):
            yield frame
        last = reader.last
        while not listening.is_over:
            event = await listening.next(KEEP_ALIVE_S)
            if event is None and not listening.is_over:
                yield b": keep-alive\n\n"
            is_behind = _taken(listening)
            if is_behind:
                yield _frame(events.Warned(turn="", message=_BEHIND))
            if event is not None and not is_behind and not is_on_disk(event):
                if not (isinstance(event, _PIECES) and (event.turn, event.step) in whole):
                    yield _frame(event)
                continue
            is_whole = event is None or is_behind
            found = await host.news(agent, last, must_look=is_whole)
            for numbered in found if event is None or is_whole else _come_to(event, found):
                last = numbered.seq or last
                yield _live(numbered, is_whole=is_whole)


async def _caught_up(
    host: AgentHost,
    store: TurnStore,
    reader: JournalReader,
    agent: str,
    listening: Listening,
    whole: set[tuple[str, int]],
) -> AsyncGenerator[bytes, None]:
    for frame in await _read(host, reader, set()):
        yield frame
    host.begin_at_now(agent, listening)
    for frame in await _read(host, reader, whole):  # what came to disk while the frames before went out
        yield frame
    for event in await _pending(host, store, agent):
        yield _frame(event)


async def _read(host: AgentHost, reader: JournalReader, whole: set[tuple[str, int]]) -> list[bytes]:
    """Return the frames of what is on disk, and note the steps that have text; before the end of a turn, the warnings
    that nobody heard live.
    """
    frames: list[bytes] = []
    for numbered in await reader.read(host.ends):
        if isinstance(numbered.event, _PIECES):
            whole.add((numbered.event.turn, numbered.event.step))
        if isinstance(numbered.event, events.TurnEnded):
            frames += [_frame(warned) for warned in host.warnings if warned.turn == numbered.event.turn]
        frames.append(_frame(numbered.event, numbered.seq))
    return frames


async def _pending(host: AgentHost, store: TurnStore, agent: str) -> list[Event]:
    """Return the messages and the questions that wait: whoever comes late is told, too."""
    messages = [
        events.MessageAdded(turn="", message=str(row.payload.get("text", "")), message_id=row.id)
        for row in await store.waiting(agent)
        if row.kind == "message"
    ]
    return [
        *messages,
        *(asking(row.question, row.turn) for row in await host.workspace.questions() if row.agent == agent),
    ]


def _taken(listening: Listening) -> bool:
    was_behind, listening.is_behind = listening.is_behind, False
    return was_behind


def _come_to(event: Event, found: list[NumberedEvent]) -> list[NumberedEvent]:
    """Return those up to the one that is heard now: the pieces of what is on disk beyond it are still to be heard."""
    heard = [_which(event) == _which(numbered.event) for numbered in found]
    return found[: heard.index(True) + 1] if True in heard else found


def _which(event: Event | None) -> tuple[object, ...]:
    return type(event), getattr(event, "turn", ""), getattr(event, "call_id", "")


def _live(numbered: NumberedEvent, *, is_whole: bool) -> bytes:
    """Return the frame of a numbered event whose text, unless it `is_whole`, the reader has got in pieces."""
    is_known = isinstance(numbered.event, _PIECES) and not is_whole
    return _frame(None if is_known else numbered.event, numbered.seq)


def _frame(event: Event | None, seq: int | None = None) -> bytes:
    """Return one frame. Without an event it only moves the reader's number on."""
    number = "" if seq is None else f"id: {seq}\n"
    data = "" if event is None else f"data: {_text(event)}\n"
    return f"{number}{data}\n".encode("utf-8", "replace") if number or data else b""


def _text(event: Event) -> str:
    # Escaped JSON has no line break of any kind, so no text of a function can begin a field or a frame of its own.
    return json.dumps(to_json(event), ensure_ascii=True, default=str)
