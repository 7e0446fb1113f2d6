"""The wire of a client: the interface of every way, the one over HTTP, and the servers that run on this machine."""

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
_SILENCE_S: Final = 60.0  # on a stream that has a comment every 15 s


class ConnectionLost(KnapperError):
    """The server cannot be reached, or the connection broke off."""

    code = "connection"


class Wire(Protocol):
    """The way from a client to the operations."""

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request.

        Raises:
            ApiRefusal: it was refused, or failed; says why.
            ConnectionLost: there is no answer.
        """

    def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream, beginning after a number.

        Raises:
            ApiRefusal: it was refused; says why.
            ConnectionLost: it broke off.
        """

    async def aclose(self) -> None:
        """End the connection."""


class HttpWire:
    """Requests to a server."""

    def __init__(self, url: str, token: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.AsyncClient(
            base_url=self._url, headers=headers, timeout=_TIMEOUT, transport=transport, follow_redirects=False
        )

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request."""
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


# Where a server of a workspace is, told in its state folder, so that `knapper login` finds it. The file is the user's
# alone, and locked as long as the server runs: the kernel lets go however it ends.

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
    told = [server for name in _NAMES if (server := _read_server_file(root / ".knapper" / name))]
    if not told:
        fix = "Start one: knapper serve. Or ask one elsewhere, with a token of all scopes: knapper --server URL login"
        raise UsageError(f"No server of {root.resolve()} runs on this machine.", fix=fix)
    return [(url, token, _trusting(certificate)) for url, token, certificate in told]


def _read_server_file(path: Path) -> tuple[str, str, str] | None:
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
