"""Call results as lines: statistics, quarantine, and unused functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_core.base.clock import shown_time

from ..columns import columns, duration
from ..spans import Line, indented, line

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.base.events import Quarantined
    from agent_core.functions.service.call_records import CallTotals, FailureKind, FunctionStatistics, VersionStatistics
    from agent_core.functions.service.function_facts import FunctionListing, FunctionSummary
    from agent_core.functions.service.quarantine import Released

COMMAND, SLASH = "knapper functions ", "/"
_KINDS, _VERSIONS, _SHORT = 5, 5, 8
_WAYS = {"rollback": "to go back", "release": "to let the model see it all the same"}


def quarantine_lines(quarantined: "Quarantined", typed: str = COMMAND) -> list[Line]:
    """Return why the model no longer sees a function, which version worked last, and what to type."""
    below = [line(("dim", "lately: "), failure) for failure in quarantined.failures]
    below.append(line(("dim", "last worked: "), _worked(quarantined)))
    below += [
        line(("dim", f"{_WAYS[option.split()[0]]}: "), ("strong", f"{typed}{option}")) for option in quarantined.ways
    ]
    message = " kept failing and is quarantined: the model no longer sees it"
    return [line(("bad", "✗ "), ("name", quarantined.name), message), *indented(below)]


def statistics_lines(statistics: "FunctionStatistics") -> list[Line]:
    """Return how calls went overall, how they failed, and how each version did. If there were none, say so."""
    totals = statistics.totals
    if not totals.calls:
        return [line(("dim", "no calls on record; those of functions test and trace are not recorded"))]
    lines = [line(_counted(totals)), line(("dim", _times(totals)))]
    if kinds := _kinds(statistics.kinds):
        lines.append(line(("dim", "ended otherwise: "), kinds))
    if turns := statistics.turns:
        lines.append(line(("dim", f"lately in {len(turns)} turn{_s(len(turns))}, the last {turns[0]}")))
    if released := statistics.released:
        lines.append(line(("dim", f"released from quarantine {moment(released[-1][1])}")))
    return [*lines, *_version_lines(statistics.versions)]


def released_lines(released: "Released") -> list[Line]:
    """Return the message that a function is released from quarantine."""
    message = " is released: the model sees it again, and its failures are counted from zero"
    return [line(("ok", "✓ "), ("name", released.released), message)]


def unused_lines(listing: "FunctionListing", typed: str = COMMAND) -> list[Line]:
    """Return each function unused for long, since when, and the command with which the user deletes it."""
    rows = [
        [function.name, _since(function), f"{typed}delete {function.name}"]
        for function in listing.functions
        if function.unused_since is not None
    ]
    return columns(rows, ("name", "dim", "")) if rows else []


def unused_hint(listing: "FunctionListing", typed: str) -> list[Line]:
    """Return one line about unused functions, shown under a list."""
    many = listing.unused
    hint = f"{many} function{_s(many)} nobody has called for a long time: {typed}"
    return [line(("dim", hint))] if many else []


def shown_line(shown: int, known: int, own: int) -> Line:
    """Return the line that explains the figures of the status bar: those of the workspace, and `own` of Knapper's."""
    was = f"The model was last shown {shown} of {known} functions" if shown else f"{known} functions"
    return line(("dim", f"{was} of this workspace; {own} more are Knapper's own."))


def moment(at: float | None) -> str:
    """Format a time in the local form."""
    return shown_time(at) if at is not None else "never"


def _worked(quarantined: "Quarantined") -> str:
    if quarantined.worked_at is None:
        return "no call of it ever returned"
    version = quarantined.worked_version
    which = "this version" if version == quarantined.version else f"version {version[:_SHORT]}"
    return f"{which}, {moment(quarantined.worked_at)}"


def _counted(totals: "CallTotals") -> str:
    calls, last = f"called {totals.calls} ×", f"last {moment(totals.last_called)}"
    return f"{calls}: {totals.returned} returned, {totals.failed} failed, {last}"


def _times(totals: "CallTotals") -> str:
    usual, longest = duration(totals.median_s or 0.0), duration(totals.longest_s)
    text = f"{usual} a call (median), {longest} at most, {duration(totals.seconds)} in all"
    if totals.cpu_s is not None:
        text += f", {duration(totals.cpu_s)} of it on a processor"
    return text + (f", {totals.memory / 2**20:.0f} MiB at most" if totals.memory else "")


def _kinds(kinds: Sequence["FailureKind"]) -> str:
    shown = [f"{_kind(kind)} {kind.calls} ×" for kind in kinds[:_KINDS]]
    return ", ".join([*shown, *(["…"] if len(kinds) > _KINDS else [])])


def _kind(kind: "FailureKind") -> str:
    named = kind.error or kind.outcome.replace("_", " ")
    return f"{named} (documented)" if kind.outcome == "documented" else named


def _version_lines(versions: Sequence["VersionStatistics"]) -> list[Line]:
    if len(versions) < 2:
        return []
    rows = [
        [
            version.version[:_SHORT],
            "now" if version.present else "",
            f"{version.totals.calls} ×",
            f"{version.totals.failed} failed",
            duration(version.totals.mean_s),
            f"last {moment(version.totals.last_called)}",
        ]
        for version in versions[:_VERSIONS]
    ]
    older = [line(("dim", f"and {len(versions) - _VERSIONS} older"))] if len(versions) > _VERSIONS else []
    lines = [*columns(rows, ("name", "ok", "", "", "dim", "dim")), *older]
    return [line(("dim", "called in versions:")), *indented(lines)]


def _since(function: "FunctionSummary") -> str:
    label = "last called" if function.last_called == function.unused_since else "no calls on record since it was added"
    return f"{label} {moment(function.unused_since)[:10]}"


def _s(many: int) -> str:
    return "" if many == 1 else "s"
