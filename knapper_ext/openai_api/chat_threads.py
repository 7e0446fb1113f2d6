"""Conversations of clients of chat completions and responses: each request brings its history, or names a conversation.

A history without a name is the context of one turn: the agent `AGENT--chat-…` is made for it. A conversation goes on by
its name, by the id of its last response, or by an answer to a call that it handed out: it is one of the agent's,
private to the token that began it. A request is recorded before its message is posted, so that it is answered once,
also if it is sent again after a crash or a lost response.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias
from weakref import WeakSet

from pydantic import Field

from agent_core.api.agent_host import HISTORY_OWNER, Rooms
from agent_core.api.identity import ApiRefusal, Identity
from agent_core.api.operations import Open
from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError
from agent_core.base.messages import Assistant, Call
from agent_core.base.offload import aside
from agent_core.base.pictures import Picture, PictureFile, captioned, with_rows
from agent_core.base.records import dataclass, field, replace, to_json
from agent_core.base.untrusted import one_line
from agent_core.memory.agent_memory import CLIENT_SECTION, INSTRUCTIONS
from agent_core.memory.classes import check_length
from agent_core.operations.manual_edits import HUMAN, done
from agent_core.registry.validation import check_schema, schemas_in
from agent_core.runtime.client_calls import ClientFunctions, answered
from agent_core.storage import (
    CONVERSATION,
    HISTORY,
    NAME_CHARS,
    AttachBlock,
    EndedTurn,
    Entry,
    SaveAgent,
    SaveDoor,
    TurnStore,
    WholeAgent,
    WholeEvent,
    WholeTurn,
    id_of,
    is_main,
    line_of,
)
from agent_core.storage.journal import assistant, user
from agent_core.views.call_log import was_told
from agent_core.workspace.agent_files import is_group

_GATE: Final = "doors"  # of an agent, for those who take up what its clients send
MOST_CALLS: Final = 128  # calls of consecutive messages, which are merged into one
PER_MESSAGE: Final = (
    40  # cost of one message besides its text, in characters as `base/offload.py` counts them
)
_SYSTEM: Final = ("system", "developer")
_CALL_ID: Final = re.compile(r"(.+)(--(?:chat-|resp-)(?:[0-9a-f]{20}|[0-9a-f]{6}))", re.DOTALL)
"""The id of a call as a program gets it: models repeat their own ids, so that of an unnamed conversation is added."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of a client's history.

    `calls` are calls of the client's functions. `answers` is the id of the call that the message answers, `name` the
    name of that function if the client sent it. `files` are pictures as they were sent; when they are kept, they are
    the `pictures`, and the text has their captions.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    name: str = ""
    files: tuple[PictureFile, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def showing(self, pictures: Sequence[Picture]) -> "ClientMessage":
        """Return the message with its pictures kept."""
        text = captioned(self.text, pictures)
        return replace(self, text=text, files=(), pictures=tuple(pictures))

    def with_bare_ids(self) -> "ClientMessage":
        """Return the message with the ids that its calls have here."""
        calls = tuple(replace(call, id=_split_id(call.id)[0]) for call in self.calls)
        return replace(self, calls=calls, answers=_split_id(self.answers)[0])


@dataclass(frozen=True, slots=True)
class ClientHistory:
    """A parsed request of a client: the instructions, the earlier messages, and the new ones.

    `waiting` ends the name of the conversation that handed out the calls which are answered, if the ids say so.
    """

    system: str = ""
    before: tuple[ClientMessage, ...] = ()
    answers: tuple[ClientMessage, ...] = ()
    text: str = ""
    waiting: str = ""
    pictures: tuple[Picture, ...] = ()

    @classmethod
    def read(cls, messages: Iterable[ClientMessage], *, is_known: bool = False) -> "ClientHistory":
        """Parse the messages of a request.

        With `is_known`, the calls that the answers belong to may be missing, because they are stored.

        Raises:
            UsageError: no message is new, or an answer belongs to no call.
        """
        sent = [*messages]
        rows = [row.with_bare_ids() for row in sent]
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
        last = max((place for place, row in enumerate(sent) if row.role == "assistant"), default=-1)
        marks = {_split_id(row.answers)[1] for row in sent[last + 1 :] if row.role == "tool"}
        waiting = marks.pop() if len(marks) == 1 else ""
        pictures = _pictures_of(row for row in new if row.role == "user")
        return cls(system, tuple(said[:begin]), answers, text, waiting, pictures)

    def without_past(self) -> "ClientHistory":
        """Return what the turn needs; the rest is stored, and may take megabytes while the turn waits or runs."""
        return replace(self, system="", before=())

    def turns(self) -> list[WholeTurn]:
        """Return the earlier messages as finished turns, one for each message of the user."""
        turns: list[tuple[str, list[Entry]]] = []
        names = dict[str, str]()
        for place, row in enumerate(self.before):
            if row.role == "user" or not turns:
                turns.append((row.text, []))
            entries = turns[-1][1]
            if row.role == "user":
                entries.append(user(row.text, pictures=row.pictures))
            elif row.role == "tool":
                call = Call(row.answers, names.get(row.answers, ""), "{}")
                entries.append(answered(call, row.text, row.pictures))
            else:
                following = self.before[place + 1 : place + 1 + max(len(row.calls), 1)]
                answers = {other.answers for other in following}
                names |= {call.id: call.name for call in row.calls}  # models repeat their ids
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


def _split_id(id: str) -> tuple[str, str]:
    """Return the id that a call has here, and the end of the name of the conversation that handed it out, or ""."""
    found = _CALL_ID.fullmatch(id)
    return (found[1], found[2]) if found else (id, "")


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
            text = "\n\n".join(row.text for row in rows)
            rows = [ClientMessage(role, text, pictures=_pictures_of(rows))]
        merged += rows
    return merged


def _pictures_of(messages: Iterable[ClientMessage]) -> tuple[Picture, ...]:
    return tuple(chain.from_iterable(message.pictures for message in messages))


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


STORED: Final = f"{CONVERSATION}resp-"
"""The mark of a conversation that goes on by the id of its last response. Earlier versions made agents of them."""
_KEPT: Final = (
    100  # unnamed conversations of one agent and kind; beyond that, the oldest are deleted
)
_MOST_NAMED: Final = 1_000  # named ones of one agent and token; beyond that, none begins, since a client relies on each
_CONVERSATION_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARS}}}")
_RESPONSE: Final = re.compile(r"resp_[0-9a-f]{32}")
_REQUESTS: Final = 32  # of one conversation that are known when they come again
_KEY_CHARS: Final = 255
_JOINED_S: Final = 600.0  # after its end, an answer that nobody got waits this long for its sender
_MOST_BUSY: Final = (
    1_000  # unnamed conversations of one agent with a message that waits or is being answered
)
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


@dataclass(frozen=True, slots=True)
class RequestMark:
    """By what a request is known if it comes again: the `Idempotency-Key` of a token, or else its bytes."""

    asked: str
    content: str
    is_keyed: bool

    @classmethod
    def of(cls, token: str, path: str, body: bytes, key: str) -> "RequestMark":
        """Return the mark of a request.

        Raises:
            UsageError: the key is too long.
        """
        if len(key) > _KEY_CHARS:
            what = f"The `Idempotency-Key` has more than {_KEY_CHARS} characters."
            raise UsageError(what, fix="Send a random one, such as a UUID.")
        content = hashlib.sha256(path.encode() + b"\n" + body).hexdigest()
        asked = _digest("key", token, key) if key else _digest("bytes", token, content)
        return cls(asked, content, bool(key))

    def row(self, now: float) -> Json:
        """Return what is stored of the request with its conversation."""
        row: Json = {"asked": self.asked, "content": self.content, "keyed": self.is_keyed}
        return {**row, "key": Clock().new_id(), "at": now, "told": False}


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request without its messages: who sends it, for which owner, to which `AGENT` or `AGENT@CONVERSATION`.

    `client` holds the functions and options that the client offers. `previous` is the id of the response to continue
    from; if `is_stored`, the one to this request can be continued from.
    """

    identity: Identity
    owner: str
    model: str
    client: Json
    mark: RequestMark
    previous: str = ""
    is_stored: bool = False

    @property
    def agent(self) -> str:
        """The agent that `model` names."""
        return self.model.partition("@")[0]

    @property
    def origin(self) -> str:
        """The origin of the conversations that it begins and goes on with: its token, and whom that serves."""
        _, _, user_name = self.owner.partition("\n")
        return replace(self.identity.origin, user=user_name).to_json()


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Thread:
    """A conversation (by its line, or an agent's `name`) and the client's current request, of which `row` is stored.

    `is_again` marks a request that came before.
    """

    name: str
    request: ClientRequest
    history: ClientHistory
    row: Json
    is_again: bool

    @property
    def id(self) -> str:
        """The id of its response, which is the same when the request comes again."""
        return _digest(self.row["asked"], self.row["at"])[:32]

    @property
    def mark(self) -> str:
        """What a program gets after the id of each call of its functions, so that the answer finds its conversation."""
        if not is_main(self.name):
            return "" if "@" in self.request.model else f"{STORED}{id_of(self.name)}"
        end = self.name.removeprefix(self.request.agent)
        return end if end.startswith((HISTORY, STORED)) else ""


@dataclass(slots=True)
class ClientReply:
    """The reply of one turn as the client receives it: the text of all steps, and the calls of its own functions."""

    client: Json
    mark: str = ""
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    ended: events.TurnEnded | None = None
    warning: str = ""
    _step: int = 0

    @property
    def handed(self) -> list[Call]:
        """The calls as the client gets them."""
        return [replace(call, id=f"{call.id}{self.mark}") for call in self.calls]

    @property
    def is_cut(self) -> bool:
        """True if the reply ends where the client's limit of tokens cut it off."""
        return self.ended is not None and self.ended.reason == "length"

    @property
    def is_whole(self) -> bool:
        """True if the turn has ended with a result for the client."""
        return self.ended is not None and self.ended.reason in _WELL

    async def take(self, event: events.Event) -> str:
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
                    functions = ClientFunctions.read(self.client)
                    shaped = await aside(len(event.reply), functions.shaped, event.reply)
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
        self, client_request: ClientRequest, messages: Sequence[ClientMessage]
    ) -> Thread:
        """Return the conversation of a request: the one that it names or that waits for it, or a new one.

        Raises:
            UsageError: no message is new, the conversation cannot have this name, or there is no such response.
            ApiRefusal: too many new conversations wait for an answer, or the key is that of another request.
        """
        async with self._alone(client_request.agent):
            thread = await self._again(client_request, messages)
            if thread is not None:
                self._answering.add(thread)
                return thread
            name, history = await self._find_conversation(client_request, messages)
            settings = await self._settings(name) or {}
            for answer in () if history.before else history.answers:
                if answer.answers not in (settings.get("chat_open") or ()):
                    what = f"The conversation waits for no answer to `{answer.answers[:80]}`."
                    raise UsageError(what, fix="Answer the calls of the last reply, each once.")
            settings = await self._instruct(name, settings, history.system)
            row = client_request.mark.row(await self._store.now())
            await self._note(name, settings, row)
            thread = Thread(name, client_request, history.without_past(), row, is_again=False)
            self._answering.add(thread)
            return thread

    @asynccontextmanager
    async def _alone(self, agent: str) -> AsyncIterator[None]:
        """Be the only one, in any process, who reads and stores what was asked of an agent.

        Otherwise, two servers that get a request at once would each find it new.
        """
        folder = self._rooms.state.folder
        async with self._one_at_a_time, self._store.gate(folder, agent, _GATE):
            yield

    async def _instruct(self, name: str, settings: Json, system: str) -> Json:
        """Let a conversation have the instructions of its client, and return what is to be kept of it.

        They are a section of the conversation's own, or of the agent that was made for it.
        """
        if not is_main(name):
            if not self._store.is_shared:  # otherwise, any process may answer
                await self._rooms.host.agent(name)
            check_length(CLIENT_SECTION, system)
            return {**settings, INSTRUCTIONS: system}
        sections = (await self._rooms.host.agent(name)).memory.sections
        has = {section.name: section.text for section in await sections.list()}
        if system and has.get(CLIENT_SECTION) != system:
            await sections.set(CLIENT_SECTION, 0, system)
        elif not system and CLIENT_SECTION in has:
            await sections.drop(CLIENT_SECTION)
        return settings

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
                    for event in past:  # nobody heard why it failed
                        if isinstance(event, events.Warned):
                            yield event
                if heard is None or await own.has(heard):
                    yield heard
                if isinstance(heard, events.TurnEnded) and own.is_over:
                    return

    async def remember(self, thread: Thread, reply: ClientReply) -> None:
        """Store that the client is told, for what it waits, and by which id it goes on."""
        if not reply.is_whole or reply.ended is None:
            return
        number = await self._store.turn_number(thread.name, reply.ended.turn) or 0
        async with self._alone(thread.request.agent):
            settings = await self._settings(thread.name) or {}
            rows = _requests(settings)
            own = rows.pop(thread.row["asked"], None)
            if own is None or own["told"]:
                return
            if own["keyed"]:
                rows[own["asked"]] = {**own, "told": True}
            noted: Json = {"chat_requests": [*rows.values()]}
            if number >= int(settings.get("chat_told") or 0):  # no later turn was told
                response = f"resp_{thread.id}" if thread.request.is_stored else ""
                noted |= {"chat_told": number, "chat_by": _digest(thread.request.owner)}
                noted |= {"chat_open": [call.id for call in reply.calls]}
                noted |= {"chat_response": _key_of_response(response, thread.request.owner)}
            await self._save(thread.name, settings, chat_of=thread.request.agent, **noted)

    async def _find_conversation(
        self, client_request: ClientRequest, messages: Sequence[ClientMessage]
    ) -> tuple[str, ClientHistory]:
        """Return the conversation that a request belongs to, created if necessary, and the parsed messages."""
        agent, _, conversation = client_request.model.partition("@")
        if is_group(self._rooms.workspace.root, agent):
            if conversation:
                fix = "Leave out the @ and what follows."
                raise UsageError("A group has one conversation.", fix=fix)
            return agent, await _read(messages, is_known=True)
        if client_request.previous:
            name = await self._of_response(client_request)
            return name, await _read(messages, is_known=True)
        if conversation:
            name = await self._named(client_request, conversation)
            history = await _read(messages, is_known=bool(name))
            return name or await self._name(client_request, conversation, history), history
        history = await _read(messages, is_known=False)
        name = await self._waiting(client_request, history)
        if not name and client_request.is_stored:
            name = await self._begin_stored(client_request, history)
        return name or await self._begin_history(client_request, history), history

    async def _again(
        self, client_request: ClientRequest, messages: Sequence[ClientMessage]
    ) -> Thread | None:
        """Return the conversation in which a request came before, or None: it is new.

        Without a key, an equal request is a retry only while nobody got the answer.

        Raises:
            ApiRefusal: its key is that of another request.
        """
        request_mark = client_request.mark
        found = await self._store.agents_with("", request_mark.asked)
        found |= await self._store.doors_with(request_mark.asked, token=client_request.identity.id)
        for name, settings in found.items():
            rows = _requests(settings)
            row = rows.pop(request_mark.asked, None)
            if row is None:
                continue
            if row["content"] != request_mark.content:
                what = "The `Idempotency-Key` is that of another request, so this one was not sent."
                raise ApiRefusal(409, "key", what, "Send each request with a key of its own.")
            history = await _read(messages, is_known=True)
            thread = Thread(name, client_request, history.without_past(), row, is_again=True)
            if request_mark.is_keyed or await self._is_awaited(thread):
                return thread
            await self._save(name, settings, chat_requests=[*rows.values()])
        return None

    async def _is_awaited(self, thread: Thread) -> bool:
        """Return whether the answer to a request waits for its sender: as long as its turn, and a while after that."""
        event = await self._post_message(thread, thread.row["key"])
        ended = await self._end_of(thread.name, event)
        return (
            ended is None
            or ended.state == "parked"
            or await self._store.now() < ended.at + _JOINED_S
        )

    async def _of_response(self, client_request: ClientRequest) -> str:
        """Return the conversation of which a response is the last.

        Raises:
            Unsupported: there is none that the sender may go on with.
        """
        agent = client_request.agent
        response = client_request.previous
        key = _key_of_response(response, client_request.owner)
        known = list[tuple[str, Json]]()
        if _RESPONSE.fullmatch(response):
            known += (await self._store.doors_with(key, agent, client_request.origin)).items()
            known += await self._known(agent, key)
        name = next((name for name, had in known if had.get("chat_response") == key), "")
        if not name:
            fix = "Only the last response of a conversation can be continued; or send its messages as `input`."
            what = f"names no response to go on from: `{response[:80]}`."
            raise Unsupported("previous_response_id", what, fix)
        return name

    async def _waiting(self, client_request: ClientRequest, history: ClientHistory) -> str:
        """Return the conversation that waits for the answers in a history, which are then no longer awaited, or ""."""
        if not history.waiting:
            return ""
        name = await self._own_line(client_request, history.waiting.removeprefix(STORED))
        name = name or f"{client_request.agent}{history.waiting}"
        settings = await self._settings(name)
        if settings is None or settings.get("chat_of") != client_request.agent:
            return ""
        if settings.get("chat_by") != _digest(client_request.owner):
            return ""
        if not {row.answers for row in history.answers} <= {*(settings.get("chat_open") or ())}:
            return ""
        await self._save(name, settings, chat_open=[])
        return name

    async def _named(self, client_request: ClientRequest, conversation: str) -> str:
        """Return the conversation that a client calls by a name or an id, or "": it is to begin.

        Raises:
            UsageError: no conversation can have this name.
        """
        agent = client_request.agent
        store = self._store
        if not _CONVERSATION_NAME.fullmatch(conversation):
            fix = f"Use up to {NAME_CHARS} letters, digits, dashes and underscores."
            raise UsageError(f"A conversation cannot be called `{conversation[:80]}`.", fix=fix)
        if f"{CONVERSATION}{conversation}".startswith((HISTORY, STORED)):
            what = f"A conversation cannot have the name `{conversation}` here."
            fix = "The server gives names with `chat-` and `resp-` itself. Choose another name after the @."
            raise UsageError(what, fix=fix)
        before = f"{agent}{CONVERSATION}{conversation}"  # an agent of its own, as earlier versions made one
        if (await store.agent_settings(before) or {}).get("chat_of") == agent:
            return before
        if line := await self._own_line(client_request, conversation):
            return line
        rows = await store.conversations_of(agent, client_request.origin, conversation, 1)
        return rows[0].line if rows else ""

    async def _own_line(self, client_request: ClientRequest, id: str) -> str:
        """Return the line of the conversation with an id, or "": the sender has begun none with it."""
        row = await self._store.conversation(line_of(client_request.agent, id))
        is_own = row is not None and row.deleted is None and row.origin == client_request.origin
        return row.line if row is not None and is_own else ""

    async def _name(
        self, client_request: ClientRequest, conversation: str, history: ClientHistory
    ) -> str:
        """Begin a conversation with a name.

        Raises:
            UsageError: the agent has too many of this token.
        """
        agent = client_request.agent
        if await self._store.named_by(agent, client_request.identity.id) >= _MOST_NAMED:
            what = (
                f"{agent} has {_MOST_NAMED:,} named conversations of this token, which is the most."
            )
            fix = f"Continue one, or delete one: knapper conversations delete NAME --agent {agent}"
            raise UsageError(what, fix=fix)
        return await self._begin_line(client_request, history, conversation, {})

    async def _begin_stored(self, client_request: ClientRequest, history: ClientHistory) -> str:
        """Begin a conversation that goes on by the id of its last response; the oldest beyond the limit are erased."""
        agent = client_request.agent
        by = _digest(client_request.owner)
        own = await self._store.doors_with("chat_number", agent, client_request.origin)
        numbers = {line: _number(kept) for line, kept in own.items()}
        newest_first = sorted(numbers, key=numbers.__getitem__, reverse=True)
        for line in await self._removable(agent, newest_first[_KEPT - 1 :]):
            await self._rooms.host.close_idle(line)
            await self._store.erase_conversation(line)
        number = max(numbers.values(), default=0) + 1
        kept = {"chat_of": agent, "chat_number": number, "chat_by": by}
        return await self._begin_line(client_request, history, "", kept)

    async def _begin_line(
        self, client_request: ClientRequest, history: ClientHistory, name: str, kept: Json
    ) -> str:
        turns = await aside(len(history.before) * PER_MESSAGE, history.turns)
        row = await self._store.begin_with(
            client_request.agent, client_request.origin, name, turns, kept
        )
        return row.line

    async def _removable(self, agent: str, surplus: Sequence[str]) -> list[str]:
        """Return those of the surplus in which no message waits or is being answered.

        Raises:
            ApiRefusal: there are too many of the others.
        """
        if not surplus:
            return []
        busy = {work.line for work in await self._store.open_work()}
        busy |= {thread.name for thread in self._answering}
        if len(busy.intersection(surplus)) > _MOST_BUSY:
            what = f"{_MOST_BUSY:,} conversations of {agent} wait for an answer."
            raise ApiRefusal(429, "too-many", what, "Wait until some are answered.")
        host = self._rooms.host
        return [name for name in surplus if name not in busy and not host.is_running(name)]

    async def _post(self, thread: Thread) -> tuple[str, list[events.Event]]:
        """Post the new messages and return the id of their event.

        If the request was posted before and answered, return the events of its turn, too. If its turn failed, remove
        that turn and post the messages again.
        """
        event = await self._post_message(thread, thread.row["key"])
        ended = await self._end_of(thread.name, event)
        if ended is None or ended.state == "parked":
            return event, []
        if ended.state in _ANSWERED:
            return event, await self._past(thread.name, event)
        return await self._post_message(thread, await self._key_for_another_try(thread, ended)), []

    async def _key_for_another_try(self, thread: Thread, ended: EndedTurn) -> str:
        """Return the key for posting a request again whose turn failed, and remove that turn if it is the last."""
        store = self._store
        name = thread.name
        async with self._rooms.host.idle(name) as agent, self._alone(thread.request.agent):
            settings = await self._settings(name) or {}
            row = _requests(settings).get(thread.row["asked"], thread.row)
            if row["key"] != thread.row["key"]:  # it came twice, and the other one was first
                return str(row["key"])
            if not await store.ended_turns(name, ended.seq, most=1):
                await agent.pop()
            row = {**row, "key": Clock().new_id()}
            await self._note(name, settings, row)
            return str(row["key"])

    async def _end_of(self, name: str, event: str) -> EndedTurn | None:
        """Return the end of the turn that took a message; None while it waits or runs."""
        turn = await self._store.turn_of(event, name) or ""
        number = await self._store.turn_number(name, turn)
        after = [] if number is None else await self._store.ended_turns(name, number, most=1)
        return after[0] if after and after[0].id == turn else None

    async def _past(self, name: str, event: str) -> list[events.Event]:
        """Return the events of the turn that took a message, from the journal; empty until the turn has ended."""
        ended = await self._end_of(name, event)
        if ended is None:
            return []
        return [event async for event in self._rooms.host.past(name, ended.id)]

    async def _post_message(self, thread: Thread, key: str) -> str:
        answers = list[Json]()
        for row in thread.history.answers:
            answers.append(with_rows({"id": row.answers, "text": row.text}, row.pictures))
        host, by, text = self._rooms.host, thread.request.identity, thread.history.text
        more = with_rows({"client": thread.request.client}, thread.history.pictures)
        posted = await host.post(thread.name, text, key, identity=by, answers=answers, **more)
        return posted.event

    async def _begin_history(self, client_request: ClientRequest, history: ClientHistory) -> str:
        """Create the agent for a history without a name; the oldest beyond the limit are deleted."""
        agent = client_request.agent
        by = _digest(client_request.owner)
        known = await self._known(agent, mark=HISTORY)
        own = [old for old, settings in known if settings.get("chat_by") == by]
        for old in await self._removable(agent, own[_KEPT - 1 :]):
            await self._rooms.host.close_idle(old)
            await self._rooms.state.moves.delete(old)
        name = f"{agent}{HISTORY}{Clock().new_id().replace('-', '')[:20]}"
        number = max((_number(had) for _, had in known), default=0) + 1
        kept = {"chat_number": number, "chat_by": by, HISTORY_OWNER: client_request.identity.id}
        await self._begin(agent, name, history, kept)
        return name

    async def _begin(self, agent: str, name: str, history: ClientHistory, kept: Json) -> None:
        """Create an agent with the earlier messages of a history, and the memory blocks of the one that was named."""
        store, owner = self._store, await self._rooms.host.agent(agent)
        settings = {**(await store.agent_settings(agent) or {}), "chat_of": agent, **kept}
        blocks = owner.memory.blocks
        for row in [row for row in blocks.rows if not row.shared]:
            await done(blocks, blocks.share(row.label, HUMAN))
        turns = await aside(len(history.before) * PER_MESSAGE, history.turns)
        await store.write_agent(WholeAgent(name, settings, turns=turns))
        await store.apply([AttachBlock(name, row.id, row.position) for row in blocks.rows])
        await self._save(name, settings)

    async def _note(self, name: str, settings: Json, row: Json) -> None:
        """Store that a request is posted, so that it is known when it comes again."""
        rows = _requests(settings)
        rows.pop(row["asked"], None)
        await self._save(name, settings, chat_requests=[*rows.values(), row][-_REQUESTS:])

    async def _settings(self, name: str) -> Json | None:
        """Return what is kept of a conversation: with its line, or with the agent that was made for it."""
        if is_main(name):
            return await self._store.agent_settings(name)
        return await self._store.door(name)

    async def _save(self, name: str, settings: Json, **more: Any) -> None:  # Any: JSON
        kept = {**settings, **more}
        await self._store.apply([SaveAgent(name, kept) if is_main(name) else SaveDoor(name, kept)])

    async def _known(
        self, agent: str, text: str = "", mark: str = CONVERSATION
    ) -> list[tuple[str, Json]]:
        """Return the agents that were made for conversations with one, whose settings contain a text, newest first."""
        rows = await self._store.agents_with(f"{agent}{mark}", text)
        own = [
            (name, settings) for name, settings in rows.items() if settings.get("chat_of") == agent
        ]
        # By number, since a clock may go backward. Older ones have none, but a time in their name.
        return sorted(own, key=lambda row: (_number(row[1]), row[0]), reverse=True)


async def _read(messages: Sequence[ClientMessage], *, is_known: bool) -> ClientHistory:
    size = sum(PER_MESSAGE + len(message.text) for message in messages)
    return await aside(size, partial(ClientHistory.read, messages, is_known=is_known))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _key_of_response(response: str, owner: str) -> str:
    """Return the key by which a response is found, for those only who have got it."""
    return _digest([owner], ["assistant", "", response]) if response else ""


def _requests(settings: Json) -> dict[str, Json]:
    """Return what is stored of the requests of a conversation, the oldest first, by what they are known by."""
    return {row["asked"]: row for row in settings.get("chat_requests") or ()}


def _number(settings: Json) -> int:
    return int(settings.get("chat_number") or 0)  # a clock may go backward
