"""A step in constrained mode: one JSON object that calls a function or replies. Pure values.

The schema is built from the functions of this step, in the part of JSON Schema that grammar engines
share: references are inlined, and what a grammar cannot hold (formats, patterns, ranges) is left to
the check of the arguments.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sandbox.wire.foreign import LOOSE, Malformed, read_json, with_plain_escapes

from .request import FunctionShown

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

REPLY: Final = "(reply)"
"""Stands in `Request.excluded` for the reply: this step has to call something."""

THOUGHT_CHARS: Final = 160
NAME_CHARS: Final = 64
_MAX_DEPTH: Final = 12
_MAX_BOUND: Final = 256
_AS_THEY_ARE: Final = ("type", "enum", "const")
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


def step_schema(functions: Iterable[FunctionShown], *, may_reply: bool = True) -> Schema:
    """Return the schema of a step in which the model may call one of these functions, or reply."""
    calls = [_call_schema(function) for function in functions]
    thought = {"type": "string", "maxLength": THOUGHT_CHARS}
    reply = _closed({"thought": thought, "reply": {"type": "string"}})
    call = _closed({"thought": thought, "call": {"anyOf": calls}})
    if not calls:
        return reply
    return {"anyOf": [call, reply]} if may_reply else call


def portable(schema: Mapping[str, Any]) -> Schema:
    """Return the part of a JSON Schema that all grammar engines support; it never rejects what the whole would
    accept.
    """
    return _portable(schema, schema, 0)


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


def _call_schema(function: FunctionShown) -> Schema:
    return _closed({"name": {"const": function.name}, "arguments": portable(function.parameters)})


def _closed(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _portable(schema: Any, root: Mapping[str, Any], depth: int) -> Schema:  # Any: JSON Schema, also `true`
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return {}
    if "$ref" in schema:
        return _portable(_resolve(schema["$ref"], root), root, depth + 1)
    if not isinstance(branches := schema.get("anyOf") or schema.get("oneOf") or [], list):
        return {}
    if branches:
        return {"anyOf": [_portable(branch, root, depth + 1) for branch in branches]}
    result = {key: schema[key] for key in _AS_THEY_ARE if key in schema}
    result.update(_object(schema, root, depth))
    result.update(_array(schema, root, depth))
    if isinstance(bound := schema.get("maxLength"), int) and bound <= _MAX_BOUND:
        result["maxLength"] = bound
    return result


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Schema:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        extra = schema.get("additionalProperties")
        return {"additionalProperties": _portable(extra, root, depth + 1)} if isinstance(extra, Mapping) else {}
    inner = {name: _named(name, _portable(subschema, root, depth + 1)) for name, subschema in properties.items()}
    required = [name for name in schema.get("required", ()) if name in inner]
    return {"properties": inner, "required": required, "additionalProperties": False}


def _named(name: str, schema: Schema) -> Schema:
    """Limit the length of a name: in an unbounded one, a small model starts to repeat itself."""
    if name.endswith("_name") and schema.get("type") == "string" and "enum" not in schema:
        return {"maxLength": NAME_CHARS, **schema}
    return schema


def _array(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Schema:
    result: Schema = {}
    if isinstance(places := schema.get("prefixItems"), list):
        result["prefixItems"] = [_portable(item, root, depth + 1) for item in places]
        result["minItems"] = result["maxItems"] = len(places)
        result["items"] = False
    elif isinstance(items := schema.get("items"), Mapping):
        result["items"] = _portable(items, root, depth + 1)
    return result


def _resolve(reference: Any, root: Mapping[str, Any]) -> Any:  # Any: JSON Schema
    """Return the target of a local reference; anything is allowed if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return {}
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
    return target
