"""The entry of the component: imported once, when it is built, and stored as it is then, with all its modules loaded.

Nothing is opened here when a function runs: the standard library lies in memory, as does the scratch folder, which was
put in place before this is imported, since others keep the functions of `os` that they find. Frames go
through functions of the host: `hear`, `say`, `print`, and whether a human wants to stop.
"""

import _thread
import asyncio
import contextlib
import gc
import importlib
import io
import json
import marshal
import os
import selectors
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, NoReturn

from ..inside import attempts, debugger, finder
from ..inside.channel import Channel
from ..inside.edge import attempt
from ..inside.jobs import perform, serve_calls
from ..inside.rehearsal import rehearse
from ..wire.protocol import HEADER, Frame, unpack
from . import memory_files

_host: Any = importlib.import_module("wit_world")  # made by componentize-py from the world of `component`
_SKIPPED: Final = frozenset({
    "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "venv", "__pycache__",
    "site-packages", "_pyrepl", "curses", "dbm", "multiprocessing",
})  # fmt: skip
_AHEAD: Final = (
    "base64", "bisect", "calendar", "collections", "contextlib", "csv", "dataclasses", "datetime", "decimal",
    "difflib", "encodings.idna", "encodings.latin_1", "encodings.cp1252", "encodings.utf_16", "encodings.utf_8_sig",
    "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "html", "inspect", "itertools", "math",
    "operator", "random", "re", "statistics", "string", "textwrap", "typing", "unicodedata", "urllib.parse", "uuid",
    "zoneinfo", "_strptime", "traceback", "pathlib", "tempfile",
)  # fmt: skip
_NO_NATIVE: Final = (
    "which the sandbox's level `portable` does not run: Knapper on Linux x86-64, at level `full` or `core`, does"
)
_NO_THREADS: Final = "threads do not run at the sandbox's level `portable`: do the work in one"
_kept: dict[str, tuple[bool, bytes]] = {}


class StandardLibrary:
    """Finder and loader of the standard library's modules, which are kept compiled."""

    @classmethod
    def find_spec(cls, name: str, _path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        """Return the spec of a module that is kept."""
        if name not in _kept:
            return None
        loader: Any = cls()  # one for each: `inside.web` puts its own step into a module's loader
        spec = ModuleSpec(name, loader, is_package=_kept[name][0])
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = [f"<stdlib>/{name.replace('.', '/')}"]
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """Use the default module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        code: CodeType = marshal.loads(zlib.decompress(_kept[module.__name__][1]))  # noqa: S302 - kept when built
        exec(code, module.__dict__)


def _keep(folder: str, prefix: str = "") -> None:
    """Keep every module below a folder, compiled."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.partition(".")[0] in _SKIPPED:
            continue
        if entry.is_dir():
            if os.path.exists(f"{entry.path}/__init__.py"):
                _keep(entry.path, f"{prefix}{entry.name}.")
        elif entry.name.endswith(".py"):
            name = prefix + entry.name[:-3]
            with open(entry.path, "rb") as source:
                data = source.read()
            try:
                code = compile(data, f"<stdlib>/{name.replace('.', '/')}.py", "exec", dont_inherit=True)
            except SyntaxError:  # of a test's data
                continue
            packed = zlib.compress(marshal.dumps(code), 1)
            _kept[name.removesuffix(".__init__")] = name.endswith(".__init__"), packed


class HostChannel(Channel):
    """The channel of a component: frames are calls of the host's functions."""

    def __init__(self) -> None:
        super().__init__(-1, _thread.allocate_lock())

    def _send(self, data: bytes) -> None:
        _host.say(data[HEADER:].decode())

    def hear(self) -> Frame | None:
        """Wait for one frame. Return None if the host has no more."""
        data = _host.hear()
        frame = unpack(data.encode()) if data else None
        if frame is not None and (frame.get("debug") or {}).get("human"):
            watch_for_stops(_host.stop_wanted)
        return frame

    def close(self) -> None:
        """Do nothing: the instance ends."""


class _Nobody(HostChannel):
    """The channel of a rehearsal, while the component is made: there is no host yet."""

    def ask(self, _frame: Frame) -> Frame:
        return {"kind": "answer", "value": {"real": True}}

    def say(self, _frame: Frame) -> None:
        return


class _Asleep(selectors._BaseSelectorImpl):  # private, and the base of all
    """What an event loop selects from without sockets: nothing is ever ready, so selecting is sleeping."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("this would wait for ever: nothing outside can wake it")
        if timeout > 0:
            time.sleep(timeout)
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Asleep())

    def _make_self_pipe(self) -> None:
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        return

    def _write_to_self(self) -> None:
        return

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # a future
        """Run at once what a thread would: calls of the host take turns anyway."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the function's own, for whoever awaits it
            future.set_exception(error)
        return future


class _Policy(asyncio.events._BaseDefaultEventLoopPolicy):  # type: ignore[name-defined, misc]  # 3.14's
    _loop_factory = _Loop


class NativeCode:
    """The last finder: says why a package cannot be imported, where it is native code or one that this program has."""

    def __init__(self, absent: Sequence[str]) -> None:
        self._absent = frozenset(absent)

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> None:
        """Raise ImportError if the module is there, and cannot run here."""
        if path is None and name in self._absent:
            raise ModuleNotFoundError(f"No module named {name!r}: it needs native code, {_NO_NATIVE}", name=name)
        last = name.rpartition(".")[2]
        for folder in path or ():
            with contextlib.suppress(OSError):
                if any(
                    entry.startswith(f"{last}.") and entry.endswith((".so", ".pyd")) for entry in os.listdir(folder)
                ):
                    raise ImportError(f"{name} is native code, {_NO_NATIVE}", name=name)


def _no_thread(*_arguments: object, **_more: object) -> NoReturn:
    raise RuntimeError(_NO_THREADS)


def _prepare() -> None:
    """Bring everything into the state in which it is stored."""
    _keep(os.path.dirname(os.path.dirname(str(importlib.__file__))))
    sys.meta_path.append(StandardLibrary)
    for name in _AHEAD:
        importlib.import_module(name)
    asyncio.events._event_loop_policy = _Policy()  # type: ignore[attr-defined]
    _thread.start_new_thread = threading._start_joinable_thread = _no_thread  # type: ignore[attr-defined]
    shutil._use_fd_functions = False  # type: ignore[attr-defined]  # it was decided by the real functions
    memory_files.show_zones()
    memory_files.close_outside()
    for _ in range(10):
        rehearse(_Nobody())  # so that no cache is cold in a call
    gc.collect()
    gc.freeze()


class _Output(io.FileIO):
    """Standard output by a function of the host's: what goes to a descriptor waits for a thread of wasmtime's."""

    def write(self, data: Any, /) -> int:  # Any: a buffer
        _host.print(data := bytes(data))
        return len(data)


def _stream(number: int) -> io.TextIOWrapper:
    raw: Any = _Output(number, "wb", closefd=False)  # it stands for a buffer
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", newline="\n", line_buffering=True, write_through=True)


def serve(plan: dict[str, Any]) -> None:
    """Serve one worker's conversation, from `ready` to its end."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        sys.__dict__[name] = sys.__dict__[f"__{name}__"] = _stream(number)
    os.environ.clear()  # an instance reads its own when it starts
    os.environ.update(HOME=memory_files.SCRATCH, TMPDIR=memory_files.SCRATCH)
    memory_files.bound(plan["scratch"])
    channel, scratch = HostChannel(), memory_files.SCRATCH_PATH
    if plan["packages"]:
        memory_files.open_outside(plan["folders"])
        finder.install_packages(plan["packages"], plan["folders"])
    sys.meta_path.append(NativeCode(plan["absent"]))
    rehearse(_Nobody())  # the pages that a call writes to are copied now, while nobody waits
    channel.say({"kind": "ready"})
    job = channel.hear()
    if job is None:
        return
    if job["kind"] == "attempts":
        attempts.serve(job, channel, scratch)
    elif job["kind"] == "kept":
        serve_calls(job, channel, scratch)
    else:
        reply = (lambda: perform(job, channel, scratch))()
        for stream in (sys.stdout, sys.stderr):
            attempt(stream.flush)
        channel.reply(reply, job.get("result"))


_prepare()


class WitWorld(_host.WitWorld):  # type: ignore[misc]  # made when the component is
    """What the component offers to its runner."""

    def serve(self, plan: str) -> None:
        """Serve one worker's conversation. `plan` is JSON: `scratch` bytes, `packages` by folder, their `folders`,
        and `absent`, packages that there are at other levels.
        """
        serve(json.loads(plan))


# `break now` in the component, where no signal arrives: while a human debugs, running code looks whether one wants
# it. It looks at each start of a function and each jump back, most of which cost a counter.

_TOOL: Final = 4  # no debugger's, profiler's or coverage tool's
_EVERY: Final = 64  # events between two looks
_NAP_S: Final = 0.05


class _Watch:
    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._seen = 0
        self._sleep = time.sleep

    def look(self, _code: CodeType, *_where: object) -> None:
        """Look now and then."""
        self._seen += 1
        if self._seen % _EVERY == 0 and self._wanted():
            self._stop(sys._getframe(1))

    def sleep(self, seconds: float) -> None:
        """Sleep in naps, and look after each."""
        until = time.monotonic() + seconds
        self._sleep(min(seconds, _NAP_S))
        while (left := until - time.monotonic()) > 0:
            if self._wanted():
                self._stop(sys._getframe(1))
            self._sleep(min(left, _NAP_S))

    def _stop(self, frame: FrameType) -> None:
        debugger.stop_at(frame)


_watches: list[_Watch] = []


def watch_for_stops(wanted: Callable[[], bool]) -> None:
    """Look from now on, if nothing looks yet."""
    if _watches:
        return
    _watches.append(watch := _Watch(wanted))
    monitoring: Any = sys.__dict__["monitoring"]  # 3.12's
    monitoring.use_tool_id(_TOOL, "stops")
    for event in (monitoring.events.PY_START, monitoring.events.JUMP):
        monitoring.register_callback(_TOOL, event, watch.look)
    monitoring.set_events(_TOOL, monitoring.events.PY_START | monitoring.events.JUMP)
    time.__dict__["sleep"] = watch.sleep
