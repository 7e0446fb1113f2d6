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

_NAME: Final = "serving.json"
_MOST: Final = 16 << 10


@contextmanager
def announced(state: Path, url: str, token: str, certificate: str) -> Iterator[None]:
    """Tell where the server is while the block runs. Of two servers of a workspace, the first is told."""
    descriptor = open_lock(state / _NAME)
    if not machine.try_lock(descriptor):
        os.close(descriptor)
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


def running_server(root: Path) -> tuple[str, str, httpx2.AsyncHTTPTransport | None]:
    """Return the address of the server that runs at a workspace, the token that asks it for login links, and the
    transport that trusts its certificate and no other.

    Raises:
        UsageError: none runs.
    """
    try:
        descriptor = os.open(root / ".knapper" / _NAME, machine.LOOKING)
    except OSError as error:
        raise _nowhere(root) from error
    try:
        told: Any = (
            read_json(os.read(descriptor, _MOST), LOOSE) if not machine.try_lock(descriptor, shared=True) else None
        )
        url, token, certificate = (str(told[name]) for name in ("url", "token", "certificate"))
    except (Malformed, TypeError, KeyError) as error:
        raise _nowhere(root) from error
    finally:
        os.close(descriptor)
    if not certificate:
        return url, token, None
    trusted = ssl.create_default_context(cafile=certificate)
    trusted.check_hostname = False  # the certificate itself is what is trusted, whatever name it is for
    trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return url, token, httpx2.AsyncHTTPTransport(verify=trusted)


def _nowhere(root: Path) -> UsageError:
    fix = "Start one: knapper serve. Or ask one elsewhere, with a token of all scopes: knapper --server URL login"
    return UsageError(f"No server of {root.resolve()} runs on this machine.", fix=fix)
