"""Functions of a program that talks to an agent: the model calls them, and the program runs them and brings answers.

A step that calls one ends the turn; its journal keeps the call as open. The next turn begins with the answers, or with
the word that there is none, so that no request has a call without an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from agent_core.base.errors import ModelError
from agent_core.base.messages import Call
from agent_core.functions.answers import Skipped, Unknown, answer, word
from agent_core.model.request import FunctionShown
from agent_core.storage import Entry, Inbound

CLIENT: Final = "client"
"""The kind of the entry that begins a turn in which calls are answered that were open for a client."""
_MOST_CHARS: Final = 1_000
_ALONE: Final = "the client takes one call at a time. Ask for this one again when it has answered the other."
_BEYOND: Final = "one reply may ask for {} calls. Ask for this one again in the next step."
_UNANSWERED: Final = (
    "The client that this call was handed to went on without an answer: whether it took effect is unknown."
)


@dataclass(frozen=True)  # without slots: the functions as they are shown are made once
class ClientFunctions:
    """What a client offers in one turn. `required`: the turn has to call one of them before it may end.

    `one_at_a_time`: the client takes one call in a step. `is_client`: it talks in turns of its own.
    """

    table: Sequence[Mapping[str, Any]] = ()  # Any: JSON; rows of `name`, `description` and `parameters`
    required: bool = False
    one_at_a_time: bool = False
    is_client: bool = False

    @classmethod
    def of(cls, event: Inbound) -> "ClientFunctions":
        """Return what came with an event."""
        offered = event.payload.get("client")
        if not isinstance(offered, dict):
            return NO_CLIENT
        return cls(
            offered.get("functions") or (), bool(offered.get("required")), bool(offered.get("one_at_a_time")), True
        )

    @cached_property
    def shown(self) -> tuple[FunctionShown, ...]:
        """The functions as the model is shown them."""
        return tuple(FunctionShown(row["name"], row["description"], row["parameters"]) for row in self.table)

    @cached_property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(function.name for function in self.shown)

    def must_fit(self, room: int) -> None:
        """Do nothing if the functions fit.

        Raises:
            ModelError: they take more than `room` bytes.
        """
        size = sum(function.size for function in self.shown)
        if size > room:
            what = f"The functions of the client take {size:,} bytes; next to all else in this model's window"
            raise ModelError(f"{what} {max(room, 0):,} are left for them.", fix="Send fewer, or shorter descriptions.")

    def split(self, calls: Sequence[Call], most: int) -> "SplitCalls":
        """Return whose the calls of a reply are; `most` is how many a reply may ask for."""
        theirs = [call for call in calls if call.name in self.names]
        if not theirs:
            return SplitCalls(calls)
        beyond = {call.id for call in calls[most:]}
        taken = [call for call in theirs if call.id not in beyond]
        handed = taken[:1] if self.one_at_a_time else taken
        refused = [_skipped(call, _ALONE) for call in taken[len(handed) :]]
        refused += [_skipped(call, _BEYOND.format(most)) for call in theirs if call.id in beyond]
        return SplitCalls([call for call in calls if call.name not in self.names], tuple(handed), refused)


NO_CLIENT: Final = ClientFunctions()


@dataclass(frozen=True, slots=True)
class SplitCalls:
    """The calls of a reply: those that run here, those that are handed to the client, and answers to others."""

    ours: Sequence[Call]
    handed: tuple[Call, ...] = ()
    refused: Sequence[Entry] = field(default_factory=tuple)


def handed_over(calls: Sequence[Call]) -> list[Entry]:
    """Return the entries that keep calls as open for a client; they are the last ones of their turn."""
    rows = [{"id": call.id, "name": call.name} for call in calls]
    opened = [Entry("call", {**row, "version": None, "client": True}) for row in rows]
    return [*opened, Entry("parked", {"calls": rows})]


def beginning(event: Inbound, open_calls: Sequence[Call], opening: Sequence[Entry]) -> list[Entry]:
    """Return the first entries of a turn: answers to the calls that were open, then what else `opening` says."""
    given = _given(event)
    if not open_calls and not given:
        return [*opening]
    is_silent = bool(given) and not event.payload.get("text")  # the client says nothing besides
    began = Entry(CLIENT, {"text": str(event.payload.get("text", "")), "event": event.kind})
    answers = [answered(call, given.pop(call.id, None)) for call in open_calls]
    late = [Entry("notice", {"text": _late(id, text)}) for id, text in given.items()]
    return [began, *answers, *late, *(opening[:-1] if is_silent else opening)]


def _given(event: Inbound) -> dict[str, str]:
    rows = event.payload.get("answers") if event.kind == "message" else None
    rows = rows if isinstance(rows, list) else []
    return {str(row["id"]): str(row["text"]) for row in rows if isinstance(row, dict) and {"id", "text"} <= row.keys()}


def answered(call: Call, text: str | None) -> Entry:
    """Return the entry of a client's answer to a call; None says that there is none."""
    outcome = "returned" if text is not None else word(Unknown())
    shown = text if text is not None else _UNANSWERED
    return _entry(call, shown, outcome)


def _skipped(call: Call, why: str) -> Entry:
    outcome = Skipped(why)
    return _entry(call, answer(outcome, _MOST_CHARS), word(outcome))


def _entry(call: Call, text: str, outcome: str) -> Entry:
    payload = {"call_id": call.id, "name": call.name, "text": text, "outcome": outcome}
    return Entry("result", {**payload, "seconds": 0.0, "detail": {"client": True}})


def _late(id: str, text: str) -> str:
    return f"The client answered the call {id} after the conversation had gone on without it: {text}"
