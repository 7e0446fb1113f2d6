"""What is known about functions, in the published shapes."""

import fnmatch
from typing import Any

from ..errors import UsageError
from ..gate import ExampleResult
from ..registry.examples import Example
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..registry.spans import split
from ..registry.uses import callees, callers
from ..storage import Stats, Store


async def listing(store: Store, snapshot: Snapshot, pattern: str, module: str, standing: str) -> dict[str, Any]:
    """The `list` shape: functions by a shell pattern or a part of their name, and what was rejected."""
    stats = await store.call_stats()
    wanted = [each for _, each in sorted(snapshot.functions.items()) if _matches(each, pattern, module)]
    rows = [_row(each, await store.verdict(each.body_hash, each.name), stats.get(each.name)) for each in wanted]
    kept = [row for row in rows if standing in ("", row["standing"])]
    return {"functions": kept, "rejected": [problem.to_json() for problem in snapshot.rejected]}


async def introspection(store: Store, snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Everything about one function.

    Raises:
        UsageError: there is no such function.
    """
    function = snapshot.functions.get(name)
    if function is None:
        raise unknown_function(name)
    stats = (await store.call_stats()).get(name)
    verdict = await store.verdict(function.body_hash, name)
    lines = split(snapshot.modules[function.module].text)
    return {
        "name": name,
        "module": function.module,
        "path": function.path,
        "line": function.line,
        "source": "\n".join(line.rstrip("\r\n") for line in lines[function.line - 1 : function.end_line]),
        "schema": function.to_json(),
        "examples": [_example(each) for each in function.examples],
        "standing": standing_of(verdict),
        "statistics": _statistics(stats),
        "verdict": verdict,
        "callers": callers(name, snapshot),
        "callees": callees(name, snapshot),
        "versions": await _versions(store, function.module),
    }


def example_result(result: ExampleResult) -> dict[str, Any]:
    """How one example went."""
    shown = {"call": result.call, "expected": result.expected, "returned": result.returned, "line": result.line}
    return {**shown, "passed": result.agreed}


def unknown_function(name: str) -> UsageError:
    """The error for a name that is no function of the workspace."""
    return UsageError(
        f"There is no function `{name}` in functions/.", mend="Look at the list of functions for what there is."
    )


def _matches(function: Function, pattern: str, module: str) -> bool:
    if module and function.module != module and not function.module.startswith(f"{module}."):
        return False
    if not pattern:
        return True
    word = pattern.lower()
    return fnmatch.fnmatch(function.name.lower(), word) or word in f"{function.name} {function.description}".lower()


def standing_of(verdict: dict[str, Any] | None) -> str:
    """The standing that the gate gave; what it never judged is a draft."""
    return str((verdict or {}).get("standing") or "draft")


def _row(function: Function, verdict: dict[str, Any] | None, stats: Stats | None) -> dict[str, Any]:
    return {
        "name": function.name,
        "module": function.module,
        "description": function.description.split("\n", 1)[0],
        "standing": standing_of(verdict),
        "source": (verdict or {}).get("by", "human"),
        "calls": stats.calls if stats else 0,
        "last_called": stats.last_called if stats else None,
    }


async def _versions(store: Store, module: str) -> list[dict[str, Any]]:
    rows = await store.module_history(module)
    return [
        {"version": row.version, "by": row.by, "turn": row.turn, "model": row.model, "reason": row.reason, "at": row.at}
        for row in rows
    ]


def _statistics(stats: Stats | None) -> dict[str, Any]:
    if stats is None:
        return {"calls": 0, "returned": 0, "failed": 0, "last_called": None, "seconds": 0.0}
    return {
        "calls": stats.calls,
        "returned": stats.returned,
        "failed": stats.failed,
        "last_called": stats.last_called,
        "seconds": stats.seconds,
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "setup": list(example.setup),
        "call": example.call,
        "expected": example.expected or example.raises,
        "line": example.line,
    }
