"""Call results as lines, from their published JSON: statistics, quarantine, and unused functions."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agent_core.base.clock import shown_time

from .columns import columns
from .spans import Line, indented, line
from .verdicts import duration

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

COMMAND, SLASH = "toolwright functions ", "/"
_KINDS, _VERSIONS, _SHORT = 5, 5, 8
_WAYS = {"rollback": "to go back", "release": "to let the model see it all the same"}


def quarantine_lines(case: Document, typed: str = COMMAND) -> list[Line]:
    """Return why the model no longer sees a function, which version worked last, and what to type."""
    below = [line(("dim", "lately: "), failure) for failure in case["failures"]]
    below.append(line(("dim", "last worked: "), _worked(case)))
    below += [line(("dim", f"{_WAYS[option.split()[0]]}: "), ("strong", f"{typed}{option}")) for option in case["ways"]]
    message = " kept failing and is quarantined: the model no longer sees it"
    return [line(("bad", "✗ "), ("name", str(case["name"])), message), *indented(below)]


def statistics_lines(statistics: Document) -> list[Line]:
    """Return how calls went overall, how they failed, and how each version did. Return nothing if there were none."""
    if not statistics["calls"]:
        return [line(("dim", "never called"))]
    lines = [line(_counted(statistics)), line(("dim", _times(statistics)))]
    if kinds := _kinds(statistics["kinds"]):
        lines.append(line(("dim", "ended otherwise: "), kinds))
    if turns := statistics["turns"]:
        lines.append(line(("dim", f"lately in {len(turns)} turn{_s(len(turns))}, the last {turns[0]}")))
    if released := statistics["released"]:
        lines.append(line(("dim", f"released from quarantine {moment(released[-1]['at'])}")))
    return [*lines, *_version_lines(statistics["versions"])]


def released_lines(released: Document) -> list[Line]:
    """Return the message that a function is released from quarantine."""
    message = " is released: the model sees it again, and its failures are counted from zero"
    return [line(("ok", "✓ "), ("name", str(released["released"])), message)]


def unused_lines(data: Document, typed: str = COMMAND) -> list[Line]:
    """Return each function unused for long, since when, and the command with which the user deletes it."""
    rows = [
        [str(function["name"]), _since(function), f"{typed}delete {function['name']}"]
        for function in data["functions"]
        if function["unused_since"] is not None
    ]
    return columns(rows, ("name", "dim", "")) if rows else []


def unused_hint(data: Document, typed: str) -> list[Line]:
    """Return one line about unused functions, shown under a list."""
    many = data["unused"]
    hint = f"{many} function{_s(many)} nobody has called for a long time: {typed}"
    return [line(("dim", hint))] if many else []


def moment(at: float | None) -> str:
    """Format a time in the local form."""
    return shown_time(at) if at is not None else "never"


def _worked(case: Document) -> str:
    if case["worked_at"] is None:
        return "no call of it ever returned"
    version = case["worked_version"]
    which = "this version" if version == case["version"] else f"version {version[:_SHORT]}"
    return f"{which}, {moment(case['worked_at'])}"


def _counted(statistics: Document) -> str:
    calls, last = f"called {statistics['calls']} ×", f"last {moment(statistics['last_called'])}"
    return f"{calls}: {statistics['returned']} returned, {statistics['failed']} failed, {last}"


def _times(statistics: Document) -> str:
    usual, longest = duration(statistics["median_s"] or 0.0), duration(statistics["longest_s"])
    text = f"{usual} a call (median), {longest} at most, {duration(statistics['seconds'])} in all"
    if statistics["cpu_s"] is not None:
        text += f", {duration(statistics['cpu_s'])} of it on a processor"
    return text + (f", {statistics['memory'] / 2**20:.0f} MiB at most" if statistics["memory"] else "")


def _kinds(kinds: Sequence[Document]) -> str:
    shown = [f"{_kind(kind)} {kind['calls']} ×" for kind in kinds[:_KINDS]]
    return ", ".join([*shown, *(["…"] if len(kinds) > _KINDS else [])])


def _kind(kind: Document) -> str:
    named = kind["error"] or str(kind["outcome"]).replace("_", " ")
    return f"{named} (documented)" if kind["outcome"] == "documented" else str(named)


def _version_lines(versions: Sequence[Document]) -> list[Line]:
    if len(versions) < 2:
        return []
    rows = [
        [
            str(version["version"])[:_SHORT],
            "now" if version["present"] else "",
            f"{version['calls']} ×",
            f"{version['failed']} failed",
            duration(version["mean_s"]),
            f"last {moment(version['last_called'])}",
        ]
        for version in versions[:_VERSIONS]
    ]
    older = [line(("dim", f"and {len(versions) - _VERSIONS} older"))] if len(versions) > _VERSIONS else []
    lines = [*columns(rows, ("name", "ok", "", "", "dim", "dim")), *older]
    return [line(("dim", "called in versions:")), *indented(lines)]


def _since(function: Document) -> str:
    label = "last called" if function["last_called"] == function["unused_since"] else "not called since it joined"
    return f"{label} {moment(function['unused_since'])[:10]}"


def _s(many: int) -> str:
    return "" if many == 1 else "s"
