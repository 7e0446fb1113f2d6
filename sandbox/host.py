"""The sandbox as the host uses it: start it, run function code in workers of their own, read the outcomes.

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

from . import cgroup, visible
from .access import NOTHING, Access
from .attempt import Attempt, Series, Then
from .calls import Call, parents
from .code import Evaluation, Modules, Source
from .compiled import Broken, Compiled, Shelf
from .conversation import OnOutput
from .debugging import PLAIN, Around
from .errors import ProtocolError
from .keeping import Keeper, Work
from .launch import LayerFailed, NoPlace, ZygoteEnded
from .outcome import Killed, Outcome, Refused, TimedOut
from .policy import Limits
from .pool import SPARES, Places, kernel_limits
from .pools import Pools
from .protocol import Frame as Message
from .requests import RequestHandler, without_handler
from .running import Onlookers, Told, judged, run
from .starting import Ground, find_ground
from .values import Unsendable, encode

DEFAULT: Final = Limits()
_NO_WORKER: Final = (LayerFailed, NoPlace, ZygoteEnded)  # nothing was run
_SENT_ALONG: Final = 256 * 1024  # characters of code that go with a job, so that imports need not ask
_NESTED: Final = 4  # workers per place that may exist, the others waiting for calls of their own


class Sandbox:
    """Runs function code. Made by `start`; an async context manager."""

    def __init__(self, ground: Ground, parallel: int) -> None:
        self.level = ground.level
        self.layers = ground.layers
        self.missing = ground.missing
        self.plan = ground.plan
        self._places = Places(parallel)
        self._pools = Pools(ground.plan, ground.pool)
        self._shelf = Shelf(self._compile)
        self._keeper = Keeper(self._places)

    @classmethod
    async def start(
        cls,
        *,
        packages: Sequence[str] = ("pydantic",),
        parallel: int = 4,
        guarded: Sequence[str] = (),
        override: bool = False,
    ) -> "Sandbox":
        """A sandbox whose self-test has passed; SandboxUnavailable, naming what is missing, otherwise.

        What is `guarded` (files, folders) no function can ever be granted to write, nor what they lie in.
        """
        folder = Path(tempfile.gettempdir(), f"toolwright-scratch-{uuid.uuid4().hex}")  # made only where it is used
        slots = _NESTED * parallel + SPARES
        ground = await find_ground(visible.packages(packages), slots, str(folder), override=override)
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
        around: Around = PLAIN,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """How `functions.<module>.<function>(**arguments)` ended, in a worker of its own.

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
        around: Around = PLAIN,
    ) -> Outcome:
        """The value of an example's expression, after its setup, in a copy of the module's namespace."""
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
        """Whether the module can be imported: Returned(None), or why not."""
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
        """Returned({function: {parameter or "return": JSON Schema}}), as the worker claims it."""
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
        """The attempts' outcomes in order, of one worker as far as it goes: advice, to be confirmed by `call`.

        `limits.wall_s` is for all of them; what was not reached is None. `then` gives more, once all were tried; what
        stands beside the module is said by the first of them.
        """
        job = {"kind": "attempts", "module": module, "function": function}
        said = " ".join(text for one in attempts for text in one.said)
        ready = await self._prepare(modules, job, said, None)
        if not isinstance(ready, _Ready):
            return (ready,) * len(attempts)
        series = Series(attempts, each_s, limits, then)
        async with self._places:
            try:
                await series.run(await self._pools.get(ready.ahead, limits, access), ready.job, ready.call.serve)
            except _NO_WORKER as error:
                return tuple(one or Refused(str(error)) for one in series.outcomes)
        return tuple(
            outcome and _illustrated(ready.call, one, outcome, modules[module])
            for one, outcome in zip(series.attempts, series.outcomes, strict=True)
        )

    @property
    def resources(self) -> dict[str, str]:
        """What bounds memory, pids and cpu of all workers of a zygote together, and how many there can be."""
        zygote = self._pools.lean.zygote
        group = cgroup.Group() if zygote is None else zygote.group
        return cgroup.described(group) | {"workers": f"at most {self.plan.slots} at a time from one zygote"}

    @property
    def zygotes(self) -> int:
        """How many warm processes stand ready or may be started."""
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
        said = " ".join([*job.get("setup", ()), job.get("expression", "")])
        ready = await self._prepare(modules, job, said, terms.handler)
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
        onlookers = Onlookers(terms.around.debug.reins if terms.around.debug else None, terms.on_output)
        if terms.keep:
            place = partial(self._pools.get, ready.ahead, limits, terms.access, kept=True)
            work = Work(place, partial(ready.seal, terms), job | {"kind": "kept"}, limits, ready.call, onlookers)
            return await self._keeper.call(terms.keep, work)
        async with self._places:
            pool = await self._pools.get(ready.ahead, limits, terms.access)
            return await judged(await run(pool, job, limits, ready.call.serve, onlookers))

    async def _prepare(
        self, modules: Modules, job: Message, said: str, handler: RequestHandler | None
    ) -> "_Ready | Outcome":
        """The job with the code that it needs, all of it compiled; `said` is code that stands beside its module."""
        name = job["module"]
        source = modules.get(name)
        if source is None:
            return Refused(f"there is no module functions.{name}")
        compiled = await self._shelf.get(source)
        if not isinstance(compiled, Compiled):
            return compiled.outcome if isinstance(compiled, Broken) else compiled
        closure = await self._shelf.closure(modules, name)
        call = Call(modules, self._shelf, self._places, handler or without_handler)
        for near in closure:
            call.show(modules[near].path, modules[near].text)
        ahead = self._pools.ahead_for(closure, said, describes=job["kind"] == "describe")
        return _Ready(call, job | {"modules": _sent_along(name, closure)}, ahead, closure.keys())

    async def _compile(self, job: Message) -> Message | Killed | TimedOut:
        async with self._places:
            told = await run(self._pools.lean, job, Limits(result=_SENT_ALONG * 64), _refuse)
        return told.reply if isinstance(told, Told) else told


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a call may use, reach and ask."""

    limits: Limits
    access: Access
    handler: RequestHandler | None = None
    keep: str = ""
    around: Around = PLAIN
    on_output: OnOutput | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A job that can be given to a worker."""

    call: Call
    job: Message
    ahead: tuple[str, ...]
    reached: Set[str]  # the module and all that its import statements reach

    def seal(self, terms: "_Terms", asked: frozenset[str]) -> Hashable:
        """What must be the same for a kept worker to go on; `asked` is what it imported by other ways."""
        texts = self.call.versions(self.reached | asked)
        limits = kernel_limits(terms.limits), terms.limits.scratch
        return self.job["module"], texts, terms.access, terms.access.identities, limits


async def _refuse(_frame: Message) -> Message:
    raise ProtocolError("a compile-only worker asked for something")


def _labels(setup: Sequence[str], expression: str) -> list[tuple[str, str]]:
    numbered = [(f"<setup {number}>", text) for number, text in enumerate(setup, start=1)]
    return [*numbered, ("<example>", expression)]


def _illustrated(call: Call, attempt: Attempt, outcome: Outcome, source: Source) -> Outcome:
    call.show(source.path, source.text if attempt.text is None else attempt.text)
    if isinstance(attempt.work, Evaluation):
        for label, text in _labels(attempt.work.setup, attempt.work.expression):
            call.show(label, text)
    return call.illustrated(outcome)


def _sent_along(name: str, closure: dict[str, Compiled]) -> dict[str, Message]:
    """The module itself, the folders it lies in, and its neighbours as long as they are small together."""
    sent: dict[str, Message] = {}
    size = 0
    for folder in {folder for module in closure for folder in parents(module)} - closure.keys():
        sent[folder] = {"kind": "package"}
    for module, compiled in closure.items():
        size += len(compiled.message["code"])
        if module == name or size < _SENT_ALONG:
            sent[module] = compiled.message
    return sent
