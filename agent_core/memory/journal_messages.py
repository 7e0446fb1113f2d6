"""Messages extracted from the journal: one `RecallMessage` for each message of the user or the assistant. Pure values.

Notices, calls and the answers of functions are left out: they are the program's words, repeat what files and
functions hold, and outweigh what people said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_core.base.offload import aside
from agent_core.storage import Entry, RecallMessage
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from . import words

KINDS: Final = ("user", "assistant")
SENDING: Final = frozenset({"send_message"})
_MINUTE: Final = 60.0
_PER_ENTRY: Final = 40  # what one costs to read, in characters of `base/offload.py`


@dataclass(frozen=True, slots=True)
class JournalMessage:
    """A message in the journal; `seq` is that of its entry."""

    seq: int
    speaker: str
    text: str
    at: float
    turn: str = ""


async def read_messages(entries: Sequence[Entry]) -> list[JournalMessage]:
    """Return the messages among entries, as `lines` does, without holding up the event loop."""
    return await aside(len(entries) * _PER_ENTRY, lines, entries)


def lines(entries: Iterable[Entry]) -> list[JournalMessage]:
    """Return the messages among entries. A user's may name its speaker; of a reply that sends, what it sends counts."""
    return [
        JournalMessage(entry.seq, str(entry.payload.get("speaker") or entry.kind), text, entry.at, entry.turn)
        for entry in entries
        if entry.kind in KINDS and (text := _text(entry.payload).strip())
    ]


def _text(payload: dict[str, Any]) -> str:  # Any: JSON
    sent = [_sent(call.get("arguments", "")) for call in payload.get("calls", ()) if call.get("name") in SENDING]
    return "\n".join(filter(None, sent)) or str(payload.get("text", ""))


def _sent(arguments: str) -> str:
    try:
        data = read_json(arguments, LOOSE)
    except Malformed:
        return ""
    return str(data.get("message", "")) if isinstance(data, dict) else ""


def derive(
    agent: str, messages: Sequence[JournalMessage], last: RecallMessage | None, gap_minutes: float
) -> list[RecallMessage]:
    """Return the rows for these messages, which follow `last`. A silence longer than the gap begins a session."""
    rows = []
    for line in messages:
        row = _row(agent, line, last, gap_minutes * _MINUTE)
        rows.append(row)
        last = row
    return rows


def _row(agent: str, line: JournalMessage, last: RecallMessage | None, gap_s: float) -> RecallMessage:
    begins = last is not None and line.at - last.at > gap_s
    return RecallMessage(
        seq=line.seq,
        agent=agent,
        n=last.n + 1 if last else 0,
        text=line.text,
        words=words.indexed(line.text, line.at),
        at=line.at,
        speaker=line.speaker,
        session=last.session + begins if last else 0,
        length=len(words.content(line.text)),
        asks=words.asks(line.text),
        timed=words.timed(line.text),
        turn=line.turn,
    )
