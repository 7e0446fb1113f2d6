"""Draft functions, which nothing has proven yet: the results of their calls say so.

What is known holds as long as the registry's snapshot: the gate changes a standing only together with it.
"""

from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.base.settings import StandingSettings
from agent_core.storage import Store
from .view import standing_now


class ProvenIndex:
    """An index of proven functions that does not ask the store at each call."""

    def __init__(self, store: Store, rules: StandingSettings) -> None:
        self._store = store
        self._rules = rules
        self._snapshot: Snapshot | None = None
        self._proven: set[str] = set()

    async def holds(self, function: Function, snapshot: Snapshot) -> bool:
        """Return whether this function is a draft now."""
        if self._snapshot is not snapshot:
            self._snapshot, self._proven = snapshot, set()
        if function.name in self._proven:
            return False
        verdict = await self._store.verdict(function.body_hash, function.name)
        is_proven = (verdict or {}).get("standing") == "trial"
        rows = [] if is_proven else await self._store.call_stats(function.name)
        is_draft = standing_now(snapshot, function, verdict, rows, self._rules) == "draft"
        if not is_draft and self._snapshot is snapshot:
            self._proven.add(function.name)
        return is_draft
