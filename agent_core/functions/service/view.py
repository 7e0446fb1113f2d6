"""Facts about functions, in the published shapes.

Call statistics of a function in the published shape: totals, by version, by kind of failure, and newest calls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from agent_core.base.errors import UsageError
from ..gate import ExampleResult
from agent_core.base.matching import Wildcard, nearest
from agent_core.registry.examples import Example
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.uses import callees, callers, code_hash
from agent_core.base.settings import StandingSettings
from agent_core.registry.standing import Standing, is_unused, standing
from .calls import source_of
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any
from agent_core.registry.function import Function
from agent_core.registry.standing import summed
from agent_core.storage import CallRow, CallStore, FunctionStore, KindRow, Stats, Store

_TURNS = 10


def by_function(rows: Iterable[Stats]) -> dict[str, list[Stats]]:
    """Return the rows of each function, in order."""
    grouped: dict[str, list[Stats]] = {}
    for row in rows:
        grouped.setdefault(row.function, []).append(row)
    return grouped


async def statistics(store: CallStore, function: Function, rows: Sequence[Stats]) -> dict[str, Any]:
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


MOST_SURVIVORS = 3


@dataclass(frozen=True, slots=True)
class ViewContext:
    """The inputs of a view of functions: the store, the functions at one moment, and the rules of standing."""

    store: Store
    snapshot: Snapshot
    rules: StandingSettings
    starters: Callable[[], frozenset[str]]


@dataclass(frozen=True, slots=True)
class ViewFilter:
    """A query for functions: by shell pattern or part of the name, module, standing now, or long unused."""

    pattern: str = ""
    module: str = ""
    standing: str = ""
    unused: bool = False


async def listing(sight: ViewContext, query: ViewFilter) -> dict[str, Any]:
    """Return the `list` shape: the matching functions, the number of long unused ones, and the rejected files."""
    stats = by_function(await sight.store.call_stats())
    pattern = Wildcard(query.pattern.lower())
    matching = [
        function for _, function in sorted(sight.snapshot.functions.items()) if _matches(function, query, pattern)
    ]
    retirable = await unused(sight, stats)
    verdicts = [(function, await sight.store.verdict(function.body_hash, function.name)) for function in matching]
    rows = [_row(function, verdict, stats.get(function.name, []), sight) for function, verdict in verdicts]
    selected = [
        {**row, "unused_since": retirable.get(row["name"])}
        for row in rows
        if query.standing in ("", row["standing"]) and (not query.unused or row["name"] in retirable)
    ]
    rejected = [] if query.unused else [problem.to_json() for problem in sight.snapshot.rejected]
    return {"functions": selected, "rejected": rejected, "unused": len(retirable)}


async def unused(sight: ViewContext, stats: Mapping[str, Sequence[Stats]]) -> dict[str, float]:
    """Return the functions that may be retired, each with its last call or its joining. They are never removed here."""
    if not sight.rules.retire_days:
        return {}
    now, judged = await sight.store.now(), await sight.store.judged_at()
    pinned = await sight.store.pinned()
    last_uses: dict[str, float] = {}
    for name, function in sight.snapshot.functions.items():
        joined = judged.get((name, function.body_hash), now)
        called = max((row.last_called for row in stats.get(name, ())), default=joined)
        if name not in pinned and is_unused(joined, called, now, sight.rules):
            last_uses[name] = max(joined, called)
    if not last_uses:
        return {}
    left_out = sight.starters().union(*(callees(name, sight.snapshot) for name in sight.snapshot.functions))
    return {name: since for name, since in last_uses.items() if name not in left_out}


async def introspection(sight: ViewContext, name: str) -> dict[str, Any]:
    """Return everything about one function.

    Raises:
        UsageError: there is no such function.
    """
    function = sight.snapshot.functions.get(name)
    if function is None:
        raise unknown_function(name, sight.snapshot.functions)
    verdict = await sight.store.verdict(function.body_hash, name)
    rows = await sight.store.call_stats(name)
    return {
        "name": name,
        "module": function.module,
        "path": function.path,
        "line": function.line,
        "source": source_of(function, sight.snapshot),
        "schema": function.to_json(),
        "examples": [_example(example) for example in function.examples],
        "standing": standing_now(sight.snapshot, function, verdict, rows, sight.rules),
        "statistics": await statistics(sight.store, function, rows),
        "verdict": verdict and _placed(verdict, function),
        "survivors": ((verdict or {}).get("survivors") or [])[:MOST_SURVIVORS],
        "callers": callers(name, sight.snapshot),
        "callees": callees(name, sight.snapshot),
        "versions": await _versions(sight.store, function.module),
    }


def _placed(verdict: dict[str, Any], function: Function) -> dict[str, Any]:  # Any: JSON
    """Return a verdict with its problems at the function's current lines. It was given on the file at that time."""
    if not isinstance(moved_from := verdict.get("line"), int):
        return verdict
    shift = function.line - moved_from
    problems = [
        {
            **problem,
            "path": function.path,
            "line": problem["line"] + shift if problem.get("line") else problem.get("line"),
        }
        for problem in verdict["problems"]
    ]
    return {**verdict, "problems": problems, "line": function.line}


def example_result(result: ExampleResult) -> dict[str, Any]:
    """Return the result of one example."""
    shown = {"call": result.call, "expected": result.expected, "returned": result.returned, "line": result.line}
    return {**shown, "passed": result.agreed, "printed": result.printed, "value": result.value}


def unknown_function(name: str, names: Iterable[str] = ()) -> UsageError:
    """Return the error for a name that is none of the known functions."""
    suggestions = nearest(name, names)
    fix = (
        f"Did you mean `{suggestions[0]}`?"
        if suggestions
        else "Look at the list: list_functions, /functions, `toolwright functions list`."
    )
    return UsageError(f"There is no function `{name}` in functions/.", fix=fix)


def _matches(function: Function, query: ViewFilter, pattern: Wildcard) -> bool:
    module = query.module
    if module and function.module != module and not function.module.startswith(f"{module}."):
        return False
    word = query.pattern.lower()
    if not word:
        return True
    text = f"{function.name} {function.module} {function.description}"
    return pattern.fits(function.name.lower()) or word in text.lower()


def standing_now(
    snapshot: Snapshot,
    function: Function,
    verdict: Mapping[str, Any] | None,
    rows: Sequence[Stats],
    rules: StandingSettings,
) -> Standing:
    """Return the gate's standing (draft if never judged), adjusted by calls of the present version.

    Where a change elsewhere broke its examples it is a draft, whatever its calls returned before.
    """
    present = next((row for row in rows if row.version == function.body_hash), None)
    if is_unfit(function, verdict, snapshot):
        return standing("draft", replace(present, holding=0) if present else None, rules)
    return standing("trial" if (verdict or {}).get("standing") == "trial" else "draft", present, rules)


def is_unfit(function: Function, verdict: Mapping[str, Any] | None, snapshot: Snapshot) -> bool:
    """Return whether its examples fail with the code that it uses now."""
    unfit = (verdict or {}).get("unfit_with")
    return unfit is not None and unfit == code_hash(function, snapshot)


def _row(
    function: Function, verdict: dict[str, Any] | None, rows: Sequence[Stats], sight: ViewContext
) -> dict[str, Any]:
    return {
        "name": function.name,
        "module": function.module,
        "description": function.description.split("\n", 1)[0],
        "standing": standing_now(sight.snapshot, function, verdict, rows, sight.rules),
        "source": (verdict or {}).get("by", "human"),
        "calls": sum(row.calls for row in rows),
        "last_called": max((row.last_called for row in rows), default=None),
    }


async def _versions(store: FunctionStore, module: str) -> list[dict[str, Any]]:
    rows = await store.module_history(module)
    return [
        {"version": row.version, "by": row.by, "turn": row.turn, "model": row.model, "reason": row.reason, "at": row.at}
        for row in rows
    ]


def _example(example: Example) -> dict[str, Any]:
    return {
        "setup": list(example.setup),
        "call": example.call,
        "expected": example.expected or example.raises,
        "line": example.line,
    }
