"""The address of a workspace's server, in a file in the state folder, so that `knapper login` finds it.

Only the user can read the file. It is locked while the server runs; the kernel releases the lock however the server
ends. It has a seal of the user for this folder, because a folder that came from elsewhere may have such a file, and
whoever can read it can lock it.
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
from agent_core.base.seal import Sealer, is_private
from agent_core.storage import open_lock
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

_NAMES: Final = ("serving.json", *(f"serving-{number}.json" for number in range(2, 9)))
"""One file for each server of the workspace; further servers are not announced."""
_TOLD: Final = ("url", "token", "certificate", "seal")
_MOST_FILE: Final = 16 << 10


@contextmanager
def announced(state: Path, url: str, token: str, certificate: str) -> Iterator[None]:
    """Announce the server while the block runs, in the first file that no other server of the workspace uses."""
    for name in _NAMES:
        descriptor = open_lock(state / name)
        if machine.try_lock(descriptor):
            break
        os.close(descriptor)
    else:
        yield
        return
    told = [url, token, str(Path(certificate).resolve()) if certificate else ""]
    told.append(Sealer(state.parent).seal("serving", *told))
    machine.change_mode(descriptor, 0o600)
    os.truncate(descriptor, 0)
    os.write(descriptor, json.dumps(dict(zip(_TOLD, told, strict=True))).encode())
    try:
        yield
    finally:
        os.truncate(
            descriptor, 0
        )  # not deleted: a process that opened it meanwhile would lock a different file
        os.close(descriptor)


def running_servers(root: Path) -> list[tuple[str, str, httpx2.AsyncHTTPTransport | None]]:
    """Return the address of each running server of a workspace, its token for requesting login links, and a transport
    that trusts only its certificate, or None if it has no certificate.

    Raises:
        UsageError: no server is running.
    """
    told = [server for name in _NAMES if (server := _read_server_file(root / ".knapper" / name))]
    if not told:
        fix = "Start one: knapper serve. Or ask one elsewhere, with a token of all scopes: knapper --server URL login"
        raise UsageError(f"No server of {root.resolve()} runs on this machine.", fix=fix)
    servers = []
    for url, token, certificate in told:
        transport = None
        if certificate:
            trusted = ssl.create_default_context(cafile=certificate)
            trusted.check_hostname = (
                False  # trust the certificate itself, whatever host name it is for
            )
            trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            transport = httpx2.AsyncHTTPTransport(verify=trusted)
        servers.append((url, token, transport))
    return servers


def _read_server_file(path: Path) -> tuple[str, str, str] | None:
    """Return the address, token and certificate from a server's file, or None if no server of this user holds it."""
    try:
        descriptor = os.open(path, machine.LOOKING)
    except OSError:
        return None
    try:
        if not is_private(descriptor) or machine.try_lock(descriptor, shared=True):
            return None
        told: Any = read_json(os.read(descriptor, _MOST_FILE), LOOSE)
        url, token, certificate, seal = (str(told[name]) for name in _TOLD)
    except (Malformed, TypeError, KeyError):
        return None
    finally:
        os.close(descriptor)
    is_ours = Sealer(path.parent.parent).holds(seal, "serving", url, token, certificate)
    return (url, token, certificate) if is_ours else None
