"""The sandbox as the host uses it: start it, run function code in separate workers, read the outcomes.

The host keeps the clock, kills by pidfd, caps output and replies, and takes every reply as a claim
about a value. Cancelling any of these coroutines kills its worker.
"""

import tempfile
import uuid
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from .access import NOTHING, Access
from .attempt import Attempt, AttemptSeries, Then
from .code import Evaluation, Modules, SourceText
from .confine import mounts
from .errors import ProtocolError
from .outcome import Killed, Outcome, Refused, TimedOut
from .policy import Limits
from .processes import cgroup
from .processes.calls import CallServer, parents
from .processes.compilation import Compiled, CompiledCache, UncompilableModule
from .processes.conversation import OnOutput
from .processes.debugging import PLAIN, CallHooks
from .processes.launch import LayerFailed, NoPlace, ZygoteEnded
from .processes.pool import SPARES, Places, kernel_limits
from .processes.pools import Pools
from .processes.startup import StartedLevel, find_ground
from .processes.stateful_workers import KeptCall, StatefulWorkers
from .processes.worker_session import StreamListeners, WorkerReply, judged, run
from .wire.protocol import Frame as Message
from .wire.requests import RequestHandler, without_handler
from .wire.values import Unsendable, encode

DEFAULT: Final = Limits()
_NO_WORKER: Final = (LayerFailed, NoPlace, ZygoteEnded)  # nothing was run
_SENT_ALONG: Final = 256 * 1024  # characters of code that go with a job, so that imports need not ask
_NESTED: Final = 4  # workers per place that may exist, the others waiting for calls of their own


class Sandbox:
    """Runner of function code and async context manager, created by `start`."""

    def __init__(self, ground: StartedLevel, parallel: int) -> None:
        self.level = ground.level
        self.layers = ground.layers
        self.missing = ground.missing
        self.plan = ground.plan
        self._places = Places(parallel)
        self._pools = Pools(ground.plan, ground.pool)
        self._shelf = CompiledCache(self._compile)
        self._keeper = StatefulWorkers(self._places)

    @classmethod
    async def start(
        cls,
        *,
        packages: Sequence[str] = ("pydantic",),
        parallel: int = 4,
        guarded: Sequence[str] = (),
        override: bool = False,
    ) -> "Sandbox":
        """Return a sandbox that passed its self-test. Raise SandboxUnavailable, naming what is missing, otherwise.

        What is `guarded` (files, folders) no function can ever be granted to write, nor what they lie in.
        """
        folder = Path(tempfile.gettempdir(), f"toolwright-scratch-{uuid.uuid4().hex}")  # made only where it is used
        slots = _NESTED * parallel + SPARES
        ground = await find_ground(mounts.packages(packages), slots, str(folder), override=override)
        ground.pool.refill()
        return cls(replace(ground, plan=replace(ground.plan, guarded=tuple(guarded))), parallel)

    async def call(  # noqa: PLR0913 - module, function, arguments: the call itself; the rest by name
        self,
        modules: Modules,
        module: str,
        function: str,
        arguments: Mapping[str, Any],  # values that cross
        *,
        limits: Limits = DEFAULT,
        handler: RequestHandler | None = None,
        access: Access = NOTHING,
        keep: str = "",
        around: CallHooks = PLAIN,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """Return the outcome of `functions.<module>.<function>(**arguments)` in a worker of its own.

        With a key to `keep`, in the worker that the last call with this key left, and with what it left there.
        """
        try:
            encoded = encode(dict(arguments))
        except Unsendable as error:
            return Refused(f"arguments: {error}")
        job = {"kind": "call", "module": module, "function": function, "arguments": encoded}
        return await self._run(modules, job, _Terms(limits, access, handler, keep, around, on_output))

    async def evaluate(  # noqa: PLR0913 - as `call`
        self,
        modules: Modules,
        module: str,
        evaluation: Evaluation,
        *,
        limits: Limits = DEFAULT,
        handler: RequestHandler | None = None,
        access: Access = NOTHING,
        around: CallHooks = PLAIN,
    ) -> Outcome:
        """Return the value of an example's expression, after its setup, in a copy of the module's namespace."""
        job = {
            "kind": "evaluate",
            "module": module,
            "setup": list(evaluation.setup),
            "expression": evaluation.expression,
        }
        return await self._run(modules, job, _Terms(limits, access, handler, around=around))

    async def load(
        self, modules: Modules, module: str, *, limits: Limits = DEFAULT, access: Access = NOTHING
    ) -> Outcome:
        """Import the module. Return Returned(None), or why it cannot be imported."""
        return await self._run(modules, {"kind": "load", "module": module}, _Terms(limits, access))

    async def describe(
        self,
        modules: Modules,
        module: str,
        functions: Sequence[str],
        *,
        limits: Limits = DEFAULT,
        access: Access = NOTHING,
    ) -> Outcome:
        """Return Returned({function: {parameter or "return": JSON Schema}}), as the worker claims it."""
        job = {"kind": "describe", "module": module, "functions": list(functions)}
        return await self._run(modules, job, _Terms(limits, access))

    async def attempt(  # noqa: PLR0913 - module, function, attempts: what is tried; the rest by name
        self,
        modules: Modules,
        module: str,
        function: str,
        attempts: Sequence[Attempt],
        *,
        each_s: float,
        limits: Limits = DEFAULT,
        then: Then | None = None,
        access: Access = NOTHING,
    ) -> tuple[Outcome | None, ...]:
        """Return the attempts' outcomes in order, from one worker if possible: advice, to be confirmed by `call`.

        `limits.wall_s` is for all of them; what was not reached is None. `then` gives more, once all were tried; what
        runs next to the module is given by the first of them.
        """
        job = {"kind": "attempts", "module": module, "function": function}
        code_text = " ".join(text for attempt in attempts for text in attempt.said)
        ready = await self._prepare(modules, job, code_text, None)
        if not isinstance(ready, _Ready):
            return (ready,) * len(attempts)
        series = AttemptSeries(attempts, each_s, limits, then)
        async with self._places:
            try:
                await series.run(await self._pools.get(ready.ahead, limits, access), ready.job, ready.call.serve)
            except _NO_WORKER as error:
                return tuple(outcome or Refused(str(error)) for outcome in series.outcomes)
        return tuple(
            outcome and _illustrated(ready.call, attempt, outcome, modules[module])
            for attempt, outcome in zip(series.attempts, series.outcomes, strict=True)
        )

    @property
    def resources(self) -> dict[str, str]:
        """The limits on memory, pids and CPU of all workers of a zygote together, and their maximum number."""
        zygote = self._pools.lean.zygote
        group = cgroup.Group() if zygote is None else zygote.group
        return cgroup.described(group) | {"workers": f"at most {self.plan.slots} at a time from one zygote"}

    @property
    def zygotes(self) -> int:
        """The number of warm processes that stand ready or may be started."""
        return len(self._pools)

    async def aclose(self) -> None:
        """End every worker and the processes they come from."""
        self._keeper.close()
        await self._pools.aclose()

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def _run(self, modules: Modules, job: Message, terms: "_Terms") -> Outcome:
        code_text = " ".join([*job.get("setup", ()), job.get("expression", "")])
        ready = await self._prepare(modules, job, code_text, terms.handler)
        if not isinstance(ready, _Ready):
            return ready
        for label, text in _labels(job.get("setup", ()), job.get("expression", "")):
            ready.call.show(label, text)
        try:
            return ready.call.illustrated(await self._outcome(ready, terms))
        except _NO_WORKER as error:
            return Refused(str(error))

    async def _outcome(self, ready: "_Ready", terms: "_Terms") -> Outcome:
        limits, job = terms.limits, ready.job | {"result": terms.limits.result} | terms.around.to_json()
        onlookers = StreamListeners(terms.around.debug.reins if terms.around.debug else None, terms.on_output)
        if terms.keep:
            place = partial(self._pools.get, ready.ahead, limits, terms.access, stateful=True)
            work = KeptCall(place, partial(ready.seal, terms), job | {"kind": "kept"}, limits, ready.call, onlookers)
            return await self._keeper.call(terms.keep, work)
        async with self._places:
            pool = await self._pools.get(ready.ahead, limits, terms.access)
            return await judged(await run(pool, job, limits, ready.call.serve, onlookers))

    async def _prepare(
        self, modules: Modules, job: Message, code_text: str, handler: RequestHandler | None
    ) -> "_Ready | Outcome":
        """Return the job with all the compiled code that it needs. `code_text` is code evaluated next to its module."""
        name = job["module"]
        source = modules.get(name)
        if source is None:
            return Refused(f"there is no module functions.{name}")
        compiled = await self._shelf.get(source)
        if not isinstance(compiled, Compiled):
            return compiled.outcome if isinstance(compiled, UncompilableModule) else compiled
        closure = await self._shelf.closure(modules, name)
        call = CallServer(modules, self._shelf, self._places, handler or without_handler)
        for dependency in closure:
            call.show(modules[dependency].path, modules[dependency].text)
        ahead = self._pools.ahead_for(closure, code_text, describes=job["kind"] == "describe")
        return _Ready(call, job | {"modules": _sent_along(name, closure)}, ahead, closure.keys())

    async def _compile(self, job: Message) -> Message | Killed | TimedOut:
        async with self._places:
            result = await run(self._pools.lean, job, Limits(result=_SENT_ALONG * 64), _refuse)
        return result.reply if isinstance(result, WorkerReply) else result


@dataclass(frozen=True, slots=True)
class _Terms:
    """The limits, access and request handler of a call."""

    limits: Limits
    access: Access
    handler: RequestHandler | None = None
    keep: str = ""
    around: CallHooks = PLAIN
    on_output: OnOutput | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A job that can be given to a worker."""

    call: CallServer
    job: Message
    ahead: tuple[str, ...]
    reached: Set[str]  # the module and all that its import statements reach

    def seal(self, terms: "_Terms", requested: frozenset[str]) -> Hashable:
        """Return what must be unchanged for a stateful worker to go on. `requested` are modules it asked for."""
        texts = self.call.versions(self.reached | requested)
        limits = kernel_limits(terms.limits), terms.limits.scratch
        return self.job["module"], texts, terms.access, terms.access.identities, limits


async def _refuse(_frame: Message) -> Message:
    raise ProtocolError("a compile-only worker asked for something")


def _labels(setup: Sequence[str], expression: str) -> list[tuple[str, str]]:
    numbered = [(f"<setup {number}>", text) for number, text in enumerate(setup, start=1)]
    return [*numbered, ("<example>", expression)]


def _illustrated(call: CallServer, attempt: Attempt, outcome: Outcome, source: SourceText) -> Outcome:
    call.show(source.path, source.text if attempt.text is None else attempt.text)
    if isinstance(attempt.work, Evaluation):
        for label, text in _labels(attempt.work.setup, attempt.work.expression):
            call.show(label, text)
    return call.illustrated(outcome)


def _sent_along(name: str, closure: dict[str, Compiled]) -> dict[str, Message]:
    """Return the module itself, the folders that contain it, and its neighbors as long as they are small in total."""
    sent: dict[str, Message] = {}
    size = 0
    for folder in {folder for module in closure for folder in parents(module)} - closure.keys():
        sent[folder] = {"kind": "package"}
    for module, compiled in closure.items():
        size += len(compiled.message["code"])
        if module == name or size < _SENT_ALONG:
            sent[module] = compiled.message
    return sent
