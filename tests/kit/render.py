"""A step as the bytes that an endpoint sends: one object, or a stream of events."""

import json
from collections.abc import Iterator
from typing import Any

from .steps import Ask, Say, Seen

PIECE_CHARS = 12
MOST_PIECES = 200


def whole(step: Say | Ask, seen: Seen, n: int) -> bytes:
    """Return the response as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None, "refusal": None}
    if isinstance(step, Ask):
        message["tool_calls"] = calls_of(step, n)
    else:
        message["content"] = step.text
        if step.thought:
            message["reasoning_content"] = step.thought
    choice = {"index": 0, "message": message, "finish_reason": step.finish}
    return json.dumps(
        {**_head(seen, n, "chat.completion"), "choices": [choice], "usage": usage_of(step, seen)}
    ).encode()


def events(step: Say | Ask, seen: Seen, n: int) -> Iterator[bytes]:
    """Yield the response as the events of a stream."""
    yield _event(seen, n, {"role": "assistant", "content": ""})
    if isinstance(step, Say):
        yield from (_event(seen, n, {"reasoning_content": piece}) for piece in pieces(step.thought))
    yield from text_events(step.text, seen, n)
    if isinstance(step, Ask):
        for index, call in enumerate(calls_of(step, n)):
            arguments = call["function"].pop("arguments")
            first = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
            yield _event(seen, n, {"tool_calls": [first]})
            for piece in pieces(arguments):
                yield _event(
                    seen, n, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                )
    yield _event(seen, n, {}, step.finish)
    if (seen.body.get("stream_options") or {}).get("include_usage"):
        yield _line(
            {
                **_head(seen, n, "chat.completion.chunk"),
                "choices": [],
                "usage": usage_of(step, seen),
            }
        )
    yield b"data: [DONE]\n\n"


def text_events(text: str, seen: Seen, n: int) -> Iterator[bytes]:
    """Yield a text as events."""
    return (_event(seen, n, {"content": piece}) for piece in pieces(text))


def pieces(text: str) -> list[str]:
    """Return the text in pieces, as a model writes it."""
    size = max(PIECE_CHARS, len(text) // MOST_PIECES)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(seen: Seen, n: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _line({**_head(seen, n, "chat.completion.chunk"), "choices": [choice]})


def _line(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _head(seen: Seen, n: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{n}", "object": kind, "created": 0, "model": seen.body.get("model")}


def calls_of(step: Ask, n: int) -> list[dict[str, Any]]:
    """Return the calls of a reply in the shape of chat completions."""
    return [
        {
            "id": f"call_{n}_{k}" if call.id is None else call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.text},
        }
        for k, call in enumerate(step.calls)
    ]


def usage_of(step: Say | Ask, seen: Seen) -> dict[str, int]:
    """Return the token usage of a reply."""
    said = step.text + "".join(call.text for call in (step.calls if isinstance(step, Ask) else ()))
    given = step.usage
    prompt, completion = given or (len(json.dumps(seen.body)) // 4, len(said) // 4 + 1)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
