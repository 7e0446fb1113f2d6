"""The SDK's own request types: what is sent must pass what its typed calls would allow."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

# Parameters of particular servers, which the SDK passes through as `extra_body`, by their path.
BESIDE = {
    "body.cache_prompt",
    "body.return_progress",
    "body.ttl",
    "body.structured_outputs",
    "body.guided_json",
    "body.response_format.schema",
    "body.messages.tool_calls.extra_content",
    "body.messages.reasoning_content",
    "body.messages.reasoning",
    "body.messages.reasoning_details",
    "body.messages.reasoning_text",
    "body.messages.reasoning_opaque",
    "body.messages.thinking_blocks",
}


def unfit(body: Any, path: str) -> str | None:
    """Return what is wrong with the body of a request to this path, or None."""
    try:
        body = (
            {**body, "messages": [*map(_with_plain_parts, body["messages"])]}
            if "messages" in body
            else body
        )
        valid = _whole(_adapter(path.rpartition("/v1")[2]).validate_python(body))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"no request of the package: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    unknown = [place for place in _lost(body, valid, "body") if place not in BESIDE]
    return f"nothing that the package's types know: {', '.join(unknown)}" if unknown else None


def _with_plain_parts(message: Any) -> Any:
    """Return a message without the parts of its content that only Mistral takes: a reply's reasoning."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or message["role"] != "assistant":
        return message
    return {
        **message,
        "content": [part for part in content if part.get("type") != "thinking"] or None,
    }


@cache
def _adapter(path: str) -> TypeAdapter[Any]:
    from openai.types import embedding_create_params as embeddings
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses

    types: dict[str, Any] = {
        "/chat/completions": chat.CompletionCreateParams,
        "/responses": responses.ResponseCreateParams,
        "/embeddings": embeddings.EmbeddingCreateParams,
    }
    return TypeAdapter(types[path])


def _whole(value: Any) -> Any:
    """Return the value with pydantic's lazy iterables consumed; raises the validation errors found there."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, str | bytes | int | float | bool | None):
        return value
    return [_whole(inner) for inner in value]


def _lost(sent: Any, valid: Any, place: str) -> Iterator[str]:
    """Yield the places of sent values that no type knows."""
    if isinstance(sent, dict) and isinstance(valid, dict):
        for key, value in sent.items():
            if key in valid:
                yield from _lost(value, valid[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}"
    elif isinstance(sent, list) and isinstance(valid, list):
        for value, other in zip(sent, valid, strict=True):
            yield from _lost(value, other, place)
