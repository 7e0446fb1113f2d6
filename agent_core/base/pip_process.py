"""The start of pip, the only program that gets the login to the user's package index.

It gets no key and finds no program of the user's. It runs isolated in a folder of its own, so no module or
configuration of the current folder counts.
"""

from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from . import programs

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


def environment(around: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return the environment of pip: the location of its configuration, and how it reaches the network.

    It may contain a login, so pip finds no programs (it would run several to describe this machine to the index),
    unless the user configured a keyring program for that login.
    """
    own = {name: value for name, value in around.items() if name.upper() in _KEPT or _configures(name)}
    path = {} if "PIP_KEYRING_PROVIDER" in around else {"PATH": str(scratch / "no-programs")}
    fixed = {"TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return {**programs.variables(around=around), **own, **path, **fixed}


async def start(
    *arguments: str, env: Mapping[str, str], cwd: Path, **streams: Any
) -> Process:  # Any: what asyncio takes
    """Start pip in a folder."""
    return await programs.start(programs.isolated_python("-m", "pip", *arguments), env=env, cwd=cwd, **streams)


def _configures(name: str) -> bool:
    return name.startswith("PIP_") and name.removeprefix("PIP_") in _CONFIGURES
