"""What calls came to, from their published JSON to lines: statistics, quarantine, and what nobody calls any more."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agent_core.clock import shown_time

from .columns import columns
from .spans import Line, indented, line
from .verdicts import duration

Document: TypeAlias = Mapping[str, Any]  # Any: JSON of a shape that the design publishes

COMMAND, SLASH = "toolwright functions ", "/"
_KINDS, _VERSIONS, _SHORT = 5, 5, 8
_WAYS = {"rollback": "to go back", "release": "to let the model see it all the same"}


def quarantine_lines(case: Document, typed: str = COMMAND) -> list[Line]:
    """Why the model no longer sees a function, what worked last, and what to type."""
    below = [line(("dim", "lately: "), failure) for failure in case["failures"]]
    below.append(line(("dim", "last worked: "), _worked(case)))
    below += [line(("dim", f"{_WAYS[way.split()[0]]}: "), ("strong", f"{typed}{way}")) for way in case["ways"]]
    what = " kept failing and is quarantined: the model no longer sees it"
    return [line(("bad", "✗ "), ("name", str(case["name"])), what), *indented(below)]


def statistics_lines(statistics: Document) -> list[Line]:
    """How calls went in all, how they failed, and how each version did; nothing where there were none."""
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
    """A function is out of quarantine."""
    told = " is released: the model sees it again, and its failures count anew"
    return [line(("ok", "✓ "), ("name", str(released["released"])), told)]


def unused_lines(found: Document, typed: str = COMMAND) -> list[Line]:
    """Each function that nobody called for long, since when, and how to delete it: that is for a human to do."""
    rows = [
        [str(each["name"]), _since(each), f"{typed}delete {each['name']}"]
        for each in found["functions"]
        if each["unused_since"] is not None
    ]
    return columns(rows, ("name", "dim", "")) if rows else []


def unused_hint(found: Document, typed: str) -> list[Line]:
    """One line about what may be retired, under a list."""
    many = found["unused"]
    told = f"{many} function{_s(many)} nobody called for long: {typed}"
    return [line(("dim", told))] if many else []


def moment(at: float | None) -> str:
    """A time as people here read it."""
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
    told = f"{usual} a call (median), {longest} at most, {duration(statistics['seconds'])} in all"
    if statistics["cpu_s"] is not None:
        told += f", {duration(statistics['cpu_s'])} of it on a processor"
    return told + (f", {statistics['memory'] / 2**20:.0f} MiB at most" if statistics["memory"] else "")


def _kinds(kinds: Sequence[Document]) -> str:
    shown = [f"{_kind(each)} {each['calls']} ×" for each in kinds[:_KINDS]]
    return ", ".join([*shown, *(["…"] if len(kinds) > _KINDS else [])])


def _kind(kind: Document) -> str:
    named = kind["error"] or str(kind["outcome"]).replace("_", " ")
    return f"{named} (documented)" if kind["outcome"] == "documented" else str(named)


def _version_lines(versions: Sequence[Document]) -> list[Line]:
    if len(versions) < 2:
        return []
    rows = [
        [
            str(each["version"])[:_SHORT],
            "now" if each["present"] else "",
            f"{each['calls']} ×",
            f"{each['failed']} failed",
            duration(each["mean_s"]),
            f"last {moment(each['last_called'])}",
        ]
        for each in versions[:_VERSIONS]
    ]
    older = [line(("dim", f"and {len(versions) - _VERSIONS} older"))] if len(versions) > _VERSIONS else []
    lines = [*columns(rows, ("name", "ok", "", "", "dim", "dim")), *older]
    return [line(("dim", "called in versions:")), *indented(lines)]


def _since(function: Document) -> str:
    what = "last called" if function["last_called"] == function["unused_since"] else "not called since it joined"
    return f"{what} {moment(function['unused_since'])[:10]}"


def _s(many: int) -> str:
    return "" if many == 1 else "s"
