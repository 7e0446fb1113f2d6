"""The registry: the functions that can be called right now.

It holds one immutable snapshot and replaces it as a whole, so a step never sees half a change. It notifies its
listeners of differences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from .snapshot import Snapshot

if TYPE_CHECKING:
    from agent_core.base.problem import Problem

Hand = Literal["human", "agent", "user"]
"""Who changed functions: someone in the files, an agent, or the user by a command."""


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """The difference that a swap made: names of functions, problems that are new or occurred again, and who did it.

    `fixed` are paths without remaining problems. By function, `standings` are the new standings, `disagreeing` the
    failing examples, and `noted` other messages about a save.
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


# Of a function: what is different if it has changed.
_shown_values = attrgetter("module", "body_hash", "parameters", "description")
Listener = Callable[[RegistryChange], None]


def difference(
    old_snapshot: Snapshot, new_snapshot: Snapshot, by: Hand = "human", change: RegistryChange | None = None
) -> RegistryChange:
    """Return the differences between two snapshots, with the messages by function from `change`.

    A function has changed if its own source or what the model is shown of it has; an edit of a neighbor in the same
    module does not count.
    """
    again = () if change is None else change.rejected
    told_of = frozenset(old_snapshot.rejected) | frozenset(again)
    settled = old_snapshot.rejections.keys() - new_snapshot.rejections.keys()
    # Of all modules, and the settled ones of folders.
    paths = {source.path for source in new_snapshot.modules.values()} if settled else set[str]()
    paths |= {path for path in settled if path.endswith("/")}
    # Few functions have another object after a typical change.
    before, after = old_snapshot.functions, new_snapshot.functions
    others = [name for name, function in after.items() if before.get(name, function) is not function]
    return replace(
        RegistryChange() if change is None else change,
        loaded=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(sorted(name for name in others if _shown_values(before[name]) != _shown_values(after[name]))),
        removed=tuple(sorted(before.keys() - after.keys())),
        rejected=(*again, *(problem for problem in new_snapshot.rejected if problem not in told_of)),
        by=by,
        fixed=tuple(sorted(settled & paths)),
    )


class Registry:
    """The holder of the current snapshot. It belongs to the event loop's thread."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot = snapshot or Snapshot.empty()
        self._listeners: list[Listener] = []

    def snapshot(self) -> Snapshot:
        """Return the current snapshot, which never changes."""
        return self._snapshot

    def swap(
        self,
        snapshot: Snapshot,
        *,
        by: Hand = "human",
        known_change: RegistryChange | None = None,
    ) -> RegistryChange:
        """Make a snapshot the current one and notify the listeners, unless nothing has changed.

        The messages by function in `known_change` become part of the change.
        """
        change = difference(self._snapshot, snapshot, by, known_change)
        self._snapshot = snapshot
        if change:
            for listener in tuple(self._listeners):
                listener(change)
        return change

    def keep_for_helpers(self, names: frozenset[str]) -> None:
        """Reserve these names of helpers, so that no new function gets them."""
        self._snapshot = replace(self._snapshot, helpers=names)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of every change from now on; call the returned function to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
