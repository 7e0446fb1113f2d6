"""The process of one engine as the host sees it: start, requests, and shutdown.

It has no key and no setting of this process in its environment, no terminal, and a session of its own, so
that Ctrl-C does not reach it.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent_core.base import machine, programs
from agent_core.base.errors import ContextOverflow, ModelError
from sandbox.wire.foreign import LOOSE, read_json

Line = dict[str, Any]  # Any: JSON

_PROGRAM: Final = Path(__file__).with_name("engine.py")
_SOCKET: Final = "engine.sock"
_LONGEST_LINE: Final = 1 << 16
_STATE_S: Final = 60.0
_DYING_S: Final = 0.5
_LONGEST_ADDRESS: Final = 66  # of 107 bytes; a socket below a new folder takes 39 more
_FIX: Final = "Try again; if this continues, use another model: knapper models list"
_ENDS: Final[Mapping[int, tuple[str, str]]] = {
    machine.KILLED: (
        "was killed, most likely because memory ran out",
        "Close other programs, set `model.context_tokens` lower, or use a smaller model: knapper models list",
    ),
    signal.SIGILL: (
        "cannot run on this processor",
        "Use an endpoint instead: the setting `model.base_url`.",
    ),
}


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The parameters with which an engine is started; `states` is the folder for saved states, if any."""

    model: str
    context: int
    threads: int
    batch: int
    cache_mib: int
    states: str = ""


class Child:
    """A process with its weights in memory, which is asked as every endpoint is, at a socket of its own."""

    def __init__(self, process: Process, place: Path) -> None:
        import httpx2  # noqa: PLC0415 - with the package slow to import: who lists local models asks none

        from ..connection import Connection  # noqa: PLC0415 - the same

        self.version = ""
        self._process = process
        self._place = place
        # The engine's server closes a kept connection whenever it likes, and a request that meets that is lost.
        limits = httpx2.Limits(max_keepalive_connections=0)
        transport = httpx2.AsyncHTTPTransport(uds=str(place / _SOCKET), limits=limits)
        self._connection = Connection("http://localhost/v1", name="the local model", transport=transport)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process is gone."""
        return self._process.returncode is not None

    @classmethod
    async def start(cls, plan: EnginePlan) -> "Child":
        """Start a process and return it when it is ready; this takes the seconds that loading takes.

        Raises:
            ModelError: it did not come so far.
        """
        place = _private_place()
        child: Child | None = None
        try:
            child = cls(await _spawn(), place)
            await child._load(plan)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            if child is not None:
                await child.aclose()
            raise
        return child

    async def _load(self, plan: EnginePlan) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {**asdict(plan), "socket": str(self._place / _SOCKET)}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise await self._died()
        answer = read_json(line, LOOSE)
        if "failed" in answer:
            raise ModelError(
                f"The local model could not be loaded: {answer['failed']}.",
                fix="It needs about 2 GB of free memory, and a package xllamacpp that runs here: knapper doctor",
            )
        self.version = answer["ready"]

    async def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[Line, None]:
        """Yield the chunks of one completion; an early exit returns at once, and the engine stops soon after.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: the engine failed or has ended.
        """
        try:
            content = json.dumps(body).encode()
            async with aclosing(self._connection.stream("/chat/completions", content, streamed=True)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, dict):
                        yield chunk
        except ContextOverflow as error:
            error.fix = "Set `model.context_tokens` higher, or begin a new conversation."
            raise
        except ModelError as error:
            error.fix = _FIX
            raise await self._reason(error) from error

    async def act(self, action: str, file: str) -> bool:
        """Save or restore the state of what was read; return whether that succeeded.

        Raises:
            ModelError: the engine has ended.
        """
        try:
            await self._connection.ask(f"//slots/0?action={action}", {"filename": file}, timeout_s=_STATE_S)
        except ModelError as error:
            if (reason := await self._reason(error)) is not error:
                raise reason from error
            return False
        return True

    async def aclose(self) -> None:
        """Terminate the process now, whatever it does."""
        await self._connection.aclose()
        if not self.has_ended:
            with suppress(ProcessLookupError):
                # Not `Process.kill`, which reaps behind the back of the loop: how it ended would be lost.
                os.kill(self._process.pid, machine.KILLED)
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    async def _reason(self, error: ModelError) -> ModelError:
        """Return why the engine has ended, if that is what an error comes from, or the error."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DYING_S):
                return await self._died()
        return error

    async def _died(self) -> ModelError:
        code = await self._process.wait()
        unknown = (f"ended unexpectedly ({_signal_name(-code) if code < 0 else f'exit code {code}'})", _FIX)
        how, fix = _ENDS.get(-code, unknown)
        return ModelError(f"The engine of the local model {how}.", fix=fix)


async def _spawn() -> Process:
    return await programs.start(
        programs.python(str(_PROGRAM)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={**programs.variables_for_python(), "GGML_NO_BACKTRACE": "1"},  # a failed engine starts no debugger
        cwd="/",
        limit=_LONGEST_LINE,
    )


def _private_place() -> Path:
    """Return a new folder private to this user, with a path that is short enough for a socket address."""
    usual = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="knapper-engine-", dir=usual if len(usual) < _LONGEST_ADDRESS else "/tmp"))  # noqa: S108 - made by mkdtemp


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
