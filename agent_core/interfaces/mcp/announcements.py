"""Tells connected clients that functions changed: soon, not often, and a changed signature as a removal first.

Some clients skip a tool whose name they know. So a function with another signature is out of the list for a moment:
they hear of it twice, and load it anew. Some drop what they are loading when they hear again: the second notice waits
as long again as the first load took.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from agent_core.registry.registry import Registry, RegistryChange

from .offer import Offer

_SETTLING_S: Final = 0.03  # what comes together is told together
_BETWEEN_S: Final = 0.1  # from one notice to the next
_LOADING_S: Final = 2.0  # at most, until each client has loaded the list without what was altered

Notify = Callable[[Sequence[str]], Awaitable[None]]
"""Tells clients that the list changed, and the named functions with it."""


class Announcer:
    """Follows the registry while it is open."""

    def __init__(self, registry: Registry, offer: Offer, notify: Notify, clients: Callable[[], int]) -> None:
        """Create the announcer; `clients` says how many follow the list."""
        self._clients = clients
        self._registry = registry
        self._offer = offer
        self._notify = notify
        self._changed: set[str] = set()
        self._altered: set[str] = set()
        self._comes = asyncio.Event()
        self._signatures = self._now()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Tell of changes while the block runs."""
        end = self._registry.subscribe(self._hear)
        work = asyncio.create_task(self._announce())
        try:
            yield
        finally:
            end()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def poke(self) -> None:
        """Tell that the list is another one, though no function changed."""
        self._comes.set()

    def _hear(self, change: RegistryChange) -> None:
        signatures = self._now()
        known = self._signatures.keys() & signatures.keys()
        self._altered |= {name for name in known if self._signatures[name] != signatures[name]}
        self._changed |= {*change.loaded, *change.changed, *change.removed}
        self._signatures = signatures
        if self._changed:
            self._comes.set()

    def _now(self) -> dict[str, object]:
        return {name: function.parameters for name, function in self._registry.snapshot().functions.items()}

    async def _announce(self) -> None:
        async with asyncio.TaskGroup() as returning:
            while True:
                await self._comes.wait()
                await asyncio.sleep(_SETTLING_S)
                self._comes.clear()
                changed, altered = sorted(self._changed), frozenset(self._altered)
                self._changed, self._altered = set(), set()
                self._offer.hidden |= altered
                if altered:
                    returning.create_task(self._return(altered, self._offer.listings))
                await self._notify(changed)
                await asyncio.sleep(_BETWEEN_S)

    async def _return(self, altered: frozenset[str], listings: int) -> None:
        """Put functions back into the list once clients have loaded it without them; other changes do not wait."""
        told = time.monotonic()
        await asyncio.sleep(_BETWEEN_S)
        await self._offer.listed(listings + self._clients(), _LOADING_S)
        await asyncio.sleep(time.monotonic() - told)
        self._offer.hidden -= altered
        self.poke()
