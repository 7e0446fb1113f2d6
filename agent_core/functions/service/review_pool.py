"""Worker processes that share the judging of many candidates, each with a sandbox: the text stages occupy one core.

Nothing of a candidate runs in them, only in their workers. They have no key and no terminal, and go when this
process does. They speak JSON, a line each; a job that is sent comes back with its number.
"""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from tempfile import TemporaryFile
from typing import Any

from agent_core.base import programs
from agent_core.base.errors import WorkspaceError
from agent_core.base.json_form import to_json
from agent_core.base.settings import SandboxSettings
from agent_core.registry.function import ModuleReading
from agent_core.registry.schema import read_module
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from sandbox.wire.foreign import DEEPEST_ROW, LOOSE, read_json

from ..gate import Gate, Rules
from ..gate.trial import UNGRANTED
from ..sandbox_client import SandboxClient
from .judgment import Judgment
from .review_job import ReviewJob, judged

Judge = Callable[[ReviewJob], Awaitable[list[Judgment]]]
AT_ONCE = 6  # jobs in one process: while one waits for its worker, others are read
_FEW = 12  # jobs for which another process does not pay: it takes half a second to start
_LONGEST_LINE = 64 << 20


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """Everything that a verdict depends on: the rules, the sandbox, the existing functions."""

    rules: Rules
    sandbox: SandboxSettings
    snapshot: Snapshot

    def to_json(self) -> dict[str, Any]:
        """Return the form in which the bench is sent to another process."""
        rules = {**asdict(self.rules), "off": sorted(self.rules.off), "reserved": sorted(self.rules.reserved)}
        readings = [[asdict(reading.source), reading.to_json()] for reading in self.snapshot.readings.values()]
        return {"rules": rules, "sandbox": self.sandbox.model_dump(), "readings": readings}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ReviewContext":
        """Return the bench that was sent."""
        rules = data["rules"]
        sets = {key: frozenset(rules[key]) for key in ("off", "reserved")}
        bench_rules = Rules(**{**rules, **sets, "packages": tuple(rules["packages"])})
        snapshot = Snapshot.empty(bench_rules.reserved)
        for source, reading in data["readings"]:
            own = ModuleSource(**source)
            snapshot = snapshot.with_module(ModuleReading.from_json(reading, own) or read_module(own))
        return cls(bench_rules, SandboxSettings(**data["sandbox"]), snapshot)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@asynccontextmanager
async def judges(
    context: ReviewContext, gate: Gate, jobs: int | None, *, processes: int | None = None
) -> AsyncIterator[Judge]:
    """Yield a judge of jobs: this process for a few, else one process per core."""
    count = processes or (1 if jobs is not None and jobs <= _FEW else cores())
    if count <= 1 and processes is None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def judge_locally(job: ReviewJob) -> list[Judgment]:
            async with slots:
                return await judged(job, gate, context.snapshot)

        yield judge_locally
        return
    helpers = [_Process() for _ in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            started = json.dumps(context.to_json()).encode() + b"\n"
            await asyncio.gather(*(helper.start(started) for helper in helpers))
            readers = [group.create_task(helper.read()) for helper in helpers]
            slots = asyncio.Semaphore(AT_ONCE * count)

            async def judge_in_helper(job: ReviewJob) -> list[Judgment]:
                if job.problem is not None or job.granted is not UNGRANTED:  # what is installed for it is known here
                    return await judged(job, gate, context.snapshot)
                async with slots:
                    return await min(helpers, key=lambda one: one.load).ask(job)

            yield judge_in_helper
            for reader in readers:
                reader.cancel()
    finally:
        await asyncio.gather(*(helper.end() for helper in helpers))


class _Process:
    """One judging process."""

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[list[Judgment]]] = {}
        self._count = 0
        self._process: Process | None = None
        self._said = TemporaryFile()  # noqa: SIM115 - as long as the process

    @property
    def load(self) -> int:
        """The number of jobs without an answer."""
        return len(self._answers)

    async def start(self, ground: bytes) -> None:
        self._process = await programs.start(
            programs.python("-m", f"{__package__}.review_worker"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._said,
            env=programs.variables_for_python("HOME", "TMPDIR"),
            cwd="/",
            limit=_LONGEST_LINE,
        )
        await self._write(ground)

    async def ask(self, job: ReviewJob) -> list[Judgment]:
        self._count += 1
        number = self._count
        self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            await self._write(json.dumps([number, job.to_json()]).encode() + b"\n")
            return await self._answers[number]
        finally:
            del self._answers[number]

    async def read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            number, rows = _read(line)
            if number in self._answers:
                self._answers[number].set_result([Judgment.from_json(row) for row in rows])
        code = await self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        message = f"A process that judges ended unexpectedly (exit code {code}): {last}"
        raise WorkspaceError(message.removesuffix(": "), fix="Run it again, on fewer files.")

    async def end(self) -> None:
        self._said.close()
        if self._process is None or self._process.stdin is None:
            return
        with suppress(OSError):
            self._process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _write(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, which its reader says
            self._process.stdin.write(line)
            await self._process.stdin.drain()


def _read(line: bytes) -> Any:  # Any: JSON
    return read_json(line, LOOSE, most=_LONGEST_LINE, deepest=DEEPEST_ROW)


async def serve(read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], None], parallel: int) -> None:
    """Serve judging requests in the other process until the input ends."""
    context = ReviewContext.from_json(_read(await read()))
    sandbox = SandboxClient(context.sandbox, parallel)
    gate = Gate(sandbox, limits=sandbox.limits, rules=context.rules)

    async def answer(number: int, job: dict[str, Any]) -> None:  # Any: JSON
        rows = await judged(ReviewJob.from_json(job), gate, context.snapshot)
        write(json.dumps([number, to_json(rows)], default=str).encode() + b"\n")

    try:
        async with asyncio.TaskGroup() as group:
            tasks = deque[asyncio.Task[None]]()
            while line := await read():
                tasks.append(group.create_task(answer(*_read(line))))
                while tasks and tasks[0].done():
                    tasks.popleft()
            for task in tasks:  # nobody waits for what is still being judged
                task.cancel()
    finally:
        await sandbox.aclose()
