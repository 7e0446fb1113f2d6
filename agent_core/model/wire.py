"""Messages in the wire format of chat completions and the Responses API. Only this module calls a function a tool.

Requests have a form that every server accepts: each call is directly followed by its answer, no answer is without its
call, and names and arguments are valid. A history that cannot be sent this way raises `InvalidRequest`. For endpoints
with limits, replies with several calls are split, and schemas reduced to the keywords that all accept.

What came with a reply for its endpoint (reasoning, ids, signatures) goes back to it as it came, and to no other.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import filterfalse
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from agent_core.base.errors import KnapperError
from agent_core.base.messages import (
    Answer,
    Assistant,
    Call,
    Message,
    Notice,
    System,
    User,
    pictures_of,
)
from agent_core.base.offload import LARGE
from agent_core.base.pictures import Picture
from agent_core.base.records import dataclass, field, replace
from sandbox.wire.strict_json import MAX_VALUES, Malformed, read_json

from .dialect import Dialect
from .reasoning import call_fields, extra_of, items, message_fields, own_id
from .reply import ReadingPiece, TokenUsage
from .request import FunctionShown
from .tokens import count

Entry: TypeAlias = dict[str, Any]  # Any: one message or function in the wire's own shape
Group: TypeAlias = tuple[Message, ...]

NO_PICTURES: Final[Mapping[str, str]] = MappingProxyType({})
_UNSEEN: Final = "You are not shown: {}. If it matters, say that you cannot see it."
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NOTICE_PREFIX = "[Knapper] "
IMPORTED_PREFIX = "[From an agent's file, not from the program] "
_ROLES = {System: "system", User: "user", Notice: "user", Assistant: "assistant", Answer: "tool"}


def one_by_one(messages: Sequence[Message]) -> list[Message]:
    """Return the same conversation with each call directly followed by its answer."""
    answers = {message.call_id: message for message in messages if isinstance(message, Answer)}
    written: list[Message] = []
    for message in messages:
        if isinstance(message, Assistant) and message.calls:
            for n, call in enumerate(message.calls):
                reply = Assistant(
                    "" if n else message.text, (call,), reasoning=() if n else message.reasoning
                )
                written.append(replace(reply, source=message.source))
                written += [answers[call.id]] if call.id in answers else []
        elif not isinstance(message, Answer):
            written.append(message)
    return written


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a call; `index` is its place among the calls of its choice, if the endpoint gives one."""

    index: tuple[int, int] | None
    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Data that the endpoint wants back with the call, such as a signature of its thought."""


@dataclass(frozen=True, slots=True)
class WireDelta:
    """The contents of one choice in a chunk, or in a whole response; `message` has all that the endpoint sent of it."""

    choice: int = 0
    text: str = ""
    refusal: str = ""
    fragments: tuple[Fragment, ...] = ()
    finish: str = ""
    message: Mapping[str, Any] = field(default_factory=dict)  # Any: foreign JSON


class InvalidRequest(KnapperError):
    """Error raised when the conversation or the functions violate the wire format: a bug in the program, not in the
    model.
    """

    code = "unsendable"


def functions_to_wire(
    functions: Sequence[FunctionShown], dialect: Dialect | None = None
) -> list[Entry]:
    """Return the functions of a request, in the shape that the wire format calls tools."""
    dialect = dialect or Dialect()
    most = dialect.most_functions
    names = [function.name for function in functions]
    broken = [name for name in names if not NAME.fullmatch(name)]
    if broken or len(set(names)) < len(names) or len(names) > most:
        raise InvalidRequest(
            f"The functions cannot be shown: {len(names)} of at most {most}, {len(set(names))} different "
            f"names, of which break the rules: {', '.join(broken) or 'none'}."
        )
    entries: list[Entry] = []
    for function in functions:
        parameters = function.parameters or {"type": "object", "properties": {}}
        described: Entry = {"name": function.name, "description": function.description}
        if dialect.strict and loosened(parameters) is None:
            described |= {"parameters": strict(parameters), "strict": True}
        else:
            described["parameters"] = simple(parameters) if dialect.simple_schemas else parameters
        is_chat = dialect.api == "chat"
        inner = {"function": described} if is_chat else {"strict": False, **described}
        entries.append({"type": "function", **inner})
    return entries


class RequestWriter:
    """Writes requests as JSON text, without serializing parts of the last request again.

    A step costs only its new messages: the beginning shared with the last conversation is neither checked nor grouped
    again.
    """

    def __init__(self, dialect: Dialect | None = None, source: str = "") -> None:
        """Create a writer for a `source`: an endpoint and model, which gets back what came with its own replies."""
        self._source = source
        self.speak(dialect or Dialect())

    def speak(self, dialect: Dialect) -> None:
        """Use this endpoint's dialect, and serialize everything again."""
        self.dialect = dialect
        self._grouped = _Grouped(dialect.system)
        self._written: list[tuple[Group, bytes]] = []
        self._turn_at = 0
        self._ids: dict[str, str] = {}  # of calls, as they are sent
        self._functions: Sequence[FunctionShown] = ()
        self._functions_text = b"[]"
        self._pictures: Mapping[str, str] = {}

    def messages(
        self, messages: Sequence[Message], pictures: Mapping[str, str] = NO_PICTURES
    ) -> bytes:
        """Return the messages of a request as JSON text: system first, neighbors of the same role merged, empty replies
        omitted.

        `pictures` are `data:` addresses by digest; of a picture that is not among them, the caption is followed by a
        sentence.
        """
        self._pictures = pictures
        messages = tuple(one_by_one(messages) if self.dialect.one_call else messages)
        if self.dialect.api == "chat":
            messages = tuple(_with_shown_pictures(messages))
        known: dict[tuple[int, ...], bytes] = {}
        if messages[: len(self._grouped.messages)] != self._grouped.messages:
            self._grouped = _Grouped(self.dialect.system)
            known = {_ids(group): text for group, text in self._written}
        before, self._grouped = (
            self._grouped,
            _Grouped(self.dialect.system),
        )  # reset in case of an error
        before.extend(messages)
        self._grouped = before
        # Keep each group with its text, so that no other message can reuse its ids.
        last, self._written = self._written, []
        turn_at = self._turn_of(before.groups)
        if turn_at != self._turn_at:  # reasoning of earlier turns is not sent any longer
            last, known, self._turn_at = (
                [each for each in last if not _reasoning(each[0])],
                {},
                turn_at,
            )
        for place, group in enumerate(before.groups):
            if place < len(last) and last[place][0] is group:
                self._written.append(last[place])
            else:
                self._written.append(
                    (group, known.get(_ids(group)) or self._text(group, place > turn_at))
                )
        return b"[" + b",".join(text for _, text in self._written) + b"]"

    def functions(self, functions: Sequence[FunctionShown]) -> bytes:
        """Return the same as `functions_to_wire`, as JSON text."""
        if functions != self._functions:
            self._functions_text = dumps(functions_to_wire(functions, self.dialect))
            self._functions = functions
        return self._functions_text

    def _turn_of(self, groups: Sequence[Group]) -> int:
        """Return the index of the message that began the last turn; later reasoning is sent back. 0 if there is none.

        A user message after the answer to a call continues a turn that was cut off or still running.
        """
        if self.dialect.api == "chat":
            return 0
        places = (
            place
            for place in range(len(groups) - 1, 0, -1)
            if type(groups[place - 1][0]) is not Answer
        )
        return next(
            (place for place in places if any(type(each) is User for each in groups[place])), 0
        )

    def _text(self, group: Group, is_current: bool) -> bytes:  # noqa: FBT001 - whether it is of this turn
        """Return a group as JSON text: one entry in chat completions, one item per part in the Responses API."""
        first, last, is_chat = group[0], group[-1], self.dialect.api == "chat"
        if isinstance(first, Answer):
            call_id = self._ids.get(first.call_id) or self.dialect.call_id(first.call_id)
            entry = {"role": "tool", "tool_call_id": call_id, "content": first.text}
            output = self._content(first.text, first.pictures)
            item = {"type": "function_call_output", "call_id": call_id, "output": output}
            return dumps(entry if is_chat else item)
        text = "\n\n".join(filter(None, map(_text, group)))
        pictures = [picture for message in group for picture in pictures_of(message)]
        said = {
            "role": self.dialect.system if isinstance(first, System) else _ROLES[type(first)],
            "content": self._content(text, pictures),
        }
        if not isinstance(last, Assistant) or not last.calls:
            return dumps(said) if is_chat or text else b""
        is_own = bool(last.source) and last.source == self._source
        calls = [self._call(call, is_own=is_own) for call in last.calls]
        if is_chat:
            fields = (
                self._reasoning_fields(last, text)
                if is_own or self.dialect.missing_reasoning
                else {}
            )
            return dumps({**said, "content": text or None, **fields, "tool_calls": calls})
        returned = (
            items(last.reasoning) if is_current and is_own and self.dialect.keeps_reasoning else []
        )
        written = [item.encode("utf-8", "replace") for item in returned] + (
            [dumps(said)] if text else []
        )
        written += [
            dumps({"type": "function_call", "call_id": call["id"], **call["function"]})
            for call in calls
        ]
        return b",".join(written)

    def _content(self, text: str, pictures: Sequence[Picture]) -> str | list[Entry]:
        """Return the content of a message: a text, or parts if the model is shown pictures with it."""
        seen = [*filter(self._is_seen, pictures)]
        unseen = [*filterfalse(self._is_seen, pictures)]
        if unseen:
            text = f"{text}\n{_unseen_line(unseen)}"
        if not seen:
            return text
        is_chat = self.dialect.api == "chat"
        parts: list[Entry] = [{"type": "text" if is_chat else "input_text", "text": text}]
        for picture in seen:
            url = self._pictures[picture.digest]
            if is_chat:
                parts.append({"type": "image_url", "image_url": {"url": url}})
            else:
                parts.append({"type": "input_image", "detail": "auto", "image_url": url})
        return parts

    def _is_seen(self, picture: Picture) -> bool:
        return not picture.is_past and picture.digest in self._pictures

    def _reasoning_fields(self, assistant_reply: Assistant, text: str) -> Entry:
        """Return the fields with the reasoning of a reply, or with what stands for it at an endpoint that requires it.

        Only its own endpoint gets it; a reply of another one has none to send, nor has one from which it was removed.
        """
        if not self.dialect.keeps_reasoning:
            return {}
        is_own = assistant_reply.source == self._source
        if fields := message_fields(assistant_reply.reasoning, text) if is_own else {}:
            return fields
        missing: Entry = read_json(
            json.dumps(self.dialect.missing_reasoning).replace("CALL", assistant_reply.calls[0].id)
        )
        return missing

    def _call(self, call: Call, *, is_own: bool) -> Entry:
        """Return a call; its own endpoint gets back its id and its signature as they came."""
        extra, of_function = call_fields(call.extra) if is_own else ({}, {})
        call_id = self.dialect.call_id(call.id)
        if is_own and self.dialect.keeps_ids:
            call_id = own_id(call.extra) or call.id
        self._ids[call.id] = call_id
        function = {**_function_entry(call), **of_function}
        extra = extra or (dict(self.dialect.missing_extra) if not of_function else {})
        return {"id": call_id, "type": "function", "function": function, **extra}


def _with_shown_pictures(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages with the pictures of answers in a notice after them: a tool message takes text alone there."""
    shown = list[Picture]()
    names = dict[str, None]()
    for message in messages:
        if shown and not isinstance(message, Answer):
            yield _picture_notice(names, shown)
            shown = []
            names = {}
        if isinstance(message, Answer) and message.pictures:
            shown += message.pictures
            names[message.name] = None
        yield message
    if shown:
        yield _picture_notice(names, shown)


def _picture_notice(names: Iterable[str], pictures: Sequence[Picture]) -> Notice:
    called = ", ".join(f"`{name}`" for name in names)
    captions = "; ".join(picture.caption for picture in pictures)
    return Notice(f"What {called} returned as pictures: {captions}", pictures=tuple(pictures))


def in_words(message: Message) -> Message:
    """Return a message for a model that is shown no pictures: the text says so after their captions."""
    pictures = pictures_of(message)
    if not pictures or not isinstance(message, User | Answer | Notice):
        return message
    return replace(message, text=f"{message.text}\n{_unseen_line(pictures)}", pictures=())


def _unseen_line(pictures: Sequence[Picture]) -> str:
    names = "; ".join(picture.caption for picture in pictures)
    return f"{NOTICE_PREFIX}{_UNSEEN.format(names)}"


def _reasoning(group: Group) -> list[str]:
    return [
        item for message in group if isinstance(message, Assistant) for item in message.reasoning
    ]


def _ids(group: Group) -> tuple[int, ...]:
    return tuple(map(id, group))


def dumps(value: object) -> bytes:
    """Return JSON text in UTF-8; a lone surrogate, which no server reads, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class _Grouped:
    """The messages of a conversation, grouped by entry; calls and their answers are adjacent."""

    def __init__(self, system_role: str) -> None:
        self.messages: Group = ()
        self.groups: list[Group] = []
        self._last = system_role
        self._waiting: set[str] = set()

    def extend(self, group: Group) -> None:
        """Add the messages that follow those already grouped.

        Raises:
            InvalidRequest: a call is not answered right after it, or an answer has no call.
        """
        for message in group[len(self.messages) :]:
            role = _ROLES[type(message)]
            if type(message) is System:
                first = self.groups[0] if self.groups and type(self.groups[0][0]) is System else ()
                place = sum(type(before) is System for before in first)
                self.groups[: 1 if first else 0] = [(*first[:place], message, *first[place:])]
                continue
            self._check(message)
            if type(message) is not Assistant or message.text or message.calls:
                if role == self._last and self.groups:
                    self.groups[-1] = (*self.groups[-1], message)
                else:
                    self.groups.append((message,))
                self._last = "" if role == "tool" else role
        _check_answered(self._waiting, "the conversation ends")
        self.messages = group

    def _check(self, message: Message) -> None:
        if type(message) is Answer:
            if message.call_id not in self._waiting:
                raise InvalidRequest(
                    f"The answer {message.call_id!r} of `{message.name}` has no call before it."
                )
            self._waiting.remove(message.call_id)
            return
        _check_answered(self._waiting, f"a {type(message).__name__} message follows")
        if type(message) is Assistant and message.calls:
            self._waiting = {call.id for call in message.calls}
            if len(self._waiting) < len(message.calls) or "" in self._waiting:
                raise InvalidRequest(
                    f"The calls of one reply need ids of their own: {message.calls!r}."
                )


def _check_answered(waiting: set[str], what_follows: str) -> None:
    if waiting:
        raise InvalidRequest(
            f"The calls {', '.join(sorted(waiting))} have no answer, and {what_follows}."
        )


def _text(message: Message) -> str:
    if isinstance(message, User | Notice) and message.packed:
        return mark(message, message.packed) if message.is_imported else message.packed
    return mark(message, message.text) if isinstance(message, User | Notice) else message.text


def mark(message: User | Notice, text: str) -> str:
    """Return the text after a mark of its author: the program, or a file, whose words are never the program's."""
    if message.is_imported:
        is_posing = isinstance(message, Notice) or NOTICE_PREFIX.strip() in text
        return IMPORTED_PREFIX + text if is_posing else text
    return NOTICE_PREFIX + text if isinstance(message, Notice) else text


def _function_entry(call: Call) -> Entry:
    """Return the name and arguments of a call in valid form: forbidden characters of the name are replaced, and broken
    arguments become `{}`, because servers reject a history that contains them.
    """
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed"
    return {"name": name, "arguments": call.arguments if is_object(call.arguments) else "{}"}


def is_object(text: str) -> bool:
    """Check whether the text is exactly one JSON object, as strict parsers read it."""
    try:
        return isinstance(read_json(text, most_values=MAX_VALUES), dict)
    except Malformed:
        return False


_MAX_PARTS: Final = 1_000


def parts_of(value: object, what: str) -> list[Any]:  # Any: foreign JSON
    """Return the parts that a field of one event lists; an empty list if it is no list.

    Raises:
        Malformed: there are more than any endpoint sends at once.
    """
    parts = _list(value)
    if len(parts) > _MAX_PARTS:
        raise Malformed(
            f"expected at most {_MAX_PARTS:,} {what} at once, got {len(parts):,}", "size"
        )
    return parts


def bulk_of(entry: object) -> int:
    """Return the characters and parts of JSON, as far as they are needed to say that it is large."""
    size, waiting = 0, [entry]
    while waiting and size <= LARGE:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            size += len(value)
            waiting += value.values()
        elif isinstance(value, list):
            size += len(value)
            waiting += value
    return size


def read_chunk(entry: Entry) -> Iterator[WireDelta]:
    """Yield the contents of a chunk, or of a whole response, in any of the usual forms; unknown parts are ignored.

    There is one for each choice: some endpoints answer in several, the text in one and the calls in another.
    """
    for n, choice in enumerate(map(_dict, parts_of(entry.get("choices"), "choices"))):
        whole = _dict(choice.get("message"))
        part = whole or _dict(choice.get("delta"))
        number = choice.get("index")
        place = number if isinstance(number, int) else n
        calls = parts_of(part.get("tool_calls"), "parts of calls") or list(
            filter(None, [part.get("function_call")])
        )
        yield WireDelta(
            choice=place,
            text=_content_text(part.get("content")),
            refusal=_content_text(part.get("refusal")),
            fragments=tuple(
                _fragment(call, place, position if whole else call.get("index"))
                for position, call in enumerate(map(_dict, calls))
            ),
            finish=_string(choice.get("finish_reason")),
            message=part,
        )


def _fragment(entry: Entry, choice: int, index: object) -> Fragment:
    function = _dict(entry.get("function")) or entry
    arguments = function.get("arguments")
    text = json.dumps(arguments) if isinstance(arguments, dict) else _string(arguments)
    place = (choice, index) if isinstance(index, int) else None
    return Fragment(
        place, _string(entry.get("id")), _string(function.get("name")), text, extra_of(entry)
    )


def read_progress(entry: Entry) -> Iterator[ReadingPiece]:
    """Yield the server's progress in reading the prompt, if the chunk reports it."""
    progress = _dict(entry.get("prompt_progress"))
    done, total = count(progress.get("processed")), count(progress.get("total"), least=1)
    if done is None or total is None:
        return
    cached, spent_ms = count(progress.get("cache")) or 0, progress.get("time_ms")
    read = min(done, total) - cached
    left_s = None
    if isinstance(spent_ms, int | float) and spent_ms > 0 and read > 0:
        left_s = spent_ms / 1000 / read * (total - min(done, total))
    yield ReadingPiece(min(done, total), total, left_s)


def read_usage(entry: Entry) -> TokenUsage | None:
    """Return the tokens that a chunk reports, if any."""
    usage = _dict(entry.get("usage"))
    prompt = count(usage.get("prompt_tokens"), least=1)
    if prompt is None:
        return None
    cached = _dict(usage.get("prompt_tokens_details")).get("cached_tokens") or usage.get(
        "prompt_cache_hit_tokens"
    )
    return TokenUsage(prompt, count(usage.get("completion_tokens")) or 0, count(cached) or 0)


def _content_text(value: object) -> str:
    """Return the text, even if it arrives as a list of parts."""
    if isinstance(value, list):
        return "".join(_string(_dict(part).get("text")) for part in value)
    return _string(value)


def _dict(value: object) -> Entry:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:  # Any: foreign JSON
    return value if isinstance(value, list) else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


# JSON Schemas in the forms that endpoints and grammars accept: strict, simple or portable.
# A strict schema is equivalent to the original, with every object closed; not every schema has one. The other two are
# reductions: references are replaced by their targets, and omitted constraints are checked when the call arrives. A
# simple schema has the few keywords that every endpoint accepts; a portable one those that all grammar engines share:
# no formats, patterns and ranges.

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

_STRICT_KEYWORDS: Final = frozenset(
    {
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "anyOf",
        "title",
        "const",
    }
)
_MOST_LEVELS: Final = 5
_MOST_PROPERTIES: Final = 100
_DEEPEST: Final = 12  # levels of a reduced schema, which has no references
_NAME_CHARS: Final = 64
_LONGEST_BOUND: Final = 256


class Inexpressible(ValueError):
    """Error raised when a schema cannot be sent as strict; it contains the reason."""


def strict(schema: Mapping[str, Any]) -> Schema:
    """Return an equivalent schema in the form that strict mode requires: every object closed.

    Raises:
        Inexpressible: strict mode cannot express it; the message has the first reason.
    """
    counted: list[str] = []
    written = _strict(schema or {"type": "object", "properties": {}}, "", 1, counted)
    if len(counted) > _MOST_PROPERTIES:
        raise Inexpressible(f"{len(counted)} properties")
    return written


def loosened(schema: Mapping[str, Any]) -> str | None:
    """Return the reason why a schema cannot be sent as strict; None if it can."""
    try:
        strict(schema)
    except Inexpressible as why:
        return str(why)
    return None


def _strict(schema: Any, path: str, level: int, counted: list[str]) -> Schema:
    if not isinstance(schema, Mapping):
        raise Inexpressible(f"`{path or 'it'}` takes anything")
    unknown = sorted(schema.keys() - _STRICT_KEYWORDS)
    if unknown or not schema.keys() & {"type", "enum", "anyOf", "const"}:
        raise Inexpressible(
            f"`{path or 'it'}` has `{unknown[0]}`"
            if unknown
            else f"`{path or 'it'}` takes anything"
        )
    result = dict(schema)
    result.pop("title", None)
    if "anyOf" in schema:
        branches = schema["anyOf"] if isinstance(schema["anyOf"], list) else [schema["anyOf"]]
        result["anyOf"] = [_strict(branch, path, level, counted) for branch in branches]
    if "items" in schema:
        result["items"] = _strict(schema["items"], f"{path}[]", level, counted)
    elif schema.get("type") == "array":
        raise Inexpressible(f"`{path}` is a list of anything")
    if schema.get("type") != "object":
        return result
    properties: Mapping[str, Any] = schema.get("properties", {})
    optional = [name for name in properties if name not in schema.get("required", ())]
    if optional:
        raise Inexpressible(f"`{_below(path, optional[0])}` is optional")
    if level > _MOST_LEVELS:
        raise Inexpressible(f"`{path}` is nested too deep")
    if schema.get("additionalProperties", False) is not False or (path and not properties):
        raise Inexpressible(f"`{path or 'it'}` takes any key")
    counted.extend(properties)
    inner = {
        name: _strict(subschema, _below(path, name), level + 1, counted)
        for name, subschema in properties.items()
    }
    return {**result, "properties": inner, "required": [*properties], "additionalProperties": False}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def simple(schema: Mapping[str, Any]) -> Schema:
    """Return the schema without references and rare keywords."""
    return _reduce(schema, schema, False)


def portable(schema: Mapping[str, Any]) -> Schema:
    """Return the part of a JSON Schema that all grammar engines support; it accepts everything that the original
    accepts.
    """
    return _reduce(schema, schema, True)


def _reduce(schema: Any, root: Mapping[str, Any], is_grammar: bool, depth: int = 0) -> Schema:  # noqa: FBT001 - the same at each level
    """Return a reduced part of the root schema: for a grammar, with known keys only, or for an endpoint."""
    if depth > _DEEPEST or not isinstance(schema, Mapping):
        return {}
    inner = partial(_reduce, root=root, is_grammar=is_grammar, depth=depth + 1)
    if "$ref" in schema:
        return inner(_named_by(schema["$ref"], root))
    kept = ("type", "enum", "const") if is_grammar else ("type", "enum", "description")
    result = {key: schema[key] for key in kept if key in schema}
    branches, types = schema.get("anyOf") or schema.get("oneOf"), schema.get("type")
    if not is_grammar:
        result |= {"enum": [schema["const"]]} if "const" in schema else {}
        branches = branches or (
            [{**schema, "type": name} for name in types] if isinstance(types, list) else None
        )
    if branches and isinstance(branches, list):
        result = (
            {} if is_grammar else {key: value for key, value in result.items() if key != "type"}
        )
        return {**result, "anyOf": [inner(branch) for branch in branches]}
    properties, items, places = (schema.get(key) for key in ("properties", "items", "prefixItems"))
    extra, bound = schema.get("additionalProperties"), schema.get("maxLength")
    if isinstance(properties, Mapping):
        made = {name: inner(each) for name, each in properties.items()}
        result |= {
            "properties": made,
            "required": [name for name in schema.get("required", ()) if name in made],
        }
    if not is_grammar:
        return {**result, "items": inner(items)} if types == "array" else result
    if isinstance(properties, Mapping):
        texts = {
            name: each
            for name, each in made.items()
            if each.get("type") == "string" and "enum" not in each
        }
        # Without a limit, a small model starts to repeat itself in a name.
        limited = {
            name: {"maxLength": _NAME_CHARS, **texts[name]}
            for name in texts
            if name.endswith("_name")
        }
        result |= {"properties": made | limited, "additionalProperties": False}
    elif isinstance(extra, Mapping):
        result["additionalProperties"] = inner(extra)
    if isinstance(
        places, list
    ):  # llama.cpp's server rejects `items: false`; the size has the same effect
        result |= {
            "prefixItems": [*map(inner, places)],
            "minItems": len(places),
            "maxItems": len(places),
        }
    elif isinstance(items, Mapping):
        result["items"] = inner(items)
    return result | (
        {"maxLength": bound} if isinstance(bound, int) and bound <= _LONGEST_BOUND else {}
    )


def _named_by(reference: Any, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    """Return the target of a local reference; anything is allowed if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    target: Any = root
    for part in filter(None, reference[1:].split("/")):
        target = (
            target.get(part.replace("~1", "/").replace("~0", "~"), {})
            if isinstance(target, Mapping)
            else {}
        )
    return target
