"""The sandbox as the rest of the program uses it: started on first use, unavailable if it cannot confine.

Where the platform cannot enforce the sandbox every request is answered with `Refused`, naming the
missing layers and the choices: agent-written code never runs by accident.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sandbox import Access, Attempt, CallHooks, Evaluation, Limits, Outcome, Refused, Sandbox, SandboxUnavailable, Then
from sandbox.access import NOTHING
from sandbox.code import Modules
from sandbox.processes.debugging import PLAIN

from agent_core.base.aside import aside, bulk
from agent_core.access.broker import Broker
from .debug import Debugger, Debugging
from agent_core.access.grants.leftovers import without_repositories
from agent_core.access.grants.permit import UNWRITTEN
from agent_core.access.secrets import CallSecrets, Curtain, Secrets
from agent_core.base.settings import SandboxSettings

_OWN: Final = tuple(str(Path(__file__).parents[2] / room) for room in ("agent_core", "meta_functions", "sandbox"))


def guarded_in(root: Path) -> tuple[str, ...]:
    """Return the paths in a workspace that no function can ever be granted write access to."""
    return tuple(str(root.resolve() / name) for name in UNWRITTEN)


def limits_of(settings: SandboxSettings) -> Limits:
    """Return the limits of one call from the settings."""
    return Limits(
        wall_s=settings.wall_s,
        memory=settings.memory_mib << 20,
        output=settings.output_kib << 10,
        result=settings.result_kib << 10,
        scratch=settings.scratch_mib << 20,
    )


class SandboxClient:
    """Runs functions in sandboxed workers, or says why none can run."""

    def __init__(
        self,
        settings: SandboxSettings,
        parallel: int,
        *,
        guarded: Sequence[str] = (),
        secrets: Secrets | None = None,
        broker: Broker | None = None,
        debugger: Debugger | None = None,
    ) -> None:
        self.limits = limits_of(settings)
        self.settings = settings
        self.secrets = secrets or Secrets()
        self.broker = broker or Broker()
        self.debugging = Debugging(settings.debug_wait_minutes * 60, debugger)
        self._parallel = parallel
        self._guarded = (*guarded, *_OWN)
        self._starting: asyncio.Task[Sandbox | SandboxUnavailable] | None = None

    async def ready(self) -> Sandbox | SandboxUnavailable:
        """Return the running sandbox, or why there is none; the first caller starts it."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        # Whoever waits may be interrupted; the start belongs to all of them.
        return await asyncio.shield(self._starting)

    async def call(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        function: str,
        arguments: Mapping[str, Any],  # Any: values of JSON
        curtain: Curtain,
        *,
        limits: Limits | None = None,
        access: Access = NOTHING,
        keep: str = "",
        around: CallHooks = PLAIN,
    ) -> Outcome:
        """Run one function in a worker of its own; with a key to keep, in the worker of the previous call.

        All that comes out of the worker comes through the curtain.
        """
        own = limits or self.limits
        match await self.ready():
            case Sandbox() as sandbox:
                with curtain.heard() as hear:
                    running = sandbox.call(
                        modules,
                        module,
                        function,
                        arguments,
                        limits=own,
                        handler=curtain,
                        access=access,
                        keep=keep,
                        around=around,
                        on_output=hear,
                    )
                    outcome = await without_repositories(running, access.writable)
                    return await aside(bulk(getattr(outcome, "value", None)), curtain.over, outcome)
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def evaluate(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        evaluation: Evaluation,
        curtain: Curtain | None = None,
        *,
        limits: Limits | None = None,
        access: Access = NOTHING,
        around: CallHooks = PLAIN,
    ) -> Outcome:
        """Run one example of a module in a worker of its own."""
        over = curtain.over if curtain else self._masked(access)
        match await self.ready():
            case Sandbox() as sandbox:
                running = sandbox.evaluate(
                    modules,
                    module,
                    evaluation,
                    limits=limits or self.limits,
                    handler=curtain,
                    access=access,
                    around=around,
                )
                return over(await without_repositories(running, access.writable))
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def load(
        self, modules: Modules, module: str, *, limits: Limits | None = None, access: Access = NOTHING
    ) -> Outcome:
        """Import a module in a fresh worker."""
        match await self.ready():
            case Sandbox() as sandbox:
                outcome = await sandbox.load(modules, module, limits=limits or self.limits, access=access)
                return self._masked(access)(outcome)
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def describe(
        self,
        modules: Modules,
        module: str,
        functions: Sequence[str],
        *,
        limits: Limits | None = None,
        access: Access = NOTHING,
    ) -> Outcome:
        """Import a module in a fresh worker and return the schemas that syntax alone cannot give."""
        match await self.ready():
            case Sandbox() as sandbox:
                own = limits or self.limits
                outcome = await sandbox.describe(modules, module, functions, limits=own, access=access)
                return self._masked(access)(outcome)
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def attempt(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        function: str,
        attempts: Sequence[Attempt],
        *,
        each_s: float,
        limits: Limits | None = None,
        then: Then | None = None,
        access: Access = NOTHING,
    ) -> tuple[Outcome | None, ...]:
        """Run many attempts at a module in one worker, as far as it gets."""
        masked = self._masked(access)

        def over(outcomes: Sequence[Outcome | None]) -> tuple[Outcome | None, ...]:
            return tuple(outcome and masked(outcome) for outcome in outcomes)

        match await self.ready():
            case Sandbox() as sandbox:
                return over(
                    await sandbox.attempt(
                        modules,
                        module,
                        function,
                        attempts,
                        each_s=each_s,
                        limits=limits or self.limits,
                        then=then and (lambda outcomes: then(over(outcomes))),
                        access=access,
                    )
                )
            case SandboxUnavailable() as missing:
                return (Refused(str(missing)),) * len(attempts)

    def _masked(self, access: Access) -> Callable[[Outcome], Outcome]:
        """Return how outcomes without requests are masked: a preloaded package may remember its owner's calls."""
        return CallSecrets(self.secrets, access.owner.rpartition(".")[2]).over

    async def aclose(self) -> None:
        """End every worker."""
        if self._starting is not None and isinstance(sandbox := await self._starting, Sandbox):
            await sandbox.aclose()

    async def _start(self) -> Sandbox | SandboxUnavailable:
        try:
            return await Sandbox.start(
                packages=self.settings.packages,
                parallel=self._parallel,
                guarded=self._guarded,
                override=self.settings.unsafe,
            )
        except SandboxUnavailable as missing:
            return missing
