"""The start of every program that Knapper runs, in its own folder and environment; Python runs isolated.

A program neither imports nor executes anything from the current folder, and it inherits no key: it gets only the
variables on an allow-list. Only the user's own editor and shell get more, as their modules describe. (The sandbox,
which is independent, starts its processes by the same rule.)

pip is the only program that gets the login to the user's package index. It gets no key and finds no program of the
user's, and no module or configuration of the current folder counts.
"""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .own_environment import absolute, places

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
_CONFIGURES: Final = frozenset(  # how the user's index is reached, but not what is installed where
    {"INDEX_URL", "EXTRA_INDEX_URL", "NO_INDEX", "FIND_LINKS", "TRUSTED_HOST", "CERT", "CLIENT_CERT", "PROXY"}
    | {"TIMEOUT", "DEFAULT_TIMEOUT", "RETRIES", "CONFIG_FILE", "KEYRING_PROVIDER", "CACHE_DIR", "NO_CACHE_DIR"}
    | {"PREFER_BINARY", "PRE", "USE_FEATURE", "USE_DEPRECATED"}
)
_KEPT: Final = frozenset(
    {"HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
)
_SEARCHED: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def variables(*more: str, around: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program: its search paths, the language, and the named variables."""
    environment = os.environ if around is None else around
    passed_on = {name: environment[name] for name in (*_PASSED_ON, *more) if name in environment}
    searched = {name: path for name in _SEARCHED if (path := absolute(environment.get(name, "")))}
    return {**passed_on, **searched, "PATH": absolute(environment.get("PATH", "")) or os.defpath}


def variables_for_python(*more: str) -> dict[str, str]:
    """Return the same for a Python process that imports the packages of this process."""
    return {**variables(*more), "PYTHONPATH": os.pathsep.join(places())}


def python(*arguments: str) -> list[str]:
    """Return the command of this Python, without modules from the current folder or the user's site-packages."""
    return [sys.executable, "-P", "-s", "-B", "-X", "utf8", *arguments]


def isolated_python(*arguments: str) -> list[str]:
    """Return the same for a program that needs no package of this process; Python ignores its environment variables."""
    return [sys.executable, "-I", *arguments]


async def start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, **more: Any
) -> Process:  # Any: what asyncio takes
    """Start a program, by default in its own session, so that terminal keys such as Ctrl+C do not end it.

    If that is canceled, the program is ended once it has started. (asyncio would kill it before its pipes are
    connected, and then wait for their end, which gVisor never reports.)
    """
    options = {"start_new_session": True, **more}
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, env=env, cwd=cwd, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            getattr(await starting, "_transport").close()  # noqa: B009 - asyncio has no public API for it
        raise


def pip_environment(around: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment of pip: the location of its configuration, and how it reaches the network.

    It may contain a login, so pip finds no programs (it would run several to describe this machine to the index),
    unless the user configured a keyring program for that login.
    """
    configured = {f"PIP_{name}" for name in _CONFIGURES}
    own = {name: value for name, value in around.items() if name in configured or name.upper() in _KEPT}
    path = {} if "PIP_KEYRING_PROVIDER" in around else {"PATH": str(scratch / "no-programs")}
    fixed = {"TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return {**variables(around=around), **own, **path, **fixed}


async def start_pip(
    *arguments: str, env: Mapping[str, str], cwd: Path, **streams: Any
) -> Process:  # Any: what asyncio takes
    """Start pip in a folder."""
    return await start(isolated_python("-m", "pip", *arguments), env=env, cwd=cwd, **streams)
