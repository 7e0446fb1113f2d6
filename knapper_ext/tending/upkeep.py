"""Tending as the settings of a workspace say: its limits, and what is done by itself while nobody uses functions."""

from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.access.secrets.session import masked_logger
from agent_core.base.caps import Payer, paid_by
from agent_core.base.errors import KnapperError
from agent_core.base.events import FunctionsChanged
from agent_core.runtime.programs import seen_runs
from agent_core.storage import Store, is_history

from .audit import audit_of
from .maker import mender_of
from .tending import Tending, TendingBudget

if TYPE_CHECKING:
    from agent_core.base.settings import Settings
    from agent_core.functions.program_text import SeenProgram
    from agent_core.functions.service import FunctionService
    from agent_core.registry.registry import Snapshot

_log = masked_logger("knapper.tending")


def tending_of(service: "FunctionService", settings: "Settings") -> Tending:
    """Return the tending of a workspace's functions."""
    parts = service.parts
    return Tending(
        service.store,
        audit_of(service),
        parts.gate(),
        service.quarantine,
        service.plans,
        service.relocations,
        service.history,
        service.replays,
        service.registry.snapshot,
        service.finish,
        mender_of(service, settings),
        service.finder,
        partial(repeated_programs, service.store),
        parts.book().entries,
        parts.file_patterns,
        service.pins,
    )


def budget_of(settings: "Settings") -> TendingBudget:
    """Return what one run may cost."""
    return TendingBudget(settings.tend.tokens, settings.tend.minutes)


def may_apply(service: "FunctionService", settings: "Settings") -> bool:
    """Return whether proven changes are made without a person who says so for this run."""
    return settings.tend.apply == "proved" and service.granting.policy.growth == "on"


def tending_when_idle(
    service: "FunctionService", settings: "Settings"
) -> Coroutine[Any, Any, None]:  # Any: as asyncio's
    """Return the tending of functions that nobody has used for `tend.idle` minutes."""
    tending: list[Tending] = []  # made when it is first due, and kept: it knows what it has tried

    async def tend() -> None:
        if not tending:
            tending.append(tending_of(service, settings))
        await tend_and_tell(tending[0], service, settings)

    return service.when_idle(settings.tend.idle, tend)


async def tend_and_tell(tending: Tending, service: "FunctionService", settings: "Settings") -> None:
    """Tend the functions, and notify listeners of changes and proposals."""
    before = service.registry.snapshot()
    noted = dict[str, str]()
    try:
        if await service.store.is_paused():
            return
        with paid_by(Payer(is_unattended=True)):
            may = may_apply(service, settings)
            report = await tending.run(budget_of(settings), applies=may, repeats=False)
        _log.info("tending took %s tokens of models", report.tokens)
        noted |= {step.function: step.told for step in report.steps if step.told}
    except KnapperError as error:
        _log.warning("tending ended: %s", error)
    finally:
        change = _change(before, service.registry.snapshot(), noted)
        if change is not None:
            service.tell(change)


def _change(
    old_snapshot: "Snapshot", new_snapshot: "Snapshot", noted: dict[str, str]
) -> FunctionsChanged | None:
    """Return what listeners are told of the time between two snapshots, if anything."""
    old = old_snapshot.functions
    new = new_snapshot.functions
    came = tuple(sorted(new.keys() - old.keys()))
    gone = tuple(sorted(old.keys() - new.keys()))
    both = sorted(old.keys() & new.keys())
    changed = tuple(name for name in both if old[name].body_hash != new[name].body_hash)
    if not (gone or came or changed or noted):
        return None
    return FunctionsChanged(
        turn="", loaded=came, changed=changed, removed=gone, noted=noted, by="tending"
    )


async def repeated_programs(store: Store) -> "list[list[SeenProgram]]":
    """Return the runs of programs that a conversation ran in several turns, grouped by form.

    Those that are private to a token, and histories that a program sent, are left out: what is made of a program is for
    all.
    """
    found: dict[tuple[str, str], list[tuple[str, SeenProgram]]] = {}
    for agent in await store.agent_names():
        if is_history(agent):
            continue
        for line in (agent, *await store.lines(agent, token="")):
            for form, runs in (await seen_runs(store, line)).items():
                found.setdefault((line, form), []).extend(runs)
    repeated = [runs for runs in found.values() if len({turn for turn, _run in runs}) > 1]
    return [[run for _turn, run in runs] for runs in repeated]
