"""The process of one engine as the host sees it: start, commands, and shutdown.

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
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent_core.base import machine, programs
from agent_core.base.errors import ContextOverflow, ModelError
from sandbox.wire.foreign import LOOSE, read_json

Line = dict[str, Any]  # Any: JSON

_PROGRAM: Final = Path(__file__).with_name("engine.py")
_LONGEST_LINE: Final = 1 << 24
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
    """A process with its weights in memory."""

    def __init__(self, process: Process, place: Path) -> None:
        self.version = ""
        self.has_ended = False
        self._process = process
        self._place = place
        self._count = 0
        self._answers: dict[int, asyncio.Queue[Line | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

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
        self._send({**asdict(plan), "socket": str(self._place / "engine.sock")})
        line = await self._line()
        if line is None:
            raise await self._died()
        if "failed" in line:
            raise ModelError(
                f"The local model could not be loaded: {line['failed']}.",
                fix="It needs about 2 GB of free memory, and a package xllamacpp that runs here: knapper doctor",
            )
        self.version = line["ready"]
        self._reading = asyncio.create_task(self._read())

    async def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[Line, None]:
        """Yield the chunks of one completion; an early exit returns at once and stops the engine after its batch.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: the engine failed or has ended.
        """
        number = self._order({"body": body})
        ended = False
        try:
            while not ended:
                line = await self._answer(number)
                ended = "chunk" not in line
                if "failed" in line:
                    raise ModelError(f"The local model failed: {line['failed']}.", fix=_FIX)
                if not ended:
                    yield _checked(line["chunk"])
        finally:
            del self._answers[number]
            if not ended and not self.has_ended:
                self._send({"stop": number})

    async def act(self, action: str, file: str) -> bool:
        """Save or restore the state of what was read; return whether that succeeded.

        Raises:
            ModelError: the engine has ended.
        """
        number = self._order({"action": action, "file": file})
        try:
            return bool((await self._answer(number))["end"])
        finally:
            del self._answers[number]

    async def aclose(self) -> None:
        """Terminate the process now, whatever it does."""
        self._kill()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    def _order(self, order: Line) -> int:
        self._count += 1
        self._answers[self._count] = asyncio.Queue()
        if self.has_ended:
            self._answers[self._count].put_nowait(None)
        else:
            self._send({"id": self._count, **order})
        return self._count

    async def _answer(self, number: int) -> Line:
        line = await self._answers[number].get()
        if line is None:
            raise await self._died()
        return line

    def _send(self, line: Line) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    async def _read(self) -> None:
        try:
            while (line := await self._line()) is not None:
                if line["id"] in self._answers:
                    self._answers[line["id"]].put_nowait(line)
        except ValueError:  # what it says is no protocol any more
            self._kill()
        finally:
            self.has_ended = True
            for waiting in self._answers.values():
                waiting.put_nowait(None)

    def _kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                # Not `Process.kill`, which reaps behind the back of the loop: how it ended would be lost.
                os.kill(self._process.pid, machine.KILLED)

    async def _line(self) -> Line | None:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        return read_json(line, LOOSE) if line.endswith(b"\n") else None

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


def _checked(chunk: Line) -> Line:
    if "error" not in chunk:
        return chunk
    error = chunk["error"]
    message = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        raise ContextOverflow(message, fix="Set `model.context_tokens` higher, or begin a new conversation.")
    raise ModelError(f"The local model failed: {message}.", fix=_FIX)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
