"""The pieces of a running step, joined for whoever comes in the middle of it."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.records import dataclass, field, replace

_MAX_KINDS: Final = 1_000  # of which a step has pieces; the journal has the others
_EVENT_CHARS: Final = 1 << 20
_Key: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class StepPieces:
    """What was told of a running step and is not in the journal yet: each text once, and the last progress."""

    _first: dict[_Key, Event] = field(default_factory=dict)
    _texts: dict[_Key, list[str]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take in a piece."""
        key: _Key = (event.type, event.turn, event.step, event.agent)
        match event:
            case events.Text(text=text) | events.Thought(text=text):
                pass
            case events.Printed(text=text):
                key = (*key, event.call_id)
            case events.Writing(arguments=text):
                key = (*key, event.place)
            case _:
                self._first.pop(key, None)  # the newest is the last
                text = ""
        if key in self._first:
            self._texts[key].append(text)
        elif len(self._first) < _MAX_KINDS:
            self._first[key] = event
            self._texts[key] = [text]

    def clear(self) -> None:
        """Forget all: the journal has it."""
        self._first.clear()
        self._texts.clear()

    def joined(self) -> Iterator[Event]:
        """Yield the events that tell all of it."""
        for key, event in self._first.items():
            text = "".join(self._texts[key])
            self._texts[key] = [text]
            parts = [text[at : at + _EVENT_CHARS] for at in range(0, len(text), _EVENT_CHARS)]
            match event:
                case events.Text() | events.Thought() | events.Printed():
                    yield from (replace(event, text=part) for part in parts)
                case events.Writing():
                    yield from (replace(event, arguments=part) for part in parts or [""])
                case _:
                    yield event
