"""The functions that the model does not see, because they kept failing: which, why, and the way out.

Held as (function, version), so that another version is free at once. What another process records is seen at the
next turn.
"""

from collections import Counter
from typing import Any

from ..errors import UsageError
from ..events import Quarantined
from ..registry.function import Function
from ..registry.registry import Registry
from ..settings import StandingSettings
from ..standing import is_quarantined
from ..storage import FAILURES, CallRow, ReleaseFunction, Stats, Store
from ..untrusted import fence, one_line
from .history import SHORT

_REASONS = 3


class Quarantine:
    """Knows at every step who is in it, without asking the store at each call."""

    def __init__(self, store: Store, registry: Registry, rules: StandingSettings) -> None:
        self.held: frozenset[tuple[str, str]] = frozenset()
        self._store = store
        self._registry = registry
        self._rules = rules

    def holds(self, function: Function) -> bool:
        """Whether this version of the function is in quarantine."""
        return (function.name, function.body_hash) in self.held

    async def refresh(self) -> None:
        """Take over who is in it now: at the start, and before a turn."""
        found = await self._failing()
        if found != self.held:
            self.held = found

    async def entered(self, names: set[str]) -> list[Quarantined]:
        """Which of these functions, after calls that failed, have just come in."""
        fresh = {each for each in await self._failing() - self.held if each[0] in names}
        if not fresh:
            return []
        self.held |= fresh
        functions = self._registry.snapshot().functions.values()
        return [await self.case(function) for function in functions if (function.name, function.body_hash) in fresh]

    async def case(self, function: Function) -> Quarantined:
        """Why a function is in quarantine, what worked last, and what a human can do."""
        name, version = function.name, function.body_hash
        failures = [call for call in await self._store.recent_calls(name) if _is_failure(call, version)]
        worked = _last_that_worked(await self._store.call_stats(name), self._rules)
        others = {known for of, known in await self._store.judged_at() if of == name} - {version}
        to = f" {worked.version[:SHORT]}" if worked and worked.version in others else ""
        back = (f"rollback {name}{to}",) if others else ()
        return Quarantined(
            turn="",
            name=name,
            version=version,
            failures=_told(failures[: max(self._rules.quarantine_failures, 1)]),
            worked_version=worked.version if worked else "",
            worked_at=worked.worked if worked else None,
            ways=(*back, f"release {name}"),
        )

    async def refusal(self, function: Function) -> str:
        """The answer to a model that calls a function in quarantine."""
        found = await self.case(function)
        return f"`{found.name}` was not called: it is quarantined, because it kept failing: {_advice(found)}"

    async def release(self, function: Function) -> dict[str, Any]:
        """Let a function out by a human's decision: its failures count from nought again.

        Raises:
            UsageError: it is not in quarantine.
        """
        held = (function.name, function.body_hash)
        if held not in await self._failing():
            raise UsageError(f"`{function.name}` is not quarantined.", mend="Look at the list for what is.")
        await self._store.apply([ReleaseFunction(*held)])
        self.held -= {held}
        return {"released": function.name, "module": function.module, "version": function.body_hash}

    async def _failing(self) -> frozenset[tuple[str, str]]:
        failures = self._rules.quarantine_failures
        return await self._store.failing(failures) if failures else frozenset()


def told(news: Quarantined) -> str:
    """What the model is told when a function leaves its sight."""
    return f"`{news.name}` kept failing and is quarantined: you are not shown it any more. Last: {_advice(news)}"


def _advice(found: Quarantined) -> str:
    lately = "; ".join(fence(each, 160) for each in found.failures)
    back = "go back with rollback_function, " if len(found.ways) > 1 else ""
    mend = f"Look at it with introspect_function, mend it with edit_function, {back}or do without it"
    return f"{lately}. {mend} and tell the user."


def _is_failure(call: CallRow, version: str) -> bool:
    return call.version == version and call.outcome in FAILURES


def _told(failures: list[CallRow]) -> tuple[str, ...]:
    """Each kind of failure once, with how often it came, the most frequent first."""
    kinds = Counter(_short(call) for call in failures)
    return tuple(f"{text} ({times} ×)" if times > 1 else text for text, times in kinds.most_common(_REASONS))


def _short(call: CallRow) -> str:
    said = ": ".join(part for part in (call.error or call.outcome.replace("_", " "), call.message) if part)
    return one_line(said, 120)


def _last_that_worked(rows: list[Stats], rules: StandingSettings) -> Stats | None:
    """The version whose last return is the newest, before others one that is not in quarantine itself."""
    worked = [row for row in rows if row.worked is not None]
    return max(worked, key=lambda row: (not is_quarantined(row, rules), row.worked or 0.0), default=None)
