"""The scripted demonstration that a small model imitates: the data of `demonstration.toml`, as messages."""

import json
from typing import Any, Final

from agent_core.base.messages import Answer, Assistant, Call, Message, User

from .quirks import parsed_toml
from .request import FunctionShown

_DATA: Final = parsed_toml("demonstration.toml")
INSTRUCTIONS: Final[str] = _DATA["instructions"]
TOLD: Final[dict[Message, tuple[FunctionShown, ...]]] = {}
"""The functions that the demonstration tells of, by message."""


def _message(entry: dict[str, Any], last: Call) -> Message:  # Any: data of this package
    match entry:
        case {"user": text}:
            message = User(text)
            if told := entry.get("told"):
                TOLD[message] = (FunctionShown(**told),)
            return message
        case {"answer": text}:
            return Answer(last.id, last.name, text)
        case {"reply": text}:
            return Assistant(text, (), entry["thought"])
    return Assistant("", (last,), entry["thought"])


def _messages() -> tuple[Message, ...]:
    messages, calls = [], [Call("", "", "")]
    for entry in _DATA["messages"]:
        if name := entry.get("call"):
            arguments = json.dumps(entry["arguments"], ensure_ascii=False, separators=(",", ":"))
            calls.append(Call(f"demonstration-{len(calls)}", name, arguments))
        messages.append(_message(entry, calls[-1]))
    return tuple(messages)


DEMONSTRATION: Final = _messages()
