"""Conversion of MemGPT's `save_to_json_file` output to an agent.

The file holds model, system, functions, messages, messages_total, memory.
"""

from typing import Any

from agent_core.base.untrusted import whole_characters
from agent_core.storage import SectionRow, WholeAgent

from .messages import ImportedMessage, Json, Turns, agent_name, asked_of, block_of, objects_at, text_at
from .report import AgentFileError, AgentReport
from .text import unpacked

PRESET = "memgpt"
_USUAL = ("You are MemGPT, the latest version of Limnal", "You are Letta, the latest version of Limnal")
_LABELS = ("persona", "human")


def is_memgpt(raw: Json) -> bool:
    """Check whether the document is one of MemGPT's."""
    return {"messages", "memory", "system"} <= raw.keys() and "agents" not in raw


def agent_of_memgpt(raw: Json, name: str, ids: str, now: float) -> tuple[WholeAgent, AgentReport]:
    """Return the agent and the report of its import; `ids` is the prefix of its parts' ids.

    Raises:
        AgentFileError: the file is invalid.
    """
    report = AgentReport("memgpt", agent_name(name))
    messages = [_message_of(where, message) for where, message in objects_at(raw, "messages")]
    times = [at for message in messages if message.role == "user" and (at := unpacked(message.text).at)]
    turns = Turns(report, min(times, default=now))
    for part in messages:
        turns.add(part)
    memory = raw["memory"]
    if not isinstance(memory, dict):
        raise AgentFileError("memory", "expected an object")
    blocks = tuple(
        block_of(f"{ids}-{label}", {"label": label, "value": memory.get(label)}, f"memory.{label}", turns.last)
        for label in _LABELS
    )
    report.took("memory", "blocks", len(blocks))
    whole = WholeAgent(
        name=report.name,
        settings={"preset": PRESET},
        turns=turns.whole(ids),
        blocks=blocks,
        sections=system_section(text_at(raw, "system", ""), report, turns.last),
    )
    if raw.get("model"):
        report.leaves("model", "the workspace's settings say which model answers")
    functions = list(objects_at(raw, "functions"))
    report.leaves(
        "functions",
        "the file has their schemas alone; MemGPT's own functions are here under the same names",
        len(functions),
    )
    total = raw.get("messages_total")
    if isinstance(total, int) and not isinstance(total, bool) and len(messages) - 1 < total < 1 << 40:
        why = "MemGPT keeps them, and its archival memory, in files next to this one"
        report.leaves("messages before these", why, total - max(len(messages) - 1, 0))
    return whole, report


def system_section(system: str, report: AgentReport, at: float) -> tuple[SectionRow, ...]:
    """Return a custom system prompt as a section; standard ones describe functions that are different here."""
    if not system.strip():
        return ()
    if system.lstrip().startswith(_USUAL):
        report.leaves("system prompt", "it is the usual one, and the preset has its own")
        return ()
    report.took("system prompt", "section `system`")
    return (SectionRow("system", 0, system, max(4000, len(system)), at),)


def _message_of(where: str, message: Json) -> ImportedMessage:
    calls: tuple[Any, ...] = tuple(asked_of(call, place) for place, call in objects_at(message, "tool_calls", where))
    if isinstance(old := message.get("function_call"), dict):
        calls = (*calls, asked_of(old, f"{where}.function_call"))
    return ImportedMessage(
        role=text_at(message, "role", where),
        text=whole_characters(text_at(message, "content", where)),
        calls=calls,
        call_id=text_at(message, "tool_call_id", where)[:200],
        name=text_at(message, "name", where)[:200],
    )
