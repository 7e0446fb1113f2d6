"""Rejections by real endpoints, in their own words: the first fault of a request, or None."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ROLES = {"system", "developer", "user", "assistant", "tool"}
MOST_FUNCTIONS = 128


def fault(
    body: dict[str, Any], limit_tokens: int | None = None, *, reserves: bool = False
) -> tuple[str, str] | None:
    """Return the message and code of the first fault; with `reserves`, the longest reply counts toward the limit."""
    for message in (*_in_messages(body.get("messages")), *_in_functions(body.get("tools"))):
        return message, "invalid_request_error"
    size = len(json.dumps(body)) // 4 + (body.get("max_tokens") or 0 if reserves else 0)
    if limit_tokens is not None and size > limit_tokens:
        text = (
            f"This model's maximum context length is {limit_tokens} tokens. However, your "
            f"messages resulted in {size}."
        )
        return text, "context_length_exceeded"
    return None


def _in_messages(messages: Any) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "[] is too short - 'messages'"
        return
    waiting: list[str] = []
    for n, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            yield f"'{role}' is not one of {sorted(ROLES)} - 'messages.{n}.role'"
        if role != "tool" and waiting:
            yield _unanswered(waiting)
        if role == "tool" and message.get("tool_call_id") not in waiting:
            yield "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        yield from _in_content(message, n)
        waiting = _waiting(message, waiting)
        yield from _in_calls(message, n)
    if waiting:
        yield _unanswered(waiting)


def _unanswered(waiting: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}"
    )


def _waiting(message: dict[str, Any], waiting: list[str]) -> list[str]:
    if message.get("role") == "tool":
        return [call_id for call_id in waiting if call_id != message.get("tool_call_id")]
    return [call.get("id") for call in message.get("tool_calls") or []]


def _in_content(message: dict[str, Any], n: int) -> Iterator[str]:
    content = message.get("content")
    is_of_reply = message.get("role") == "assistant" and message.get("tool_calls")
    if message.get("role") == "user" and _are_pictures(content):
        return
    if not isinstance(content, str) and not (
        is_of_reply and (content is None or _are_parts(content))
    ):
        yield f"Invalid value for 'content': expected a string, got {content!r}. - 'messages.{n}.content'"


def _are_pictures(content: Any) -> bool:
    """Tell whether a user's content is a text followed by pictures; no message of another role has any."""
    return (
        _are_parts(content)
        and content[0]["type"] == "text"
        and all(
            part["type"] == "image_url" and part["image_url"]["url"].startswith("data:image/")
            for part in content[1:]
        )
    )


def _are_parts(content: Any) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict) and "type" in part for part in content
    )


def _in_calls(message: dict[str, Any], n: int) -> Iterator[str]:
    if "tool_calls" not in message:
        return
    calls = message["tool_calls"]
    if message.get("role") != "assistant" or not calls:
        yield f"[] is too short - 'messages.{n}.tool_calls'"
        return
    if len({call.get("id") for call in calls}) < len(calls):
        yield f"Duplicate ids - 'messages.{n}.tool_calls'"
    for call in calls:
        function = call.get("function") or {}
        if (
            not call.get("id")
            or call.get("type") != "function"
            or not NAME.match(str(function.get("name")))
        ):
            yield f"Invalid call - 'messages.{n}.tool_calls': {json.dumps(call)}"
        if not _is_json_object(function.get("arguments")):
            yield f"Expecting the arguments as a string of JSON - 'messages.{n}.tool_calls': {json.dumps(call)}"


def _is_json_object(value: Any) -> bool:
    try:
        return isinstance(value, str) and isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _in_functions(tools: Any) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not 1 <= len(tools) <= MOST_FUNCTIONS:
        yield f"Invalid 'tools': expected 1 to {MOST_FUNCTIONS} of them."
        return
    names = [tool.get("function", {}).get("name") for tool in tools]
    if len(set(names)) < len(names):
        yield "Invalid 'tools': names must be unique."
    for n, tool in enumerate(tools):
        name, schema = names[n], tool.get("function", {}).get("parameters", {"type": "object"})
        if tool.get("type") != "function" or not isinstance(name, str) or not NAME.match(name):
            yield f"Invalid 'tools[{n}].function.name': string does not match pattern '{NAME.pattern}'."
        yield from _in_schema(schema, f"tools[{n}].function.parameters")


def _in_schema(schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield f"Invalid schema for function '{where}': schema must be a JSON Schema of 'type: \"object\"'."
        return
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield f"Invalid schema for function '{where}': {error.message}"
