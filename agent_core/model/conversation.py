"""The form of a conversation in constrained mode: the model's own steps as JSON objects, results as messages.

The fixed part (instructions, the functions that are always there, the demonstration) comes first and is
the same, byte for byte, from step to step; what is new is announced in the message it came with, and stays
there. So a server that caches the longest known prefix reads each message once.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeAlias

from agent_core.base.messages import SEND, Answer, Assistant, Call, Message, Notice, System, User
from sandbox.wire.foreign import read_json

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


class WireConversation:
    """A writer of request messages that remembers which message announced which function."""

    def __init__(self) -> None:
        self._told: dict[Message, Told] = {}

    def write(self, request: Request) -> list[Entry]:
        """Return the messages of the request, with alternating roles."""
        functions = {function.name: trim(function) for function in request.functions}
        entries: list[Entry] = [{"role": "system", "content": _system_text(request.messages, functions)}]
        _append(entries, DEMONSTRATION, TOLD)
        for message in _systems(request.messages)[1:]:  # what this conversation adds leaves the fixed part as it is
            _add(entries, "user", f"{REMEMBERED}\n{message.text}")
        _append(entries, request.messages, self._tell(request.messages, functions))
        return entries

    def callable_now(self, request: Request) -> list[FunctionShown]:
        """Return the functions in this step's schema: always shown, announced, called before, or named just now."""
        announced = {function.name for message in request.messages for function in self._told.get(message, ())}
        named = _NAMES.findall(_last_text(request.messages))
        callable_names = {*choice().always, *announced, *named, *_called(request.messages)} - request.excluded
        if _is_about_memory(request.messages):
            callable_names &= {*choice().remembers}
        return [trim(function) for function in request.functions if function.name in callable_names]

    def _tell(self, messages: Sequence[Message], functions: Mapping[str, FunctionShown]) -> Mapping[Message, Told]:
        announced: dict[Message, Told] = {}
        listed = {*choice().always}
        for message in messages:
            announced[message] = self._told[message] if message in self._told else _news(message, functions, listed)
            listed.update(function.name for function in announced[message])
        self._told = announced
        return announced


def fixed_part(entries: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    """Return those written entries that are the same in every request: the system text and the demonstration."""
    return entries[: 1 + _demonstrated()]


@cache
def _demonstrated() -> int:
    entries: list[Entry] = [{"role": "system", "content": ""}]
    _append(entries, DEMONSTRATION, TOLD)
    return len(entries) - 1


def fixed_size(functions: Iterable[FunctionShown]) -> int:
    """Return the bytes that precede any conversation, not counting the instructions."""
    entries: list[Entry] = [
        {"role": "system", "content": _system_text((), {function.name: trim(function) for function in functions})}
    ]
    _append(entries, DEMONSTRATION, TOLD)
    return sum(len(entry["content"].encode("utf-8", "replace")) for entry in entries)


def _news(message: Message, functions: Mapping[str, FunctionShown], listed: Iterable[str]) -> Told:
    """Return the functions to announce in a message: those that may help the user, or that an answer is about."""
    match message:
        case User():
            return tuple(find(message.text, [function for name, function in functions.items() if name not in listed]))
        case Answer() | Notice():
            about = dict.fromkeys(_NAMED.findall(message.text))
            own = message.name if isinstance(message, Answer) else ""
            listed = {own, *choice().always, *re.findall(r"(\w+)\(", message.text)}
            named = [functions[name] for name in about if name in functions and name not in listed]
            return tuple(named[:_MOST_NAMED])
        case _:
            return ()


def _is_about_memory(messages: Sequence[Message]) -> bool:
    """Check whether memory was just edited for a user who asked for no function: a small model would then create
    one.
    """
    last = messages[-1] if messages else None
    if not (isinstance(last, Answer) and last.name in choice().remembers):
        return False
    request_text = next((message.text for message in reversed(messages) if isinstance(message, User)), "")
    return not choice().making.search(request_text)


def _last_text(messages: Sequence[Message]) -> str:
    """Return the last text from the program, if nobody has written since."""
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


def _append(entries: list[Entry], messages: Iterable[Message], announced: Mapping[Message, Told]) -> None:
    waiting: dict[str, tuple[Call, str]] = {}
    request_text = ""
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
                message_text = _answer_text(message, call, request_text)
            case Notice(text):
                message_text = mark(message, text)
            case User(text):
                message_text = request_text = mark(message, text)
        _add(entries, "user", message_text + _told_text(announced.get(message, ())))


def _answer_text(answer: Answer, call: Call, request_text: str) -> str:
    """Return a result with advice on what to do next: a small model forgets whose data it has, and that it is done."""
    if _spoken(call):
        return ""
    hint = choice().after(answer.name).format(asked=shorten(" ".join(request_text.split())))
    return f"Result of {answer.name}: {answer.text}\n{hint}"


def shorten(text: str) -> str:
    """Return the text, or as much of its beginning as is worth reading twice."""
    return text if len(text) <= _ASKED_CHARS else text[:_ASKED_CHARS] + " …"


def _call_text(call: Call, thought: str) -> str:
    if spoken := _spoken(call):
        return write_step(thought, reply=spoken)
    return write_step(thought, name=call.name, arguments=call.arguments if is_object(call.arguments) else "{}")


def _spoken(call: Call) -> str:
    """Return what a call said to the user if it was made in native mode: in constrained mode it is a reply."""
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
