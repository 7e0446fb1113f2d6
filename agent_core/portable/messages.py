"""Messages as an endpoint reads them (role, content, calls) → turns with journal entries, whoever wrote them down.

A user's message begins a turn; what a program packed into a message of the user's role (a heartbeat, a login) is a
notice. Every call gets one answer, also one whose answer the file lacks.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..storage import Entry
from ..storage.whole import WholeEvent, WholeTurn
from .packed import failed, unpacked
from .report import Report

MISSING = "Whether this call took effect is unknown: its answer is not in the file that this comes from."


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as the model asked for it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Told:
    """One message, read: what was said and asked for, and of which call it is an answer."""

    role: str
    text: str
    at: float = 0.0
    thought: str = ""
    calls: tuple[Asked, ...] = ()
    call_id: str = ""
    name: str = ""


def answer_of(call_id: str, name: str, text: str, outcome: str) -> dict[str, Any]:  # Any: JSON
    """Return the payload of a call's answer."""
    said = {"call_id": call_id, "name": name, "text": text}
    return {**said, "outcome": outcome, "seconds": 0.0, "detail": {}}


@dataclass(slots=True)
class Turns:
    """Turns as they come about, message by message; `last` is the time that goes for a message that tells none."""

    report: Report
    last: float
    _turns: list[tuple[WholeEvent, list[Entry]]] = field(default_factory=list)
    _open: dict[str, Asked] = field(default_factory=dict)
    _queues: dict[str, deque[str]] = field(default_factory=dict)  # by name, and under no name all: the keys in order
    _calls: int = 0

    @property
    def count(self) -> int:
        """How many turns there are so far."""
        return len(self._turns)

    def add(self, told: Told) -> None:
        """Take the next message."""
        self.last = max(self.last, told.at)
        match told.role:
            case "user":
                self._user(told.text)
            case "assistant":
                self._assistant(told)
            case "tool" | "function":
                self._answer(told)
            case "system":
                self.report.leaves("system messages", "what the model is told is made anew for every request")
            case other:
                self.report.leaves(f"messages of the role `{other[:40]}`", "there is no such role here")

    def shorten(self, turns: int) -> None:
        """The first turns are out of the context: an entry says so, and where they are found."""
        self._settle()
        gone = [entry for _, entries in self._turns[:turns] for entry in entries]
        if not gone:
            return
        covers = sum(entry.kind in ("user", "assistant") for entry in gone)
        text = f"{covers} earlier messages are not shown here. conversation_search finds them."
        self._put("summary", {"text": text, "covers": covers, "upto": len(gone), "style": "summary"})
        self.report.took("messages out of the context", "messages out of the context, searchable", covers)

    def whole(self, prefix: str) -> tuple[WholeTurn, ...]:
        """The turns, every call answered."""
        self._settle()
        return tuple(
            WholeTurn(f"{prefix}-{at}", "done", event.at, entries[-1].at, (event,), tuple(entries))
            for at, (event, entries) in enumerate(self._turns, 1)
        )

    def _user(self, raw: str) -> None:
        packed = unpacked(raw)
        self.last = max(self.last, packed.at)
        if packed.kind != "user_message":
            self._put("notice", {"text": packed.text, "packed": raw})
            self.report.took(f"events ({packed.kind})", "notices")
            return
        self._settle()
        self._turns.append((WholeEvent("message", {"text": packed.text}, self.last), []))
        self._put("user", {"text": packed.text} | ({"packed": raw} if packed.text != raw else {}))
        self.report.took("messages of the user", "messages of the user")

    def _assistant(self, told: Told) -> None:
        self._settle()
        fresh = [self._renamed(call) for call in told.calls]
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in fresh]
        self._put("assistant", {"text": told.text, "thought": told.thought, "calls": calls})
        for old, new in zip(told.calls, fresh, strict=True):
            key = new.id if not old.id or old.id in self._open else old.id
            self._open[key] = new
            for name in ("", new.name):
                self._queues.setdefault(name, deque()).append(key)
        self.report.took("replies", "replies")
        self.report.took("calls", "calls", len(calls))

    def _answer(self, told: Told) -> None:
        call = self._waiting(told)
        if call is None:
            self._put("notice", {"text": f"An answer of {told.name or 'a function'}, to no call here: {told.text}"})
            self.report.took("answers without their call", "notices")
        else:
            self._result(call, told.text, "raised" if failed(told.text) else "returned")
            self.report.took("answers", "answers")

    def _waiting(self, told: Told) -> Asked | None:
        """The call that a message answers; an old file names the function alone."""
        if told.call_id:
            return self._open.pop(told.call_id, None)
        queue = self._queues.get(told.name, deque())
        while queue:
            if (call := self._open.pop(queue.popleft(), None)) is not None:
                return call
        return None

    def _renamed(self, call: Asked) -> Asked:
        """The same call by a number that is the file's only one of its kind."""
        self._calls += 1
        return Asked(f"imported_{self._calls}", call.name, call.arguments)

    def _settle(self) -> None:
        for call in self._open.values():
            self._result(call, MISSING, "unknown")
            self.report.took("calls without an answer", "calls answered as unknown")
        self._open, self._queues = {}, {}

    def _result(self, call: Asked, text: str, outcome: str) -> None:
        self._put("result", answer_of(call.id, call.name, text, outcome))

    def _put(self, kind: str, payload: Mapping[str, object]) -> None:
        if not self._turns:  # it began to talk by itself
            self._turns.append((WholeEvent("boot", {"text": ""}, self.last), []))
        self._turns[-1][1].append(Entry(kind, {**payload}, at=self.last))
