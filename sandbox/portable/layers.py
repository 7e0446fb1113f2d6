"""The operating system's confinement layers around a child process, in addition to the component's sandbox.

The child applies them to itself after it has loaded its libraries and the component, before any function runs. Missing
layers are reported; if none is a second wall, the program warns. The layers for macOS and Windows were written from
documentation and have never been run.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

WALLS: Final = frozenset({"landlock", "profile", "integrity"})  # any of these is a second wall
_OPEN_FILES: Final = 64


def confine(folders: Sequence[str], *, user: int | None) -> dict[str, str]:
    """Confine this process for good. Return each layer with the reason if it could not be applied, else "".

    Only these folders stay readable. `user` is the user id to switch to, if the program is root.
    """
    system = str(sys.platform)  # `str`, because the type checker assumes one platform
    if system == "linux":
        return _linux(folders, user)
    if system == "darwin":
        return {"limits": _why_not_held(_limit), "profile": _why_not_held(lambda: _profile(folders))}
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
    from ..confine import landlock, limits  # noqa: PLC0415 - only on Linux

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
    readable = " ".join(f"(subpath {_quote(os.path.realpath(folder))})" for folder in folders)
    profile = f"(version 1)(deny default)(allow sysctl-read){f'(allow file-read* {readable})' if folders else ''}"
    library: Any = ctypes.CDLL("/usr/lib/libSystem.dylib")
    error = ctypes.c_char_p()
    if library.sandbox_init(profile.encode(), ctypes.c_uint64(0), ctypes.byref(error)):
        raise OSError((error.value or b"sandbox_init failed").decode("utf-8", "replace"))


def _quote(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


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
    _check(kernel.SetInformationJobObject(job, _USER_INTERFACE, ctypes.byref(screen), ctypes.sizeof(screen)))
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
