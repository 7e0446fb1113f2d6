"""The form of a conversation in constrained mode: the model's steps as JSON objects, results as messages.

A step calls a function or replies; the parts of its schema that a grammar cannot express are checked with the
arguments. The fixed part (instructions, the functions that are always shown, the demonstration) comes first and is
identical, byte for byte, in every step, so that a server that caches the longest known prefix reads it once.

Every function shown costs a small model time and attention. So the fixed part lists a handful, and others are announced
in the message for which they may help: because they are similar to it, named in it, or new.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from agent_core.base.messages import SEND, Answer, Assistant, Call, Message, Notice, System, User
from agent_core.base.records import dataclass, replace
from agent_core.model.dialect import as_kind, parsed_toml
from agent_core.model.request import FunctionShown, Request
from agent_core.model.wire import Schema, is_object, mark, portable
from sandbox.wire.strict_json import LOOSE, MAX_VALUES, Malformed, read_json, with_plain_escapes


@dataclass(frozen=True, slots=True)
class ConstrainedModels:
    """The data of `constrained.toml`."""

    always: tuple[str, ...]
    finds: frozenset[str]
    gives: str
    most_of_helper: int
    after_result_of_helper: str
    least: float
    company: float
    most_found: int
    most_about: int
    about: frozenset[str]
    after_result: str
    after_result_open: str
    most_open: int
    remembers: Mapping[str, str]
    after_change: str
    hidden: Mapping[str, frozenset[str]]
    offered_after: Mapping[str, Mapping[str, frozenset[str]]]

    @property
    def about_functions(self) -> frozenset[str]:
        """The known functions that deal with functions; their answers say what to do next."""
        return frozenset({*self.always, *self.hidden, *self.about}) - self.finds

    def listed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the functions for the fixed text: for a helper, the first few of these names, else the usual ones."""
        if self.gives in names:
            return tuple(names)[: self.most_of_helper]
        return self.always

    def after(self, function: str, *, is_helper: bool = False, is_open: bool = False) -> str:
        """Return the hint to add to the answer of a function; `is_open` if announced functions were not called yet."""
        if is_helper:
            return self.after_result_of_helper
        if function in self.remembers:
            return self.remembers[function]
        if function in self.about_functions:
            return self.after_change
        return self.after_result_open if is_open else self.after_result


@cache
def choice() -> ConstrainedModels:
    """Return the choice of functions for a small model, read once."""
    return as_kind(parsed_toml("constrained.toml", __package__), ConstrainedModels)


_DATA: Final = parsed_toml("demonstration.toml", __package__)
INSTRUCTIONS: Final[str] = _DATA["instructions"]
TOLD: Final[dict[Message, tuple[FunctionShown, ...]]] = {}
"""The functions that the demonstration announces, by message."""


def _messages() -> Iterator[Message]:
    call = Call("", "", "")
    for number, entry in enumerate(_DATA["messages"]):
        match entry:
            case {"user": text}:
                message: Message = User(text)
                if told := entry.get("told"):
                    TOLD[message] = (FunctionShown(**told),)
            case {"answer": text}:
                message = Answer(call.id, call.name, text)
            case {"reply": text}:
                message = Assistant(text, (), entry["thought"])
            case {"call": name}:
                arguments = json.dumps(
                    entry["arguments"], ensure_ascii=False, separators=(",", ":")
                )
                call = Call(f"demonstration-{number}", name, arguments)
                message = Assistant("", (call,), entry["thought"])
        yield message


DEMONSTRATION: Final = tuple(_messages())


_LONGEST: Final = 256  # characters of a text in a requested list
_LONGEST_DEFAULT: Final = 40  # characters of a default that are shown


def trim(
    function: FunctionShown, last: str = "", offered: frozenset[str] = frozenset()
) -> FunctionShown:
    """Return the function as a small model sees it: without some optional parameters, with `…_name` parameters last.

    The parameters in `offered` stay. If the last text requests a call, `name(parameter=…)`, its parameters become
    required; a list, `[…, …]`, gets that many items.

    The order avoids a failure: if code is the last argument, its final quote and the closing brackets form one rare
    token, and the model wrote `'}}}` into the code (3 of 10 requests).
    """
    properties = _properties(function)
    asked = "".join(re.findall(rf"\b{re.escape(function.name)}\(([^\n]*)", last))
    optional = choice().hidden.get(function.name, frozenset())
    now = [name for name in properties if name in optional and f"{name}=" in asked]
    required = [*function.parameters.get("required", ()), *now]
    hidden = optional - {*required} - offered
    order = sorted(
        properties.keys() - hidden,
        key=lambda name: (name.endswith("_name"), [*properties].index(name)),
    )
    if order == [*properties] and not now:
        return function
    shown = {name: properties[name] for name in order}
    for name, schema in shown.items():
        places = re.search(rf"\b{re.escape(name)}=\[(…(?:, …)*)\]", asked)
        lists = [
            branch
            for branch in schema.get("anyOf", [schema])
            if isinstance(branch.get("items"), Mapping)
        ]
        if places and lists:  # a small model may leave a free list empty
            text = {**lists[0]["items"], "maxLength": _LONGEST}
            shown[name] = {"type": "array", "prefixItems": [text] * places[1].count("…")}
    parameters = {**function.parameters, "properties": shown}
    parameters |= {"required": required} if now else {}
    return replace(function, parameters=parameters)


def _properties(function: FunctionShown) -> Mapping[str, Mapping[str, Any]]:
    """Return the schema of each parameter; the schema `true`, which takes anything, as an object."""
    properties: Mapping[str, Any] = function.parameters.get("properties", {})
    return {
        name: schema if isinstance(schema, Mapping) else {} for name, schema in properties.items()
    }


def describe(function: FunctionShown) -> str:
    """Return everything the model needs for a call: the signature, the description, and each described parameter."""
    properties = _properties(function)
    described = [
        (name, str(schema["description"]))
        for name, schema in properties.items()
        if schema.get("description")
    ]
    return "\n".join(
        [line(function), *(f"  {name}: {' '.join(text.split())}" for name, text in described)]
    )


def line(function: FunctionShown) -> str:
    """Return the signature and the first sentence of the description, in one line."""
    properties = _properties(function)
    required, first = (
        function.parameters.get("required", ()),
        function.description.strip().partition("\n")[0],
    )
    shown = []
    for name, schema in properties.items():
        part, default = (
            f"{name}{'' if name in required else '?'}: {type_text(schema)}",
            schema.get("default"),
        )
        # A small model that does not see a default passes a value that nobody named; no value, and what is off, is
        # what a reader expects anyway.
        if name not in required and not (default is None or default is False or default == ""):
            text = json.dumps(default, ensure_ascii=False)
            part += f" = {text}" if len(text) <= _LONGEST_DEFAULT else " = …"
        shown.append(part)
    signature = f"{function.name}({', '.join(shown)})"
    return f"{signature} - {first}" if first else signature


_STRETCH: Final = 24  # words of a long message that are compared at a time
_MOST_COMPARED: Final = 240  # words of a message


def find(
    message: str, functions: Sequence[FunctionShown], vectors: Mapping[str, bytes] | None = None
) -> list[FunctionShown]:
    """Return the functions that a message names, and those most similar to it, best first.

    If it names a function of the workspace, the most similar functions that deal with functions come first.
    """
    from agent_core.base.likeness import likeness  # noqa: PLC0415 - imports numpy, at the first message

    texts = [*map(_search_text, functions)]
    whole, *parts = (likeness(texts, stretch, vectors).tolist() for stretch in _stretches(message))
    scores = map(max, zip(whole, *parts, strict=True)) if parts else whole
    ranked = sorted(zip(scores, functions, strict=True), key=lambda pair: -pair[0])
    best = ranked[0][0] if ranked else 0.0
    # One that is near brings up what is nearly as near: a request often needs several that belong together.
    enough = choice().company * best if best >= choice().least else math.inf
    words = {*_NAMES.findall(message)} - choice().about_functions
    named = [function for _, function in ranked if function.name in words]
    near = [each for score, each in ranked if score >= (choice().least if each.is_host else enough)]
    near = [function for function in near if function not in named][: choice().most_found]
    # The parts bring up; which one fits the request best, the whole message says.
    nearness = {function.name: score for score, function in zip(whole, functions, strict=True)}
    near.sort(key=lambda function: -nearness[function.name])
    about = [function for _, function in ranked if function.name in choice().about] if named else []
    about = about[: choice().most_about]
    return [
        *about,
        *(function for function in [*named, *near][: choice().most_found] if function not in about),
    ]


def _stretches(message: str) -> list[str]:
    """Return the message and, if it is long, its overlapping parts: a part is nearer to what it is about."""
    words, half = message.split(), _STRETCH // 2
    starts = range(0, min(len(words), _MOST_COMPARED) - half, half) if len(words) > _STRETCH else ()
    return [message, *(" ".join(words[start : start + _STRETCH]) for start in starts)]


def compared(request: Request) -> list[str]:
    """Return the texts that `find` compares by their vectors: the functions and the user's messages."""
    said = [message.text for message in request.messages if isinstance(message, User)]
    return [
        *map(_search_text, request.functions),
        *(stretch for text in said for stretch in _stretches(text)),
    ]


def _search_text(function: FunctionShown) -> str:
    return f"{function.name.replace('_', ' ')}. {function.description}"


def type_text(schema: Any) -> str:  # Any: JSON Schema
    """Return a type in a few characters: `string`, `integer[]`, `"a" | "b"`."""
    match schema:
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        case {"anyOf": list(branches)} | {"oneOf": list(branches)}:
            return " | ".join(type_text(branch) for branch in branches)
        case {"type": "array", "items": items}:
            return f"{type_text(items)}[]"
        case {"type": str(name)}:
            return name
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case _:
            return "any"


Entry: TypeAlias = dict[str, str]
Told: TypeAlias = tuple[FunctionShown, ...]

PROTOCOL: Final = """\
Every message you write is one JSON object, nothing else. To call a function:
{"thought":"...","call":{"name":"...","arguments":{...}}}
To answer the user:
{"thought":"...","reply":"..."}
thought: one short sentence on what comes next."""

REMEMBERED: Final = "[Your memory, as this conversation begins]"

_MOST_NAMED: Final = 6
_ASKED_CHARS: Final = 400
_NAMED = re.compile(r"`([A-Za-z_]\w*)`")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class WireConversation:
    """Writes request messages, and remembers which message announced which function."""

    def __init__(self) -> None:
        self._told: dict[Message, Told] = {}
        self._listed: tuple[str, ...] = ()

    def write(self, request: Request) -> list[Entry]:
        """Return the messages of the request, with alternating roles."""
        functions = {function.name: trim(function) for function in request.functions}
        if request.is_apart:
            apart: list[Entry] = [
                {"role": "system", "content": _system_text(request.messages, functions, functions)}
            ]
            _append(apart, request.messages, {})
            return apart
        self._listed = choice().listed([*functions])
        is_helper = choice().gives in functions
        text = _system_text(request.messages, functions, self._listed)
        entries: list[Entry] = [{"role": "system", "content": text}, *_demonstration()]
        for message in _systems(request.messages)[
            1:
        ]:  # additions of this conversation do not change the fixed part
            _add(entries, "user", f"{REMEMBERED}\n{message.text}")
            _add(entries, "assistant", write_step(**_DATA["memory_read"]))
        _append(entries, request.messages, self._tell(request, functions), is_helper=is_helper)
        return entries

    def callable_now(self, request: Request) -> list[FunctionShown]:
        """Return the functions in this step's schema: always shown, announced, called before, or just named."""
        if request.is_apart:
            return [trim(function) for function in request.functions]
        announced = {
            function.name
            for message in request.messages
            for function in self._told.get(message, ())
        }
        answer = request.messages[-1] if request.messages else None
        last = answer.text if isinstance(answer, Answer | Notice) else ""  # a text of the program
        named = _NAMES.findall(last)
        asked = [message for message in request.messages if isinstance(message, Assistant)]
        called = {call.name for message in asked for call in message.calls}
        callable_names = {*self._listed, *announced, *named, *called} - request.excluded
        if isinstance(answer, Answer) and answer.name in choice().remembers:
            # Memory was just edited. If the user's message brought up no function, a small model would create one now.
            by_user = (
                message for message in reversed(request.messages) if isinstance(message, User)
            )
            if not next((self._told.get(message) for message in by_user), ()):
                callable_names &= {*choice().remembers}
        offered = _offered(request.messages)
        shown = [function for function in request.functions if function.name in callable_names]
        return [trim(function, last, offered.get(function.name, frozenset())) for function in shown]

    def _tell(
        self, request: Request, functions: Mapping[str, FunctionShown]
    ) -> Mapping[Message, Told]:
        announced: dict[Message, Told] = {}
        listed = {*self._listed}
        for message in request.messages:
            told = self._told.get(message)
            if told is None and isinstance(message, User):
                found = find(message.text, request.functions, request.vectors)
                told = tuple(functions[each.name] for each in found if each.name not in listed)
            announced[message] = (
                self._mentioned(message, request, functions) if told is None else told
            )
            listed.update(function.name for function in announced[message])
        self._told = announced
        return announced

    def _mentioned(
        self, message: Message, request: Request, functions: Mapping[str, FunctionShown]
    ) -> Told:
        """Return the functions to announce in an answer or a notice: it mentions them, or is what they work on."""
        mentioned: list[FunctionShown] = []
        if isinstance(message, Answer | Notice):
            own = message.name if isinstance(message, Answer) else ""
            known = {own, *choice().always, *re.findall(r"\b(\w+)\(", message.text)}
            about = dict.fromkeys(_NAMED.findall(message.text))
            mentioned = [
                functions[name] for name in about if name in functions and name not in known
            ][:_MOST_NAMED]
        place = request.messages.index(message)
        before, offered = (
            _offered(request.messages[:place]),
            _offered(request.messages[: place + 1]),
        )
        new = [each for each in request.functions if each.name in offered.keys() - before.keys()]
        return (*mentioned, *(trim(each, offered=offered[each.name]) for each in new))


def _offered(messages: Sequence[Message]) -> dict[str, frozenset[str]]:
    """Return the hidden parameters, by function, that a call of this turn made useful."""
    offered: dict[str, frozenset[str]] = {}
    for message in messages:
        if isinstance(message, User):
            offered = {}
        elif isinstance(message, Answer):
            offered |= choice().offered_after.get(message.name, {})
    return offered


def fixed_part(entries: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Return the written entries that are identical in every step: the system text and the demonstration. A separate
    request (`is_apart`) has none.
    """
    shown = _demonstration()
    return entries[: 1 + len(shown)] if list(entries[1 : 1 + len(shown)]) == shown else ()


@cache
def _demonstration() -> list[Entry]:
    entries: list[Entry] = [{"role": "system", "content": ""}]
    _append(entries, DEMONSTRATION, TOLD)
    return entries[1:]


def fixed_size(functions: Iterable[FunctionShown]) -> int:
    """Return the bytes that precede any conversation, not counting the instructions."""
    trimmed = {function.name: trim(function) for function in functions}
    text = _system_text((), trimmed, choice().listed([*trimmed]))
    entries = [{"content": text}, *_demonstration()]
    return sum(len(entry["content"].encode("utf-8", "replace")) for entry in entries)


def _system_text(
    messages: Iterable[Message], functions: Mapping[str, FunctionShown], names: Iterable[str]
) -> str:
    instructions = [message.text for message in _systems(messages)[:1]]
    listed = [describe(functions[name]) for name in names if name in functions]
    about = ["Functions:\n" + "\n".join(listed)] if listed else []
    return "\n\n".join([*instructions, PROTOCOL, *about])


def _systems(messages: Iterable[Message]) -> list[System]:
    return [message for message in messages if isinstance(message, System)]


def _append(
    entries: list[Entry],
    messages: Iterable[Message],
    announced: Mapping[Message, Told],
    *,
    is_helper: bool = False,
) -> None:
    waiting: dict[str, tuple[Call, str]] = {}
    request_text, numbers, uncalled, reminders = "", set[str](), list[str](), 0
    for message in messages:
        match message:
            case System():
                continue
            case Assistant(text, calls, thought):
                # Each call precedes its own answer: this mode has one call per message.
                waiting.update({call.id: (call, thought or text) for call in calls})
                if text and not calls:
                    _add(entries, "assistant", write_step(thought, reply=text))
                continue
            case Answer(call_id, name):
                call, thought = waiting.pop(call_id, (Call(call_id, name, "{}"), ""))
                arguments = call.arguments if is_object(call.arguments) else "{}"
                # A native call that sent a message to the user is shown as a reply.
                spoken = str(read_json(arguments).get("message") or "") if call.name == SEND else ""
                if spoken:
                    _add(entries, "assistant", write_step(thought, reply=spoken))
                    message_text = ""
                else:
                    _add(
                        entries,
                        "assistant",
                        write_step(thought, name=call.name, arguments=arguments),
                    )
                    # A small model forgets which data it has and that it is done, so a hint says what comes next.
                    uncalled = [other for other in uncalled if other != name]
                    # A call with most of the request's numbers answers it as a whole: others only sound alike.
                    is_whole = 2 * len(numbers.intersection(_NUMBER.findall(arguments))) > len(
                        numbers
                    )
                    is_open = bool(uncalled) and not is_whole and reminders < choice().most_open
                    reminders += is_open
                    hint = choice().after(name, is_helper=is_helper, is_open=is_open)
                    asked = shorten(" ".join(request_text.split()))
                    hint = hint.format(
                        asked=asked, uncalled=", ".join(f"`{other}`" for other in uncalled)
                    )
                    message_text = f"Result of {name}: {message.text}\n{hint}"
            case Notice(text):
                message_text = mark(message, text)
            case User(text):
                message_text = request_text = mark(message, text)
                told_names = [function.name for function in announced.get(message, ())]
                uncalled = [name for name in told_names if name not in choice().about_functions]
                numbers, reminders = {*_NUMBER.findall(text)}, 0
        told = (f"\n[You can call: {line(function)}]" for function in announced.get(message, ()))
        _add(entries, "user", "".join([message_text, *told]))


def shorten(text: str) -> str:
    """Return the text, or its beginning if it is long."""
    return text if len(text) <= _ASKED_CHARS else text[:_ASKED_CHARS] + " …"


def _add(entries: list[Entry], role: str, text: str) -> None:
    if not text:
        return
    if entries[-1]["role"] == role:
        entries[-1] = {"role": role, "content": entries[-1]["content"] + "\n\n" + text}
    else:
        entries.append({"role": role, "content": text})


THOUGHT_CHARS: Final = 160
_FENCE = re.compile(r"\A\s*```\w*|```\s*\Z")
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A step that the model wrote: a reply, or the name and the arguments (as JSON text) of one call."""

    thought: str
    reply: str = ""
    name: str = ""
    arguments: str = ""
    is_whole: bool = True


def step_schema(
    functions: Iterable[FunctionShown],
    *,
    may_reply: bool = True,
    shape: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of a step in which the model may call one of these functions or reply, with a text or an object
    of this `shape`.
    """
    calls = [
        _object_schema(
            {"name": {"const": function.name}, "arguments": portable(function.parameters)}
        )
        for function in functions
    ]
    thought = {"type": "string", "maxLength": THOUGHT_CHARS}
    reply = _object_schema(
        {
            "thought": thought,
            "reply": {"type": "string"} if shape is None else portable(shape or {"type": "object"}),
        }
    )
    call = _object_schema({"thought": thought, "call": {"anyOf": calls}})
    if not calls:
        return reply
    return {"anyOf": [call, reply]} if may_reply else call


def write_step(thought: str, *, reply: str = "", name: str = "", arguments: str = "") -> str:
    """Return a step in the same form as the model writes it, so that servers find their cached prefix."""
    head = '{"thought":' + _json_text(thought)
    if not name:
        return f'{head},"reply":{_json_text(reply)}}}'
    return f'{head},"call":{{"name":{_json_text(name)},"arguments":{arguments}}}}}'


def read_step(text: str) -> ModelStep | None:
    """Return the step in the text, even if it was cut off; None if the text is not such an object."""
    text = with_plain_escapes(_FENCE.sub("", text))
    try:
        value = read_json(text, LOOSE, most_values=MAX_VALUES)
    except Malformed as error:
        return _read_cut(text, is_whole=error.code != "syntax")
    match value:
        case {"call": {"name": str(name)} as call}:
            arguments = call.get("arguments", {})
            return ModelStep(
                _thought_of(value), name=name, arguments=_raw_arguments(text, arguments)
            )
        case {"reply": str(reply)}:
            return ModelStep(_thought_of(value), reply=reply)
        case {"reply": dict(reply)}:
            return ModelStep(_thought_of(value), reply=json.dumps(reply, ensure_ascii=False))
        case _:
            return None


def _read_cut(text: str, *, is_whole: bool) -> ModelStep | None:
    """Return the recoverable part of an incomplete object: which call was begun, and its arguments so far.

    An object that is complete but exceeds a limit is a call with unchanged arguments; their reader reports the problem.
    """
    named = re.search(r'"call"\s*:\s*\{\s*"name"\s*:\s*"([^"\\]*)"', text)
    if named is None:
        return ModelStep("", is_whole=False) if text.lstrip().startswith("{") else None
    begun = _ARGUMENTS.search(text, named.end())
    arguments = text[begun.end() :] if begun else ""
    return ModelStep(
        "",
        name=named[1],
        arguments=_without_end(arguments) if is_whole else arguments,
        is_whole=is_whole,
    )


def _raw_arguments(text: str, value: Any) -> str:  # Any: JSON
    """Return the arguments byte for byte as written, if the object has its usual form."""
    begun = _ARGUMENTS.search(text)
    raw = _without_end(text[begun.end() :]) if begun else ""
    try:
        if read_json(raw, LOOSE) == value:
            return raw
    except Malformed:
        pass
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _without_end(text: str) -> str:
    """Return the text without the two brackets that close the call and the step."""
    return text.rstrip()[:-2].rstrip()


def _thought_of(value: Mapping[str, Any]) -> str:
    thought = value.get("thought", "")
    return thought if isinstance(thought, str) else ""


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _object_schema(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
