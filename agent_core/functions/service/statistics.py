"""Call statistics of a function in the published shape: totals, by version, by kind of failure, and newest calls."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from agent_core.registry.function import Function
from agent_core.registry.standing import summed
from agent_core.storage import CallRow, KindRow, Stats, Store

_TURNS = 10


def by_function(rows: Iterable[Stats]) -> dict[str, list[Stats]]:
    """Return the rows of each function, in order."""
    grouped: dict[str, list[Stats]] = {}
    for row in rows:
        grouped.setdefault(row.function, []).append(row)
    return grouped


async def statistics(store: Store, function: Function, rows: Sequence[Stats]) -> dict[str, Any]:
    """Return the totals over all versions, each version by itself, and the stored single calls."""
    kinds, recent = await store.call_kinds(function.name), await store.recent_calls(function.name)
    released = await store.releases(function.name)
    return {
        **_totals(summed(list(rows)), recent),
        "kinds": _kinds(kinds),
        "turns": list(dict.fromkeys(call.turn for call in recent if call.turn))[:_TURNS],
        "versions": [
            {
                "version": row.version,
                "present": row.version == function.body_hash,
                **_totals(row, [call for call in recent if call.version == row.version]),
                "kinds": _kinds([kind for kind in kinds if kind.version == row.version]),
            }
            for row in reversed(rows)
        ],
        "recent": [_call(call) for call in recent],
        "released": [{"version": version, "at": at} for version, at in released],
    }


def _totals(stats: Stats | None, recent: Sequence[CallRow]) -> dict[str, Any]:
    if stats is None:
        return {"calls": 0, "returned": 0, "failed": 0, "last_called": None, "seconds": 0.0}
    return {
        "calls": stats.calls,
        "returned": stats.returned,
        "failed": stats.failed,
        "failing": stats.failing,
        "holding": stats.holding,
        "first_called": stats.first_called,
        "last_called": stats.last_called,
        "last_returned": stats.worked,
        "seconds": stats.seconds,
        "mean_s": stats.seconds / stats.calls,
        "median_s": median(call.seconds for call in recent) if recent else None,  # of those that are kept
        "longest_s": stats.longest,
        "memory": stats.memory,
        "cpu_s": stats.cpu,
    }


def _kinds(rows: Sequence[KindRow]) -> list[dict[str, Any]]:
    """Return the outcomes of calls that did not return, over the given versions."""
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        kind = kinds.setdefault(
            (row.outcome, row.error), {"outcome": row.outcome, "error": row.error, "calls": 0, "last": 0.0}
        )
        kind["calls"] += row.calls
        kind["last"] = max(kind["last"], row.last)
    return sorted(kinds.values(), key=lambda kind: (-kind["calls"], -kind["last"]))


def _call(call: CallRow) -> dict[str, Any]:
    return {
        "version": call.version,
        "turn": call.turn,
        "outcome": call.outcome,
        "error": call.error,
        "message": call.message,
        "seconds": call.seconds,
        "memory": call.memory,
        "cpu_s": call.cpu,
        "at": call.at,
    }
