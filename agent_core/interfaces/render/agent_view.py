"""Agents as documents and as lines: the list, what each remembers, and the result of an import."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_core.base.clock import shown_time
from agent_core.storage.agent_store import HELPER_RUN
from agent_core.workspace.portable import AgentReport, waiting_of

from ..columns import columns
from ..spans import Line, indented, line

if TYPE_CHECKING:
    from ..state import WorkspaceState

Json = dict[str, Any]  # Any: JSON


async def agents_listing(state: "WorkspaceState") -> Json:
    """Return every agent, by name, with how much it said and remembers; a helper's runs are no agents to talk to."""
    last = {row.name: row for row in await state.store.agents()}
    rows = []
    for name in await state.moves.names():
        if name.startswith(HELPER_RUN):
            continue
        counts = await state.store.memory_counts(name)
        had = last.get(name)
        rows.append(
            {
                "name": name,
                "turns": had.turns if had else 0,
                "hidden_turns": had.hidden if had else 0,
                "last_at": had.last_at if had else None,
                "messages": counts.messages,
                "passages": counts.passages,
                "blocks": [row.label for row in await state.store.blocks(name)],
            }
        )
    return {"agents": rows}


async def agent_facts(state: "WorkspaceState", name: str) -> Json:
    """Return one agent: its settings, blocks, sections, sources and pinned functions, with counts of each."""
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
            {"label": block.row.label, "characters": len(text_of(block.row.value)), "limit": block.row.limit}
            | {"shared": block.row.shared, "read_only": block.row.read_only, "changes": len(block.history)}
            for block in whole.blocks
            if block.attached
        ],
        "sections": [
            {"name": section.name, "position": section.position, "characters": len(section.text)}
            for section in whole.sections
        ],
        "passages": len(whole.passages),
        "sources": [
            {"name": document.name, "kind": document.kind, "passages": document.done} for document in whole.documents
        ],
        "pins": list(whole.pins),
        "waiting": len(whole.inbox),
        "inbox": waiting_of(whole.inbox),
    }


def listing_lines(data: Json, current: str = "") -> list[Line]:
    """Return the agents as columns; * marks the current one."""
    rows = [
        [
            ("* " if row["name"] == current else "  ") * bool(current) + row["name"],
            _turns(row),
            _many(row["passages"], "passage"),
            day(row["last_at"]),
        ]
        for row in data["agents"]
    ]
    return columns(rows, ("name", "", "", "dim"))


def facts_lines(data: Json) -> list[Line]:
    """Return the details of one agent as lines."""
    settings = ", ".join(f"{key} {value}" for key, value in (data["settings"] or {}).items())
    rows = [
        ["agent", data["name"]],
        ["settings", settings or "as the workspace says"],
        [
            "conversation",
            f"{_turns(data)}, {_many(data['messages'], 'message')}, {day(data['last_at'])}",
        ],
        *(["block", _block_line(block)] for block in data["blocks"]),
        *(["section", f"{section['name']} ({section['characters']} characters)"] for section in data["sections"]),
        ["archival", _many(data["passages"], "passage")],
        *(["source", f"{source['name']} ({_many(source['passages'], 'passage')})"] for source in data["sources"]),
        ["always shown", ", ".join(data["pins"]) or "no function of its own"],
        *([["inbox", _many(data["waiting"], "event")]] if data["waiting"] else []),
    ]
    return [*columns(rows, ("dim", "")), *waiting_lines(data["inbox"], data["waiting"])]


def waiting_lines(inbox: Sequence[Json], count: int) -> list[Line]:
    """Return the first events waiting for an agent's next turns, and how many there are. Return nothing if none
    wait.
    """
    if not inbox:
        return []
    shown = columns([[event["kind"], event["text"]] for event in inbox], ("dim", ""))
    more = [line(("warn", f"… and {count - len(inbox):,} more"))] if count > len(inbox) else []
    return [line(("warn", "it waits, and is read first:")), *indented([*shown, *more])]


def report_lines(report: AgentReport, *, is_tried: bool = False) -> list[Line]:
    """Return what an import did with each part of one agent in a file."""
    data = report.to_json()
    would = "would be made of" if is_tried else "made of"
    head = line(("ok", "✓ "), "agent ", ("name", report.name), f", {would} a file of {_KINDS[report.kind]}")
    took = [
        [str(row["count"]), row["what"], "" if row["as"] == row["what"] else f"→ {row['as']}"] for row in data["mapped"]
    ]
    unmapped = [[str(row["count"]), row["what"], row["why"]] for row in data["unmapped"]]
    unmapped_lines = [line(("warn", "left out:")), *indented(columns(unmapped, ("", "", "dim")))] if unmapped else []
    return [
        head,
        *indented([*columns(took, ("", "", "dim")), *unmapped_lines, *waiting_lines(report.inbox, report.waiting)]),
    ]


def day(at: float | None) -> str:
    """Format a time for people."""
    return shown_time(at) if at else "never"


_KINDS = {"knapper": "this program's", "memgpt": "MemGPT's", "letta": "Letta's"}


def _block_line(block: Json) -> str:
    marks = [name for name, is_so in (("shared", block["shared"]), ("read-only", block["read_only"])) if is_so]
    return f"{block['label']} ({block['characters']}/{block['limit']}{''.join(f', {mark}' for mark in marks)})"


def text_of(value: str | Sequence[str]) -> str:
    """Return the value of a block as one text."""
    return value if isinstance(value, str) else "\n".join(value)


def _turns(row: Json) -> str:
    """Return how many turns the conversation has, and how many are on record alone."""
    hidden = row["hidden_turns"]
    return _many(row["turns"] - hidden, "turn") + (f", {hidden} no longer in the context" if hidden else "")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
