"""The sandbox client of the program: it starts the sandbox on first use and refuses calls if it cannot confine them.

If the platform cannot enforce the sandbox, every request is answered with `Refused`, naming the missing layers and the
options: agent-written code never runs by accident.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.access.broker import Broker
from agent_core.access.grants.permit import (
    OF_THE_PROGRAM,
    UNWRITTEN,
    WrittenPlaces,
    without_repositories,
)
from agent_core.access.secrets import CallSecrets, MaskedChannel, Secrets
from agent_core.access.secrets.session import MaskedValues
from agent_core.base.extensions import LEVELS, offers
from agent_core.base.late import LateModule
from agent_core.base.offload import aside, bulk
from agent_core.base.user_folders import NoHome, data_folder
from sandbox import (
    Access,
    Attempts,
    Job,
    Limits,
    OneWall,
    Outcome,
    Refused,
    SandboxUnavailable,
    Work,
    agree_to_one_wall,
)
from sandbox.beside import LevelsBeside

from .debug import Debugger, Debugging

if TYPE_CHECKING:
    from agent_core.base.settings import SandboxSettings
    from agent_core.storage import ValueFiles
    from sandbox import Sandbox, host

    from .foreign import ForeignSources
else:
    host = LateModule("sandbox.host")


_MAX_SILENCE_S: Final = 1_800.0  # at the debugger; then the call ends


def guarded_in(root: Path) -> tuple[str, ...]:
    """Return the paths in a workspace to which no function can be granted write access."""
    return tuple(str(root.resolve() / name) for name in UNWRITTEN)


def limits_of(settings: "SandboxSettings") -> Limits:
    """Return the limits of one call from the settings."""
    return Limits(
        wall_s=settings.wall_s,
        memory=settings.memory_mib << 20,
        value=settings.value_mib << 20,
        scratch=settings.scratch_mib << 20,
    )


def _levels_folder() -> Path | None:
    """Return where levels that stand beside have their folders; None for a user without a home folder."""
    try:
        return data_folder()
    except NoHome:
        return None


class SandboxClient:
    """The client that runs functions in sandboxed workers, or returns why none can run."""

    def __init__(  # noqa: PLR0913 - what a call may use
        self,
        settings: "SandboxSettings",
        parallel: int,
        *,
        guarded: Sequence[str] = (),
        secrets: Secrets | None = None,
        broker: Broker | None = None,
        debugger: Debugger | None = None,
        shared: "Sandbox | None" = None,
        foreign: "ForeignSources | None" = None,
        values: "ValueFiles | None" = None,
        on_status: Callable[[str], None] | None = None,
    ) -> None:
        """Create the client, which uses a `shared` sandbox if given. `on_status` is called before slow steps.

        Without `values`, calls return and take no large values.
        """
        self.limits = limits_of(settings)
        self.settings = settings
        self.secrets = secrets or Secrets()
        self.broker = broker or Broker()
        self.foreign = foreign
        self.values = values
        self.debugging = Debugging(_MAX_SILENCE_S, debugger)
        self._on_status = on_status or (lambda _text: None)
        self._parallel = parallel
        self._guarded = (*guarded, *map(str, OF_THE_PROGRAM))
        self._shared = shared
        self._starting: asyncio.Task[Sandbox | SandboxUnavailable] | None = None

    async def ready(self) -> "Sandbox | SandboxUnavailable":
        """Return the running sandbox, or why there is none; the first caller starts it."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        # A waiting caller may be cancelled; the start is shared by all.
        return await asyncio.shield(self._starting)

    def answer_one_wall(self, *, agrees: bool) -> None:
        """Store whether functions may run behind one wall for this user; the sandbox restarts at the next use."""
        if self._starting is not None and self._starting.done():
            missing = self._starting.result()
            if isinstance(missing, OneWall):
                agree_to_one_wall(missing.folder, agrees=agrees)
        self._starting = None

    async def shows_files(self) -> bool:
        """Return whether a worker sees granted files directly; otherwise the host passes them on request."""
        sandbox = await self.ready()
        return isinstance(sandbox, SandboxUnavailable) or sandbox.shows_files

    async def run(
        self,
        job: Job[Work],
        channel: MaskedChannel | None = None,
        places: WrittenPlaces | None = None,
    ) -> Outcome:
        """Run a job. All output of the worker, including requests and prints, passes through the channel.

        To the `places` where it may write, its handler of files adds those that are given while it runs.
        """
        sandbox = await self.ready()
        if isinstance(sandbox, SandboxUnavailable):
            return Refused(str(sandbox))
        with channel.heard() if channel else nullcontext() as hear:
            secrets = self._secrets_of(job.access)
            large = job.large and (
                channel.keeping(job.large) if channel else MaskedValues(job.large, secrets)
            )
            running = sandbox.run(
                replace(job, handler=channel or job.handler, on_output=hear, large=large)
            )
            outcome = await without_repositories(
                running, WrittenPlaces() if places is None else places, job.access.writable
            )
            masked = channel.over if channel else secrets.over
            return await aside(bulk(getattr(outcome, "value", None)), masked, outcome)

    async def attempt(self, job: Job[Attempts]) -> tuple[Outcome | None, ...]:
        """Run many attempts at a module in one worker, as far as it gets."""
        masked, then = self._secrets_of(job.access).over, job.work.then

        def over(outcomes: Sequence[Outcome | None]) -> tuple[Outcome | None, ...]:
            return tuple(outcome and masked(outcome) for outcome in outcomes)

        sandbox = await self.ready()
        if isinstance(sandbox, SandboxUnavailable):
            return (Refused(str(sandbox)),) * len(job.work.attempts)
        masked_work = replace(job.work, then=then and (lambda outcomes: then(over(outcomes))))
        return over(await sandbox.attempt(replace(job, work=masked_work)))

    def _secrets_of(self, access: Access) -> CallSecrets:
        """Return the secrets of a job without requests: a preloaded package may remember its owner's calls."""
        return CallSecrets(self.secrets, access.owner.rpartition(".")[2])

    async def aclose(self) -> None:
        """End every worker, and close the connections of foreign functions."""
        if self.foreign is not None:
            await self.foreign.aclose()
        if self._starting is not None and not isinstance(
            sandbox := await self._starting, SandboxUnavailable
        ):
            await sandbox.aclose()

    async def _start(self) -> "Sandbox | SandboxUnavailable":
        if self._shared is not None:
            return self._shared.share(guarded=self._guarded)
        try:
            return await host.Sandbox.start(
                packages=self.settings.packages,
                parallel=self._parallel,
                guarded=self._guarded,
                override=self.settings.unsafe,
                level=self.settings.level,
                beside=LevelsBeside(partial(offers, LEVELS), _levels_folder(), self._on_status),
            )
        except SandboxUnavailable as missing:
            return missing
