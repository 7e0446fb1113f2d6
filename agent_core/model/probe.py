"""Small requests over plain sockets, made before any client is imported: above all, which models an address lists."""

import asyncio
import json
import re
import ssl
from contextlib import suppress
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from sandbox.wire.foreign import LOOSE, read_json

_MOST_BYTES: Final = 4 << 20
_MOST_SHOWN: Final = 64 << 10
_OK: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
_CALLED: Final = re.compile(r"/+(chat/)?completions/*$|/+$")
_VERSION: Final = re.compile(r"/v\d\w*(/|$)")


def base_url_hint(url: str) -> str:
    """Return what to do where an address answers, but not as the base URL of an endpoint does."""
    base = _CALLED.sub("", url)
    better = base if _VERSION.search(urlsplit(base).path) else f"{base}/v1"
    return f"Try the address {better}." if better != url.rstrip("/") else "Check that this is the endpoint's base URL."


async def list_models(url: str, *, key: str = "", timeout_s: float) -> list[dict[str, Any]] | None:  # Any: foreign JSON
    """Return the entries of GET `url`/models, each with an `id`; None if nothing suitable answers in time."""
    return entries_of(await _answer(url.rstrip("/") + "/models", None, key, timeout_s))


async def unlisted(url: str, *, key: str = "", timeout_s: float) -> tuple[int, str]:
    """Return the status and the text with which GET `url`/models is answered by something that lists no models.

    The status is 0 if nothing answers it in time, or not in HTTP.
    """
    try:
        async with asyncio.timeout(timeout_s):
            status, body = await _exchange(urlsplit(url.rstrip("/") + "/models"), key, None)
    except (OSError, TimeoutError, ValueError):
        return 0, ""
    return status, body[:_MOST_SHOWN].decode("utf-8", "replace")


def entries_of(listing: object) -> list[dict[str, Any]] | None:  # Any: foreign JSON
    """Return the entries of an answer to GET /models, which is an object with a list or a bare one; None if neither."""
    entries = listing.get("data") if isinstance(listing, dict) else listing
    if not isinstance(entries, list):
        return None
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


async def unreachable(url: str, *, timeout_s: float) -> str:
    """Return why nothing can be connected to at this address; empty if something can."""
    address = urlsplit(url)
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(address.hostname, address.port or _PORTS.get(address.scheme))
    except TimeoutError:
        return f"no connection within {timeout_s:g} s"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    writer.close()
    return ""


async def ask(
    url: str, body: dict[str, Any] | None = None, *, key: str = "", timeout_s: float
) -> dict[str, Any]:  # Any: JSON
    """Return the object that answers a GET, or a POST of this body; an empty one if none arrives in time."""
    data = await _answer(url, body, key, timeout_s)
    return data if isinstance(data, dict) else {}


async def _answer(url: str, body: dict[str, Any] | None, key: str, timeout_s: float) -> object:
    try:
        async with asyncio.timeout(timeout_s):
            status, answer = await _exchange(urlsplit(url), key, body)
            return read_json(answer, LOOSE) if status == _OK else None
    except (OSError, TimeoutError, ValueError):
        return None


async def _exchange(address: SplitResult, key: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
    """Return the status and the body of the answer. HTTP/1.0, so that it is one piece and ends with the stream."""
    secure = address.scheme == "https"
    reader, writer = await asyncio.open_connection(
        address.hostname, address.port or (443 if secure else 80), ssl=ssl.create_default_context() if secure else None
    )
    try:
        authorization = f"Authorization: Bearer {key}\r\n" if key else ""
        sent = b"" if body is None else json.dumps(body).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n" if sent else ""
        head = f"{'POST' if sent else 'GET'} {address.path} HTTP/1.0\r\nHost: {address.netloc}\r\n"
        writer.write(f"{head}{authorization}{kind}\r\n".encode() + sent)
        answer = await reader.readuntil(b"\r\n\r\n")
        protocol, status, *_ = [*answer.split(b"\r\n", 1)[0].split(), b"", b""]
        if not protocol.startswith(b"HTTP/") or not status.isdigit() or len(status) != len("200"):
            raise ValueError("this is not HTTP")
        return int(status), await _read_to_end(reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise ValueError("this is not HTTP") from error
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            await writer.wait_closed()


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while part := await reader.read(1 << 16):
        body += part
        if len(body) > _MOST_BYTES:
            raise ValueError("the list is too long")
    return body
