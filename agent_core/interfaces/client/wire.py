"""The connection of a client: its interface, the implementation over HTTP, and discovery of servers on this machine."""

import json
import os
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2

from agent_core.base import machine
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.untrusted import one_line
from agent_core.storage import open_lock
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from ..server.failures import ApiRefusal

Query = Mapping[str, str | int | bool]
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
_SILENCE_S: Final = 60.0  # on a stream with a comment every 15 s


class ConnectionLost(KnapperError):
    """The server cannot be reached, or the connection broke."""

    code = "connection"


class Wire(Protocol):
    """A connection from a client to the operations."""

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Send a request and return the response.

        Raises:
            ApiRefusal: the request was refused or failed; the error says why.
            ConnectionLost: there was no response.
        """

    def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream, beginning after a number.

        Raises:
            ApiRefusal: the request was refused; the error says why.
            ConnectionLost: the stream broke.
        """

    async def aclose(self) -> None:
        """Close the connection."""


class HttpWire:
    """A `Wire` that sends requests to a server over HTTP."""

    def __init__(self, url: str, token: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.AsyncClient(
            base_url=self._url, headers=headers, timeout=_TIMEOUT, transport=transport, follow_redirects=False
        )

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Send a request and return the response."""
        params = {key: str(value) for key, value in query.items()}
        content = None if body is None else json.dumps(body).encode("utf-8", "replace")
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._client.request(method, path, params=params, content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        return _result(answer.status_code, answer.content)

    async def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream."""
        timeout = httpx2.Timeout(_SILENCE_S)
        try:
            async with self._client.stream("GET", path, params={"after": str(after)}, timeout=timeout) as answer:
                if answer.status_code != 200:
                    _result(answer.status_code, await answer.aread())
                async with aclosing(answer.aiter_raw()) as parts:
                    async for part in parts:
                        yield part
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        raise ConnectionLost(f"{self._url} has ended the stream.", fix="Is the server running?")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _lost(self, error: httpx2.HTTPError) -> ConnectionLost:
        reason = one_line(str(error)) or type(error).__name__
        return ConnectionLost(f"{self._url} cannot be reached: {reason.rstrip('.')}.", fix="Is the server running?")


def _result(status: int, content: bytes) -> Any:  # Any: JSON
    try:
        document = read_json(content, LOOSE)
    except Malformed:
        document = None
    if 200 <= status < 300 and document is not None:
        return document
    raise ApiRefusal.read(status, document)


# The address of a workspace's server, in a file in the state folder, so that `knapper login` finds it. Only the user
# can read the file. It is locked while the server runs; the kernel releases the lock however the server ends.

_NAMES: Final = ("serving.json", *(f"serving-{number}.json" for number in range(2, 9)))
"""One file for each server of the workspace; further servers are not announced."""
_MOST: Final = 16 << 10


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
    told = {"url": url, "token": token, "certificate": str(Path(certificate).resolve()) if certificate else ""}
    machine.change_mode(descriptor, 0o600)
    os.truncate(descriptor, 0)
    os.write(descriptor, json.dumps(told).encode())
    try:
        yield
    finally:
        os.truncate(descriptor, 0)  # not deleted: a process that opened it meanwhile would lock a different file
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
    return [(url, token, _trusting(certificate)) for url, token, certificate in told]


def _read_server_file(path: Path) -> tuple[str, str, str] | None:
    """Return the address, token and certificate from a server's file, or None if no running server holds it."""
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
    trusted.check_hostname = False  # trust the certificate itself, whatever host name it is for
    trusted.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return httpx2.AsyncHTTPTransport(verify=trusted)
