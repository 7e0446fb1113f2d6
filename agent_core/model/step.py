"""A step in constrained mode: one JSON object that calls a function or replies. Pure values.

The schema is built from the functions of this step, in the part of JSON Schema that grammar engines share: what a
grammar cannot hold is left to the check of the arguments.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandbox.wire.foreign import LOOSE, Malformed, read_json, with_plain_escapes

from .request import FunctionShown
from .schemas import Schema, portable

REPLY: Final = "(reply)"
"""Stands in `Request.excluded` for the reply: this step has to call something."""

THOUGHT_CHARS: Final = 160
_FENCE = re.compile(r"\A\s*```\w*|```\s*\Z")
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A step that the model wrote: a reply, or the name and the arguments (their JSON text) of one call."""

    thought: str
    reply: str = ""
    name: str = ""
    arguments: str = ""
    is_whole: bool = True


def step_schema(
    functions: Iterable[FunctionShown], *, may_reply: bool = True, shape: Mapping[str, Any] | None = None
) -> Schema:
    """Return the schema of a step in which the model may call one of these functions, or reply: with a text, or with an
    object of this `shape`.
    """
    calls = [
        _closed({"name": {"const": function.name}, "arguments": portable(function.parameters)})
        for function in functions
    ]
    thought = {"type": "string", "maxLength": THOUGHT_CHARS}
    reply = _closed(
        {"thought": thought, "reply": {"type": "string"} if shape is None else portable(shape or {"type": "object"})}
    )
    call = _closed({"thought": thought, "call": {"anyOf": calls}})
    if not calls:
        return reply
    return {"anyOf": [call, reply]} if may_reply else call


def write_step(thought: str, *, reply: str = "", name: str = "", arguments: str = "") -> str:
    """Return a step as the model writes it, so that servers find their cached prefix again."""
    head = '{"thought":' + _text(thought)
    if not name:
        return f'{head},"reply":{_text(reply)}}}'
    return f'{head},"call":{{"name":{_text(name)},"arguments":{arguments}}}}}'


def read_step(text: str) -> ModelStep | None:
    """Return the step in the text, even if it was cut off; None if the text is no such object."""
    text = with_plain_escapes(_FENCE.sub("", text))
    try:
        value = read_json(text, LOOSE)
    except Malformed as error:
        return _read_cut(text, is_whole=error.code != "syntax")
    match value:
        case {"call": {"name": str(name)} as call}:
            arguments = call.get("arguments", {})
            return ModelStep(_thought(value), name=name, arguments=_raw_arguments(text, arguments))
        case {"reply": str(reply)}:
            return ModelStep(_thought(value), reply=reply)
        case {"reply": dict(reply)}:
            return ModelStep(_thought(value), reply=json.dumps(reply, ensure_ascii=False))
        case _:
            return None


def _read_cut(text: str, *, is_whole: bool) -> ModelStep | None:
    """Return what can be recovered from an object without its end: the thought, and which call was begun.

    One that is whole, and out of bounds, is a call with its arguments as they are: who reads them says what is wrong.
    """
    named = re.search(r'"call"\s*:\s*\{\s*"name"\s*:\s*"([^"\\]*)"', text)
    if named is None:
        return ModelStep("", is_whole=False) if text.lstrip().startswith("{") else None
    begun = _ARGUMENTS.search(text, named.end())
    arguments = text[begun.end() :] if begun else ""
    return ModelStep("", name=named[1], arguments=_without_end(arguments) if is_whole else arguments, is_whole=is_whole)


def _raw_arguments(text: str, value: Any) -> str:  # Any: JSON
    """Return the arguments as they were written, byte for byte, if the object has its usual shape."""
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


def _thought(value: Mapping[str, Any]) -> str:
    thought = value.get("thought", "")
    return thought if isinstance(thought, str) else ""


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _closed(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
