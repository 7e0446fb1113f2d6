"""What a turn may spend: the limits of its agent within what is left of its thread, which other agents spend, too."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agent_core.base.limits import NAMES, Allowance, SpendingLimits
from agent_core.storage import Amounts, SpendInThread, Store, ThreadRow, Write

if TYPE_CHECKING:
    from agent_core.base.clock import Clock

_COUNTED: Final = tuple(name for name in NAMES if name not in ("hops", "seconds"))  # these are no sums


class Account:
    """The account of one turn."""

    def __init__(
        self,
        agent: str,
        thread: str,
        store: Store,
        own: Callable[[], SpendingLimits],
        clock: "Clock",
        parent: Allowance | SpendingLimits,
    ) -> None:
        """Open the account; `own` are the limits in the agent's file now.

        `parent` is what pays, too: the caller's allowance, or the limits of a thread, which are this turn's alone until
        a message makes it a thread of several.
        """
        self._alone = None if isinstance(parent, Allowance) else Allowance(parent)
        self.allowance = Allowance(own(), parent if isinstance(parent, Allowance) else self._alone)
        self._own = own
        self.thread = thread
        self._agent = agent
        self._store = store
        self._clock = clock
        self._began = clock.monotonic()
        self._saved: Amounts = {}
        self._before: Amounts | None = None

    async def broken(self) -> str | None:
        """Return why the next request must not be sent, or None; asked before each."""
        row = await self._store.thread(self.thread)
        if row is not None and row.state != "open":
            return f"The thread was stopped: {row.why}" if row.why else "The thread was stopped."
        self._refresh(row)
        self.allowance.limits = self._own()
        return self.allowance.broken()

    def spend(self, **amounts: int | float) -> None:
        """Add to what was spent."""
        self.allowance.spend(**amounts)

    def writes(self, *, is_last: bool = False) -> list[Write]:
        """Return the write that keeps what was spent since the last time; until there is a thread, it is kept here."""
        if self._before is None and not is_last:
            return []
        spent, saved = self._own_spent(), self._saved
        amounts = {name: fresh for name, amount in spent.items() if (fresh := amount - saved.get(name, 0)) > 0}
        self._saved = spent
        return [SpendInThread(self.thread, self._agent, amounts)] if amounts else []

    def _own_spent(self) -> Amounts:
        before = self._before or {}
        return {name: self.allowance.spent[name] - before.get(name, 0) for name in _COUNTED}

    def _refresh(self, row: ThreadRow | None) -> None:
        """Take over what others spent in the thread meanwhile, and what this agent spent in it before this turn."""
        if row is not None:
            own = self._own_spent()
            if self._before is None:
                mine = row.spent.get(self._agent, {})
                self._before = {name: mine.get(name, 0) - self._saved.get(name, 0) for name in _COUNTED}
                for name in _COUNTED:
                    self.allowance.spent[name] += self._before[name]
            total = row.total()
            for name in _COUNTED:
                total[name] = total.get(name, 0) + own[name] - self._saved.get(name, 0)
            total["seconds"] = max(self._clock.now() - row.started, 0)
            self.allowance.parent = row.allowance(**total)
        self.allowance.spent["seconds"] = self._clock.monotonic() - self._began
        if self._alone is not None:
            self._alone.spent["seconds"] = self.allowance.spent["seconds"]
