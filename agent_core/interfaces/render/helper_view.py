"""Helpers as documents and as lines: the list, one of them, its versions, verdicts and proposals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_core.base.clock import shown_time
from agent_core.base.untrusted import one_line
from agent_core.registry.synopsis import signature
from agent_core.workspace.helper_file import Helper, path_of
from sandbox.wire.lines import bare_lines

from ..columns import columns
from ..spans import Line, indented, line
from .verdicts import problem_lines

if TYPE_CHECKING:  # the commands start without a workspace
    from agent_core.workspace.helper_changes import HelperVerdict
    from agent_core.workspace.helper_library import HelperVersion
    from agent_core.workspace.helper_proposals import HelperProposal
    from agent_core.workspace.workspace import Workspace

Json = dict[str, Any]  # Any: JSON
_LAST_RUNS = 5


async def helpers_document(workspace: "Workspace") -> Json:
    """Return all helpers as they now are, and the problems of the files that were rejected."""
    await workspace.helpers.refresh(is_told=False)
    runs = await workspace.helpers.runs()
    rows = [_summary(helper, runs) for helper in workspace.helpers.helpers.values()]
    return {"helpers": rows, "rejected": [problem.to_json() for problem in workspace.helpers.problems]}


async def helper_document(workspace: "Workspace", name: str) -> Json:
    """Return everything about one helper as it now is.

    Raises:
        UsageError: there is none of this name.
    """
    await workspace.helpers.refresh(is_told=False)
    helper, runs = workspace.helpers.helper(name), await workspace.helpers.runs()
    functions = workspace.workshop.registry.snapshot().functions
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


def _summary(helper: Helper, runs: Mapping[str, Sequence[str]]) -> Json:
    return {
        "name": helper.name,
        "purpose": helper.purpose,
        "signature": signature(helper.function),
        "functions": list(helper.functions),
        "runs": len(runs.get(helper.name, ())),
        "path": path_of(helper.name),
    }


def list_lines(rows: Iterable[Json]) -> list[Line]:
    """Return the helpers as columns."""
    cells = [[one_line(row["signature"], 70), one_line(row["purpose"], 60), _runs(row["runs"])] for row in rows]
    return columns(cells, ("name", "", "dim"))


def facts_lines(data: Json) -> list[Line]:
    """Return the facts about one helper as lines."""
    budget = ", ".join(f"{amount:,g} {name}" for name, amount in data["budget"].items())
    rows = [
        ["helper", data["signature"]],
        ["purpose", one_line(data["purpose"], 300)],
        ["calls", ", ".join(data["calls"]) or "no function"],
        ["helpers", ", ".join(data["helpers"]) or "none"],
        ["model", data["model"] or "that of the workspace"],
        ["budget", budget],
        ["runs", _runs(data["runs"])],
        *(["", f"knapper agents show {name}"] for name in data["last_runs"]),
    ]
    return columns(rows, ("dim", ""))


def source_lines(text: str) -> list[Line]:
    """Return the text of a helper's file, below the facts."""
    return indented(line(("dim", one_line(row, 400))) for row in bare_lines(text))


def verdict_lines(verdict: "HelperVerdict", done: str) -> list[Line]:
    """Return a verdict: whether it passed, and the problems."""
    if verdict.admitted:
        head = line(("ok", "✓ "), ("name", verdict.name), f" {done}{f': {verdict.back}' if verdict.back else ''}")
    else:
        head = line(("bad", "✗ "), ("name", verdict.name), f" was rejected. {one_line(verdict.denied, 300)}".rstrip())
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
    """Return each proposal with its figures and its draft."""
    lines: list[Line] = []
    for one in proposals:
        figures = (
            f"used together in {one.together} of {one.turns} turns, {one.share:.0%} or more of each pair's, in"
            f" {one.calls} calls"
        )
        lines.append(line(("name", one.name), f": {', '.join(one.functions)}", ("dim", f"  {figures}")))
        lines += indented(line(("dim", f"“{one_line(request, 100)}”")) for request in one.requests)
        lines += source_lines(one.draft)
    return lines


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
