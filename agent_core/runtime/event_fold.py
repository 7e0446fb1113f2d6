"""What is told of a turn, made from its journal: the one place where an entry becomes an event.

`Turn.append` tells what it has stored, and a server what it reads from the store, both by an `EventFold`: so a stream
that begins late has the same events as one that was there. Only pieces of text and progress are told in another way.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.base.messages import SEND, Call
from agent_core.base.pictures import pictures_in, with_rows
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field, from_json, replace
from agent_core.storage import USAGE, EndedTurn, Entry, agent_of, id_of, is_main
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .entries import CLIENT, RECEIPT, SPEAKER, STORED_EVENTS, unwrapped

DONE: Final = "done"
"""The state of a turn that ended with a reply."""
_OLD_KINDS: Final = ("user", "notice", "assistant", "call", "result", RECEIPT, CLIENT)
TOLD_KINDS: Final = (*_OLD_KINDS, USAGE, SPEAKER, *STORED_EVENTS)
"""The kinds of entries that a fold needs."""
_BEGINNING: Final = ("user", "notice", CLIENT)
_REPLY_STATES: Final = ("client_calls", "length")
_TOKENS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens")


@dataclass(slots=True)
class EventFold:
    """The events of one turn of a conversation, by its line, from its entries in order, beginning with the first.

    The first entry of each step names it (`step`), and one that `begins` the turn what began it. What precedes that is
    for the model alone, such as the boot, and so is a turn that nothing begins, such as a summary on request. In
    turns of versions that stored neither (`is_old`), and in imported ones, any entry begins the turn, each reply is a
    step, and only what these versions told is told.
    """

    line: str
    turn: str
    is_old: bool = False
    step: int = -1
    arguments: dict[str, str] = field(default_factory=dict)
    """The arguments of the last reply's calls that are not answered, by id, as the reply has them."""
    _is_begun: bool = False
    _started: set[str] = field(default_factory=set)
    _reply: str = ""
    _tokens: Counter[str] = field(default_factory=Counter)
    _receipt: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    @classmethod
    def at(cls, line: str, first_entry: Entry) -> "EventFold":
        """Return the fold of a stored turn with this first entry."""
        is_old = first_entry.is_imported or "step" not in first_entry.payload
        fold = cls(line, first_entry.turn, is_old)
        if is_old:
            fold.step = 0
        return fold

    def of(self, entry: Entry, seq: int) -> list[Event]:
        """Return what is told of an entry: one event or none, but for the answer of a call that did not start."""
        if self.is_old and entry.kind not in _OLD_KINDS:
            return []
        payload = entry.payload
        if not self.is_old and isinstance(payload.get("step"), int):
            self.step = payload["step"]
        began = [replace(event, step=self.step) for event in self._beginning(entry)]
        is_beginning = bool(began) and entry.kind in _BEGINNING
        is_beginning |= not self.is_old and "begins" in payload
        told = [*began]
        if not is_beginning:
            told += [replace(event, step=self.step) for event in self._own(entry)]
        if not self._is_begun:
            return []
        return [replace(event, turn=self.turn, seq=seq) for event in told]

    def end(self, turn: EndedTurn) -> list[Event]:
        """Return what is told of the turn's end: nothing if it never began."""
        if not self.is_old and not self._is_begun:
            return []
        is_replied = turn.state == DONE
        made = self._receipt.get("made")
        receipt = Receipt.from_json(made) if isinstance(made, dict) else Receipt()
        known: dict[str, Any] = {"reply": "", "steps": self.step, "usage": {}}  # Any: JSON
        if is_replied or turn.state in _REPLY_STATES:
            known["reply"] = self._reply
        if not self.is_old:
            known["usage"] = {name: self._tokens[name] for name in _TOKENS}
            for name in known.keys() & self._receipt.keys():
                known[name] = self._receipt[name]
        ended = events.TurnEnded(
            turn=turn.id,
            step=self.step,
            seq=turn.seq,
            reason="replied" if is_replied else turn.state,
            made=receipt.to_json(),
            receipt=receipt.text if isinstance(made, dict) else "",
            **known,
        )
        return [ended]

    def _beginning(self, entry: Entry) -> list[Event]:
        """Return the event of the turn's beginning if this entry is it."""
        payload = entry.payload
        is_beginning = "begins" in payload or entry.kind == CLIENT
        if self._is_begun or not (self.is_old or is_beginning or self.step > 0):
            return []
        self._is_begun = True
        text = ""
        kind = "notice"
        if entry.kind in _BEGINNING:
            text = str(payload.get("text", ""))
        if entry.kind == "user" or payload.get("event") == "message":
            kind = "message"
        trace = ""
        sent = dict[str, Any]()  # Any: as in `_sent`
        if not self.is_old:
            text = str(payload.get("said", text))
            kind = str(payload.get("begins", kind))
            trace = str(payload.get("trace", ""))
            sent = _sent(payload)
        started = events.TurnStarted(
            agent=agent_of(self.line), message=text, event=kind, trace=trace, **sent
        )
        if not is_main(self.line):
            started = replace(started, conversation=id_of(self.line))
        return [started]

    def _own(self, entry: Entry) -> Sequence[Event]:
        payload = entry.payload
        told = list[Event]()
        match entry.kind:
            case "user" if not payload.get("speaker"):
                text = str(payload.get("text", ""))
                told = [events.MessageAdded(message=text, **_sent(payload))]
            case "assistant":
                told = self._replied(payload)
            case "call":
                told = [self._started_call(str(payload.get("id", "")), payload)]
            case "result":
                told = self._answered(payload)
            case kind if kind == USAGE:
                told = self._used(payload)
            case kind if kind == SPEAKER:
                told = [_speaker(payload)]
            case kind if kind in STORED_EVENTS:
                with suppress(KeyError, TypeError, ValueError):  # others may have written it
                    told = [from_json(STORED_EVENTS[kind], payload)]
            case kind if kind == RECEIPT:
                self._receipt = payload
        return told

    def _replied(self, payload: Mapping[str, Any]) -> list[Event]:  # Any: JSON
        self.step += self.is_old
        calls = payload.get("calls", [])
        self.arguments = {}
        for call in calls:
            meant = unwrapped(Call(call["id"], call["name"], call["arguments"]))
            self.arguments[meant.id] = meant.arguments
        self._started = set()
        text = str(payload.get("text", ""))
        if not text:
            return []
        if any(call["name"] == SEND for call in calls):  # text next to a sent message is a thought
            return [events.Thought(text=text)]
        self._reply = text
        return [events.Text(text=text)]

    def _started_call(self, id: str, payload: Mapping[str, Any]) -> Event:  # Any: JSON
        self._started.add(id)
        arguments = str(payload.get("arguments") or self.arguments.get(id, "{}"))
        name = str(payload.get("name", ""))
        return events.CallStarted(call_id=id, name=name, arguments=arguments)

    def _answered(self, payload: Mapping[str, Any]) -> list[Event]:  # Any: JSON
        id = str(payload.get("call_id", ""))
        name = str(payload.get("name", ""))
        detail = payload.get("detail") or {}
        is_first = id in self.arguments and id not in self._started and not detail.get("client")
        began = [self._started_call(id, payload)] if is_first and not self.is_old else []
        arguments = self.arguments.pop(id, "")
        if name == SEND:
            with suppress(Malformed):
                value: Any = read_json(arguments, LOOSE)
                sent = value.get("message", "") if isinstance(value, dict) else ""
                self._reply = str(sent) or self._reply
        answer = events.CallAnswered(
            call_id=id,
            name=name,
            text=str(payload.get("text", "")),
            outcome=str(payload.get("outcome", "")),
            seconds=float(payload.get("seconds", 0.0)),
            detail=with_rows(detail, pictures_in(payload)),
        )
        return [*began, answer]

    def _used(self, payload: Mapping[str, Any]) -> list[Event]:  # Any: JSON
        tokens = {name: int(payload.get(name, 0)) for name in _TOKENS}
        self._tokens.update(tokens)
        if "context_limit" not in payload:  # a request apart, which was not for a step
            return []
        limit = int(payload["context_limit"])
        context = tokens["prompt_tokens"] + tokens["completion_tokens"] if limit else 0
        return [
            events.Usage(
                prompt_tokens=tokens["prompt_tokens"],
                completion_tokens=tokens["completion_tokens"],
                cached_tokens=tokens["cached_tokens"],
                estimated=bool(payload.get("estimated")),
                context_tokens=context,
                context_limit=limit,
                model="" if limit else str(payload.get("model", "")),
            )
        ]


def _sent(payload: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON, and two texts
    """Return the id of the message that an entry holds, and where it comes from."""
    return {name: str(payload.get(name, "")) for name in ("message_id", "origin")}


def _speaker(payload: Mapping[str, Any]) -> Event:  # Any: JSON
    name = str(payload.get("name", ""))
    rule = str(payload.get("rule", ""))
    reason = str(payload.get("reason", ""))
    return events.SpeakerChosen(agent=name, rule=rule, reason=reason)
