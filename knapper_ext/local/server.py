"""The local model: obstacles are reported at once, and the engine loads in the background.

The engine is a separate process (see `engine.py`): one per set of weights, shared by models, restarted if it dies. It
keeps its state for the last conversation in memory, and its state for the fixed part of a prompt on disk between runs.
The window is the largest that fits the available memory.

A state's file name contains its key and the hash of its bytes. The engine trusts such a file (a truncated one
crashes it), so the hash is compared before the file is read. Only a few are kept: each is about 30 MB.
"""

import asyncio
import hashlib
import json
import os
import platform
import shutil
import signal
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import httpx2

from agent_core.base import machine, programs
from agent_core.base.errors import ContextOverflow, ModelError
from agent_core.base.records import asdict, dataclass
from agent_core.base.settings import ModelSettings
from agent_core.base.user_folders import NoHome
from agent_core.model.connection import Connection
from agent_core.model.request import Request, Tell
from agent_core.model.tokens import Window
from knapper_ext.local.constrained import ConstrainedModel
from knapper_ext.local.conversation import WireConversation, fixed_part
from sandbox.wire.strict_json import LOOSE, read_json

from .weights import (
    PREFIX,
    Weights,
    folder,
    named,
    obstacle,
    sha256_of,
    states_folder,
    verify,
)

Line = dict[str, Any]  # Any: JSON

_PROGRAM: Final = Path(__file__).with_name("engine.py")
_SOCKET: Final = "engine.sock"
_LONGEST_LINE: Final = 1 << 16
_STATE_S: Final = 60.0
_DYING_S: Final = 0.5
_LONGEST_ADDRESS: Final = 66  # of 107 bytes; a socket in a new folder takes 39 more
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
    """The parameters for starting an engine; `states` is the folder for saved states, if any."""

    model: str
    context: int
    threads: int
    batch: int
    cache_mib: int
    states: str = ""


class Child:
    """A process with its weights in memory, which serves the usual endpoints at its own socket."""

    def __init__(self, process: Process, place: Path) -> None:
        self.version = ""
        self._process = process
        self._place = place
        # The engine's server closes idle connections at any time, and a request at that moment is lost.
        limits = httpx2.Limits(max_keepalive_connections=0)
        transport = httpx2.AsyncHTTPTransport(uds=str(place / _SOCKET), limits=limits)
        self._connection = Connection(
            "http://localhost/v1", name="the local model", transport=transport
        )

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
        """Start a process and return it when it is ready, after the seconds that loading takes.

        Raises:
            ModelError: it could not start or load the weights.
        """
        usual = tempfile.gettempdir()
        short = usual if len(usual) < _LONGEST_ADDRESS else "/tmp"  # noqa: S108 - for the address of a socket
        place = Path(tempfile.mkdtemp(prefix="knapper-engine-", dir=short))
        child: Child | None = None
        try:
            process = await programs.start(
                programs.python(str(_PROGRAM)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={
                    **programs.variables_for_python(),
                    "GGML_NO_BACKTRACE": "1",
                },  # a crashing engine starts no debugger
                cwd="/",
                limit=_LONGEST_LINE,
            )
            child = cls(process, place)
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
            raise await self._death_error()
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
            async with aclosing(
                self._connection.stream("/chat/completions", content, streamed=True)
            ) as chunks:
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
        """Save or restore the engine's prompt state (`action`); return whether that succeeded.

        Raises:
            ModelError: the engine has ended.
        """
        try:
            await self._connection.ask(
                f"//slots/0?action={action}", {"filename": file}, timeout_s=_STATE_S
            )
        except ModelError as error:
            if (reason := await self._reason(error)) is not error:
                raise reason from error
            return False
        return True

    async def aclose(self) -> None:
        """Terminate the process at once."""
        await self._connection.aclose()
        if not self.has_ended:
            with suppress(ProcessLookupError):
                # Not `Process.kill`, which may reap the process before the loop does and lose its exit status.
                os.kill(self._process.pid, machine.KILLED)
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)

    async def _reason(self, error: ModelError) -> ModelError:
        """Return the error for the engine's end if that caused this error, else this error."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DYING_S):
                return await self._death_error()
        return error

    async def _death_error(self) -> ModelError:
        code = await self._process.wait()
        try:
            end = signal.Signals(-code).name
        except ValueError:  # an exit code, or a signal without a name
            end = f"signal {-code}" if code < 0 else f"exit code {code}"
        how, fix = _ENDS.get(-code, (f"ended unexpectedly ({end})", _FIX))
        return ModelError(f"The engine of the local model {how}.", fix=fix)


KEPT: Final = 3
"""The number of state files; the least recently used are deleted."""

_SUFFIX: Final = ".state"
_FORGOTTEN_S: Final = 3600.0

Entries: TypeAlias = Sequence[Mapping[str, str]]
T = TypeVar("T")


@dataclass(slots=True)
class _Reading:
    task: asyncio.Task[None]
    listeners: list[Tell]


class Engine:
    """An engine for weights in its own process; `aclose` releases it, and the last user's call ends it."""

    def __init__(self, weights: Weights, plan: EnginePlan) -> None:
        self.weights = weights
        self.plan = plan
        self.loop = asyncio.get_running_loop()
        self.users = 0
        self._starting = self._start()

    @property
    def is_loaded(self) -> bool:
        """True if the process is ready."""
        return self._starting.done() and not _has_failed(self._starting)

    async def child(self) -> Child:
        """Return the loaded process; one that failed or died is started again.

        Raises:
            ModelError: it could not be loaded.
        """
        if _has_failed(self._starting) or (self.is_loaded and self._starting.result().has_ended):
            await self._end()
            self._starting = self._start()
        return await asyncio.shield(self._starting)

    async def read(self, entries: Entries, tell: Tell = lambda *_: None) -> Child:
        """Return the process with the fixed part of a prompt restored, or read and saved; `tell` receives token counts.

        Reading continues if the caller gives up, because the next caller needs it too.

        Raises:
            ContextOverflow: it is longer than the window.
            ModelError: the engine failed.
        """
        child = await self.child()
        name = state_key(self.weights, child.version, entries)
        reading = self._readings.get(name)
        if reading is None or _has_failed(reading.task):
            listeners: list[Tell] = []
            reading = self._readings[name] = _Reading(
                _quiet(self._read(child, name, entries, listeners)), listeners
            )
        reading.listeners.append(tell)
        await asyncio.shield(reading.task)
        return child

    async def aclose(self) -> None:
        """Release the engine; its memory is freed when no other model uses it."""
        self.users -= 1
        if self.users == 0:
            _engines.remove(self)
            await self._end()

    def _start(self) -> asyncio.Task[Child]:
        self._readings: dict[str, _Reading] = {}
        return _quiet(Child.start(self.plan))

    async def _end(self) -> None:
        tasks = [self._starting, *(reading.task for reading in self._readings.values())]
        if self.is_loaded:
            await self._starting.result().aclose()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(
        self, child: Child, name: str, entries: Entries, listeners: Sequence[Tell]
    ) -> None:
        where = Path(self.plan.states) if self.plan.states else None
        if where is not None and await self._restore(child, where, name):
            return
        body = {"messages": [*entries], "max_tokens": 0, "stream": True, "return_progress": True}
        async with aclosing(child.complete(body)) as chunks:
            async for chunk in chunks:
                if progress := chunk.get("prompt_progress"):
                    for tell in listeners:
                        tell(progress["processed"], progress["total"])
        saved = f"{name}.{os.getpid()}-{time.time_ns()}.new"  # renamed when its hash is known
        if where is not None and await child.act("save", saved):
            await asyncio.to_thread(keep_state, where, name, saved)

    async def _restore(self, child: Child, where: Path, name: str) -> bool:
        file_name = await asyncio.to_thread(_intact_state, where, name)
        if file_name is None:
            return False
        try:
            return await child.act("restore", file_name)
        except ModelError:
            (where / file_name).unlink(missing_ok=True)  # it must not crash the next engine
            raise


_engines: list[Engine] = []


def engine(
    weights: Weights, plan: Callable[[], EnginePlan], same: Callable[[EnginePlan], bool]
) -> Engine:
    """Return the engine of this loop whose plan passes `same`, or a new one from `plan`."""
    loop = asyncio.get_running_loop()
    _engines[:] = [entry for entry in _engines if not entry.loop.is_closed()]
    match = next((entry for entry in _engines if entry.loop is loop and same(entry.plan)), None)
    if match is None:
        match = Engine(weights, plan())
        _engines.append(match)
    match.users += 1
    return match


def running() -> Sequence[Engine]:
    """Return the engines that are in use."""
    return tuple(_engines)


def _quiet(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Return a task whose failure is not logged: the next caller that needs the result restarts it."""
    task = asyncio.create_task(work)
    task.add_done_callback(_has_failed)
    return task


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def prepared_folder() -> Path | None:
    """Return the folder for states, created so that nobody else can read it; None if that is impossible."""
    try:
        where = states_folder()
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        if where.stat().st_uid != machine.user_id():
            return None
        where.chmod(0o700)
    except (OSError, NoHome):
        return None
    return where


def state_key(weights: Weights, engine: str, entries: Sequence[Mapping[str, str]]) -> str:
    """Return the key of a state: it depends on the weights, the engine and the text, but not on the window size."""
    text = json.dumps([weights.sha256, engine, entries], sort_keys=True)
    return f"{weights.name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _intact_state(where: Path, name: str) -> str | None:
    """Return the name of the intact file for this key; delete other files of the key."""
    for file in where.glob(f"{name}.*{_SUFFIX}"):
        with suppress(OSError):
            if (
                file.is_file()
                and not file.is_symlink()
                and sha256_of(file) == file.name.split(".")[-2]
            ):
                file.touch()
                return file.name
            file.unlink()
    return None


def keep_state(where: Path, name: str, saved: str) -> None:
    """Move a saved state into place, and delete the oldest files beyond the limit."""
    with suppress(OSError):
        file, before = where / saved, [*where.glob(f"{name}.*{_SUFFIX}")]
        file.chmod(0o600)
        for state_file in before:
            state_file.unlink()
        file.replace(where / f"{name}.{sha256_of(file)}{_SUFFIX}")
    with suppress(OSError):
        for old in sorted(where.glob(f"*{_SUFFIX}"), key=_last_use, reverse=True)[KEPT:]:
            old.unlink()
        for leftover in where.glob("*.new"):
            if time.time() - _last_use(leftover) > _FORGOTTEN_S:
                leftover.unlink()


def _last_use(file: Path) -> float:
    return file.stat().st_mtime


SIZES: Final = (16_384, 8_192, 4_096)
"""Windows in tokens, in order of preference."""

# Per token: 28 layers, 2 heads of 128 numbers, a key and a value, 2 bytes each. A smaller model needs less.
_TOKEN_BYTES: Final = 28 * 2 * 128 * 2 * 2
_ENGINE_BYTES: Final = 256 << 20
_SPARE: Final = 1 << 30
"""Memory left to other programs before a window larger than the smallest is chosen."""


def needed(weights: int, context: int) -> int:
    """Return the bytes that weights of this size need with such a window; the weights are in memory once and partly
    twice.
    """
    return weights * 5 // 4 + _ENGINE_BYTES + context * _TOKEN_BYTES


def context_size(free: int | None, weights: int, requested: int | None = None) -> int:
    """Return the window for this much free memory (None: unknown); a requested size is used if it fits at all.

    Raises:
        ModelError: not even the smallest fits.
    """
    if free is None:
        return requested or SIZES[1]
    least = requested or SIZES[-1]
    if free < needed(weights, least):
        first = "Set `model.context_tokens` lower" if least > SIZES[-1] else "Close other programs"
        raise ModelError(
            f"The local model needs {needed(weights, least) / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free.",
            fix=f"{first}, or take a smaller model: knapper models list",
        )
    if requested:
        return requested
    return next((size for size in SIZES[:-1] if free >= needed(weights, size) + _SPARE), SIZES[-1])


def available(root: Path = Path("/")) -> int | None:
    """Return the bytes available without swapping, within this control group's limit; None if unknown."""
    free = _fields(root / "proc/meminfo").get("MemAvailable")
    if free is None:
        return None
    group = root / "sys/fs/cgroup"
    try:
        limit, used = (
            int((group / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
    except (OSError, ValueError):  # "max" means no limit
        return free << 10
    return min(
        free << 10, max(limit - used + _fields(group / "memory.stat").get("inactive_file", 0), 0)
    )


def _fields(file: Path) -> Mapping[str, int]:
    try:
        lines = [
            line.replace(":", " ").split() for line in file.read_text(encoding="ascii").splitlines()
        ]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


# The features that the engine's wheels for this processor type require; without them it is killed (SIGILL).
_NEEDED_FLAGS: Final = frozenset({"avx2", "bmi2", "f16c", "fma"})
# Small batches, so that an interruption takes effect within seconds; larger ones were not faster.
_BATCH: Final = 128
_CACHE_MIB: Final = 512


class LocalModel(ConstrainedModel):
    """A model that runs on this machine and can read its prompt in advance."""

    def __init__(self, weights: Weights, engine: Engine, settings: ModelSettings) -> None:
        self.engine = engine
        self._is_open = True
        window = Window(engine.plan.context, "as it is loaded here")
        super().__init__(self, PREFIX + weights.name, window, settings)

    async def prepare(self, request: Request, tell: Tell) -> None:
        """Prefill the engine's prompt cache with the fixed part of the request."""
        await self._open_engine().read(fixed_part(WireConversation().write(request)), tell)

    async def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the chunks of one completion; an early exit returns at once and stops the engine after its batch.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: the engine failed, or was closed.
        """
        fixed = fixed_part(body["messages"])
        child = await (self._open_engine().read(fixed) if fixed else self._open_engine().child())
        async with aclosing(child.complete(translate(body))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """Release the engine; its memory is freed when no other model uses it."""
        if self._is_open:
            self._is_open = False
            await self.engine.aclose()

    def _open_engine(self) -> Engine:
        if not self._is_open:
            raise ModelError("The local model was closed.")
        return self.engine


async def open_local(name: str, settings: ModelSettings | None = None) -> LocalModel:
    """Return a model that runs the weights `local/…`; it loads in the background, and the first request waits for it.

    Raises:
        UsageError: there are no such weights.
        IntegrityError: the file does not match its hash.
        NoModel: the weights are not on this machine.
        ModelError: the engine is not installed, or cannot run here.
    """
    settings = settings or ModelSettings()
    weights = named(name)
    check_processor()
    if (lacking := obstacle(weights)) is not None:
        raise lacking
    file = folder() / weights.file
    await asyncio.to_thread(verify, weights, file)
    threads, requested_tokens = settings.threads or default_threads(), settings.context_tokens

    def plan() -> EnginePlan:
        size = context_size(available(), weights.size, requested_tokens)
        states = prepared_folder()
        return EnginePlan(
            str(file), size, threads, _BATCH, _CACHE_MIB, f"{states}{os.sep}" if states else ""
        )

    def is_same(plan: EnginePlan) -> bool:
        return (plan.model, plan.threads) == (str(file), threads) and requested_tokens in (
            None,
            plan.context,
        )

    return LocalModel(weights, engine(weights, plan, is_same), settings)


def default_threads() -> int:
    """Return all cores but one: with all of them, the engine waits for other programs (measured: 10 times slower)."""
    return max(machine.cores() - 1, 1)


def check_processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Raise an error if the engine would crash on this processor.

    Raises:
        ModelError: the processor does not have the features that the engine requires; the message names them.
    """
    if platform.machine() not in ("x86_64", "AMD64") or not cpuinfo.is_file():
        return
    lines = (
        line
        for line in cpuinfo.read_text(encoding="utf-8").splitlines()
        if line.startswith("flags")
    )
    missing = sorted(_NEEDED_FLAGS - {*next(lines, " ".join(_NEEDED_FLAGS)).split()})
    if missing:
        raise ModelError(
            f"This processor is too old for the local model: it does not have {', '.join(missing)}.",
            fix="Use an endpoint instead: the setting `model.base_url`.",
        )


def translate(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body as this engine accepts it: the schema as a grammar without free white space, with progress
    reports.

    Steps without white space are a fifth shorter, and return byte for byte in the next request.
    """
    translated = {
        **body,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    format_ = translated.pop("response_format", None)
    if format_ is not None:
        schema = {"x-guidance": {"whitespace_flexible": False}, **format_["json_schema"]["schema"]}
        translated["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps(schema)}"
    return translated
