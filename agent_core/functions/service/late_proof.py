"""Saved functions that wait for a package: their examples run as soon as a human has granted it."""

from dataclasses import replace

from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import FunctionStore, SaveVerdict

from ..gate import Gate
from .judgment import judgment_on
from .loaded_files import verdict_on
from .package_grants import PackageGrants


class LateProof:
    """Service that judges a draft of a saved file again, with the packages that it has by now."""

    def __init__(self, store: FunctionStore, gate: Gate, packing: PackageGrants) -> None:
        self._store = store
        self._gate = gate
        self._packing = packing

    async def __call__(self, function: Function, snapshot: Snapshot) -> None:
        """Run the examples of a function if it is a draft of a saved file, and keep how it stands."""
        before = await judgment_on(self._store, function.body_hash, function.name)
        if before is None or before.by != "human" or before.standing != "draft" or not function.examples:
            return
        source = snapshot.modules[function.module]
        granted = replace(await self._packing.of_text(source.text), approval_mode="calling")
        verdict = await self._gate.judge_module(source, snapshot, "human", granted=granted)
        standing = dict(verdict.standings).get(function.name)
        if standing is None:
            return
        kept = {"confirmed": [*before.confirmed], "thumb": before.thumb, "note": before.note}
        judged = {**verdict_on(function, verdict), **kept, "standing": standing}
        await self._store.apply([SaveVerdict(function.body_hash, function.name, judged)])
