"""Runs the command line without some parts of Linux: `python -m tests.kit.elsewhere functions list`.

Removed are `fcntl`, `termios`, `pwd`, `grp` and `resource`, `/proc`, `os.fork` and `os.O_PATH`, signals that Windows
does not have, signal handlers of the event loop, and paths relative to an open folder. With `--import` it imports every
module of the packages instead and prints the failures; with `--build` it builds the component that such a system runs.
"""

import asyncio
import builtins
import importlib
import importlib.abc
import io
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final

_MODULES: Final = frozenset({"fcntl", "termios", "pwd", "grp", "resource"})
_TAKEN: Final = ("fork", "forkpty", "O_PATH", "pidfd_open")
_SIGNALS: Final = (
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",
    "SIGBUS",
)  # no module of ours may use these at import time
_PACKAGES: Final = (
    "agent_core",
    "knapper",
    "meta_functions",
    "knapper_ext.mcp",
    "knapper_ext.openai_api",
    "knapper_ext.portable",
    "knapper_ext.server",
    "sandbox.inside",
    "sandbox.wire",
)
_OF_LINUX: Final = (
    "knapper_ext.mcp.confined",
    "sandbox.inside.canaries",
    "knapper_ext.portable.guest",
)
_ENDS: Final = ".__main__"


class _Nowhere(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_any: object) -> None:
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _without_proc(
    opener: Callable[..., Any],
) -> Callable[..., Any]:  # Any: the signature of the replaced function
    def open_elsewhere(path: Any, *rest: Any, **named: Any) -> Any:
        text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if text == "/proc" or text.startswith("/proc/"):
            raise FileNotFoundError(2, "No such file or directory", text)
        return opener(path, *rest, **named)

    return open_elsewhere


def _no_handlers(*_any: object) -> None:
    raise NotImplementedError


def leave_linux() -> None:
    """Remove from this process what other systems do not have."""
    for name in _MODULES & sys.modules.keys():
        del sys.modules[name]
    sys.meta_path.insert(0, _Nowhere())
    for name in _TAKEN:
        delattr(os, name)
    for name in _SIGNALS:
        delattr(signal, name)
    for name in ("open", "stat", "lstat", "listdir", "scandir", "readlink", "access"):
        setattr(os, name, _without_proc(getattr(os, name)))
    os.supports_dir_fd.discard(os.open)
    builtins.open = io.open = _without_proc(open)
    loop: Any = asyncio.SelectorEventLoop
    loop.add_signal_handler = loop.remove_signal_handler = _no_handlers


def _import_all() -> list[str]:
    """Import every module and return the failures caused by what is missing. Third-party modules are left alone."""
    failed = []
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        ):
            if not module.name.endswith(_ENDS) and module.name not in _OF_LINUX:
                try:
                    importlib.import_module(module.name)
                except (ImportError, AttributeError) as error:
                    is_ours = not _importer(error).startswith((sys.prefix, sys.base_prefix))
                    if is_ours and getattr(error, "name", "") in (*_MODULES, *_TAKEN, *_SIGNALS):
                        failed.append(f"{module.name}: {error}")
    return failed


def _importer(error: BaseException) -> str:
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return next(
        file for file in reversed(files) if not file.startswith("<frozen") and file != __file__
    )


if __name__ == "__main__":
    leave_linux()
    if sys.argv[1:] == ["--import"]:
        sys.exit("\n".join(_import_all()) or 0)
    if sys.argv[1:] == ["--build"]:
        from knapper_ext.portable.component import find_or_build
        from tests.kit.levels import STORE

        find_or_build(STORE, print)
        sys.exit()
    from knapper.__main__ import main

    main()
