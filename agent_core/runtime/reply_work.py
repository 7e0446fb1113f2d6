"""The changes of functions that one reply of a model asks for, which are judged together.

`T` is the answer to a call, which `dispatch.py` makes.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_core.base.records import dataclass
from agent_core.functions.gate.draft import ReplyChanges

if TYPE_CHECKING:
    from agent_core.functions.gate import Breakage
    from agent_core.registry.registry import Snapshot

T = TypeVar("T")


@dataclass(slots=True)
class WaitingChange(Generic[T]):
    """A refused change that is answered after others of its reply: those of the functions that it `uses`.

    `finish` judges it once more, if one of them has `changed`, and answers its call.
    """

    uses: frozenset[str]
    finish: Callable[[bool], Awaitable[T]]
    has_changed: bool = False


class ReplyWork(Generic[T]):
    """The changes of functions in one reply: those that are still to come, and those that wait for them."""

    def __init__(
        self, before: "Snapshot", due: Mapping[str, str], called: Iterable[str] = ()
    ) -> None:
        """Begin; `due` are the functions that the calls will change, by the ids of these, in order.

        `called` are the names that the reply calls.
        """
        self._before = before
        self._called = frozenset(called)
        self._due = dict(due)
        self._names = frozenset(due.values())
        self._waiting: dict[str, WaitingChange[T]] = {}
        self.broken: dict[str, Breakage] = {}

    def begin(self, call_id: str) -> str:
        """Take a call as begun. Return the function that it changes, if it changes one."""
        return self._due.pop(call_id, "")

    def together(self, *, is_once_more: bool = False) -> ReplyChanges:
        """Return what is changed together with the candidate that is judged now."""
        coming = frozenset((*self._due.values(), *self._waiting))
        return ReplyChanges(
            coming,
            self._before,
            frozenset(self.broken) - self._names,
            is_once_more,
            self._called,
        )

    def hold(self, name: str, change: WaitingChange[T]) -> None:
        """Let a refused change wait."""
        self._waiting[name] = change

    def note(self, names: Collection[str], breakages: Iterable["Breakage"]) -> None:
        """Take note of functions that were changed, and of those that this broke."""
        for name in names:
            self.broken.pop(name, None)
        self.broken |= {breakage.user.name: breakage for breakage in breakages}
        for change in self._waiting.values():
            change.has_changed |= not change.uses.isdisjoint(names)

    async def give_up(self, name: str) -> list[T]:
        """Answer the waiting change of a function, which is changed otherwise now."""
        change = self._waiting.pop(name, None)
        return [await change.finish(False)] if change else []

    async def settle(self) -> list[T]:
        """Judge and answer each waiting change for which nothing more comes, what others use first."""
        settled: list[T] = []
        while name := self._ready():
            change = self._waiting.pop(name)
            settled.append(await change.finish(change.has_changed))
        return settled

    def _ready(self) -> str:
        due = frozenset(self._due.values())
        free = {
            name: change.uses
            for name, change in self._waiting.items()
            if change.uses.isdisjoint(due)
        }
        first = next(
            (name for name, uses in free.items() if uses.isdisjoint(self._waiting.keys() - {name})),
            "",
        )
        return first or (
            "" if due else next(iter(free), "")
        )  # those that use each other go in order
