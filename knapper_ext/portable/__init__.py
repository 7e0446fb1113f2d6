"""Level `portable`: CPython as a WebAssembly component, run by wasmtime in child processes, on any system.

`component` builds and caches it, `runner` is the child process, and `level` is the host's side. `guest` and
`memory_files` run inside the component, with `sandbox.inside` and `sandbox.wire` unchanged.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # this module goes into the component, too
    from collections.abc import Mapping
    from pathlib import Path

    from sandbox.beside import LevelBeside, StartLevel, Tell


async def _start(
    folder: "Path", slots: int, absent: tuple[str, ...], tell: "Tell"
) -> "LevelBeside":
    from .level import start_portable  # noqa: PLC0415 - only where the level is wanted

    return await start_portable(folder, slots, absent, tell)


LEVELS: "Final[Mapping[str, StartLevel]]" = {"portable": _start}
