"""Conversations of clients that send the whole history with each request: continue a known one, or begin a new one.

Each conversation is a separate agent, `AGENT--chat-…`, which shares the blocks of the agent that the client named.
A request is recorded before its message is posted, so a retry after a crash or a lost response is recognized.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias
from weakref import WeakSet

from pydantic import Field

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError
from agent_core.base.messages import Assistant, Call
from agent_core.base.offload import aside
from agent_core.base.records import dataclass, field, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.registry.validation import check_schema, schemas_in
from agent_core.runtime.client_calls import ClientFunctions, answered
from agent_core.runtime.entries import assistant, user
from agent_core.storage import (
    AGENT,
    CONVERSATION,
    AttachBlock,
    Entry,
    SaveAgent,
    TurnStore,
    WholeAgent,
    WholeEvent,
    WholeTurn,
)
from agent_core.workspace.agent_files import is_group

from ..manual_edits import HUMAN, done
from ..render.call_log import was_told
from .agent_host import Rooms
from .identity import ApiRefusal, Identity
from .operations import Open

# Split the history of a request into old and new messages, and recognize the old ones. Texts are compared without
# whitespace; the text of a message with calls is ignored. Clients trim texts, join those of several steps, split them
# into parts, or omit them where there are calls.

MOST_CALLS: Final = 128  # calls of consecutive messages, which are merged into one
PER_MESSAGE: Final = (
    40  # cost of one message besides its text, in characters as `base/offload.py` counts them
)
_SYSTEM: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of a client's history.

    `calls` are calls of the client's functions. `answers` is the id of the call that the message answers, `name` the
    name of that function if the client sent it.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClientHistory:
    """A parsed request of a client: the instructions, the earlier messages, the new ones, and who sent it (`by`)."""

    system: str
    before: tuple[ClientMessage, ...]
    answers: tuple[ClientMessage, ...]
    text: str
    by: str
    said: "HistoryKey"
    """The key of all messages, to which that of an answer can be added."""
    sent: str = ""
    """The key of the earlier messages."""
    asked: str = ""
    """The key of the whole request."""

    @classmethod
    def read(
        cls, messages: Iterable[ClientMessage], by: str, *, is_known: bool = False
    ) -> "ClientHistory":
        """Parse the messages of a request.

        With `is_known`, the calls that the answers belong to may be missing, because they are stored.

        Raises:
            UsageError: no message is new, or an answer belongs to no call.
        """
        rows = [*messages]
        system = "\n\n".join(row.text for row in rows if row.role in _SYSTEM)
        said = _merge_messages(row for row in rows if row.role not in _SYSTEM)
        begin = max(
            (place + 1 for place, row in enumerate(said) if row.role == "assistant"), default=0
        )
        new = said[begin:]
        if not new:
            fix = "Send it as {'role': 'user', 'content': …}, or the answers to the calls."
            raise UsageError(
                "The last message must be the user's, or the answer to a call.", fix=fix
            )
        if not is_known or begin:
            _check_answers(said)
        answers = tuple(row for row in new if row.role == "tool")
        text = "\n\n".join(row.text for row in new if row.role == "user")
        before, key = tuple(said[:begin]), HistoryKey(by)
        key.add(*before)
        sent = key.text
        key.add(*answers, *([ClientMessage("user", text)] if text or not answers else []))
        return cls(system, before, answers, text, by, key, sent, key.text)

    def without_past(self) -> "ClientHistory":
        """Return what the turn needs; the rest is stored, and may take megabytes while the turn waits or runs."""
        return replace(self, system="", before=())

    def turns(self) -> list[WholeTurn]:
        """Return the earlier messages as finished turns, one for each message of the user."""
        turns: list[tuple[str, list[Entry]]] = []
        names = {call.id: call.name for row in self.before for call in row.calls}
        for place, row in enumerate(self.before):
            if row.role == "user" or not turns:
                turns.append((row.text, []))
            entries = turns[-1][1]
            if row.role == "user":
                entries.append(user(row.text))
            elif row.role == "tool":
                entries.append(
                    answered(Call(row.answers, names.get(row.answers, ""), "{}"), row.text)
                )
            else:
                following = self.before[place + 1 : place + 1 + max(len(row.calls), 1)]
                answers = {other.answers for other in following}
                entries.append(assistant(Assistant(row.text, row.calls)))
                # Unanswered calls get an entry that says so; those of the last message are still open.
                entries += [
                    answered(call, None)
                    for call in row.calls
                    if following and call.id not in answers
                ]
        return [
            WholeTurn(
                f"before-{place}",
                "done",
                0.0,
                0.0,
                [WholeEvent("message", {"text": text}, 0.0)],
                entries,
            )
            for place, (text, entries) in enumerate(turns)
        ]


class HistoryKey:
    """The key of a sender's messages, which grows with each: it keeps a digest of them, and not the messages."""

    def __init__(self, by: str) -> None:
        self._begun = hashlib.sha256(b"[")
        self._begun.update(json.dumps([by]).encode())

    def add(self, *messages: ClientMessage) -> None:
        """Add messages at the end."""
        for message in messages:
            calls = [call.id for call in message.calls]
            row = [message.role, *(calls or (message.answers, "".join(message.text.split())))]
            self._begun.update(f", {json.dumps(row)}".encode())

    def with_one(self, message: ClientMessage) -> str:
        """Return the key as it would be with one message more."""
        other = HistoryKey("")
        other._begun = self._begun.copy()
        other.add(message)
        return other.text

    @property
    def text(self) -> str:
        """The key of the messages so far."""
        whole = self._begun.copy()
        whole.update(b"]")
        return whole.hexdigest()


def forms(history: ClientHistory, texts: Iterable[str], calls: Sequence[Call]) -> list[str]:
    """Return the keys that the client's next request may have; `texts` are the forms in which it may send our reply."""
    return sorted(
        {history.said.with_one(ClientMessage("assistant", text, tuple(calls))) for text in texts}
    )


def digest(by: str, messages: Iterable[ClientMessage]) -> str:
    """Return the key of a sender's messages."""
    key = HistoryKey(by)
    key.add(*messages)
    return key.text


def _merge_messages(messages: Iterable[ClientMessage]) -> list[ClientMessage]:
    """Return the messages with consecutive ones of the user, or of the assistant, merged into one."""
    merged: list[ClientMessage] = []
    for role, group in groupby(messages, key=attrgetter("role")):
        rows = [*group]
        if role == "assistant" and len(rows) > 1:
            text = "\n\n".join(row.text.rstrip() for row in rows if row.text.strip())
            rows = [
                ClientMessage(
                    role, text.strip(), tuple(chain.from_iterable(row.calls for row in rows))
                )
            ]
        elif role == "user":
            rows = [ClientMessage(role, "\n\n".join(row.text for row in rows))]
        merged += rows
    return merged


def _check_answers(said: Sequence[ClientMessage]) -> None:
    """Raise UsageError if an answer belongs to no earlier call, or if a call has two answers."""
    waiting = dict[str, str]()
    for row in said:
        if row.role == "assistant":
            if len(row.calls) > MOST_CALLS:
                what = f"An answer of the assistant has more than {MOST_CALLS} calls."
                raise UsageError(what, fix="Send what answers them with them, or leave them out.")
            waiting = {call.id: call.name for call in row.calls}
            if len(waiting) < len(row.calls):
                raise UsageError(
                    "Two calls of one message have the same id.", fix="Send them as they came."
                )
        elif row.role == "user":
            waiting = {}
        else:
            if row.answers not in waiting:
                what = (
                    f"The answer to `{row.answers[:80]}` is for no call of the message before it."
                )
                raise UsageError(
                    what,
                    fix="Send the assistant's message with its calls first, and each answer once.",
                )
            if row.name not in ("", called := waiting.pop(row.answers)):
                what = f"The `name` of the answer to `{row.answers[:80]}` is not `{one_line(called, 80)}`."
                raise UsageError(what, fix="Leave it out, or name the function that was called.")


Json: TypeAlias = dict[str, Any]  # Any: JSON
MOST_TOOLS: Final = 128
_MOST_BYTES: Final = 16 << 10  # of one schema
_MOST_IN_ALL: Final = 96 << 10
_DEEPEST: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTHING: Final[Json] = {"type": "object", "properties": {}}


class Unsupported(UsageError):
    """A request parameter that cannot take effect here; `parameter` is the top-level part of its path."""

    code = "unsupported_parameter"

    def __init__(self, parameter: str, why: str, fix: str = "Leave it out.") -> None:
        super().__init__(f"`{parameter}` {why}", fix=fix)
        self.parameter = parameter.partition(".")[0]


class ToolFunction(Open):
    """A function of a client, as the client describes it."""

    name: Annotated[str, Field(max_length=200)]
    description: Annotated[str | None, Field(max_length=8_000)] = None
    parameters: Json | None = None
    strict: bool | None = None


class ClientTool(ToolFunction):
    """A tool of a client. Chat completions nest the function in `function`; responses put its fields at this level."""

    type: str
    name: Annotated[str, Field(max_length=200)] = ""
    function: ToolFunction | None = None


Tools: TypeAlias = Annotated[list[ClientTool], Field(max_length=MOST_TOOLS, fail_fast=True)]
NamedTools: TypeAlias = Annotated[list["NamedTool"], Field(max_length=MOST_TOOLS, fail_fast=True)]


class NamedTool(Open):
    """A reference to a tool by name."""

    type: str = "function"
    name: str | None = None
    function: ToolFunction | None = None

    @property
    def named(self) -> str:
        """Its name."""
        return self.function.name if self.function else self.name or ""


class AllowedTools(Open):
    """The tools that may be called now, and whether one must be."""

    mode: Literal["auto", "required"] = "auto"
    tools: NamedTools = Field(default_factory=list)


class ToolChoice(NamedTool, AllowedTools):
    """A choice of one tool, or of those that are allowed."""

    allowed_tools: AllowedTools | None = None

    @property
    def chosen(self) -> tuple[Sequence[str], bool]:
        """The names of those that may be called, and whether one must be."""
        if self.type == "function":
            return [self.named], True
        allowed = self.allowed_tools or self
        return [tool.named for tool in allowed.tools], allowed.mode == "required"


Choice: TypeAlias = Literal["none", "auto", "required"] | ToolChoice | None


def offered(
    tools: Sequence[ClientTool] | None,
    choice: Choice,
    *,
    parallel: bool | None,
    taken: Collection[str],
) -> Json:
    """Return a client's functions as a turn receives them; `taken` are the names of the agent's own functions.

    Raises:
        Unsupported: a function cannot be passed on, or the chosen one is not among them.
    """
    rows = [_row(tool.function or tool) for tool in tools or ()]
    names = [row["name"] for row in rows]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Unsupported(
                "tools", f"has two tools named `{name}`.", "Give each a name of its own."
            )
        if name in taken:
            why = f"has `{name}`, which is the name of a function that the agent has here."
            raise Unsupported("tools", why, f"Give the tool another name, such as `client_{name}`.")
    if sum(_size(row) for row in rows) > _MOST_IN_ALL:
        why = f"has more than {_MOST_IN_ALL >> 10} KiB in all."
        raise Unsupported("tools", why, "Send fewer, or describe them in fewer words.")
    wanted: Collection[str]
    if choice is None or isinstance(choice, str):
        wanted, is_required = () if choice == "none" else names, choice == "required"
    else:
        wanted, is_required = choice.chosen
    for name in wanted:
        if name not in names:
            why = f"names `{one_line(name, 80)}`, which is not in `tools`."
            fix = "Name one that is; the functions of the agent cannot be chosen by a client."
            raise Unsupported("tool_choice", why, fix)
    if is_required and not wanted:
        fix = "Send the tools of which one must be called."
        raise Unsupported("tool_choice", "requires a call, and there are no tools.", fix)
    rows = [row for row in rows if row["name"] in wanted]
    return {"functions": rows, "required": is_required, "one_at_a_time": parallel is False}


def _row(function: ToolFunction) -> Json:
    name = function.name
    if not _NAME.fullmatch(name):
        fix = "Use up to 64 letters, digits, underscores and dashes."
        raise Unsupported(
            "tools", f"has `{one_line(name, 80)}`, which cannot be the name of a tool.", fix
        )
    schema = function.parameters or _NOTHING
    if schema.get("type", "object") != "object":
        why = (
            f"has `{name}`, whose parameters are of the type `{one_line(str(schema['type']), 40)}`."
        )
        raise Unsupported("tools", why, 'Describe them as a JSON Schema of {"type": "object"}.')
    if _depth(schema) > _DEEPEST or _size(schema) > _MOST_BYTES:
        limits = f"at most {_MOST_BYTES >> 10} KiB and {_DEEPEST} levels"
        raise Unsupported(
            "tools", f"has `{name}`, whose schema is too large.", f"Make it smaller: {limits}."
        )
    row = {"name": name, "description": function.description or "", "parameters": _NOTHING | schema}
    if why := next(filter(None, map(_shape_fault, schemas_in(row["parameters"]))), ""):
        raise Unsupported(
            "tools", f"has `{name}`, in whose schema {why}.", "Send a valid JSON Schema."
        )
    if not function.strict:
        return row
    if (problem := check_schema(row["parameters"])) is not None:
        raise Unsupported("tools", f"has `{name}`, which is strict: {problem.message}.")
    return {**row, "strict": True}


def _shape_fault(schema: Json) -> str:
    """Return what keeps an object from being read here; other faults of its schema are for the endpoint to find."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if "properties" not in schema:
        return ""
    if not (
        isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in properties.values())
    ):
        return "`properties` are no object of schemas"
    is_listed = isinstance(required, list) and all(isinstance(each, str) for each in required)
    return "" if is_listed else "`required` is no list of names"


def _size(value: Json) -> int:
    return len(json.dumps(value))


def _depth(value: object) -> int:
    """Return the number of levels of a JSON value. Its depth was bounded when it was parsed."""
    parts = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if parts is None else 1 + max(map(_depth, parts), default=0)


MARK: Final = f"{CONVERSATION}chat-"
"""Follows the agent's name in the generated names of unnamed conversations."""
_KEPT: Final = 100  # unnamed conversations of one agent; beyond that, the oldest are deleted
_MOST_NAMED: Final = (
    1_000  # named ones of one agent; beyond that, none is created, since a client relies on each
)
_RESPONSE: Final = re.compile(r"resp_[0-9a-f]{32}")
_MOST_ASKED: Final = (
    8  # unanswered requests of one conversation that are recognized when they are repeated
)
_SAME_S: Final = 900.0  # later, an equal request without earlier messages is a new one
_MOST_BUSY: Final = (
    1_000  # unnamed conversations of one agent with a message that waits or is being answered
)
_SECTION: Final = "client"
_NOTHING_SAID: Final = ClientHistory("", (), (), "", "", HistoryKey(""))
_SHOWN: Final = (
    events.CallStarted,
    events.CallAnswered,
    events.GrantAsked,
    events.GrantAnswered,
    events.Warned,
)
_WAIT_S: Final = 15.0  # time without an event after which the client gets a sign of life
_ANSWERED: Final = (
    "done",
    "client_calls",
    "length",
)  # states of turns with a result for the client
_WELL: Final = (
    "replied",
    "client_calls",
    "length",
)  # the corresponding reasons for the end of a turn


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Thread:
    """A conversation (the agent `name`) and the client's current request, which is posted under `key`.

    `client` holds the functions and options that the client offers. `is_again` marks the retry of a request that has
    had no response yet.
    """

    name: str
    agent: str
    history: ClientHistory
    client: Json
    key: str
    is_again: bool
    by: Identity


@dataclass(slots=True)
class ClientReply:
    """The reply of one turn as the client receives it: the text of all steps, and the calls of its own functions."""

    client: Json
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    ended: events.TurnEnded | None = None
    warning: str = ""
    _step: int = 0

    @property
    def is_cut(self) -> bool:
        """True if the reply ends where the client's limit of tokens cut it off."""
        return self.ended is not None and self.ended.reason == "length"

    @property
    def is_whole(self) -> bool:
        """True if the turn has ended with a result for the client."""
        return self.ended is not None and self.ended.reason in _WELL

    def take(self, event: events.Event) -> str:
        """Process an event of the turn, and return the piece of text to send to the client now."""
        has_shape = bool(self.client.get("shape"))
        match event:
            case events.Text() if has_shape:
                pass  # checked when it is complete
            case events.Text():
                parts, self._step = event.step != self._step and self.text.strip(), event.step
                return self._add(event.text, apart=bool(parts))
            case events.CallStarted() if self.is_clients(event):
                self.calls.append(Call(event.call_id, event.name, event.arguments))
            case events.Warned():
                self.warning = event.text
            case events.TurnEnded():
                self.ended = event
                if has_shape and event.reason == "replied":
                    shaped = ClientFunctions.read(self.client).shaped(event.reply)
                    reply = shaped if isinstance(shaped, str) else event.reply
                    self.ended = replace(event, reply=reply)
                    return self._add(reply, apart=False)
                if event.reason in _WELL and not was_told(event.reply, self.text):
                    return self._add(event.reply, apart=bool(self.text.strip()))
            case _:
                pass
        return ""

    def failure(self) -> str:
        """Return a sentence about a turn that gave no reply."""
        reason = (
            self.ended.reason
            if self.ended
            else "the server stopped, or the conversation was deleted"
        )
        return f"The turn ended without a reply ({reason}). {self.warning}".rstrip()

    def shown(self, event: events.Event) -> list[Json]:
        """Return an event as JSON for our vendor field, or nothing; calls of the client's functions are left out."""
        is_theirs = isinstance(event, events.CallStarted | events.CallAnswered) and self.is_clients(
            event
        )
        if isinstance(event, events.TurnEnded):  # without the reply, which has a standard field
            return [
                {
                    key: value
                    for key, value in event.to_json().items()
                    if key not in ("reply", "usage")
                }
            ]
        return [to_json(event)] if isinstance(event, _SHOWN) and not is_theirs else []

    def is_clients(self, event: events.CallStarted | events.CallAnswered) -> bool:
        """Return whether a call is for one of the client's functions."""
        return any(event.name == row["name"] for row in self.client["functions"])

    def _add(self, text: str, *, apart: bool) -> str:
        piece = f"\n\n{text}" if apart and not text.startswith("\n") else text
        self.text += piece
        return piece


@dataclass(slots=True)
class _OwnTurn:
    """The turn that a message began, followed by the turn that resumes it if it was parked."""

    store: TurnStore
    agent: str
    posted: str
    id: str
    is_parked: bool = False
    is_over: bool = False

    async def has(self, heard: events.Event) -> bool:
        """Return whether an event belongs to this turn, as its own event or as that of a group member."""
        is_start = isinstance(heard, events.TurnStarted)
        if is_start and (
            self.is_parked or heard.turn == await self.store.turn_of(self.posted, self.agent)
        ):
            self.id = heard.turn
        if heard.turn not in ("", self.id) and not (self.id and heard.agent):
            return False
        if isinstance(heard, events.TurnEnded):
            self.is_parked = heard.reason == "parked"
            self.is_over = not self.is_parked
            return self.is_over
        return True


class ChatThreads:
    """The conversations of clients."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._store = rooms.state.store
        self._one_at_a_time = asyncio.Lock()
        self._answering = WeakSet[Thread]()

    async def take_up(
        self,
        identity: Identity,
        model: str,
        messages: Sequence[ClientMessage],
        client: Json,
        *,
        owner: str,
        response: str = "",
    ) -> Thread:
        """Return the conversation that the messages continue, or a new one.

        `identity` belongs to the token of the request; a history is recognized only for the same `owner`. `model` is
        `AGENT` or `AGENT@CONVERSATION`. `response` is the id of the response to continue from.

        Raises:
            UsageError: no message is new, the conversation cannot have this name, or there is no such response.
            ApiRefusal: too many new conversations wait for an answer.
        """
        agent, _, conversation = model.partition("@")
        async with self._one_at_a_time:
            if is_group(self._rooms.workspace.root, agent):
                if conversation:
                    raise UsageError(
                        "A group has one conversation.", fix="Leave out the @ and what follows."
                    )
                name, history = agent, await _read(messages, owner, client, is_known=True)
            else:
                name, history = await self._find_conversation(
                    owner, model, messages, client, response
                )
            settings = await self._store.agent_settings(name) or {}
            for row in () if history.before else history.answers:
                if row.answers not in (settings.get("chat_open") or ()):
                    what = f"The conversation waits for no answer to `{row.answers[:80]}`."
                    raise UsageError(what, fix="Answer the calls of the last reply, each once.")
            now = await self._store.now()
            key = _key_of(settings, history, now)
            is_again = bool(key)  # a retry that has no response yet
            key = key or Clock().new_id()
            await self._note(name, settings, history.asked, key, now)
            thread = Thread(name, agent, history.without_past(), client, key, is_again, identity)
            self._answering.add(thread)
        sections = (await self._rooms.host.agent(name)).memory.sections
        has = {section.name: section.text for section in await sections.list()}
        if history.system and has.get(_SECTION) != history.system:
            await sections.set(_SECTION, 0, history.system)
        elif not history.system and _SECTION in has:
            await sections.drop(_SECTION)
        return thread

    async def named(self, agent: str, conversation: str) -> str:
        """Return the agent of a named conversation, which is created if it does not exist.

        Raises:
            UsageError: the conversation cannot have this name, or the agent has too many.
        """
        name = self._name_of(agent, conversation)
        async with self._one_at_a_time:
            if name != agent:
                await self._make_sure(agent, conversation, name, _NOTHING_SAID)
        return name

    def _name_of(self, agent: str, conversation: str) -> str:
        """Return the name of the agent of a conversation, whether or not it exists yet.

        A group has one conversation, whatever its name, because its members have one memory each.

        Raises:
            UsageError: the conversation cannot have this name.
        """
        if is_group(self._rooms.workspace.root, agent):
            return agent
        name = f"{agent}{CONVERSATION}{conversation}"
        if not AGENT.fullmatch(name):
            most = 64 - len(agent) - len(CONVERSATION)
            fix = f"Use up to {most} letters, digits, dashes and underscores."
            raise UsageError(f"A conversation cannot be called `{conversation[:80]}`.", fix=fix)
        return name

    async def turn(self, thread: Thread) -> AsyncIterator[events.Event | None]:
        """Post the new messages and yield the events of their turn, or None while nothing happens.

        If the request was posted before, follow its turn, or replay the turn's events if it has ended.
        """
        host, store = self._rooms.host, self._store
        with host.listen(thread.name) as listening:
            if thread.is_again:
                host.begin_at_now(thread.name, listening)
            posted, past = await self._post(thread)
            for event in past:
                yield event
            if past:
                return
            own = _OwnTurn(
                store, thread.name, posted, await store.turn_of(posted, thread.name) or ""
            )
            while not listening.is_over:
                heard = await listening.next(_WAIT_S)
                if heard is None and await host.has_lost(thread.name, posted):
                    return
                if (
                    heard is None
                    and not own.is_parked
                    and (past := await self._past(thread.name, posted))
                ):
                    heard, own.id = past[-1], past[-1].turn  # a turn that fails publishes no end
                if heard is None or await own.has(heard):
                    yield heard
                if isinstance(heard, events.TurnEnded) and own.is_over:
                    return

    async def remember(self, thread: Thread, reply: ClientReply, response: str = "") -> None:
        """Store the keys by which the client's next request will be recognized, and the id of its response."""
        if not reply.is_whole or reply.ended is None:
            return
        history, texts = thread.history, (reply.text, reply.ended.reply)
        sent = await aside(sum(map(len, texts)), forms, history, texts, reply.calls)
        noted: Json = {"chat_sent": sent, "chat_open": [call.id for call in reply.calls]}
        noted["chat_response"] = _key_of_response(response, history.by)
        async with self._one_at_a_time:
            settings = await self._store.agent_settings(thread.name)
            if settings is not None:
                rows = settings.get("chat_asks") or []
                own = next(
                    (at for at, (asked, *_) in enumerate(rows, 1) if asked == history.asked), 0
                )
                # The turns of those before it have ended, too.
                await self._save(
                    thread.name, settings, chat_of=thread.agent, **noted, chat_asks=rows[own:]
                )

    async def _find_conversation(
        self, by: str, model: str, messages: Sequence[ClientMessage], client: Json, response: str
    ) -> tuple[str, ClientHistory]:
        """Return the conversation that a request belongs to, created if necessary, and the parsed messages."""
        agent, _, conversation = model.partition("@")
        if response:
            key = _key_of_response(response, by)
            known = await self._known(agent, key) if _RESPONSE.fullmatch(response) else []
            name = next((name for name, had in known if had.get("chat_response") == key), "")
            if not name:
                fix = "Only the last response of a conversation can be continued; or send its messages as `input`."
                what = f"names no response to go on from: `{response[:80]}`."
                raise Unsupported("previous_response_id", what, fix)
        else:
            name = self._name_of(agent, conversation) if conversation else ""
        settings = await self._store.agent_settings(name) if name else None
        history = await _read(messages, by, client, is_known=settings is not None)
        if not name:
            now = await self._store.now()
            for known_name, had in await self._known(agent, history.asked, MARK):
                if _key_of(had, history, now):
                    return known_name, history
            for known_name, had in await self._known(agent, history.sent) if history.before else ():
                is_last = not had.get("chat_asks") or _key_of(
                    had, history, now
                )  # no other message since
                if is_last and history.sent in (had.get("chat_sent") or ()):
                    return known_name, history
            return await self._new(agent, history), history
        await self._make_sure(agent, conversation, name, history)
        return name, history

    async def _make_sure(
        self, agent: str, conversation: str, name: str, history: ClientHistory
    ) -> None:
        """Create a conversation if it does not exist.

        Raises:
            UsageError: the name is that of another agent, or is reserved for unnamed conversations; or the agent has
                too many.
        """
        settings = await self._store.agent_settings(name)
        if settings is not None and settings.get("chat_of") == agent:
            return
        is_reserved = f"{CONVERSATION}{conversation}".startswith(MARK)
        if is_reserved or await self._rooms.workspace.can_be_talked_to(name):
            what = f"A conversation cannot have the name `{conversation[:80]}` here."
            given = (
                f"The server gives names with `chat-` itself, and keeps the last {_KEPT}. "
                if is_reserved
                else ""
            )
            raise UsageError(what, fix=f"{given}Choose another name after the @.")
        if (
            sum(not known.startswith(f"{agent}{MARK}") for known, _ in await self._known(agent))
            >= _MOST_NAMED
        ):
            what = f"{agent} has {_MOST_NAMED:,} named conversations, which is the most."
            raise UsageError(
                what,
                fix=f"Continue one, or delete one: knapper agents delete {agent}{CONVERSATION}NAME",
            )
        await self._begin(agent, name, history)

    async def _post(self, thread: Thread) -> tuple[str, list[events.Event]]:
        """Post the new messages and return the id of their event.

        If the request was posted before and answered, return the events of its turn, too. If its turn failed, remove
        that turn and post the messages again.
        """
        store, name = self._store, thread.name
        event = await self._post_message(thread, thread.key)
        turn, ended = await store.turn_of(event, name), await store.ended_turns(name, 0)
        state = next((row.state for row in ended if row.id == turn), "")
        if state in _ANSWERED:
            return event, await self._past(name, event)
        if state in ("", "parked"):
            return event, []
        if ended[-1].id == turn:
            async with self._rooms.host.idle(name) as agent:
                await agent.pop()
        async with self._one_at_a_time:
            settings, key = await store.agent_settings(name) or {}, Clock().new_id()
            await self._note(name, settings, thread.history.asked, key, await store.now())
        return await self._post_message(thread, key), []

    async def _past(self, name: str, event: str) -> list[events.Event]:
        """Return the events of the turn that took a message, from the journal; empty until the turn has ended."""
        store = self._store
        turn = await store.turn_of(event, name)
        if all(row.id != turn for row in await store.ended_turns(name, 0)):
            return []
        return [event async for event in self._rooms.host.past(name, turn)]

    async def _post_message(self, thread: Thread, key: str) -> str:
        answers = [{"id": row.answers, "text": row.text} for row in thread.history.answers]
        host, by, text = self._rooms.host, thread.by, thread.history.text
        return (
            await host.post(
                thread.name, text, key, identity=by, client=thread.client, answers=answers
            )
        ).event

    async def _new(self, agent: str, history: ClientHistory) -> str:
        host, moves = self._rooms.host, self._rooms.state.moves
        if surplus := [old for old, _ in (await self._known(agent, mark=MARK))[_KEPT - 1 :]]:
            busy = {work.agent for work in await self._store.open_work()} | {
                thread.name for thread in self._answering
            }
            if len(busy.intersection(surplus)) > _MOST_BUSY:
                what = f"{_MOST_BUSY:,} conversations of {agent} wait for an answer."
                raise ApiRefusal(429, "too-many", what, "Wait until some are answered.")
            for old in surplus:
                if old not in busy and not host.is_running(old):
                    await host.close_idle(old)
                    await moves.delete(old)
        name = f"{agent}{MARK}{Clock().new_id().replace('-', '')[:20]}"
        await self._begin(agent, name, history)
        return name

    async def _begin(self, agent: str, name: str, history: ClientHistory) -> None:
        """Create the agent of a new conversation, with the earlier messages and the memory blocks of its owner."""
        store, owner = self._store, await self._rooms.host.agent(agent)
        number = (
            max([_number(had) for _, had in await self._known(agent, mark=MARK)], default=0) + 1
        )
        settings = {
            **(await store.agent_settings(agent) or {}),
            "chat_of": agent,
            "chat_number": number,
        }
        blocks = owner.memory.blocks
        for row in [row for row in blocks.rows if not row.shared]:
            await done(blocks, blocks.share(row.label, HUMAN))
        turns = await aside(len(history.before) * PER_MESSAGE, history.turns)
        await store.write_agent(WholeAgent(name, settings, turns=turns))
        await store.apply([AttachBlock(name, row.id, row.position) for row in blocks.rows])
        await self._save(name, settings)

    async def _note(self, name: str, settings: Json, asked: str, key: str, now: float) -> None:
        """Store that a request is posted under a key, so that a repeated one is recognized until it is answered."""
        rows = {row[0]: row for row in settings.get("chat_asks") or ()} | {asked: (asked, key, now)}
        await self._save(name, settings, chat_asks=[*rows.values()][-_MOST_ASKED:])

    async def _save(self, name: str, settings: Json, **more: Any) -> None:  # Any: JSON
        await self._store.apply([SaveAgent(name, {**settings, **more})])

    async def _known(
        self, agent: str, text: str = "", mark: str = CONVERSATION
    ) -> list[tuple[str, Json]]:
        """Return the conversations of an agent whose settings contain a text, newest first; by `mark`, the unnamed."""
        rows = await self._store.agents_with(f"{agent}{mark}", text)
        own = [
            (name, settings) for name, settings in rows.items() if settings.get("chat_of") == agent
        ]
        # By number, since a clock may go backward. Older ones have none, but a time in their name.
        return sorted(own, key=lambda row: (_number(row[1]), row[0]), reverse=True)


async def _read(
    messages: Sequence[ClientMessage], by: str, client: Json, *, is_known: bool
) -> ClientHistory:
    size = sum(PER_MESSAGE + len(message.text) for message in messages)

    def read() -> ClientHistory:
        history = ClientHistory.read(messages, by, is_known=is_known)
        terms = ClientMessage(
            "system", json.dumps([history.system, client])
        )  # a repeated request has the same
        return replace(history, asked=digest(history.asked, [terms]))

    return await aside(size, read)


def _key_of(settings: Json, history: ClientHistory, now: float) -> str:
    """Return the key under which a request was posted that has had no response yet, or ""."""
    for asked, key, at in settings.get("chat_asks") or ():
        if asked == history.asked and (history.before or now < at + _SAME_S):
            return str(key)
    return ""


def _key_of_response(response: str, by: str) -> str:
    """Return the key by which a response is found, for those only who have got it."""
    return digest(by, (ClientMessage("assistant", response),)) if response else ""


def _number(settings: Json) -> int:
    return int(
        settings.get("chat_number") or 0
    )  # unnamed conversations count; a named one has that of the next
