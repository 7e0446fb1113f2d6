"""Messages as an endpoint reads them (chat completions). Here alone a function is called a tool.

Promises that no server refuses what leaves here for its shape: every call is answered right after it,
no answer stands without its call, names and arguments are valid. A history that cannot be sent so is a
bug of ours and raises `Unsendable`, before anything is on the network.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sandbox.foreign import LOOSE, Malformed, read_json

from ..errors import ToolwrightError
from ..messages import Answer, Assistant, Call, Message, Notice, System, User
from .apart import one_by_one
from .dialect import Dialect
from .reply import TokenUsage
from .request import FunctionShown
from .simple import simple
from .strict import loosened, strict
from .tokens import count

Entry: TypeAlias = dict[str, Any]  # Any: one message or function in the wire's own shape
Group: TypeAlias = tuple[Message, ...]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEPT_EXTRAS = ("extra_content",)
NOTICE_PREFIX = "[Toolwright] "
IMPORTED_PREFIX = "[From an agent's file, not from the program] "
_NOTHING: Entry = {"type": "object", "properties": {}}
_ROLES = {System: "system", User: "user", Notice: "user", Assistant: "assistant", Answer: "tool"}


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a call: what has the same index belongs together; without one, a name begins the next call."""

    index: int | None
    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the endpoint wants back beside the call, such as a signature of its thought."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one chunk, or one whole response, says."""

    text: str = ""
    thought: str = ""
    refusal: str = ""
    fragments: tuple[Fragment, ...] = ()
    finish: str = ""


class Unsendable(ToolwrightError):
    """The conversation or the functions break a rule of the wire: a bug in the program, not the model's doing."""

    code = "unsendable"


def to_wire(messages: Iterable[Message], dialect: Dialect | None = None) -> list[Entry]:
    """The messages of a request: system first, neighbours of one role merged, empty replies left out."""
    entries: list[Entry] = read_json(Writer(dialect).messages(tuple(messages)), LOOSE)
    return entries


def functions_to_wire(functions: Sequence[FunctionShown], dialect: Dialect | None = None) -> list[Entry]:
    """The functions of a request, in the shape that the wire calls tools."""
    dialect = dialect or Dialect()
    most = dialect.most_functions
    names = [function.name for function in functions]
    broken = [name for name in names if not NAME.fullmatch(name)]
    if broken or len(set(names)) < len(names) or len(names) > most:
        raise Unsendable(
            f"The functions cannot be shown: {len(names)} of at most {most}, {len(set(names))} different "
            f"names, of which break the rules: {', '.join(broken) or 'none'}."
        )
    return [_function(function, dialect) for function in functions]


class Writer:
    """Writes requests as JSON text; what stood in the last request is not written again.

    A message is known by its identity (messages are immutable), so a step costs what is new in it.
    """

    def __init__(self, dialect: Dialect | None = None) -> None:
        self.extras: dict[str, Mapping[str, Any]] = {}
        """By the ids of calls: what goes back beside them."""
        self.speak(dialect or Dialect())

    def speak(self, dialect: Dialect) -> None:
        """Write everything anew, as this endpoint wants it."""
        self.dialect = dialect
        self._known: dict[tuple[int, ...], tuple[Group, bytes]] = {}
        self._functions: Sequence[FunctionShown] = ()
        self._functions_text = b"[]"

    def messages(self, messages: Sequence[Message]) -> bytes:
        """The same as `to_wire`, as JSON text."""
        known, texts = {}, []
        for group in _groups(one_by_one(messages) if self.dialect.one_call else messages, self.dialect.system):
            key = tuple(map(id, group))
            # The group is kept beside its text, so that no other message can get its ids.
            found = self._known.get(key) or (group, dumps(self._entry(group)))
            known[key] = found
            texts.append(found[1])
        self._known = known
        return b"[" + b",".join(texts) + b"]"

    def functions(self, functions: Sequence[FunctionShown]) -> bytes:
        """The same as `functions_to_wire`, as JSON text."""
        if functions != self._functions:
            self._functions_text = dumps(functions_to_wire(functions, self.dialect))
            self._functions = functions
        return self._functions_text

    def _entry(self, group: Group) -> Entry:
        first = group[0]
        if isinstance(first, Answer):
            return {"role": "tool", "tool_call_id": self.dialect.call_id(first.call_id), "content": first.text}
        text = "\n\n".join(filter(None, map(_text, group)))
        role = self.dialect.system if isinstance(first, System) else _ROLES[type(first)]
        entry: Entry = {"role": role, "content": text}
        last = group[-1]
        if isinstance(last, Assistant) and last.calls:
            entry["content"] = text or None
            entry["tool_calls"] = [self._call(call) for call in last.calls]
        return entry

    def _call(self, call: Call) -> Entry:
        function = {"name": _name(call.name), "arguments": _arguments(call.arguments)}
        extra = self.extras.get(call.id, self.dialect.missing_extra)
        return {"id": self.dialect.call_id(call.id), "type": "function", "function": function, **extra}


def dumps(value: object) -> bytes:
    """JSON text in UTF-8; half a surrogate pair, which no server reads, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _groups(messages: Sequence[Message], system_role: str) -> list[Group]:
    """The messages that become one entry each; checks that calls and answers stand together."""
    _check_answers(messages)
    system = tuple(message for message in messages if type(message) is System)
    groups: list[Group] = [system] if system else []
    last = system_role if system else ""
    for message in messages:
        role = _ROLES[type(message)]
        if type(message) is System or (type(message) is Assistant and not (message.text or message.calls)):
            continue
        if role == last:
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
        last = "" if role == "tool" else role
    return groups


def _check_answers(messages: Sequence[Message]) -> None:
    waiting: set[str] = set()
    for message in messages:
        if type(message) is Answer:
            if message.call_id not in waiting:
                raise Unsendable(f"The answer {message.call_id!r} of `{message.name}` has no call before it.")
            waiting.remove(message.call_id)
        elif type(message) is not System:
            _check_answered(waiting, f"a {type(message).__name__} message follows")
            if type(message) is Assistant and message.calls:
                waiting = {call.id for call in message.calls}
                if len(waiting) < len(message.calls) or "" in waiting:
                    raise Unsendable(f"The calls of one reply need ids of their own: {message.calls!r}.")
    _check_answered(waiting, "the conversation ends")


def _check_answered(waiting: set[str], what_follows: str) -> None:
    if waiting:
        raise Unsendable(f"The calls {', '.join(sorted(waiting))} have no answer, and {what_follows}.")


def _text(message: Message) -> str:
    if isinstance(message, User | Notice) and message.packed:
        return mark(message, message.packed) if message.is_imported else message.packed
    return mark(message, message.text) if isinstance(message, User | Notice) else message.text


def mark(message: User | Notice, text: str) -> str:
    """Return the text after the mark of who says it: the program, or a file, whose words are never the program's."""
    if message.is_imported:
        is_posing = isinstance(message, Notice) or NOTICE_PREFIX.strip() in text
        return IMPORTED_PREFIX + text if is_posing else text
    return NOTICE_PREFIX + text if isinstance(message, Notice) else text


def _name(name: str) -> str:
    """What the model called it, without what a name may not have on the wire."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def _arguments(text: str) -> str:
    """The arguments as they came, or `{}`: servers refuse a history that holds broken ones."""
    return text if is_object(text) else "{}"


def is_object(text: str) -> bool:
    """Whether the text is one whole JSON object, as strict readers read it."""
    try:
        return isinstance(read_json(text), dict)
    except Malformed:
        return False


def _function(function: FunctionShown, dialect: Dialect) -> Entry:
    parameters = function.parameters or _NOTHING
    described: Entry = {"name": function.name, "description": function.description}
    if dialect.strict and loosened(parameters) is None:
        described |= {"parameters": strict(parameters), "strict": True}
    else:
        described["parameters"] = simple(parameters) if dialect.simple_schemas else parameters
    return {"type": "function", "function": described}


def read_chunk(chunk: Entry) -> Said:
    """What a chunk says, whichever of the usual shapes it has; what is not understood is left out."""
    choice = _first(chunk.get("choices"))
    whole = _dict(choice.get("message"))
    part = whole or _dict(choice.get("delta"))
    calls = _list(part.get("tool_calls")) or list(filter(None, [part.get("function_call")]))
    return Said(
        text=_said(part.get("content")),
        thought=_said(part.get("reasoning_content") or part.get("reasoning") or _thinking(part.get("content"))),
        refusal=_said(part.get("refusal")),
        fragments=tuple(_fragment(_dict(call), n if whole else None) for n, call in enumerate(calls)),
        finish=_string(choice.get("finish_reason")),
    )


def read_usage(chunk: Entry) -> TokenUsage | None:
    """The tokens that a chunk reports, if it does."""
    usage = _dict(chunk.get("usage"))
    prompt = count(usage.get("prompt_tokens"), least=1)
    if prompt is None:
        return None
    cached = _dict(usage.get("prompt_tokens_details")).get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return TokenUsage(prompt, count(usage.get("completion_tokens")) or 0, count(cached) or 0)


def _fragment(call: Entry, position: int | None) -> Fragment:
    function = _dict(call.get("function")) or call
    arguments = function.get("arguments")
    text = json.dumps(arguments) if isinstance(arguments, dict) else _string(arguments)
    index = call.get("index") if position is None else position
    extra = {key: call[key] for key in KEPT_EXTRAS if isinstance(call.get(key), dict)}
    place = index if isinstance(index, int) else None
    return Fragment(place, _string(call.get("id")), _string(function.get("name")), text, extra)


def _said(value: object) -> str:
    """Text, also where it comes as a list of parts."""
    if isinstance(value, list):
        return "".join(_string(_dict(part).get("text")) for part in value)
    return _string(value)


def _thinking(value: object) -> object:
    """The parts of a content list that are thought."""
    parts = [_dict(part).get("thinking") for part in _list(value)]
    return [inner for part in parts for inner in (_list(part) or [{"text": part}])]


def _first(value: object) -> Entry:
    return _dict(value[0]) if isinstance(value, list) and value else {}


def _dict(value: object) -> Entry:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:  # Any: foreign JSON
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
