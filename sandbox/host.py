"""The sandbox as the host uses it: start it, run function code in workers of their own, read the outcomes.

The host keeps the clock, kills by pidfd, caps output and replies, and takes every reply as a claim
about a value. Cancelling any of these coroutines kills its worker.
"""

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from . import visible
from .calls import Call, parents
from .code import Evaluation, Modules
from .compiled import Broken, Compiled, Shelf
from .conversation import judge
from .errors import ProtocolError
from .launch import NoPlace
from .outcome import Killed, Outcome, Refused, TimedOut
from .policy import Limits
from .pool import SPARES, Places
from .pools import Pools
from .protocol import Frame as Message
from .requests import RequestHandler, without_handler
from .running import Told, run
from .starting import Ground, find_ground
from .values import Unsendable, encode

DEFAULT: Final = Limits()
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

    @classmethod
    async def start(
        cls, *, packages: Sequence[str] = ("pydantic",), parallel: int = 4, override: bool = False
    ) -> "Sandbox":
        """A sandbox whose self-test has passed; SandboxUnavailable, naming what is missing, otherwise."""
        folder = Path(tempfile.gettempdir(), f"toolwright-scratch-{uuid.uuid4().hex}")  # made only where it is used
        slots = _NESTED * parallel + SPARES
        ground = await find_ground(visible.packages(packages), slots, str(folder), override=override)
        ground.pool.refill()
        return cls(ground, parallel)

    async def call(  # noqa: PLR0913 - module, function, arguments: the call itself; the rest by name
        self,
        modules: Modules,
        module: str,
        function: str,
        arguments: Mapping[str, Any],  # values that cross
        *,
        limits: Limits = DEFAULT,
        handler: RequestHandler | None = None,
    ) -> Outcome:
        """How `functions.<module>.<function>(**arguments)` ended, in a worker of its own."""
        try:
            encoded = encode(dict(arguments))
        except Unsendable as error:
            return Refused(f"arguments: {error}")
        job = {"kind": "call", "module": module, "function": function, "arguments": encoded}
        return await self._run(modules, job, limits, handler)

    async def evaluate(
        self,
        modules: Modules,
        module: str,
        evaluation: Evaluation,
        *,
        limits: Limits = DEFAULT,
        handler: RequestHandler | None = None,
    ) -> Outcome:
        """The value of an example's expression, after its setup, in a copy of the module's namespace."""
        job = {
            "kind": "evaluate",
            "module": module,
            "setup": list(evaluation.setup),
            "expression": evaluation.expression,
        }
        return await self._run(modules, job, limits, handler)

    async def load(self, modules: Modules, module: str, *, limits: Limits = DEFAULT) -> Outcome:
        """Whether the module can be imported: Returned(None), or why not."""
        return await self._run(modules, {"kind": "load", "module": module}, limits, None)

    async def describe(
        self,
        modules: Modules,
        module: str,
        functions: Sequence[str],
        *,
        limits: Limits = DEFAULT,
    ) -> Outcome:
        """Returned({function: {parameter or "return": JSON Schema}}), as the worker claims it."""
        job = {"kind": "describe", "module": module, "functions": list(functions)}
        return await self._run(modules, job, limits, None)

    @property
    def zygotes(self) -> int:
        """How many warm processes stand ready or may be started."""
        return len(self._pools)

    async def aclose(self) -> None:
        """End every worker and the processes they come from."""
        await self._pools.aclose()

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def _run(self, modules: Modules, job: Message, limits: Limits, handler: RequestHandler | None) -> Outcome:
        name = job["module"]
        source = modules.get(name)
        if source is None:
            return Refused(f"there is no module functions.{name}")
        compiled = await self._shelf.get(source)
        if not isinstance(compiled, Compiled):
            return compiled.outcome if isinstance(compiled, Broken) else compiled
        closure = await self._shelf.closure(modules, name)
        call = Call(modules, self._shelf, self._places, handler or without_handler)
        for label, text in _labels(job):
            call.show(label, text)
        for near in closure:
            call.show(modules[near].path, modules[near].text)
        said = " ".join([*job.get("setup", ()), job.get("expression", "")])
        ahead = self._pools.ahead_for(closure, said, describes=job["kind"] == "describe")
        whole = job | {"modules": _sent_along(name, closure), "result": limits.result}
        async with self._places:
            try:
                told = await run(await self._pools.get(ahead, limits.scratch), whole, limits, call.serve)
            except NoPlace as error:
                return Refused(str(error))
        return call.illustrated(_judged(told))

    async def _compile(self, job: Message) -> Message | Killed | TimedOut:
        async with self._places:
            told = await run(self._pools.lean, job, Limits(result=_SENT_ALONG * 64), _refuse)
        return told.reply if isinstance(told, Told) else told


async def _refuse(_frame: Message) -> Message:
    raise ProtocolError("a compile-only worker asked for something")


def _labels(job: Message) -> list[tuple[str, str]]:
    setup = [(f"<setup {number}>", text) for number, text in enumerate(job.get("setup", ()), start=1)]
    return [*setup, ("<example>", job.get("expression", ""))]


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


def _judged(told: Told | Killed | TimedOut) -> Outcome:
    if not isinstance(told, Told):
        return told
    try:
        return judge(told.reply, told.output, told.seconds)
    except ProtocolError as error:
        return Killed(f"the worker's answer was not taken, because {error}", told.output, told.seconds)
