"""Events as they come over a stream: frames read into the same dataclasses that a turn in this process yields."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError

from agent_core.base import events
from agent_core.base.events import Event
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from ..server.journal_events import NumberedEvent

_MOST: Final = 64 << 20  # bytes of one frame


class FrameReader:
    """Reads a stream onward; `last` is the number up to which all has been heard.

    After a break, what is not on disk yet comes again from its beginning: what was yielded of it is left out.
    """

    def __init__(self, after: int) -> None:
        self.last = after
        self._rest = b""
        self._heard = ""  # of the text that has no number yet
        self._again = ""

    def begin_again(self) -> None:
        """Note that the stream broke off, and that another one goes on after the last number."""
        self._rest, self._again, self._heard = b"", self._heard, ""

    def feed(self, part: bytes) -> Iterator[NumberedEvent]:
        """Yield the events whose frames are whole."""
        *frames, self._rest = (self._rest + part).split(b"\n\n")
        if len(self._rest) > _MOST:
            raise ValueError("a frame is too long")
        for frame in frames:
            number, data = _fields(frame)
            event = None if data is None else event_of(data)
            if isinstance(event, events.Text):
                event = self._unheard(event)
            if number is not None:
                self.last, self._heard, self._again = number, "", ""
            if number is not None or event is not None:
                yield NumberedEvent(number, event)

    def _unheard(self, event: events.Text) -> events.Text | None:
        text = event.text
        if self._again:
            known = len(text) if self._again.startswith(text) else len(self._again) * text.startswith(self._again)
            text, self._again = text[known:], self._again[known:]
        self._heard += event.text
        return events.Text(turn=event.turn, step=event.step, agent=event.agent, text=text) if text else None


def event_of(data: dict[str, Any]) -> Event | None:  # Any: JSON
    """Return the event of a published shape; None if this version does not know it."""
    kind = _kinds().get(str(data.get("type")))
    if kind is None:
        return None
    try:
        return kind.validate_python(data)
    except ValidationError:
        return None


@cache
def _kinds() -> dict[str, TypeAdapter[Event]]:
    return {kind.type: TypeAdapter(kind) for kind in get_args(Event)}


def _fields(frame: bytes) -> tuple[int | None, dict[str, Any] | None]:  # Any: JSON
    number: int | None = None
    data: dict[str, Any] | None = None
    for line in frame.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"id" and value.strip().isdigit():
            number = int(value)
        elif name == b"data":
            try:
                document = read_json(value, LOOSE)
            except Malformed:
                continue
            data = document if isinstance(document, dict) else None
    return number, data
