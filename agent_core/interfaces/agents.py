"""Agents as documents and as lines: who there is, what each remembers, and what became of an imported file."""

import os
from collections.abc import Sequence
from typing import Any

from agent_core.clock import shown_time
from agent_core.errors import UsageError
from agent_core.portable import Report, waiting_of
from agent_core.registry.within import is_behind_link

from ..user_folders import expanded
from .columns import columns
from .spans import Line, indented, line
from .state import State

Json = dict[str, Any]  # Any: JSON


async def agents_listing(state: State) -> Json:
    """Every agent, by name, with how much it said and remembers."""
    last = {row.name: row for row in await state.store.agents()}
    rows = []
    for name in await state.moves.names():
        counts = await state.store.memory.counts(name)
        had = last.get(name)
        rows.append(
            {
                "name": name,
                "turns": had.turns if had else 0,
                "last_at": had.last_at if had else None,
                "messages": counts.messages,
                "passages": counts.passages,
                "blocks": [row.label for row in await state.store.memory.blocks(name)],
            }
        )
    return {"agents": rows}


async def agent_facts(state: State, name: str) -> Json:
    """One agent: its settings, blocks, sections, sources, pinned functions, and how much there is of each."""
    whole = await state.moves.whole(name)
    entries = [entry.kind for turn in whole.turns for entry in turn.entries]
    return {
        "name": whole.name,
        "settings": whole.settings,
        "turns": len(whole.turns),
        "hidden_turns": sum(turn.hidden for turn in whole.turns),
        "messages": sum(kind in ("user", "assistant") for kind in entries),
        "summaries": entries.count("summary"),
        "last_at": whole.turns[-1].started if whole.turns else None,
        "blocks": [
            {"label": one.row.label, "characters": len(text_of(one.row.value)), "limit": one.row.limit}
            | {"shared": one.row.shared, "read_only": one.row.read_only, "changes": len(one.history)}
            for one in whole.blocks
            if one.attached
        ],
        "sections": [
            {"name": one.name, "position": one.position, "characters": len(one.text)} for one in whole.sections
        ],
        "passages": len(whole.passages),
        "sources": [{"name": one.name, "kind": one.kind, "passages": one.done} for one in whole.documents],
        "pins": list(whole.pins),
        "waiting": len(whole.inbox),
        "inbox": waiting_of(whole.inbox),
    }


def listing_lines(found: Json, current: str = "") -> list[Line]:
    """The agents as columns; * is the one that is talked to."""
    rows = [
        [
            ("* " if row["name"] == current else "  ") * bool(current) + row["name"],
            _many(row["turns"], "turn"),
            _many(row["passages"], "passage"),
            day(row["last_at"]),
        ]
        for row in found["agents"]
    ]
    return columns(rows, ("name", "", "", "dim"))


def facts_lines(found: Json) -> list[Line]:
    """One agent, laid open."""
    settings = ", ".join(f"{key} {value}" for key, value in (found["settings"] or {}).items())
    rows = [
        ["agent", found["name"]],
        ["settings", settings or "as the workspace says"],
        [
            "conversation",
            f"{_many(found['turns'], 'turn')}, {_many(found['messages'], 'message')}, {day(found['last_at'])}",
        ],
        *(["block", _block_line(one)] for one in found["blocks"]),
        *(["section", f"{one['name']} ({one['characters']} characters)"] for one in found["sections"]),
        ["archival", _many(found["passages"], "passage")],
        *(["source", f"{one['name']} ({_many(one['passages'], 'passage')})"] for one in found["sources"]),
        ["always shown", ", ".join(found["pins"]) or "no function of its own"],
        *([["inbox", _many(found["waiting"], "event")]] if found["waiting"] else []),
    ]
    return [*columns(rows, ("dim", "")), *waiting_lines(found["inbox"], found["waiting"])]


def waiting_lines(inbox: Sequence[Json], count: int) -> list[Line]:
    """What an agent reads with its next turns: the first of so many events; nothing where nothing waits."""
    if not inbox:
        return []
    shown = columns([[one["kind"], one["text"]] for one in inbox], ("dim", ""))
    more = [line(("warn", f"… and {count - len(inbox):,} more"))] if count > len(inbox) else []
    return [line(("warn", "it waits, and is read first:")), *indented([*shown, *more])]


def report_lines(report: Report, *, is_tried: bool = False) -> list[Line]:
    """What became of what, for one agent of a file."""
    found = report.to_json()
    would = "would be made of" if is_tried else "made of"
    head = line(("ok", "✓ "), "agent ", ("name", report.name), f", {would} a file of {_KINDS[report.kind]}")
    took = [
        [str(one["count"]), one["what"], "" if one["as"] == one["what"] else f"→ {one['as']}"]
        for one in found["mapped"]
    ]
    left = [[str(one["count"]), one["what"], one["why"]] for one in found["unmapped"]]
    told = [line(("warn", "left out:")), *indented(columns(left, ("", "", "dim")))] if left else []
    return [head, *indented([*columns(took, ("", "", "dim")), *told, *waiting_lines(report.inbox, report.waiting)])]


def write_new(path: str, text: str) -> None:
    """Write a file that is not there yet, for its owner alone: what an agent remembers is nobody else's.

    Raises:
        UsageError: it cannot be written; one that is there stays as it is.
    """
    place = expanded(path)
    if is_behind_link(place):
        raise UsageError(f"{path} is not written: {place.parent} is a link.", mend="Name the place itself.")
    try:
        with open(place, "x", encoding="utf-8", opener=_for_its_owner) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def day(at: float | None) -> str:
    """A time as people read it."""
    return shown_time(at) if at else "never"


_KINDS = {"toolwright": "this program's", "memgpt": "MemGPT's", "letta": "Letta's"}


def _block_line(one: Json) -> str:
    marks = [name for name, is_so in (("shared", one["shared"]), ("read-only", one["read_only"])) if is_so]
    return f"{one['label']} ({one['characters']}/{one['limit']}{''.join(f', {mark}' for mark in marks)})"


def text_of(value: str | Sequence[str]) -> str:
    """The value of a block as one text."""
    return value if isinstance(value, str) else "\n".join(value)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
