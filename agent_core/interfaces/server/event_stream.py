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
    with host.listen(agent) as listening:
        for numbered in await reader.read(host.ends):
            yield _on_disk(host, numbered)
        host.begin_at_now(agent, listening)
        for numbered in await reader.read(host.ends):  # what came to disk while the frames before went out
            yield _on_disk(host, numbered)
        for event in await _pending(host, store, agent):
            yield _frame(event)
        last = reader.last
        while not listening.is_over:
            heard = await listening.next(KEEP_ALIVE_S)
            if heard is None and not listening.is_over:
                yield b": keep-alive\n\n"
            is_behind = _taken(listening)
            if is_behind:
                yield _frame(events.Warned(turn="", message=_BEHIND))
            if heard is not None and not is_behind and not is_on_disk(heard):
                if not (isinstance(heard, _PIECES) and (heard.turn, heard.step) in reader.replies):
                    yield _frame(heard)
                continue
            is_whole = heard is None or is_behind
            news = await host.news(agent, last, must_look=is_whole)
            for numbered in news if heard is None or is_behind else _up_to(heard, news):
                last = numbered.seq or last
                yield _live(numbered, is_whole=is_whole)


def _on_disk(host: AgentHost, numbered: NumberedEvent) -> bytes:
    """Return the frame of what is on disk; before the end of a turn, those of the warnings that nobody heard live."""
    turn = numbered.event.turn if isinstance(numbered.event, events.TurnEnded) else None
    warnings = [_frame(warned) for warned in host.warnings if warned.turn == turn]
    return b"".join([*warnings, _frame(numbered.event, numbered.seq)])


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


def _up_to(heard: Event, news: list[NumberedEvent]) -> list[NumberedEvent]:
    """Return the news up to the event that is heard now: pieces of what is on disk beyond it are still to be heard."""
    at = next((at for at, numbered in enumerate(news) if _which(numbered.event) == _which(heard)), len(news))
    return news[: at + 1]


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
