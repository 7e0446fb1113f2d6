"""Agents and helpers as JSON and as lines: lists, details, states of agents, and results of imports."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_core.base import events
from agent_core.base.clock import shown_time
from agent_core.base.events import Event
from agent_core.base.extensions import AGENT_FILES, offers
from agent_core.base.untrusted import one_line
from agent_core.registry.function import signature
from agent_core.storage import Misfit, is_history
from agent_core.storage.agent_store import HELPER_RUN, PASSING
from agent_core.workspace.portable import AgentReport, waiting_of
from sandbox.wire.lines import bare_lines

from .styled_lines import Line, Role, Span, columns, counted, indented, line, money
from .verdicts import moment, problem_lines

if TYPE_CHECKING:  # for annotations
    from agent_core.workspace.helper_changes import HelperProposal, HelperVerdict
    from agent_core.workspace.helper_library import Helper, HelperVersion
    from agent_core.workspace.state_store import WorkspaceState
    from agent_core.workspace.supervision import AgentState
    from agent_core.workspace.workspace import Workspace


Json = dict[str, Any]  # Any: JSON


async def agents_listing(state: "WorkspaceState") -> Json:
    """Return all agents with the sizes of their conversations and memories.

    Temporary ones, runs of helpers and histories that programs sent are left out.
    """
    last = {row.name: row for row in await state.store.agents()}
    rows = []
    for name in await state.moves.names():
        if name.startswith((HELPER_RUN, PASSING)) or is_history(name):
            continue
        counts = await state.store.memory_counts(name)
        had, trouble, labels = last.get(name), dict[str, str](), list[str]()
        try:
            labels = [row.label for row in await state.store.blocks(name)]
        except Misfit as error:  # the other agents are listed all the same
            trouble = {"trouble": error.message}
        rows.append(
            {
                "name": name,
                "turns": had.turns if had else 0,
                "hidden_turns": had.hidden if had else 0,
                "last_at": had.last_at if had else None,
                "messages": counts.messages,
                "passages": counts.passages,
                "blocks": labels,
                **trouble,
            }
        )
    return {"agents": rows}


async def agent_facts(state: "WorkspaceState", name: str, token: str | None = None) -> Json:
    """Return an agent's settings, blocks, sections, sources and pinned functions, with counts of each.

    With a `token`, conversations that are private to another one are not counted.
    """
    whole = await state.moves.whole(name, token, has_contents=False)
    counts = await state.store.agent_counts(name, token=token)
    return {
        "name": whole.name,
        "settings": whole.settings,
        "turns": counts.turns,
        "hidden_turns": counts.hidden_turns,
        "messages": counts.messages,
        "summaries": counts.summaries,
        "last_at": counts.last_at,
        "blocks": [
            {
                "label": block.row.label,
                "characters": len(text_of(block.row.value)),
                "limit": block.row.limit,
            }
            | {
                "shared": block.row.shared,
                "read_only": block.row.read_only,
                "changes": len(block.history),
            }
            for block in whole.blocks
            if block.attached
        ],
        "sections": [
            {"name": section.name, "position": section.position, "characters": len(section.text)}
            for section in whole.sections
        ],
        "passages": counts.passages,
        "sources": [
            {"name": document.name, "kind": document.kind, "passages": document.done}
            for document in whole.documents
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
            counted(row["passages"], "passage"),
            row.get("trouble", "") or moment(row["last_at"]),
        ]
        for row in data["agents"]
    ]
    return columns(rows, ("name", "", "", "dim"))


def facts_lines(data: Json) -> list[Line]:
    """Return the details of one agent as lines."""
    settings = ", ".join(f"{key} {value}" for key, value in (data["settings"] or {}).items())
    blocks = []
    for block in data["blocks"]:
        marks = "".join(
            f", {mark.replace('_', '-')}" for mark in ("shared", "read_only") if block[mark]
        )
        blocks.append(
            ["block", f"{block['label']} ({block['characters']}/{block['limit']}{marks})"]
        )
    rows = [
        ["agent", data["name"]],
        ["settings", settings or "as the workspace says"],
        [
            "conversation",
            f"{_turns(data)}, {counted(data['messages'], 'message')}, {moment(data['last_at'])}",
        ],
        *blocks,
        *(
            ["section", f"{section['name']} ({section['characters']} characters)"]
            for section in data["sections"]
        ),
        ["archival", counted(data["passages"], "passage")],
        *(
            ["source", f"{source['name']} ({counted(source['passages'], 'passage')})"]
            for source in data["sources"]
        ),
        ["always shown", ", ".join(data["pins"]) or "no function of its own"],
        *([["inbox", counted(data["waiting"], "event")]] if data["waiting"] else []),
    ]
    return [*columns(rows, ("dim", "")), *waiting_lines(data["inbox"], data["waiting"])]


def waiting_lines(
    inbox: Sequence[Json], count: int, when: str = "it waits, and is read first:"
) -> list[Line]:
    """Return the first events waiting for an agent's next turns, and their number; nothing if none are waiting."""
    if not inbox:
        return []
    shown = columns([[event["kind"], event["text"]] for event in inbox], ("dim", ""))
    more = [line(("warn", f"… and {count - len(inbox):,} more"))] if count > len(inbox) else []
    return [line(("warn", when)), *indented([*shown, *more])]


def heard_lines(report: AgentReport) -> list[Line]:
    """Return the first events that waited in the inbox of a file, which begin no turn here."""
    return waiting_lines(report.inbox, report.waiting, "it is read with your next message:")


def report_lines(report: AgentReport, *, is_tried: bool = False) -> list[Line]:
    """Return lines about how an import handled each part of one agent in a file."""
    data = report.to_json()
    would = "would be made of" if is_tried else "made of"
    head = line(
        ("ok", "✓ "), "agent ", ("name", report.name), f", {would} a file of {_whose(report.kind)}"
    )
    took = [
        [str(row["count"]), row["what"], "" if row["as"] == row["what"] else f"→ {row['as']}"]
        for row in data["mapped"]
    ]
    unmapped = [[str(row["count"]), row["what"], row["why"]] for row in data["unmapped"]]
    unmapped_lines = (
        [line(("warn", "left out:")), *indented(columns(unmapped, ("", "", "dim")))]
        if unmapped
        else []
    )
    return [
        head,
        *indented([*columns(took, ("", "", "dim")), *unmapped_lines, *heard_lines(report)]),
    ]


def _whose(kind: str) -> str:
    """Return whose file it was, by its kind."""
    if kind == "knapper":
        return "this program's"
    programs = {name.lower(): name for name in offers(AGENT_FILES)}
    return f"{programs.get(kind, kind)}'s"


def text_of(value: str | Sequence[str]) -> str:
    """Return the value of a block as one text."""
    return value if isinstance(value, str) else "\n".join(value)


def _turns(row: Json) -> str:
    """Return the number of turns in the conversation, and the number that are only on record."""
    hidden = row["hidden_turns"]
    return counted(row["turns"] - hidden, "turn") + (
        f", {hidden} no longer in the context" if hidden else ""
    )


_CHARS = 100
_ROLES: Mapping[str, Role] = {
    "running": "ok",
    "stuck": "bad",
    "stopped": "bad",
    "paused": "warn",
    "waiting": "warn",
}


def tree_lines(states: Sequence["AgentState"]) -> list[Line]:
    """Return a row for each agent's state, in the given order."""
    rows = []
    for state in states:
        since = f"since {shown_time(state.since, '%m-%d %H:%M:%S')}" if state.since else ""
        waits = f"{state.state} → {state.waits_on}" if state.waits_on else state.state
        spent = [
            money(amount)
            if name == "cost"
            else f"{amount:,.0f} {name.removesuffix('s') if amount == 1 else name}"
            for name, amount in state.spent.items()
        ]
        rows.append([state.name, waits, since, ", ".join(spent), one_line(state.why, 60)])
    return columns(rows, ("name", "", "dim", "dim", "dim"))


def behind_lines(event: Event) -> list[Line]:
    """Return the lines for an event of an agent in the background; most events have none."""
    match event:
        case events.TurnEnded(reason="replied"):
            told: Span = ("dim", f" {one_line(event.reply, _CHARS)}")
        case events.TurnEnded(reason="parked"):
            told = ("dim", " waits for an answer")
        case events.TurnEnded(reason="handed_off"):
            told = ("dim", " handed it over")
        case events.Warned():
            told = ("warn", f" {one_line(event.text, _CHARS)}")
        case _:
            return []
    return [line(("name", f"  {event.agent}"), told)]


_LAST_RUNS = 5


async def helpers_document(workspace: "Workspace") -> Json:
    """Return all current helpers, and the problems of rejected files."""
    await workspace.helpers.refresh(is_told=False)
    runs = await workspace.helpers.runs()
    rows = [_summary(helper, runs) for helper in workspace.helpers.helpers.values()]
    return {
        "helpers": rows,
        "rejected": [problem.to_json() for problem in workspace.helpers.problems],
    }


async def helper_document(workspace: "Workspace", name: str) -> Json:
    """Return everything about the current version of a helper.

    Raises:
        UsageError: there is no helper with this name.
    """
    await workspace.helpers.refresh(is_told=False)
    helper, runs = workspace.helpers.helper(name), await workspace.helpers.runs()
    functions = workspace.functions.registry.snapshot().functions
    return {
        **_summary(helper, runs),
        "parameters": helper.function.parameters,
        "result": helper.answer.returns,
        "calls": sorted(own for own, function in functions.items() if helper.may_call(function)),
        "helpers": list(helper.helpers),
        "model": helper.model,
        "persona": helper.persona,
        "grows": helper.grows,
        "budget": helper.budget.amounts(),
        "version": helper.function.version,
        "last_runs": list(runs.get(name, ()))[-_LAST_RUNS:],
        "text": helper.text,
    }


def _summary(helper: "Helper", runs: Mapping[str, Sequence[str]]) -> Json:
    return {
        "name": helper.name,
        "purpose": helper.purpose,
        "signature": signature(helper.function),
        "functions": list(helper.functions),
        "runs": len(runs.get(helper.name, ())),
        "path": helper.function.path,
    }


def list_lines(rows: Iterable[Json]) -> list[Line]:
    """Return the helpers as columns."""
    cells = [
        [one_line(row["signature"], 70), one_line(row["purpose"], 60), counted(row["runs"], "run")]
        for row in rows
    ]
    return columns(cells, ("name", "", "dim"))


def helper_facts_lines(data: Json) -> list[Line]:
    """Return the facts about one helper as lines."""
    budget = ", ".join(f"{amount:,g} {name}" for name, amount in data["budget"].items())
    rows = [
        ["helper", data["signature"]],
        ["purpose", one_line(data["purpose"], 300)],
        ["calls", ", ".join(data["calls"]) or "no function"],
        ["helpers", ", ".join(data["helpers"]) or "none"],
        ["model", data["model"] or "that of the workspace"],
        ["budget", budget],
        ["runs", counted(data["runs"], "run")],
        *(["", f"knapper agents show {name}"] for name in data["last_runs"]),
    ]
    return columns(rows, ("dim", ""))


def source_lines(text: str) -> list[Line]:
    """Return the text of a helper's file, to show below the facts."""
    return indented(line(("dim", one_line(row, 400))) for row in bare_lines(text))


def verdict_lines(verdict: "HelperVerdict", done: str) -> list[Line]:
    """Return lines for a verdict on a helper: whether it passed, and its problems."""
    if verdict.admitted:
        head = line(
            ("ok", "✓ "),
            ("name", verdict.name),
            f" {done}{f': {verdict.back}' if verdict.back else ''}",
        )
    else:
        head = line(
            ("bad", "✗ "),
            ("name", verdict.name),
            f" was rejected. {one_line(verdict.denied, 300)}".rstrip(),
        )
    return [head, *indented(problem_lines(verdict.problems))]


def history_lines(versions: Iterable["HelperVersion"]) -> list[Line]:
    """Return the versions of a helper, the newest first."""
    rows = [
        [
            str(row.number),
            row.version[:8] if row.text else "deleted",
            shown_time(row.at, "%Y-%m-%d %H:%M"),
            row.agent or row.by,
            one_line(row.reason, 80),
        ]
        for row in versions
    ]
    return columns(rows[::-1], ("name", "", "dim", "", "dim"))


def proposal_lines(proposals: Iterable["HelperProposal"]) -> list[Line]:
    """Return lines for each proposal, with its figures and its draft."""
    lines: list[Line] = []
    for one in proposals:
        figures = (
            f"used together in {one.together} of {one.turns} turns, {one.share:.0%} or more of each pair's, in"
            f" {one.calls} calls"
        )
        lines.append(
            line(("name", one.name), f": {', '.join(one.functions)}", ("dim", f"  {figures}"))
        )
        lines += indented(line(("dim", f"“{one_line(request, 100)}”")) for request in one.requests)
        lines += source_lines(one.draft)
    return lines
