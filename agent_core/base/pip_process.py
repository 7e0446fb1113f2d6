"""The start of pip, the only program with the login to the user's package index: no key, no program of the user's.

It is isolated, and works in a folder of its own: neither a module nor a configuration of the current folder counts.
"""

from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from . import programs

_CONFIGURES: Final = frozenset(  # how the user's index is reached, and nothing that says what is installed where
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
    """Return the part of the user's environment that pip gets: where its configuration is, how the network is reached.

    It may hold a login, so pip finds no program to start (to describe this machine to the index it would run several),
    but where the user has it ask a keyring program for that login.
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
