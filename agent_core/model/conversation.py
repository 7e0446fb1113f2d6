"""A conversation as a model in constrained mode reads it: its own steps as JSON objects, results as messages.

The fixed part (instructions, the functions that are always there, the demonstration) comes first and is
the same, byte for byte, from step to step; what is new is told in the message it came with, and stays
there. So a server that caches the longest known prefix reads each message once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

from sandbox.foreign import read_json

from ..messages import SEND, Answer, Assistant, Call, Message, Notice, System, User
from .demonstration import DEMONSTRATION, TOLD
from .listing import choice, describe, find, line, trim
from .request import FunctionShown, Request
from .step import write_step
from .wire import is_object, mark

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


class Conversation:
    """Writes the messages of requests; remembers which function was told of in which message."""

    def __init__(self) -> None:
        self._told: dict[Message, Told] = {}

    def write(self, request: Request) -> list[Entry]:
        """The request's messages, with one role after the other."""
        functions = {function.name: trim(function) for function in request.functions}
        entries: list[Entry] = [{"role": "system", "content": _system_text(request.messages, functions)}]
        _append(entries, DEMONSTRATION, TOLD)
        for message in _systems(request.messages)[1:]:  # what this conversation adds leaves the fixed part as it is
            _add(entries, "user", f"{REMEMBERED}\n{message.text}")
        _append(entries, request.messages, self._tell(request.messages, functions))
        return entries

    def callable_now(self, request: Request) -> list[FunctionShown]:
        """The functions of this step's schema: those always there, told of, called before, or named just now."""
        told = {function.name for message in request.messages for function in self._told.get(message, ())}
        named = _NAMES.findall(_last_text(request.messages))
        known = {*choice().always, *told, *named, *_called(request.messages)} - request.excluded
        if _is_about_memory(request.messages):
            known &= {*choice().remembers}
        return [trim(function) for function in request.functions if function.name in known]

    def _tell(self, messages: Sequence[Message], functions: Mapping[str, FunctionShown]) -> Mapping[Message, Told]:
        kept: dict[Message, Told] = {}
        known = {*choice().always}
        for message in messages:
            kept[message] = self._told[message] if message in self._told else _news(message, functions, known)
            known.update(function.name for function in kept[message])
        self._told = kept
        return kept


def fixed_part(entries: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Of written entries, those that are the same from request to request: the system text and the demonstration."""
    return entries[: 1 + _demonstrated()]


@cache
def _demonstrated() -> int:
    entries: list[Entry] = [{"role": "system", "content": ""}]
    _append(entries, DEMONSTRATION, TOLD)
    return len(entries) - 1


def fixed_size(functions: Iterable[FunctionShown]) -> int:
    """The bytes that stand before a conversation, whatever is in it, but for the instructions."""
    entries: list[Entry] = [
        {"role": "system", "content": _system_text((), {each.name: trim(each) for each in functions})}
    ]
    _append(entries, DEMONSTRATION, TOLD)
    return sum(len(entry["content"].encode("utf-8", "replace")) for entry in entries)


def _news(message: Message, functions: Mapping[str, FunctionShown], known: Iterable[str]) -> Told:
    """The functions to tell of in a message: those that may help the user, or that an answer is about."""
    match message:
        case User():
            return tuple(find(message.text, [each for name, each in functions.items() if name not in known]))
        case Answer() | Notice():
            about = dict.fromkeys(_NAMED.findall(message.text))
            own = message.name if isinstance(message, Answer) else ""
            known = {own, *choice().always, *re.findall(r"(\w+)\(", message.text)}
            named = [functions[name] for name in about if name in functions and name not in known]
            return tuple(named[:_MOST_NAMED])
        case _:
            return ()


def _is_about_memory(messages: Sequence[Message]) -> bool:
    """Whether memory was edited just now, for a user who asked for no function: a small model goes on to make one."""
    last = messages[-1] if messages else None
    if not (isinstance(last, Answer) and last.name in choice().remembers):
        return False
    asked = next((message.text for message in reversed(messages) if isinstance(message, User)), "")
    return not choice().making.search(asked)


def _last_text(messages: Sequence[Message]) -> str:
    """What the program said last, if nobody spoke since."""
    last = messages[-1] if messages else None
    return last.text if isinstance(last, Answer | Notice) else ""


def _called(messages: Iterable[Message]) -> set[str]:
    return {call.name for message in messages if isinstance(message, Assistant) for call in message.calls}


def _system_text(messages: Iterable[Message], functions: Mapping[str, FunctionShown]) -> str:
    instructions = [message.text for message in _systems(messages)[:1]]
    listed = [describe(functions[name]) for name in choice().always if name in functions]
    return "\n\n".join([*instructions, PROTOCOL, "Functions:\n" + "\n".join(listed)])


def _systems(messages: Iterable[Message]) -> list[System]:
    return [message for message in messages if isinstance(message, System)]


def _append(entries: list[Entry], messages: Iterable[Message], told: Mapping[Message, Told]) -> None:
    waiting: dict[str, tuple[Call, str]] = {}
    asked = ""
    for message in messages:
        match message:
            case System():
                continue
            case Assistant(text, calls, thought):
                # Each call stands before its own answer: this mode knows one call a message.
                waiting.update({call.id: (call, thought or text) for call in calls})
                if text and not calls:
                    _add(entries, "assistant", write_step(thought, reply=text))
                continue
            case Answer(call_id, name):
                call, thought = waiting.pop(call_id, (Call(call_id, name, "{}"), ""))
                _add(entries, "assistant", _call_text(call, thought))
                said = _answer_text(message, call, asked)
            case Notice(text):
                said = mark(message, text)
            case User(text):
                said = asked = mark(message, text)
        _add(entries, "user", said + _told_text(told.get(message, ())))


def _answer_text(answer: Answer, call: Call, asked: str) -> str:
    """A result with what to do about it: a small model forgets whose data it has, and that it is done."""
    if _spoken(call):
        return ""
    hint = choice().after(answer.name).format(asked=shorten(" ".join(asked.split())))
    return f"Result of {answer.name}: {answer.text}\n{hint}"


def shorten(text: str) -> str:
    """The text, or as much of its beginning as is worth reading twice."""
    return text if len(text) <= _ASKED_CHARS else text[:_ASKED_CHARS] + " …"


def _call_text(call: Call, thought: str) -> str:
    if spoken := _spoken(call):
        return write_step(thought, reply=spoken)
    return write_step(thought, name=call.name, arguments=call.arguments if is_object(call.arguments) else "{}")


def _spoken(call: Call) -> str:
    """What a call said to the user that was made while calls travelled natively: here it is a reply."""
    if call.name != SEND or not is_object(call.arguments):
        return ""
    return str(read_json(call.arguments).get("message") or "")


def _told_text(functions: Told) -> str:
    return "".join(f"\n[You can call: {line(function)}]" for function in functions)


def _add(entries: list[Entry], role: str, text: str) -> None:
    if not text:
        return
    if entries[-1]["role"] == role:
        entries[-1] = {"role": role, "content": entries[-1]["content"] + "\n\n" + text}
    else:
        entries.append({"role": role, "content": text})
