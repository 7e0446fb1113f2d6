"""The operating system's own layers around a child process, beneath the component's sandbox.

The child puts them on itself, after it has loaded its libraries and the component and before any function runs. What a
system lacks is reported; where no wall but the component's is left, the program says so. Those of macOS and Windows are
written from documentation and were never run.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

WALLS: Final = frozenset({"landlock", "profile", "integrity"})  # of which one holds where there is a second wall
_OPEN_FILES: Final = 64


def confine(folders: Sequence[str], *, user: int | None) -> dict[str, str]:
    """Confine this process for good. Return each layer with what kept it from holding, empty if it holds.

    Of all folders only these may be read. `user` is whom to become, where the program is root.
    """
    system = str(sys.platform)  # of which the type checker knows but one
    if system == "linux":
        return _linux(folders, user)
    if system == "darwin":
        return {"limits": _why_not_held(_limit), "profile": _why_not_held(lambda: _profile(folders))}
    if system == "win32":
        return {"job": _why_not_held(_job), "integrity": _why_not_held(_lower_integrity)}
    return {"limits": _why_not_held(_limit)}


def _why_not_held(put_on: Callable[[], None]) -> str:
    """Put a layer on. Return why it does not hold, if it does not."""
    try:
        put_on()
    except (OSError, ValueError, AttributeError) as error:
        return str(error) or type(error).__name__
    return ""


def _limit() -> None:
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))


def _linux(folders: Sequence[str], user: int | None) -> dict[str, str]:
    """Put on Landlock, limits, another user's name where this is root's, no privileges, and an end with the parent."""
    from ..confine import landlock, limits  # noqa: PLC0415 - Linux alone

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
    """Put on a profile as `sandbox-exec` has it: nothing but to read the folders, and what is open already."""
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
    """Become the only process of a job: no other can be started, and the screen is out of reach."""
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
    """Give this process's token a low integrity: it can write nothing of the user's."""
    kernel, rights = _windows("kernel32"), _windows("advapi32")
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    token, sid = ctypes.c_void_p(), ctypes.c_void_p()
    process = ctypes.c_void_p(kernel.GetCurrentProcess())
    _check(rights.OpenProcessToken(process, _ADJUST_AND_QUERY, ctypes.byref(token)))
    _check(rights.ConvertStringSidToSidA(_LOW, ctypes.byref(sid)))
    label = _Label(sid.value, _SE_GROUP_INTEGRITY)
    size = ctypes.sizeof(label) + rights.GetLengthSid(sid)
    _check(rights.SetTokenInformation(token, _INTEGRITY, ctypes.byref(label), size))
