"""What is done with many functions at once: check files, take a library over, hand functions out."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..cage import Cage
from ..gate import CONTEXT, Gate
from ..registry.registry import Registry
from ..storage import Store
from . import checking
from .checking import Wanted
from .export import Handing, export
from .intake import Report, Taking, read
from .job import Row
from .judges import Bench, judges
from .library import Importer
from .plan import Plan


@dataclass(frozen=True, slots=True)
class Bulk:
    """The verbs on many functions of one workspace."""

    root: Path
    store: Store
    registry: Registry
    gate: Gate
    cage: Cage
    carry: Callable[[Plan], Awaitable[Plan]]

    async def check(self, wanted: Wanted, tell: Callable[[Row], None], *, processes: int | None = None) -> None:
        """Judge files without admitting anything, on all cores where it pays; the verdicts come in order.

        Raises:
            UsageError: a path is not there.
        """
        snapshot = self.registry.snapshot()
        total = checking.count(wanted)
        found = checking.jobs(wanted, snapshot)
        async with judges(self.bench(), self.gate, total, processes=processes) as judge:
            await checking.check(found, judge, tell)

    async def take_over(self, taking: Taking, tell: Callable[[Row], None], begin: Callable[[int], None]) -> Row:
        """Import a library; `tell` hears of each function, `begin` of how many there are. The report.

        Raises:
            UsageError: there is nothing that can be read.
        """
        taking = replace(taking, maps=self.gate.rules.makes(CONTEXT))
        report = Report(taking.path.name, taking.dry_run)
        parts, given = await asyncio.to_thread(read, taking, report)
        count = sum(len(part.parts.public) for part in parts.values())
        begin(count)
        async with judges(self.bench(), self.gate, count) as judge:
            work = Importer(taking, self.registry.snapshot(), self.store, self.gate, judge, self.carry, tell, report)
            await work.run(parts, given)
        return report.to_json()

    async def hand_out(self, handing: Handing) -> Row:
        """Export functions as a package that works without Toolwright; what is in it.

        Raises:
            UsageError: the folder holds something, or a name is unknown.
        """
        return await asyncio.to_thread(export, handing, self.registry.snapshot())

    def bench(self) -> Bench:
        """What verdicts depend on now."""
        return Bench(self.gate.rules, self.cage.settings, self.registry.snapshot())
