"""The Responses API in terms of chat completions: the parameters of a request, and the events of an answer. Pure.

Whoever reads a reply reads the chunks of chat completions, whichever API the endpoint is asked by. What only this API
has is the reasoning of a step: its items go into the journal as they came, and back within the turn.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

Chunk: TypeAlias = dict[str, Any]  # Any: foreign JSON

ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
REASONING: Final = "reasoning_item"
"""The key of a delta under which an item of reasoning stands."""
_RENAMED: Final = {"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_FINISH: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_KIND: Final = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning_content",
    "response.reasoning_text.delta": "reasoning_content",
}


def to_responses(body: Mapping[str, Any]) -> Chunk:
    """Return a request of chat completions as one of this API; nothing of it is stored there.

    Messages and functions are in the shape of this API already.
    """
    values = {_RENAMED.get(name, name): value for name, value in body.items()}
    values.pop("stream_options", None)
    reasoning = {"summary": "auto"}
    if effort := values.pop("reasoning_effort", None):
        reasoning["effort"] = effort
    text = {"verbosity": verbosity} if (verbosity := values.pop("verbosity", None)) else {}
    if form := values.pop("response_format", None):
        text["format"] = {"type": form["type"], **form.get("json_schema", {})}
    values |= {"text": text} if text else {}
    choice = values.get("tool_choice")
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        values["tool_choice"] = {"type": "function", **choice["function"]}
    return {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": reasoning, **values}


class ResponseReader:
    """A reader of the events of one answer, in order, or of the whole answer."""

    def __init__(self) -> None:
        self._begun: set[object] = set()  # places of calls of whose arguments a part came

    def read(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield what an event says, as chunks of chat completions."""
        kind, place = chunk.get("type"), chunk.get("output_index")
        if kind is None and isinstance(chunk.get("output"), list):
            for n, item in enumerate(chunk["output"]):
                yield from self._done(n, _dict(item), is_whole=True)
            yield _end(chunk)
        elif kind in _KIND:
            yield _delta({_KIND[kind]: chunk.get("delta")})
        elif kind == "response.reasoning_summary_part.added" and chunk.get("summary_index"):
            yield _delta({"reasoning_content": "\n\n"})
        elif kind == "response.output_item.added":
            yield from _begin(place, _dict(chunk.get("item")), "")
        elif kind == "response.function_call_arguments.delta":
            self._begun.add(place)
            yield _call(place, {"arguments": chunk.get("delta")})
        elif kind == "response.output_item.done":
            yield from self._done(place, _dict(chunk.get("item")))
        elif kind in ENDS:
            yield _end(_dict(chunk.get("response")))

    def _done(self, place: object, chunk: Chunk, *, is_whole: bool = False) -> Iterator[Chunk]:
        if chunk.get("type") == "reasoning":
            if is_whole:
                yield _delta({"reasoning_content": _texts(chunk.get("summary"), "\n\n")})
            yield _delta({REASONING: {key: value for key, value in chunk.items() if value is not None}})
        elif is_whole and chunk.get("type") == "message":
            parts = chunk.get("content")
            yield _delta({"content": _texts(parts, ""), "refusal": _texts(parts, "", "refusal")})
        elif is_whole:
            yield from _begin(place, chunk, chunk.get("arguments"))
        elif chunk.get("type") == "function_call" and place not in self._begun:
            yield _call(place, {"arguments": chunk.get("arguments")})


def reasoning_text(item: object) -> str:
    """Return an item of reasoning as JSON text; empty if it is none that can be sent back."""
    try:
        return json.dumps(item, ensure_ascii=False, separators=(",", ":")) if isinstance(item, dict) else ""
    except RecursionError:
        return ""


def _begin(place: object, chunk: Chunk, arguments: object) -> Iterator[Chunk]:
    if chunk.get("type") == "function_call":
        yield _call(place, {"name": chunk.get("name"), "arguments": arguments}, chunk.get("call_id"))


def _call(place: object, chunk: Chunk, call_id: object = "") -> Chunk:
    return _delta({"tool_calls": [{"index": place, "id": call_id, "function": chunk}]})


def _end(chunk: Chunk) -> Chunk:
    reason = _dict(chunk.get("incomplete_details")).get("reason")
    finish = _FINISH.get(reason, "stop") if isinstance(reason, str) else "stop"
    told = _dict(chunk.get("usage"))
    usage = {
        "prompt_tokens": told.get("input_tokens"),
        "completion_tokens": told.get("output_tokens"),
        "prompt_tokens_details": told.get("input_tokens_details"),
    }
    return {"choices": [{"delta": {}, "finish_reason": finish}], "usage": usage}


def _delta(chunk: Chunk) -> Chunk:
    return {"choices": [{"delta": chunk}]}


def _texts(parts: object, between: str, key: str = "text") -> str:
    texts = [_dict(part).get(key) for part in parts] if isinstance(parts, list) else []
    return between.join(text for text in texts if isinstance(text, str))


def _dict(value: object) -> Chunk:
    return value if isinstance(value, dict) else {}
