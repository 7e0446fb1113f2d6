"""What was said, out of the journal: one `Said` for each message of the user or the assistant. Pure values.

Notices, calls and the answers of functions are left out: they are the program's words, repeat what files and
functions hold, and outweigh what people said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sandbox.foreign import LOOSE, Malformed, read_json

from ..storage import Entry, Said
from . import words

KINDS: Final = ("user", "assistant")
SENDING: Final = frozenset({"send_message"})
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """A message as the journal has it; `seq` is its entry's."""

    seq: int
    speaker: str
    text: str
    at: float
    turn: str = ""


def lines(entries: Iterable[Entry]) -> list[Line]:
    """The messages among entries. A user's may name its speaker; of a reply that sends, what it sends counts."""
    return [
        Line(entry.seq, str(entry.payload.get("speaker") or entry.kind), text, entry.at, entry.turn)
        for entry in entries
        if entry.kind in KINDS and (text := _text(entry.payload).strip())
    ]


def _text(payload: dict[str, Any]) -> str:  # Any: JSON
    sent = [_sent(call.get("arguments", "")) for call in payload.get("calls", ()) if call.get("name") in SENDING]
    return "\n".join(filter(None, sent)) or str(payload.get("text", ""))


def _sent(arguments: str) -> str:
    try:
        given = read_json(arguments, LOOSE)
    except Malformed:
        return ""
    return str(given.get("message", "")) if isinstance(given, dict) else ""


def derive(agent: str, found: Sequence[Line], last: Said | None, gap_minutes: float) -> list[Said]:
    """The rows of these messages, which follow `last`; a longer silence than the gap begins a session."""
    rows = []
    for line in found:
        row = _row(agent, line, last, gap_minutes * _MINUTE)
        rows.append(row)
        last = row
    return rows


def _row(agent: str, line: Line, last: Said | None, gap_s: float) -> Said:
    begins = last is not None and line.at - last.at > gap_s
    return Said(
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
