"""The Responses API of the scripted model: its requests as chat completions, and a step as its events."""

import json
from collections.abc import Iterator
from typing import Any

from .render import calls_of, pieces, usage_of
from .steps import Ask, Say, Seen


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request in the shape of chat completions, so that scripts and rules read both APIs alike."""
    messages: list[dict[str, Any]] = []
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                call = {key: item[key] for key in ("name", "arguments")}
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                messages[-1].setdefault("tool_calls", []).append(
                    {"id": item["call_id"], "type": "function", "function": call}
                )
            case "function_call_output":
                messages.append(
                    {"role": "tool", "tool_call_id": item["call_id"], "content": _text(item)}
                )
            case "message":
                messages.append({"role": item["role"], "content": _content(item["content"])})
    chat = {
        key: value
        for key, value in body.items()
        if key not in ("input", "tools", "text", "max_output_tokens")
    }
    if tools := body.get("tools"):
        chat["tools"] = [{"type": "function", "function": dict(tool)} for tool in tools]
    if form := (body.get("text") or {}).get("format"):
        chat["response_format"] = {"type": form["type"], form["type"]: form}
    return {**chat, "messages": messages}


def _content(content: Any) -> Any:  # Any: JSON
    """Return the content of a message as chat completions have it."""
    if not isinstance(content, list):
        return content
    parts: list[Any] = []
    for part in content:
        if part["type"] == "input_image":
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"]}})
        else:
            parts.append({"type": "text", "text": part["text"]})
    return parts


def _text(item: dict[str, Any]) -> str:  # Any: JSON
    """Return the text of an output, which may have pictures, too."""
    output = item["output"]
    if isinstance(output, str):
        return output
    return "".join(part["text"] for part in output if part["type"] == "input_text")


def whole(step: Say | Ask, seen: Seen, n: int) -> bytes:
    """Return the response as one object."""
    return json.dumps(_response(step, seen, n, [item for item, _ in _items(step, n)])).encode()


def events(step: Say | Ask, seen: Seen, n: int) -> Iterator[bytes]:
    """Yield the response as the events of a stream."""
    yield _event(
        "response.created",
        response={"id": f"resp_{n}", "object": "response", "status": "in_progress"},
    )
    items = _items(step, n)
    for place, (item, kind) in enumerate(items):
        begun = (
            {**item, "arguments": ""}
            if kind == "function_call_arguments"
            else {"type": item["type"]}
        )
        yield _event("response.output_item.added", output_index=place, item=begun)
        if kind == "reasoning_summary_text":
            yield _event(
                "response.reasoning_summary_part.added", output_index=place, summary_index=0
            )
        for piece in pieces(_said(item)):
            yield _event(f"response.{kind}.delta", output_index=place, delta=piece)
        yield _event("response.output_item.done", output_index=place, item=item)
    status = (
        "response.completed" if step.finish in ("stop", "tool_calls") else "response.incomplete"
    )
    yield _event(status, response=_response(step, seen, n, [item for item, _ in items]))


def text_events(text: str) -> Iterator[bytes]:
    """Yield a text as events."""
    return (
        _event("response.output_text.delta", output_index=0, delta=piece) for piece in pieces(text)
    )


def reasoning(n: int, thought: str) -> dict[str, Any]:
    """Return the reasoning item of the n-th reply; the client must send it back unchanged."""
    summary = [{"type": "summary_text", "text": thought}]
    return {
        "id": f"rs_{n}",
        "type": "reasoning",
        "summary": summary,
        "encrypted_content": f"sealed {n} {thought}",
    }


def _items(step: Say | Ask, n: int) -> list[tuple[dict[str, Any], str]]:
    """Return the items of the response, each with its event type."""
    items: list[tuple[dict[str, Any], str]] = []
    if step.thought:
        items.append((reasoning(n, step.thought), "reasoning_summary_text"))
    if step.text or isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        items.append(({"type": "message", "role": "assistant", "content": content}, "output_text"))
    for call in calls_of(step, n) if isinstance(step, Ask) else ():
        made = {
            "type": "function_call",
            "id": f"fc_{call['id']}",
            "call_id": call["id"],
            **call["function"],
        }
        items.append((made, "function_call_arguments"))
    return items


def _said(item: dict[str, Any]) -> str:
    if item["type"] == "function_call":
        return str(item["arguments"])
    return str((item.get("summary") or item.get("content") or [{}])[0].get("text", ""))


def _response(step: Say | Ask, seen: Seen, n: int, output: list[dict[str, Any]]) -> dict[str, Any]:
    used = usage_of(step, seen)
    reason = {"length": "max_output_tokens"}.get(step.finish, step.finish)
    is_whole = step.finish in ("stop", "tool_calls")
    return {
        "id": f"resp_{n}",
        "object": "response",
        "status": "completed" if is_whole else "incomplete",
        "incomplete_details": None if is_whole else {"reason": reason},
        "output": output,
        "usage": {
            "input_tokens": used["prompt_tokens"],
            "output_tokens": used["completion_tokens"],
            "input_tokens_details": {"cached_tokens": used["prompt_tokens"] // 2},
        },
    }


def _event(kind: str, **values: Any) -> bytes:
    return (
        f"event: {kind}\ndata: ".encode() + json.dumps({"type": kind, **values}).encode() + b"\n\n"
    )
