"""Runs weights in this process with `xllamacpp`, and speaks chat completions with them.

The engine computes in threads of its own and writes nothing to the terminal. It keeps what it has read of
the last conversation, so the unchanged beginning of the next request is not read again.
"""

import asyncio
import importlib
import json
import os
import platform
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from weakref import WeakValueDictionary

from ...errors import ContextOverflow, ModelError
from ...settings import ModelSettings
from ..constrained import ConstrainedModel
from .weights import PREFIX, named, path, verify

CONTEXT_TOKENS: Final = 8_192

# What the engine's wheels for this kind of processor are compiled for; without one of these it is killed (SIGILL).
_NEEDED_FLAGS: Final = frozenset({"avx2", "bmi2", "f16c", "fma"})
# Read in small batches, so that an interruption is noticed within seconds; larger ones were not faster.
_BATCH: Final = 128
_CACHE_MIB: Final = 512
_COMPACT: Final = {"whitespace_flexible": False}


async def open_local(name: str, settings: ModelSettings | None = None) -> ConstrainedModel:
    """A model that runs the weights of this name, `local/…`; loading takes seconds.

    Raises:
        UsageError: there are no such weights.
        IntegrityError: the file is not what it should be.
        ModelError: the engine or the weights are not here, or do not run here.
    """
    settings = settings or ModelSettings()
    weights = named(name)
    check_processor()
    engine = _import_engine()
    file = path(name)
    if file is None:
        raise ModelError(f"The weights of {weights.name} are not here.", mend=f"toolwright models get {weights.name}")
    await asyncio.to_thread(verify, weights, file)
    size = settings.context_tokens or CONTEXT_TOKENS
    loaded = await asyncio.to_thread(_shared, engine, file, size, settings.threads or default_threads())
    return ConstrainedModel(LocalCompletions(loaded), PREFIX + weights.name, size, settings)


def default_threads() -> int:
    """All cores but one: with all of them, the engine waits for whoever else runs (measured: 10 times slower)."""
    return max(len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 2) - 1, 1)


def check_processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Refuse a processor that the engine would crash on.

    Raises:
        ModelError: it lacks what the engine is compiled for; the message names it.
    """
    if platform.machine() not in ("x86_64", "AMD64") or not cpuinfo.is_file():
        return
    lines = (line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("flags"))
    missing = sorted(_NEEDED_FLAGS - {*next(lines, " ".join(_NEEDED_FLAGS)).split()})
    if missing:
        raise ModelError(
            f"This processor is too old for the local model: it lacks {', '.join(missing)}.",
            mend="Use an endpoint instead: toolwright run --base-url URL",
        )


def _import_engine() -> ModuleType:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ModelError(
            f"The local model needs the package xllamacpp, which cannot be imported ({error}).",
            mend="pip install 'toolwright[local]'",
        ) from error


class Engine:
    """Weights in memory; answers one request at a time, in a thread of its own."""

    def __init__(self, server: Any) -> None:  # Any: an untyped package
        self._server = server
        self._thread = ThreadPoolExecutor(1, "local-model")

    def submit(self, body: dict[str, Any], take: Callable[[dict[str, Any]], bool]) -> Future[None]:
        """Answer a body when it is its turn; `take` gets every chunk and says whether to stop."""
        return self._thread.submit(self._server.handle_chat_completions, body, take)


# One engine for the models of a process that use the same weights alike; it goes when the last of them does.
_engines: WeakValueDictionary[tuple[Path, int, int], Engine] = WeakValueDictionary()
_loading = threading.Lock()


def _shared(engine: ModuleType, file: Path, size: int, threads: int) -> Engine:
    with _loading:
        loaded = _engines.get((file, size, threads))
        if loaded is None:
            loaded = _engines[file, size, threads] = Engine(_load(engine, file, size, threads))
        return loaded


def _load(engine: ModuleType, file: Path, size: int, threads: int) -> Any:  # Any: an untyped package
    parameters = engine.CommonParams()
    parameters.model.path = str(file)
    parameters.n_ctx = size
    parameters.n_parallel = 1
    parameters.n_batch = parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.cache_ram_mib = _CACHE_MIB
    parameters.warmup = parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = -1
    try:
        return engine.Server(parameters)
    except RuntimeError as error:
        raise ModelError(
            f"The local model could not be loaded: {error}.", mend="It needs about 2 GB of free memory."
        ) from error


class LocalCompletions:
    """Chat completions by an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Engine | None = engine

    async def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of one completion; leaving it early stops the engine after its current batch.

        Raises:
            ContextOverflow: the request is longer than the window.
            ModelError: the engine fails, or was closed.
        """
        if self._engine is None:
            raise ModelError("The local model was closed.")
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        stop = threading.Event()

        def pass_on(chunk: dict[str, Any] | None) -> bool:
            if not stop.is_set():
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return stop.is_set()

        running = self._engine.submit(translate(body), pass_on)
        running.add_done_callback(lambda _: pass_on(None))
        try:
            while (chunk := await chunks.get()) is not None:
                yield _checked(chunk)
            running.result()
        except RuntimeError as error:
            raise ModelError(f"The local model failed: {error}.") from error
        finally:
            stop.set()
            running.cancel()

    async def aclose(self) -> None:
        """Let go of the engine; its memory is freed when no other model uses it."""
        self._engine = None


def translate(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body as this engine takes it: the schema as a grammar without free white space, and progress while it reads.

    Steps without white space are a fifth shorter, and come back byte for byte in the next request.
    """
    translated = {**body, "stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
    format_ = translated.pop("response_format", None)
    if format_ is not None:
        schema = {"x-guidance": _COMPACT, **format_["json_schema"]["schema"]}
        translated["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps(schema)}"
    return translated


def _checked(chunk: dict[str, Any]) -> dict[str, Any]:
    if "error" not in chunk:
        return chunk
    error = chunk["error"]
    message = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        raise ContextOverflow(message, mend="Set `model.context_tokens` higher, or begin a new conversation.")
    raise ModelError(f"The local model failed: {message}.")
