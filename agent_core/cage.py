"""The sandbox as the rest of the program meets it: started when first needed, shut where it cannot hold.

Where the platform cannot enforce the sandbox every request is answered with `Refused`, naming the
missing layers and the choices: agent-written code never runs by accident.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sandbox import (
    Access,
    Around,
    Attempt,
    Evaluation,
    Limits,
    Outcome,
    Refused,
    RequestHandler,
    Sandbox,
    SandboxUnavailable,
    Then,
)
from sandbox.access import NOTHING
from sandbox.code import Modules
from sandbox.debugging import PLAIN

from .aside import aside, bulk
from .broker import Broker
from .debugging.debugging import Debugging
from .secrets import Secrets
from .settings import SandboxSettings

_OWN: Final = tuple(str(Path(__file__).parents[1] / room) for room in ("agent_core", "meta_functions", "sandbox"))
_GUARDED: Final = ("functions", ".toolwright", "toolwright.toml", ".git")


def guarded_in(root: Path) -> tuple[str, ...]:
    """What no function can ever be granted to write in a workspace."""
    return tuple(str(root.resolve() / name) for name in _GUARDED)


def limits_of(settings: SandboxSettings) -> Limits:
    """The limits of one call as the settings give them."""
    return Limits(
        wall_s=settings.wall_s,
        memory=settings.memory_mib << 20,
        output=settings.output_kib << 10,
        result=settings.result_kib << 10,
        scratch=settings.scratch_mib << 20,
    )


class Cage:
    """Runs functions in sandboxed workers, or says why none can run."""

    def __init__(
        self,
        settings: SandboxSettings,
        parallel: int,
        *,
        guarded: Sequence[str] = (),
        secrets: Secrets | None = None,
        broker: Broker | None = None,
    ) -> None:
        self.limits = limits_of(settings)
        self.settings = settings
        self.secrets = secrets or Secrets()
        self.broker = broker or Broker()
        self.debugging = Debugging(settings.debug_wait_minutes * 60)
        self._parallel = parallel
        self._guarded = (*guarded, *_OWN)
        self._starting: asyncio.Task[Sandbox | SandboxUnavailable] | None = None

    async def ready(self) -> Sandbox | SandboxUnavailable:
        """The running sandbox, or why there is none; the first caller starts it."""
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
        handler: RequestHandler | None = None,
        *,
        limits: Limits | None = None,
        access: Access = NOTHING,
        keep: str = "",
        over: Callable[[Outcome], Outcome] | None = None,
        around: Around = PLAIN,
        on_output: Callable[[str], None] | None = None,
    ) -> Outcome:
        """Run one function in a worker of its own; with a key to keep, in the one of the call before.

        What `over` gives is the outcome: secrets are masked here, before anybody has it. What `on_output` hears is not.
        """
        own = limits or self.limits
        match await self.ready():
            case Sandbox() as sandbox:
                outcome = await sandbox.call(
                    modules,
                    module,
                    function,
                    arguments,
                    limits=own,
                    handler=handler,
                    access=access,
                    keep=keep,
                    around=around,
                    on_output=on_output,
                )
                return await aside(bulk(getattr(outcome, "value", None)), over, outcome) if over else outcome
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def evaluate(  # noqa: PLR0913 - as the sandbox's own
        self,
        modules: Modules,
        module: str,
        evaluation: Evaluation,
        *,
        limits: Limits | None = None,
        handler: RequestHandler | None = None,
        access: Access = NOTHING,
        around: Around = PLAIN,
    ) -> Outcome:
        """Run one example of a module in a worker of its own."""
        match await self.ready():
            case Sandbox() as sandbox:
                return await sandbox.evaluate(
                    modules,
                    module,
                    evaluation,
                    limits=limits or self.limits,
                    handler=handler,
                    access=access,
                    around=around,
                )
            case SandboxUnavailable() as missing:
                return Refused(str(missing))

    async def load(
        self, modules: Modules, module: str, *, limits: Limits | None = None, access: Access = NOTHING
    ) -> Outcome:
        """Import a module in a fresh worker."""
        match await self.ready():
            case Sandbox() as sandbox:
                return await sandbox.load(modules, module, limits=limits or self.limits, access=access)
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
        """Import a module in a fresh worker and ask for the schemas that syntax cannot give."""
        match await self.ready():
            case Sandbox() as sandbox:
                return await sandbox.describe(modules, module, functions, limits=limits or self.limits, access=access)
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
        """Try many things of a module in one worker, as far as it goes."""
        match await self.ready():
            case Sandbox() as sandbox:
                return await sandbox.attempt(
                    modules,
                    module,
                    function,
                    attempts,
                    each_s=each_s,
                    limits=limits or self.limits,
                    then=then,
                    access=access,
                )
            case SandboxUnavailable() as missing:
                return (Refused(str(missing)),) * len(attempts)

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
