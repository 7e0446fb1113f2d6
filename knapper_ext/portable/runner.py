"""The child process: it loads the stored component, confines itself, and runs one instance after another.

Each instance serves one worker's conversation; when it ends, the next one is created and waits for its job. Incoming
messages have a letter, the number of the instance that they are for, a length of four bytes, and that many bytes: `f` a
frame, `c` no more frames, `n` replace the instance by one with other limits, `s` a human wants a stop. Outgoing ones
also have the CPU time and memory used: `h` the layers at the start, `f` a frame, `o` output, `e` how it ended.

Instances are numbered from 1. What one did not hear is never heard by the next: it could pass for the next one's job.

The child applies the operating system's layers to itself, in addition to the component's sandbox, after it has loaded
its libraries and the component, before any function runs. Missing layers are reported; if none is a second wall, the
program warns. The layers for macOS and Windows were written from documentation and have never been run.
"""

import ctypes
import gc
import json
import os
import queue
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import wasmtime
from wasmtime import component as components

_OPEN_FILES: Final = 64


def confine(folders: Sequence[str], *, user: int | None) -> dict[str, str]:
    """Confine this process for good. Return each layer with the reason if it could not be applied, else "".

    Only these folders stay readable. `user` is the user id to switch to, if the program is root.
    """
    system = str(sys.platform)  # `str`, because the type checker assumes one platform
    if system == "linux":
        return _linux(folders, user)
    if system == "darwin":
        return {
            "limits": _why_not_held(_limit),
            "profile": _why_not_held(lambda: _profile(folders)),
        }
    if system == "win32":
        return {"job": _why_not_held(_job), "integrity": _why_not_held(_lower_integrity)}
    return {"limits": _why_not_held(_limit)}


def _why_not_held(put_on: Callable[[], None]) -> str:
    """Apply a layer. Return the reason if that fails, else ""."""
    try:
        put_on()
    except (OSError, ValueError, AttributeError) as error:
        return str(error) or type(error).__name__
    return ""


def _limit() -> None:
    if sys.platform == "win32":
        return  # a job object takes their place
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))


def _linux(folders: Sequence[str], user: int | None) -> dict[str, str]:
    """Apply limits and Landlock, drop privileges (and root), and end this process with its parent."""
    from sandbox.confine import landlock, limits  # noqa: PLC0415 - only on Linux

    parent, rules = os.getppid(), -1

    def prepare() -> None:
        nonlocal rules
        rules = landlock.ruleset([folder for folder in folders if Path(folder).is_dir()], [])

    held = {"limits": _why_not_held(_limit), "landlock": _why_not_held(prepare)}
    held["privileges"] = _why_not_held(lambda: limits.drop_privileges(user))
    limits.end_with_parent()
    if os.getppid() != parent:
        os._exit(0)
    if rules >= 0:
        held["landlock"] = _why_not_held(lambda: landlock.restrict(rules))
        os.close(rules)
    return held


def _profile(folders: Sequence[str]) -> None:
    """Apply a `sandbox-exec` profile that allows only reading the folders and using open descriptors."""
    escaped = [
        os.path.realpath(folder).replace("\\", "\\\\").replace('"', '\\"') for folder in folders
    ]
    readable = " ".join(f'(subpath "{path}")' for path in escaped)
    profile = f"(version 1)(deny default)(allow sysctl-read){f'(allow file-read* {readable})' if folders else ''}"
    library: Any = ctypes.CDLL("/usr/lib/libSystem.dylib")
    error = ctypes.c_char_p()
    if library.sandbox_init(profile.encode(), ctypes.c_uint64(0), ctypes.byref(error)):
        raise OSError((error.value or b"sandbox_init failed").decode("utf-8", "replace"))


_EXTENDED_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_USER_INTERFACE: Final = 4  # JobObjectBasicUIRestrictions
_ACTIVE_PROCESSES, _NO_DIALOG, _END_WITH_JOB = 0x8, 0x400, 0x2000
_ALL_OF_THE_SCREEN: Final = 0xFF
_ADJUST_AND_QUERY: Final = 0x0088  # TOKEN_ADJUST_DEFAULT, TOKEN_QUERY
_INTEGRITY: Final = 25  # TokenIntegrityLevel
_LOW: Final = b"S-1-16-4096"
_SE_GROUP_INTEGRITY: Final = 0x20


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class _Label(ctypes.Structure):
    _fields_ = (("sid", ctypes.c_void_p), ("attributes", ctypes.c_uint32))


def _windows(library: str) -> Any:  # a loaded DLL
    return getattr(ctypes, "WinDLL")(library, use_last_error=True)  # noqa: B009 - only Windows has it


def _check(result: int) -> int:
    if not result:
        raise OSError(getattr(ctypes, "get_last_error")(), "refused by Windows")  # noqa: B009
    return result


def _job() -> None:
    """Become the only process of a job, which can start no other process and has no access to the screen."""
    kernel = _windows("kernel32")
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = ctypes.c_void_p
    job = ctypes.c_void_p(_check(kernel.CreateJobObjectW(None, None)))
    limits = _ExtendedLimits()
    limits.basic.flags = _ACTIVE_PROCESSES | _NO_DIALOG | _END_WITH_JOB
    limits.basic.processes = 1
    size = ctypes.sizeof(limits)
    _check(kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), size))
    screen = ctypes.c_uint32(_ALL_OF_THE_SCREEN)
    _check(
        kernel.SetInformationJobObject(
            job, _USER_INTERFACE, ctypes.byref(screen), ctypes.sizeof(screen)
        )
    )
    _check(kernel.AssignProcessToJobObject(job, ctypes.c_void_p(kernel.GetCurrentProcess())))


def _lower_integrity() -> None:
    """Give this process's token a low integrity level, so that it cannot write the user's files."""
    kernel, rights = _windows("kernel32"), _windows("advapi32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    token, sid = ctypes.c_void_p(), ctypes.c_void_p()
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    _check(rights.OpenProcessToken(process, _ADJUST_AND_QUERY, ctypes.byref(token)))
    _check(rights.ConvertStringSidToSidA(_LOW, ctypes.byref(sid)))
    label = _Label(sid.value, _SE_GROUP_INTEGRITY)
    size = ctypes.sizeof(label) + rights.GetLengthSid(sid)
    _check(rights.SetTokenInformation(token, _INTEGRITY, ctypes.byref(label), size))


HEAD_IN: Final = struct.Struct(">cII")  # letter, instance, length
HEAD_OUT: Final = struct.Struct(">cIIII")  # letter, instance, microseconds, KiB, length
_IN, _OUT = 0, 1
_STACK: Final = 1 << 20
_READ: Final = 1 << 16
_UNHEARD_LIMIT: Final = 8  # messages that wait for an instance; then the host waits


def config() -> wasmtime.Config:
    """Return the configuration of the compiler; code must be loaded with the same one."""
    settings = wasmtime.Config()
    settings.max_wasm_stack = _STACK
    return settings


class _Renew(Exception):
    """The host wants to replace the waiting instance."""


class ComponentRunner:
    """The runner in a child: its pipes, its engine, and the current instance."""

    def __init__(self, code: str, plan: dict[str, Any]) -> None:
        self._engine = wasmtime.Engine(config())
        self._component = components.Component.deserialize_file(self._engine, code)
        self._linker = components.Linker(self._engine)
        self._linker.allow_shadowing = True
        self._linker.add_wasip2()
        with self._linker.root() as root:
            root.add_func("hear", self._hear)
            root.add_func("say", lambda _store, frame: self._send(b"f", frame.encode()))
            root.add_func("print", lambda _store, data: self._send(b"o", bytes(data)))
            root.add_func("stop-wanted", self._stop_wanted)
        self._default = plan
        self._plan = plan
        self._number = 0  # of the current instance
        self._is_renewed = self._is_started = False
        self._stop = False
        self._frames: queue.Queue[tuple[bytes, int, bytes]] = queue.Queue(_UNHEARD_LIMIT)
        self._began = 0.0

    def serve(self) -> NoReturn:
        """Run one instance after another until the host has gone."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            end = self._run()
            if end is not None:
                self._send(b"e", json.dumps(end).encode())
                self._plan = self._default

    def _run(self) -> dict[str, Any] | None:
        """Run one instance. Return how it ended, or None if the host replaced it."""
        self._number += 1
        self._is_renewed = self._is_started = self._stop = False
        store = wasmtime.Store(self._engine)
        store.set_limits(memory_size=self._plan["memory"])
        wasi = wasmtime.WasiConfig()
        wasi.stdout_custom = wasi.stderr_custom = self._print
        for folder in self._plan["folders"]:
            wasi.preopen_dir(folder, folder, False)
        store.set_wasi(wasi)
        self._began = time.process_time()
        try:
            instance = self._linker.instantiate(store, self._component)
            serve = instance.get_func(store, "serve")
            assert serve is not None
            serve(
                store,
                json.dumps(
                    {key: self._plan[key] for key in ("scratch", "packages", "folders", "absent")}
                ),
            )
        except _Renew:
            return None
        except Exception as error:  # noqa: BLE001 - any trap ends the instance
            return None if self._is_renewed else {"how": "trap", "why": str(error)[-2000:]}
        return {"how": "done"}

    # called by the instance

    def _hear(self, _store: object) -> str:
        letter, number, data = self._frames.get()
        while number != self._number:  # what an instance that has ended did not hear
            letter, number, data = self._frames.get()
        if letter == b"n":
            self._plan = self._default | json.loads(data)
            self._is_renewed = True
            raise _Renew
        if letter == b"c":
            return ""
        if not self._is_started:
            self._is_started = True
            limit_processor_time(self._plan["cpu_s"])
        return data.decode()

    def _stop_wanted(self, _store: object) -> bool:
        wanted, self._stop = self._stop, False
        return wanted

    def _print(self, data: bytes) -> int:
        self._send(b"o", bytes(data))
        return len(data)

    # the pipes

    def _send(self, letter: bytes, data: bytes) -> None:
        spent = min(int((time.process_time() - self._began) * 1e6), 0xFFFFFFFF)
        whole = HEAD_OUT.pack(letter, self._number, spent, peak_memory(), len(data)) + data
        sent = os.write(_OUT, whole)
        while sent < len(whole):
            sent += os.write(_OUT, memoryview(whole)[sent:])

    def _listen(self) -> NoReturn:
        """Receive the host's messages. When the host has gone, exit at once."""
        while True:
            letter, number, size = HEAD_IN.unpack(_exactly(HEAD_IN.size))
            data = _exactly(size)
            if letter != b"s":
                self._frames.put((letter, number, data))
            elif number == self._number:
                self._stop = True


def _exactly(count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = os.read(_IN, min(count - len(data), _READ))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)


def peak_memory() -> int:
    """Return the peak memory of this process in KiB; 0 if the system does not report it."""
    if sys.platform == "win32":
        return 0
    import resource  # noqa: PLC0415 - Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> 10 if sys.platform == "darwin" else peak


def limit_processor_time(seconds: int) -> None:
    """Let the system end this process after this much CPU time from now on."""
    if sys.platform == "win32":
        return  # a job object can limit only the whole life of a process
    import resource  # noqa: PLC0415 - Windows has none

    spent = int(time.process_time()) + 1
    resource.setrlimit(
        resource.RLIMIT_CPU, (spent + seconds, resource.getrlimit(resource.RLIMIT_CPU)[1])
    )


def main() -> NoReturn:
    """Load the component, confine the process, and serve."""
    setup = json.loads(sys.argv[1])
    try:
        runner = ComponentRunner(setup["code"], setup["plan"])
    except wasmtime.WasmtimeError as error:
        reason = (
            str(error).strip().rpartition("\n")[2].lstrip(" 0123456789:")
        )  # the last cause, with its number
        sys.exit(
            f"wasmtime cannot load {setup['code']} ({reason}): remove it, and it is built again"
        )
    held = confine(setup["plan"]["folders"], user=setup["user"])
    runner._send(b"h", json.dumps(held).encode())
    gc.freeze()
    gc.enable()  # it was disabled for the imports
    runner.serve()
