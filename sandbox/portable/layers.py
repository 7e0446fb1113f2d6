"""The operating system's own layer around the child process, under the component's sandbox.

On Linux: Landlock, resource limits, no privileges, an end with the parent. What a system lacks is reported and not
believed: the level then is one wall, which the program says.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

_OPEN_FILES: Final = 64


def confine(folders: Sequence[str], *, user: int | None) -> dict[str, str]:
    """Confine this process for good. Return each layer with what kept it from holding, empty if it holds."""
    if sys.platform == "linux":
        return _linux(folders, user)
    return {"limits": _limits()} if os.name == "posix" else {}


def _linux(folders: Sequence[str], user: int | None) -> dict[str, str]:
    from ..confine import landlock, limits  # noqa: PLC0415 - Linux alone

    parent = os.getppid()
    held = {"limits": _limits(), "landlock": "", "privileges": ""}
    try:
        rules = landlock.ruleset([folder for folder in folders if os.path.isdir(folder)], [])
    except OSError as error:
        rules = -1
        held["landlock"] = str(error)
    try:
        limits.drop_privileges(user)
    except OSError as error:
        held["privileges"] = str(error)
    limits.end_with_parent()
    if os.getppid() != parent:
        os._exit(0)
    if rules >= 0:
        try:
            landlock.restrict(rules)
        except OSError as error:
            held["landlock"] = str(error)
        os.close(rules)
    return held


def _limits() -> str:
    import resource  # noqa: PLC0415 - Windows has none

    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    except (OSError, ValueError) as error:
        return str(error)
    return ""
