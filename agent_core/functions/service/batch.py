"""Operations on many functions at once: check files, import a library, export functions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent_core.base.errors import UsageError
from agent_core.registry.registry import Registry
from agent_core.storage import FunctionStore

from ..gate import CONTEXT, Gate
from ..gate.trial import UNGRANTED
from ..sandbox_client import SandboxClient
from . import file_checks
from .export import ExportReport, ExportRequest, export
from .file_checks import CheckRequest
from .judgment import Judgment
from .library import ImportedFunction, Importer, ImportReport, ImportRequest
from .package_grants import PackageGrants
from .plan import PlannedChange
from .review_pool import ReviewContext, ReviewJob, judges


@dataclass(frozen=True, slots=True)
class BatchOperations:
    """Operations on many functions of one workspace. `hosted` are the agent's own functions with their parameters."""

    root: Path
    store: FunctionStore
    registry: Registry
    gate: Gate
    sandbox: SandboxClient
    carry: Callable[[PlannedChange], Awaitable[PlannedChange]]
    hosted: Mapping[str, tuple[str, ...]]
    packages: PackageGrants

    async def check(
        self, request: CheckRequest, tell: Callable[[Judgment], None], *, processes: int | None = None
    ) -> None:
        """Judge files without admitting anything, on all cores if that is faster. Report the verdicts in order.

        Raises:
            UsageError: a path does not exist, or the reader is requested and there is none.
        """
        snapshot = self.registry.snapshot()
        total = self._count(file_checks.count(request), is_read=request.is_read)
        jobs = file_checks.jobs(request, snapshot)
        async with judges(self.context(), self.gate, total, processes=processes) as judge:

            async def judge_granted(job: ReviewJob) -> list[Judgment]:
                granted = await self.packages.of_text(job.text) if job.is_installed else UNGRANTED
                job = replace(job, is_read=request.is_read)
                verdicts = await judge(replace(job, granted=granted) if granted != UNGRANTED else job)
                if not job.is_installed:
                    return verdicts
                return [file_checks.with_name_clash(verdict, snapshot) for verdict in verdicts]

            await file_checks.check(jobs, judge_granted, tell)

    async def import_library(
        self, request: ImportRequest, tell: Callable[[ImportedFunction], None], begin: Callable[[int], None]
    ) -> ImportReport:
        """Import a library and return the report. `tell` is called with each function, `begin` with their number.

        Raises:
            UsageError: nothing can be read, or the reader is requested and there is none.
        """
        request = replace(request, maps=self.gate.rules.makes(CONTEXT), hosted=self.hosted)
        work = await asyncio.to_thread(Importer.read, request, self.registry.snapshot(), tell)
        await work.leave_out_packages(self.gate)
        begin(work.count)
        context = replace(self.context(), snapshot=work.ground)
        async with judges(context, self.gate, self._count(work.count, is_read=request.is_read)) as judge:
            await work.run(self.store, self.gate, judge, self.carry)
        return work.report

    async def export(self, request: ExportRequest) -> ExportReport:
        """Export functions as a package that works without Knapper. Return the report.

        Raises:
            UsageError: the folder is not empty, or a name is unknown.
        """
        return await asyncio.to_thread(export, request, self.registry.snapshot())

    def _count(self, jobs: int, *, is_read: bool) -> int:
        """Return the number of jobs that other processes may share; 0 if a reader is asked, which only happens here."""
        if is_read and not self.gate.has_reader:
            fix = 'Set gate.reader to "same" or to a model, or leave out --reader.'
            raise UsageError("No reader can be asked: gate.reader is off.", fix=fix)
        return 0 if is_read else jobs

    def context(self) -> ReviewContext:
        """Return everything that verdicts currently depend on."""
        return ReviewContext(self.gate.rules, self.sandbox.settings, self.registry.snapshot())
