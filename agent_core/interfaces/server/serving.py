"""Where a server of a workspace is, told in its state folder, so that `knapper login` finds it.

The file is the user's alone, and locked as long as the server runs: the kernel lets go however it ends.
"""

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from agent_core.base import machine
from agent_core.base.errors import UsageError
from agent_core.storage import open_lock
from sandbox.wire.foreign import LOOSE, Malformed, read_json

_NAMES: Final = ("serving.json", *(f"serving-{number}.json" for number in range(2, 9)))
"""One for each server of the workspace; more than these are not told."""
_MOST: Final = 16 << 10


@contextmanager
def announced(state: Path, url: str, token: str, certificate: str) -> Iterator[None]:
    """Tell where the server is while the block runs, in the first file that no other server of the workspace has."""
    for name in _NAMES:
        descriptor = open_lock(state / name)
        if machine.try_lock(descriptor):
            break
        os.close(descriptor)
    else:
        yield
        return
    told = {"url": url, "token": token, "certificate": str(Path(certificate).resolve()) if certificate else ""}
    machine.change_mode(descriptor, 0o600)
    os.truncate(descriptor, 0)
    os.write(descriptor, json.dumps(told).encode())
    try:
        yield
    finally:
        os.truncate(descriptor, 0)  # not removed: who has opened it meanwhile would lock another file
        os.close(descriptor)


def running_servers(root: Path) -> list[tuple[str, str, httpx2.AsyncHTTPTransport | None]]:
    """Return of each server that runs at a workspace its address, the token that asks it for login links, and the
    transport that trusts its certificate and no other.

    Raises:
        UsageError: none runs.
    """
    told = [server for name in _NAMES if (server := _told(root / ".knapper" / name))]
    if not told:
        fix = "Start one: knapper serve. Or ask one elsewhere, with a token of all scopes: knapper --server URL login"
        raise UsageError(f"No server of {root.resolve()} runs on this machine.", fix=fix)
    return [(url, token, _trusting(certificate)) for url, token, certificate in told]


def _told(path: Path) -> tuple[str, str, str] | None:
    """Return what a running server told in its file; None if none has it."""
    try:
        descriptor = os.open(path, machine.LOOKING)
    except OSError:
        return None
    try:
        if machine.try_lock(descriptor, shared=True):
            return None
        told: Any = read_json(os.read(descriptor, _MOST), LOOSE)
        return str(told["url"]), str(told["token"]), str(told["certificate"])
    except (Malformed, TypeError, KeyError):
        return None
    finally:
        os.close(descriptor)


def _trusting(certificate: str) -> httpx2.AsyncHTTPTransport | None:
    if not certificate:
        return None
    trusted = ssl.create_default_context(cafile=certificate)
    trusted.check_hostname = False  # the certificate itself is what is trusted, whatever name it is for
    trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return httpx2.AsyncHTTPTransport(verify=trusted)
