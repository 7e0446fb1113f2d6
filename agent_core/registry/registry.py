"""The registry: the functions that can be called right now.

Holds one immutable snapshot and swaps it whole, so a step never sees half a change; tells its
listeners what became different.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from .snapshot import Snapshot

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

Hand = Literal["human", "agent", "user"]
"""Who changed functions: somebody in the files, an agent, or the user by a command here."""


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """The difference that a swap made: names of functions, what is newly or once more rejected, and who did it.

    `fixed` are paths of which nothing is rejected any more; by name, `standings` says how what was judged stands,
    `disagreeing` how examples differ, and `noted` what else is to be said of a save.
    """

    loaded: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rejected: tuple["Problem", ...] = ()
    by: Hand = "human"
    fixed: tuple[str, ...] = ()
    standings: Mapping[str, str] = field(default_factory=dict)
    disagreeing: Mapping[str, str] = field(default_factory=dict)
    noted: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        different = self.loaded or self.changed or self.removed or self.rejected or self.fixed
        return bool(different or self.disagreeing or self.noted)


Listener = Callable[[RegistryChange], None]


def difference(
    old_snapshot: Snapshot, new_snapshot: Snapshot, by: Hand = "human", change: RegistryChange | None = None
) -> RegistryChange:
    """Return the differences between two snapshots, with the sentences by function from `change`.

    A function has changed when its own source or what the model is shown of it has; a neighbour's edit
    in the same module is no change of it.
    """
    again = () if change is None else change.rejected
    told_of = frozenset(old_snapshot.rejected) | frozenset(again)
    settled = old_snapshot.rejections.keys() - new_snapshot.rejections.keys()
    return replace(
        RegistryChange() if change is None else change,
        loaded=tuple(sorted(new_snapshot.functions.keys() - old_snapshot.functions.keys())),
        changed=tuple(
            sorted(name for name in _others(old_snapshot, new_snapshot) if _differs(name, old_snapshot, new_snapshot))
        ),
        removed=tuple(sorted(old_snapshot.functions.keys() - new_snapshot.functions.keys())),
        rejected=(*again, *(problem for problem in new_snapshot.rejected if problem not in told_of)),
        by=by,
        fixed=tuple(sorted(settled & _places(settled, new_snapshot))) if settled else (),
    )


def _places(settled: Collection[str], snapshot: Snapshot) -> set[str]:
    """Return the paths of all modules, and those of folders."""
    return {source.path for source in snapshot.modules.values()} | {path for path in settled if path.endswith("/")}


def _others(old_snapshot: Snapshot, new_snapshot: Snapshot) -> list[str]:
    """Return the names in both with a function that is not the very same object: of 1,000, all but one module's are."""
    before = old_snapshot.functions
    return [name for name, function in new_snapshot.functions.items() if before.get(name, function) is not function]


def _differs(name: str, old_snapshot: Snapshot, new_snapshot: Snapshot) -> bool:
    before, after = old_snapshot.functions[name], new_snapshot.functions[name]
    return (before.module, before.body_hash, before.parameters, before.description) != (
        after.module,
        after.body_hash,
        after.parameters,
        after.description,
    )


class Registry:
    """The holder of the current snapshot. It belongs to the event loop's thread."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot = snapshot or Snapshot.empty()
        self._listeners: list[Listener] = []

    def snapshot(self) -> Snapshot:
        """Return the current snapshot; it stays unchanged, whatever happens next."""
        return self._snapshot

    def swap(
        self,
        snapshot: Snapshot,
        *,
        by: Hand = "human",
        known_change: RegistryChange | None = None,
    ) -> RegistryChange:
        """Make a snapshot the current one and notify the listeners, unless nothing has changed.

        The sentences by function in `said` become part of it.
        """
        change = difference(self._snapshot, snapshot, by, known_change)
        self._snapshot = snapshot
        if change:
            for listener in tuple(self._listeners):
                listener(change)
        return change

    def keep_for_helpers(self, names: frozenset[str]) -> None:
        """Keep these names of helpers from new functions."""
        self._snapshot = replace(self._snapshot, helpers=names)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of every change from now on; call the returned function to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
