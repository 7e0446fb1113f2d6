"""What the model saw in a step, by part, read back from the journal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent_core.base.messages import Answer, Assistant, Message, Notice
from agent_core.context import BYTES_PER_TOKEN, History, resume
from agent_core.context.history import size_of
from agent_core.model.request import FunctionShown
from agent_core.registry.function import Function
from agent_core.runtime.turn import messages_of
from agent_core.storage import Entry, Store

STEP: Final = "assistant"
_REQUEST: Final = "request"
_LINE: Final = 160
_MOST_SHOWN: Final = 200  # messages of a step with their texts
Json = dict[str, Any]  # Any: JSON


async def steps(store: Store, agent: str, most: int) -> list[Json]:
    """Return the last steps of an agent, oldest first: what came of each, and by which model."""
    model, rows = "", list[Json]()
    for entry in await store.history(agent, kinds=(STEP, _REQUEST)):
        if entry.kind == _REQUEST:
            model = str(entry.payload.get("model", ""))
            continue
        calls = [call["name"] for call in entry.payload.get("calls", [])]
        text = str(entry.payload.get("text", ""))[:_LINE]
        rows.append(
            {"seq": entry.seq, "turn": entry.turn, "at": entry.at, "model": model, "calls": calls, "text": text}
        )
    return rows[-most:]


async def step_parts(store: Store, agent: str, seq: int, functions: Mapping[str, Function]) -> Json | None:
    """Return what the model saw before a reply: parts with their texts and about how many tokens each has.

    `functions` are those of today: one that is gone since, or has changed, has no figure.
    """
    entries = [entry for entry in await store.history(agent, kinds=(STEP, _REQUEST)) if entry.seq <= seq]
    if not entries or entries[-1].seq != seq or entries[-1].kind != STEP:
        return None
    request = next((entry for entry in reversed(entries) if entry.kind == _REQUEST), None)
    history = History()
    await resume(store, agent, history, messages_of, before=seq)
    parts = [*await _fixed(store, request, functions), *_conversation(history)]
    known = request.payload if request else {}
    facts = {"agent": agent, "seq": seq, "turn": entries[-1].turn, "model": known.get("model", "")}
    return {**facts, "tokens": sum(part["tokens"] or 0 for part in parts), "parts": parts}


async def _fixed(store: Store, request: Entry | None, functions: Mapping[str, Function]) -> list[Json]:
    """Return what stood before the conversation."""
    if request is None:
        return []
    payload, parts = request.payload, list[Json]()
    for hash in payload.get("sections", []):
        text = await store.text(hash) or ""
        is_first = hash == payload.get("instructions")
        parts.append(_part("instructions" if is_first else "section", text, len(text.encode("utf-8", "replace"))))
    names, versions = payload.get("functions", []), payload.get("versions", {})
    shown = [_shown(functions[name]) for name in names if _is_same(functions.get(name), versions.get(name))]
    part = _part("functions", "\n".join(names), sum(function.size for function in shown))
    return [*parts, {**part, "count": len(names), "tokens": part["tokens"] if shown or not names else None}]


def _is_same(function: Function | None, version: str | None) -> bool:
    return function is not None and version in (None, function.version)


def _shown(function: Function) -> FunctionShown:
    return FunctionShown(function.name, function.description, function.parameters)


def _conversation(history: History) -> Iterable[Json]:
    """Yield the summary, if there is one, and the messages after it."""
    messages = list(history)
    if history.summary is not None:
        yield {**_part("summary", messages[0].text, size_of(messages.pop(0))), "count": history.summary.covers}
    rows = [
        {"kind": _kind(message), "tokens": _tokens(size_of(message)), "text": _text(message)} for message in messages
    ]
    counts = Counter(_kind(message) for message in messages)
    part = _part("conversation", "", sum(size_of(message) for message in messages))
    yield {**part, "count": len(messages), "kinds": dict(counts), "messages": rows[-_MOST_SHOWN:]}


def _part(name: str, text: str, size: int) -> Json:
    return {"part": name, "tokens": _tokens(size), "text": text}


def _tokens(size: int) -> int:
    return int(size / BYTES_PER_TOKEN)


def _kind(message: Message) -> str:
    names = {Assistant: "assistant", Answer: "answer", Notice: "notice"}
    return names.get(type(message), "user")


def _text(message: Message) -> str:
    match message:
        case Assistant():
            calls = [f"▸ {call.name} {call.arguments}" for call in message.calls]
            return "\n".join(filter(None, [message.text, *calls]))
        case Answer():
            return f"{message.name}: {message.text}"
        case _:
            return message.text
