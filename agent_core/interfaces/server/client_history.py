"""The history that a client sends with each request: what of it was before, what is new, and how it is known again.

A text is compared without its spaces, and that of a message with calls not at all: clients trim texts, join those of
several steps, cut them into parts, or leave them out where there are calls.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.messages import Assistant, Call
from agent_core.base.untrusted import one_line
from agent_core.registry.validation import check_schema
from agent_core.runtime.client_calls import answered
from agent_core.runtime.turn import assistant, user
from agent_core.storage import Entry, WholeEvent, WholeTurn

from .parts import Open

MOST_CALLS: Final = 128  # that follow each other: they become one message
PER_MESSAGE: Final = 40  # what one costs, in characters of `base/offload.py`
_SYSTEM: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of a client's history. `calls` are those of its own functions; `answers` is the call it answers, and
    `name` the function, if it is named.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClientHistory:
    """A client's request, read: its instructions, what was said before, what is new, and `by` whom."""

    system: str
    before: tuple[ClientMessage, ...]
    answers: tuple[ClientMessage, ...]
    text: str
    by: str
    sent: str = ""
    """What that is known by which was said before."""
    asked: str = ""
    """What the whole of it is known by."""

    @classmethod
    def read(cls, messages: Iterable[ClientMessage], by: str, *, goes_on: bool = False) -> "ClientHistory":
        """Read the messages of a request. If it `goes_on`, they are new, and what was before is known by other means.

        Raises:
            UsageError: nothing in them is new, or answers do not belong to calls.
        """
        rows = [*messages]
        system = "\n\n".join(row.text for row in rows if row.role in _SYSTEM)
        said = _merged(row for row in rows if row.role not in _SYSTEM)
        begin = max((place + 1 for place, row in enumerate(said) if row.role == "assistant"), default=0)
        new = said[begin:]
        if not new:
            fix = "Send it as {'role': 'user', 'content': …}, or the answers to the calls."
            raise UsageError("The last message must be the user's, or the answer to a call.", fix=fix)
        if not goes_on or begin:
            _check_answers(said)
        answers = tuple(row for row in new if row.role == "tool")
        text = "\n\n".join(row.text for row in new if row.role == "user")
        history = cls(system, tuple(said[:begin]), answers, text, by)
        sent, asked = digest(by, history.before), digest(by, (*history.before, *history.new))
        return replace(history, sent=sent, asked=asked)

    @property
    def new(self) -> tuple[ClientMessage, ...]:
        """The new messages."""
        said = (ClientMessage("user", self.text),) if any(self.text) or not self.answers else ()
        return (*self.answers, *said)

    def turns(self) -> list[WholeTurn]:
        """Return what was said before as finished turns, one for each message of the user."""
        turns: list[tuple[str, list[Entry]]] = []
        names = {call.id: call.name for row in self.before for call in row.calls}
        for place, row in enumerate(self.before):
            if row.role == "user" or not turns:
                turns.append((row.text, []))
            following = self.before[place + 1 : place + 1 + max(len(row.calls), 1)]
            turns[-1][1].extend(_entries(row, following, names))
        return [
            WholeTurn(f"before-{place}", "done", 0.0, 0.0, [WholeEvent("message", {"text": text}, 0.0)], entries)
            for place, (text, entries) in enumerate(turns)
        ]


def forms(history: ClientHistory, texts: Iterable[str], calls: Sequence[Call]) -> list[str]:
    """Return all that a client's next request may be known by; `texts` are the forms that it may give our answer."""
    said = (*history.before, *history.new)
    return sorted({digest(history.by, (*said, ClientMessage("assistant", text, tuple(calls)))) for text in texts})


def digest(by: str, messages: Iterable[ClientMessage]) -> str:
    """Return what messages of somebody are known by."""
    text = json.dumps([[by], *(_known_by(message) for message in messages)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _known_by(message: ClientMessage) -> list[str]:
    if message.calls:
        return [message.role, *(call.id for call in message.calls)]
    return [message.role, message.answers, "".join(message.text.split())]


def _merged(messages: Iterable[ClientMessage]) -> list[ClientMessage]:
    """Return the messages, those of the user that follow each other as one, and those of the assistant."""
    merged: list[ClientMessage] = []
    for role, group in groupby(messages, key=attrgetter("role")):
        rows = [*group]
        if role == "assistant" and len(rows) > 1:
            text = "\n\n".join(row.text.rstrip() for row in rows if row.text.strip())
            rows = [ClientMessage(role, text.strip(), tuple(chain.from_iterable(row.calls for row in rows)))]
        elif role == "user":
            rows = [ClientMessage(role, "\n\n".join(row.text for row in rows))]
        merged += rows
    return merged


def _check_answers(said: Sequence[ClientMessage]) -> None:
    """Raise where an answer has no call before it that it could be for, or a call has two."""
    waiting = dict[str, str]()
    for row in said:
        if row.role == "assistant":
            if len(row.calls) > MOST_CALLS:
                what = f"An answer of the assistant has more than {MOST_CALLS} calls."
                raise UsageError(what, fix="Send what answers them with them, or leave them out.")
            waiting = {call.id: call.name for call in row.calls}
            if len(waiting) < len(row.calls):
                raise UsageError("Two calls of one message have the same id.", fix="Send them as they came.")
        elif row.role == "user":
            waiting = {}
        else:
            if row.answers not in waiting:
                what = f"The answer to `{row.answers[:80]}` is for no call of the message before it."
                raise UsageError(what, fix="Send the assistant's message with its calls first, and each answer once.")
            if row.name not in ("", called := waiting.pop(row.answers)):
                what = f"The `name` of the answer to `{row.answers[:80]}` is not `{one_line(called, 80)}`."
                raise UsageError(what, fix="Leave it out, or name the function that was called.")


def _entries(message: ClientMessage, after: Sequence[ClientMessage], names: Mapping[str, str]) -> list[Entry]:
    """Return the entries of a message of the past; calls that nobody answered are answered by saying so.

    Where nothing follows, the calls are still open.
    """
    if message.role == "user":
        return [user(message.text)]
    if message.role == "tool":
        return [answered(Call(message.answers, names.get(message.answers, ""), "{}"), message.text)]
    entries = [assistant(Assistant(message.text, message.calls))]
    following = {other.answers for other in after}
    entries += [answered(call, None) for call in message.calls if after and call.id not in following]
    return entries


Json: TypeAlias = dict[str, Any]  # Any: JSON
MOST_TOOLS: Final = 128
_MOST_BYTES: Final = 16 << 10  # of one schema
_MOST_IN_ALL: Final = 96 << 10
_DEEPEST: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTHING: Final[Json] = {"type": "object", "properties": {}}


class Unsupported(UsageError):
    """A parameter that cannot have its effect here, by its place; `parameter` is the one of the request that has it."""

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


class ClientTool(Open):
    """A tool of a client. Chat completions put the function into a field of its own, responses do not."""

    type: str
    function: ToolFunction | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str | None, Field(max_length=8_000)] = None
    parameters: Json | None = None
    strict: bool | None = None

    @property
    def described(self) -> ToolFunction:
        """The function."""
        if self.function is not None:
            return self.function
        name, about, schema = self.name, self.description, self.parameters
        return ToolFunction(name=name, description=about, parameters=schema, strict=self.strict)


Tools: TypeAlias = Annotated[list[ClientTool], Field(max_length=MOST_TOOLS, fail_fast=True)]
NamedTools: TypeAlias = Annotated[list["NamedTool"], Field(max_length=MOST_TOOLS, fail_fast=True)]


class NamedTool(Open):
    """A tool that is named."""

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


class ToolChoice(NamedTool):
    """A choice of one tool, or of those that are allowed."""

    mode: Literal["auto", "required"] = "auto"
    tools: NamedTools = Field(default_factory=list)
    allowed_tools: AllowedTools | None = None

    @property
    def chosen(self) -> tuple[Sequence[str], bool]:
        """The names of those that may be called, and whether one must be."""
        if self.type == "function":
            return [self.named], True
        allowed = self.allowed_tools or AllowedTools(mode=self.mode, tools=self.tools)
        return [tool.named for tool in allowed.tools], allowed.mode == "required"


Choice: TypeAlias = Literal["none", "auto", "required"] | ToolChoice | None


def offered(
    tools: Sequence[ClientTool] | None, choice: Choice, *, parallel: bool | None, taken: Collection[str]
) -> Json:
    """Return what a turn is told of a client's functions; `taken` are the names that functions have here.

    Raises:
        Unsupported: they cannot be passed on, or what is chosen is not among them.
    """
    rows = [_row(tool.described) for tool in tools or ()]
    names = [row["name"] for row in rows]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Unsupported("tools", f"has two tools named `{name}`.", "Give each a name of its own.")
        if name in taken:
            why = f"has `{name}`, which is the name of a function that the agent has here."
            raise Unsupported("tools", why, f"Give the tool another name, such as `client_{name}`.")
    if sum(_size(row) for row in rows) > _MOST_IN_ALL:
        why = f"has more than {_MOST_IN_ALL >> 10} KiB in all."
        raise Unsupported("tools", why, "Send fewer, or describe them in fewer words.")
    chosen, is_required = _chosen(choice, names)
    rows = [row for row in rows if row["name"] in chosen]
    return {"functions": rows, "required": is_required, "one_at_a_time": parallel is False}


def _row(function: ToolFunction) -> Json:
    name = function.name
    if not _NAME.fullmatch(name):
        fix = "Use up to 64 letters, digits, underscores and dashes."
        raise Unsupported("tools", f"has `{one_line(name, 80)}`, which cannot be the name of a tool.", fix)
    schema = function.parameters or _NOTHING
    if schema.get("type", "object") != "object":
        why = f"has `{name}`, whose parameters are of the type `{one_line(str(schema['type']), 40)}`."
        raise Unsupported("tools", why, 'Describe them as a JSON Schema of {"type": "object"}.')
    if _depth(schema) > _DEEPEST or _size(schema) > _MOST_BYTES:
        limits = f"at most {_MOST_BYTES >> 10} KiB and {_DEEPEST} levels"
        raise Unsupported("tools", f"has `{name}`, whose schema is too large.", f"Make it smaller: {limits}.")
    row = {"name": name, "description": function.description or "", "parameters": _NOTHING | schema}
    if not function.strict:
        return row
    if (problem := check_schema(row["parameters"])) is not None:
        raise Unsupported("tools", f"has `{name}`, which is strict: {problem.message}.")
    return {**row, "strict": True}


def _chosen(choice: Choice, names: Sequence[str]) -> tuple[Collection[str], bool]:
    """Return which functions may be called, and whether one must be."""
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
    return wanted, is_required


def _size(value: Json) -> int:
    return len(json.dumps(value))


def _depth(value: object) -> int:
    """Return how many levels a value has; it was read within bounds."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_depth, parts), default=0)
