"""Files of other programs: checked access to them, and their messages (role, content, calls) as turns of a journal.

A user's message begins a turn; an event that a program packed into a message with the user role (a heartbeat, a login)
is a notice. Every call gets one answer, even if the file has none.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.base.untrusted import whole_characters
from agent_core.storage import BlockChange, BlockRow, Entry, WholeBlock, WholeEvent, WholeTurn

from .document import LONGEST
from .report import AgentFileError
from .text import failed, unpacked

if TYPE_CHECKING:
    from .report import AgentReport


MISSING = "Whether this call took effect is unknown: its answer is not in the file that this comes from."


@dataclass(frozen=True, slots=True)
class ImportedCall:
    """A call by the model."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One parsed message: its text and calls, and the call that it answers."""

    role: str
    text: str
    at: float = 0.0
    thought: str = ""
    calls: tuple[ImportedCall, ...] = ()
    call_id: str = ""
    name: str = ""


def answer_of(call_id: str, name: str, text: str, outcome: str) -> dict[str, Any]:  # Any: JSON
    """Return the payload of a call's answer."""
    said = {"call_id": call_id, "name": name, "text": text}
    return {**said, "outcome": outcome, "seconds": 0.0, "detail": {}}


@dataclass(slots=True)
class Turns:
    """A builder of turns from messages; `last` is the time for a message without one."""

    report: "AgentReport"
    last: float
    _turns: list[tuple[WholeEvent, list[Entry]]] = field(default_factory=list)
    _open: dict[str, ImportedCall] = field(default_factory=dict)
    _queues: dict[str, deque[str]] = field(default_factory=dict)  # keys of calls by name, and under "" all keys
    _calls: int = 0

    @property
    def count(self) -> int:
        """The number of turns so far."""
        return len(self._turns)

    def add(self, message: ImportedMessage) -> None:
        """Add the next message."""
        self.last = max(self.last, message.at)
        match message.role:
            case "user":
                self._user(message.text)
            case "assistant":
                self._settle()
                fresh = [  # with unique ids
                    ImportedCall(f"imported_{number}", call.name, call.arguments)
                    for number, call in enumerate(message.calls, self._calls + 1)
                ]
                self._calls += len(fresh)
                calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in fresh]
                self._put("assistant", {"text": message.text, "thought": message.thought, "calls": calls})
                for old, new in zip(message.calls, fresh, strict=True):
                    key = new.id if not old.id or old.id in self._open else old.id
                    self._open[key] = new
                    for name in ("", new.name):
                        self._queues.setdefault(name, deque()).append(key)
                self.report.took("replies", "replies")
                self.report.took("calls", "calls", len(calls))
            case "tool" | "function":
                self._answer(message)
            case "system":
                self.report.leaves("system messages", "the system message is rebuilt for every request")
            case role:
                self.report.leaves(f"messages of the role `{role[:40]}`", "there is no such role here")

    def shorten(self, turns: int) -> None:
        """Remove the first turns from the context, with a summary entry that says how to find them."""
        self._settle()
        dropped = [entry for _, entries in self._turns[:turns] for entry in entries]
        if not dropped:
            return
        covers = sum(entry.kind in ("user", "assistant") for entry in dropped)
        text = f"{covers} earlier messages are not shown here. conversation_search finds them."
        self._put("summary", {"text": text, "covers": covers, "upto": len(dropped), "style": "summary"})
        self.report.took("messages out of the context", "messages out of the context, searchable", covers)

    def whole(self, prefix: str) -> tuple[WholeTurn, ...]:
        """Return the turns, with every call answered."""
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

    def _answer(self, message: ImportedMessage) -> None:
        call: ImportedCall | None = None
        if message.call_id:
            call = self._open.pop(message.call_id, None)
        else:  # old files have only the function's name
            queue = self._queues.get(message.name, deque())
            while queue and call is None:
                call = self._open.pop(queue.popleft(), None)
        if call is None:
            self._put(
                "notice", {"text": f"An answer of {message.name or 'a function'}, to no call here: {message.text}"}
            )
            self.report.took("answers without their call", "notices")
        else:
            self._result(call, message.text, "raised" if failed(message.text) else "returned")
            self.report.took("answers", "answers")

    def _settle(self) -> None:
        for call in self._open.values():
            self._result(call, MISSING, "unknown")
            self.report.took("calls without an answer", "calls answered as unknown")
        self._open, self._queues = {}, {}

    def _result(self, call: ImportedCall, text: str, outcome: str) -> None:
        self._put("result", answer_of(call.id, call.name, text, outcome))

    def _put(self, kind: str, payload: Mapping[str, object]) -> None:
        if not self._turns:  # the agent spoke first
            self._turns.append((WholeEvent("boot", {"text": ""}, self.last), []))
        self._turns[-1][1].append(Entry(kind, {**payload}, at=self.last))


Json = dict[str, Any]  # Any: JSON
_SPARE = 2000


def text_at(holder: Json, key: str, where: str) -> str:
    """Return the text under a key, or "" if it is missing.

    Raises:
        AgentFileError: the value is not text.
    """
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise AgentFileError(f"{where}.{key}" if where else key, f"expected a text of at most {LONGEST} characters")
    return whole_characters(value)


def objects_at(holder: Json, key: str, where: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the objects of a list, each with its position; a missing list is empty.

    Raises:
        AgentFileError: the value is not a list of objects.
    """
    place = f"{where}.{key}" if where else key
    items = holder.get(key)
    if not isinstance(items, list | None):
        raise AgentFileError(place, "expected a list")
    for at, item in enumerate(items or ()):
        if not isinstance(item, dict):
            raise AgentFileError(f"{place}[{at}]", "expected an object")
        yield f"{place}[{at}]", item


def agent_name(name: str) -> str:
    """Return a valid agent name that is similar to this one."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:64] or "imported"


def block_of(id: str, block: Json, where: str, at: float) -> WholeBlock:
    """Return a block from another program's form: label, value, limit, description."""
    label = re.sub(r"[^\w.-]+", "_", text_at(block, "label", where))[:64].strip("_") or "block"
    value, limit = text_at(block, "value", where), block.get("limit")
    room = limit if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < 1 << 31 else _SPARE
    row = BlockRow(
        id=id,
        label=label,
        value=value,
        limit=max(room, len(value)),
        description=text_at(block, "description", where),
        read_only=block.get("read_only") is True,
        edited=at,
    )
    return WholeBlock(row, (BlockChange(id, 1, value, "imported", "human", "", "", at),))


def asked_of(call: Json, where: str) -> ImportedCall:
    """Return a call from `{id, function: {name, arguments}}` or `{name, arguments}`."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    arguments = inner.get("arguments")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    name = text_at(inner, "name", where)[:200] or "unnamed"
    return ImportedCall(text_at(call, "id", where)[:200], name, whole_characters(raw))
