"""Agent files that try to keep the program busy, each as a text."""

import json
from collections.abc import Callable, Mapping
from typing import Any


def own(**parts: Any) -> str:
    """Return a file in this program's format with these parts."""
    return json.dumps({"format": "knapper-agent", "version": 1, "agent": {"name": "a"}, **parts})


def letta(
    messages: list[Any] | None = None, beside: dict[str, Any] | None = None, **agent: Any
) -> str:
    """Return a Letta file with one agent, and the top-level entries next to it."""
    one = {"name": "a", "agent_type": "memgpt_agent", "messages": messages or [], **agent}
    return json.dumps({"agents": [one], **(beside or {})})


def turn(id: str, entries: list[Any], **more: Any) -> dict[str, Any]:
    """Return a turn of a file."""
    event = {"kind": "message", "payload": {"text": "hi"}, "at": 1.0}
    known = {
        "id": id,
        "state": "done",
        "started": 1.0,
        "ended": 1.0,
        "events": [event],
        "entries": entries,
    }
    return known | more


def entry(kind: str, **payload: Any) -> dict[str, Any]:
    """Return an entry of a turn."""
    return {"kind": kind, "payload": payload, "at": 1.0}


_WORDS = "word " * 200_000
_CALLS = [{"id": "", "function": {"name": f"f{n}"}} for n in range(6_000)]
_ANSWERS = [{"role": "tool", "name": f"f{n}", "content": "x"} for n in reversed(range(6_000))]
BUSY: Mapping[str, Callable[[], str]] = {  # made on demand: all of them take a second
    "parts that are all wrong": lambda: own(passages=[{}] * 200_000),
    "lists without end": lambda: '{"format":"knapper-agent","x":[' + "[]," * 2_000_000 + "[]]}",
    "a payload of many values": lambda: own(turns=[turn("t", [entry("other", a=[[]] * 500_000)])]),
    "a long text": lambda: own(passages=[{"id": "p", "text": "\u20ac " * 2_000_000, "at": 1.0}]),
    "summaries": lambda: own(
        turns=[turn("t", [entry("summary", text="", covers=0, upto=0)] * 15_000)]
    ),
    "turns": lambda: own(turns=[turn(f"t{n}", [entry("user", text="a")]) for n in range(10_000)]),
    "blocks of one label": lambda: letta(core_memory=[{"label": "a"}] * 2_000),
    "calls answered from the end": lambda: letta(
        [{"role": "assistant", "content": "", "tool_calls": _CALLS}, *_ANSWERS]
    ),
    "a file that is linked often": lambda: letta(
        files_agents=[{"file_id": "f"}] * 300,
        beside={"files": [{"id": "f", "file_name": "n", "content": _WORDS}]},
    ),
    "messages": lambda: letta(
        [{"role": "user", "content": "a"}] * 10_000, in_context_message_indices=[5] * 500_000
    ),
}
