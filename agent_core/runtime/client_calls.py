"""Functions of a client: the model calls them, and the client runs them and sends the answers.

A step that calls one ends the turn, and the journal keeps the call as open. The next turn begins with the answers, or
with a note that there is none, so that no request contains an unanswered call.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import ModelError
from agent_core.base.events import CallStarted
from agent_core.base.offload import aside
from agent_core.base.pictures import MAX_PICTURES, Picture
from agent_core.base.policy import Policy
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.functions.answers import Skipped, Unknown, answer, word
from agent_core.model.request import FunctionShown, Request
from agent_core.registry.arguments import read_exactly
from agent_core.storage import Entry, Inbound
from agent_core.storage.journal import (
    ClientEntry,
    ParkedEntry,
    answer_to,
    notice,
    read_marks,
    write_entry,
)

from .source import GuestSource
from .taken_up import begun
from .turn import SplitCalls
from .turn_end import Ended, GoOn

if TYPE_CHECKING:
    from agent_core.base.messages import Call
    from agent_core.registry.registry import Snapshot

    from .turn import Turn

_MAX_REMINDERS: Final = 2
_MAX_MISFITS: Final = 2  # replies of another shape after which the turn goes on
_MAX_CAME_CHARS: Final = 1_000
_MISSHAPEN: Final = "does not have the shape that was asked for"
_MOST_CHARS: Final = 1_000
_DETAIL: Final = {"client": True}
_ALONE: Final = (
    "the client takes one call at a time. Ask for this one again when it has answered the other."
)
_BEYOND: Final = "one reply may ask for {} calls. Ask for this one again in the next step."
_UNFIT: Final = (
    "its arguments do not fit the schema, and the client takes only those that do. Call it again:"
)
_UNANSWERED: Final = (
    "The client that this call was handed to went on without an answer: whether it "
    "took effect is unknown."
)


@dataclass(eq=False)  # no slots: cached properties are stored in `__dict__`
class ClientFunctions(GuestSource):
    """What a client offers in one turn. `required`: the turn must call one of its functions before it ends.

    `one_at_a_time`: the client takes one call per step. `parameters` go with each request to the model, `max_tokens`
    limits each reply, and `shape` is the `response_format` that the turn's reply must have. The first reply without it
    is followed by requests for the shape alone, without functions: at many endpoints a shape keeps the model from
    calling them.
    """

    table: Sequence[
        Mapping[str, Any]
    ] = ()  # Any: JSON; rows of `name`, `description`, `parameters`, `strict`
    required: bool = False
    one_at_a_time: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    max_tokens: int | None = None
    shape: Mapping[str, Any] | None = None  # Any: JSON
    _reminders: int = 0
    _misfits: int = 0
    _is_shape_alone: bool = False

    @classmethod
    def of(cls, inbound: Inbound) -> "ClientFunctions":
        """Return the client functions that came with an event."""
        return cls() if inbound.client is None else cls.read(inbound.client)

    @classmethod
    def read(cls, offered: Mapping[str, Any]) -> "ClientFunctions":  # Any: JSON
        """Return the client functions in the data that an interface stored for a client's request."""
        return cls(
            offered.get("functions") or (),
            bool(offered.get("required")),
            bool(offered.get("one_at_a_time")),
            parameters=offered.get("parameters") or {},
            max_tokens=offered.get("max_tokens"),
            shape=offered.get("shape"),
        )

    def request(self, request: Request) -> Request:
        """Return a request to the model with the client's parameters, token limit and shape."""
        caps = [cap for cap in (request.max_tokens, self.max_tokens) if cap]
        cap = min(caps, default=None)
        request = replace(request, max_tokens=cap, parameters=self.parameters, shape=self.shape)
        return replace(request, functions=(), callable=None) if self._is_shape_alone else request

    def shaped(self, text: str) -> str | tuple["Problem", ...]:
        """Return a reply as JSON text in the shape that the client requires, or the problems with it."""
        if self.shape is None:
            return text
        value = read_exactly(text, self.schema)
        if not isinstance(value, dict):
            return value
        if self.fault_of is not None and (fault := self.fault_of(value)):
            return (Problem("answer-unfit", fault.rstrip("."), Place("reply")),)
        return json.dumps(value, ensure_ascii=False)

    @cached_property
    def schema(self) -> dict[str, Any]:  # Any: JSON Schema
        """The schema of the reply, if it must have a shape."""
        shape = self.shape or {}
        schema: dict[str, Any] = (shape.get("json_schema") or {}).get("schema") or {
            "type": "object"
        }
        return schema

    @cached_property
    def shown(self) -> tuple[FunctionShown, ...]:
        """The functions as the model is shown them."""
        return tuple(
            FunctionShown(row["name"], row["description"], row["parameters"]) for row in self.table
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(function.name for function in self.shown)

    def names(self, _: "Snapshot") -> Iterable[str]:
        """Return the names of the functions."""
        return self._names

    @property
    def reply_tokens(self) -> int | None:
        """The limit of each reply."""
        return self.max_tokens

    def opening(
        self, inbound: Inbound, open_calls: Sequence["Call"], opening: Sequence[Entry]
    ) -> list[Entry]:
        """Return the first entries of a turn: the answers to the calls that were open, then `opening`."""
        answers = inbound.answers if inbound.kind == "message" else ()
        given = {one.id: one for one in answers if one.id}
        shape = list[Entry]()
        if (
            self.shape is not None
        ):  # the model is told, because not every endpoint enforces the shape
            schema = (
                ""
                if self.shape["type"] == "json_object"
                else f" of this schema: {json.dumps(self.schema)}"
            )
            order = "A program reads your reply to this message: when you are done, reply with one JSON object"
            shape = [notice(f"{order} and nothing else{schema or '.'}")]
        if not open_calls and not given:
            return [*opening, *shape]
        is_silent = bool(given) and not inbound.text  # the client sent no text with the answers
        policy = Policy.from_json(read_marks(opening[-1]).policy or {})
        client = write_entry(ClientEntry(text=inbound.text, event=inbound.kind))
        entries = [begun(client, inbound, policy)]
        for call in open_calls:
            one = given.pop(call.id, None)
            answer = answered(call, None) if one is None else answered(call, one.text, one.pictures)
            entries.append(answer)
        for id, one in given.items():
            late = f"The client answered the call {id} after the conversation had gone on without it: {one.text}"
            entries.append(notice(late))
        return [*entries, *(opening[:-1] if is_silent else opening), *shape]

    async def follow(self, turn: "Turn", ended: Ended) -> GoOn | Ended:
        """Decide whether the turn may end with a reply: after a call that is required, and in the required shape."""
        if self.required:
            return self._after_no_call()
        return await self._check_shape(turn, ended.reply) if self.shape else ended

    def _after_no_call(self) -> GoOn | Ended:
        """Decide what follows when the model would end the turn without a call that the client requires."""
        names = ", ".join(f"`{name}`" for name in sorted(self._names))
        self._reminders += 1
        if self._reminders > _MAX_REMINDERS:
            warning = f"The client requires a call of {names}, and the model made none, {self._reminders} times."
            return Ended("failed", warning=warning)
        return GoOn(f"The client requires a call of one of its functions: {names}. Call it now.")

    async def _check_shape(self, turn: "Turn", text: str) -> GoOn | Ended:
        """Decide whether a final reply has the required shape.

        If not, it is asked for alone, which the model may correct once.
        """
        read = await aside(len(text), self.shaped, text)
        if isinstance(read, str):
            return Ended("replied", read)
        faults = "; ".join(problem.message for problem in read)
        self._misfits += 1
        if self._misfits > _MAX_MISFITS:
            came = one_line(text, _MAX_CAME_CHARS)
            return Ended("failed", warning=f"The reply {_MISSHAPEN}: {faults}. What came: {came}")
        # An agent that replies by a function needs it.
        self._is_shape_alone = not turn.style.by_function("native")
        turn.work.function_messages.clear()  # the client has not been sent anything yet
        return GoOn(f"Your reply {_MISSHAPEN}: {faults}. Send the whole JSON object again.")

    def must_fit(self, room: int) -> None:
        """Check that the functions fit into `room` bytes.

        Raises:
            ModelError: they take more.
        """
        size = sum(function.size for function in self.shown)
        if size > room:
            what = f"The functions of the client take {size:,} bytes; next to all else in this model's window"
            raise ModelError(
                f"{what} {max(room, 0):,} are left for them.",
                fix="Send fewer, or shorter descriptions.",
            )

    def split(self, calls: Sequence["Call"], most: int) -> SplitCalls:
        """Split the calls of a reply into ours and the client's; `most` is the limit of calls per reply."""
        theirs = [call for call in calls if call.name in self._names]
        if not theirs:
            return SplitCalls(calls)
        beyond = {call.id for call in calls[most:]}
        unfit = dict[
            str, str
        ]()  # calls of strict functions, each with the reason why it is not handed over
        for call in theirs:
            row = next(row for row in self.table if row["name"] == call.name)
            if call.id not in beyond and row.get("strict"):
                read = read_exactly(call.arguments, row["parameters"])
                if not isinstance(read, dict):
                    unfit[call.id] = f"{_UNFIT} {'; '.join(problem.message for problem in read)}"
        taken = [call for call in theirs if call.id not in beyond and call.id not in unfit]
        handed = taken[:1] if self.one_at_a_time else taken
        refused = [_skipped_entry(call, _ALONE) for call in taken[len(handed) :]]
        refused += [
            _skipped_entry(call, _BEYOND.format(most)) for call in theirs if call.id in beyond
        ]
        refused += [_skipped_entry(call, unfit[call.id]) for call in theirs if call.id in unfit]
        return SplitCalls(
            [call for call in calls if call.name not in self._names],
            _handed_over(handed) if handed else (),
            refused,
        )


def _handed_over(calls: Sequence["Call"]) -> list[Entry]:
    """Return the entries that record calls as open for a client; they are the last entries of their turn."""
    opened = [
        write_entry(CallStarted(call_id=call.id, name=call.name, client=True)) for call in calls
    ]
    rows = tuple({"id": call.id, "name": call.name} for call in calls)
    return [*opened, write_entry(ParkedEntry(calls=rows))]


def answered(call: "Call", text: str | None, pictures: Sequence[Picture] = ()) -> Entry:
    """Return the entry of a client's answer to a call; None means that there is none.

    The text has the captions of the pictures already.
    """
    if text is None:
        return write_entry(answer_to(call, _UNANSWERED, word(Unknown()), detail=_DETAIL))
    answer = answer_to(call, text, "returned", detail=_DETAIL)
    return write_entry(replace(answer, pictures=tuple(pictures[:MAX_PICTURES])))


def _skipped_entry(call: "Call", why: str) -> Entry:
    outcome = Skipped(why)
    text = answer(outcome, _MOST_CHARS)
    return write_entry(answer_to(call, text, word(outcome), detail=_DETAIL))
