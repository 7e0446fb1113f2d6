"""HTTP transport to an endpoint: one request, its answer or the error that a user can act on.

Clients are cheap once they share the TLS context. Server-sent events are read from bytes split anywhere.
"""

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from functools import cache
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx2

from agent_core.base.errors import ModelError
from agent_core.base.untrusted import one_line
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from .bounded_http import PLAIN, Unbounded, bound
from .failures import Refusal, Unavailable, explain, explain_in_stream
from .probe import base_url_hint, entries_of
from .quirks import quirks
from .wire import Entry


class Decoder:
    """A decoder that collects bytes and returns the data of every complete event."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> list[bytes]:
        """Return the events that end in this part."""
        head, newline, tail = part.rpartition(b"\n")
        if not newline:  # what was looked through is not looked through again
            self._rest += part
            return []
        lines, self._rest = (bytes(self._rest) + head).split(b"\n"), bytearray(tail)
        return [event for line in lines if (event := self._line(line.rstrip(b"\r"))) is not None]

    def close(self) -> list[bytes]:
        """Return the event that the end of the stream completes."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> bytes | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            event = b"\n".join(self._data)
            self._data.clear()
            return event
        return None  # comments, event names and ids: endpoints say all in the data


Chunk: TypeAlias = Entry
ErrorT = TypeVar("ErrorT", bound=ModelError)

_SHORTEST_SECRET: Final = 8  # `none`, `x` and `dummy` are no secrets, and words of errors
_PLACEHOLDERS: Final = frozenset(
    {"lm-studio", "not-needed", "not-required", "no-key-required", "sk-no-key-required", "placeholder"}
)
_WIRE: Final = logging.getLogger("agent_core.wire")
_NO_KEY: Final = "none"  # some servers want a key, whatever it is
_CONNECT_S: Final = 10.0
_LISTING_S: Final = 3.0
_DRAIN_S: Final = 0.5
_LONGEST_S: Final = 3_600.0  # for one answer, however lively its stream is
_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "knapper"}
_ACCOUNTS: Final = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


class _Elsewhere(httpx2.RequestError):
    """Error raised when a redirect would lead to another server than the one that the user chose."""


class Transport:
    """A client that sends completions to one address."""

    def __init__(self, url: str, *, key: str = "", timeout_s: float = 600) -> None:
        self.url = url
        self._key = key
        self._timeout_s = timeout_s
        self._client = client = _http_client(url, key, timeout_s)
        # Put together once: the client would do it for each request.
        self._completions = httpx2.URL(f"{url.rstrip('/')}/chat/completions")
        self._terms = {"timeout": client.timeout.as_dict()}

    async def complete(self, content: bytes, *, streamed: bool) -> AsyncGenerator[Chunk, None]:
        """Make one try: yield the chunks of the answer, or the whole answer as one."""
        response = await self._post(content, streamed=streamed)
        try:
            if "application/json" in response.headers.get("content-type", ""):
                yield self._read(await response.aread())
                return
            async for chunk in self._events(response):
                yield chunk
        except httpx2.TimeoutException as error:
            raise self._silent() from error
        except Unbounded as error:
            raise self._unbounded(error) from error
        except httpx2.HTTPError as error:
            raise self._broken_off() from error
        finally:
            await response.aclose()

    async def listing(self) -> list[Chunk]:
        """Return the entries of GET /models; empty if the endpoint does not answer it."""
        try:
            async with asyncio.timeout(_LISTING_S):
                response = await self._client.get("/models")
            return entries_of(read_json(response.raise_for_status().content, LOOSE)) or []
        except (httpx2.HTTPError, TimeoutError, ValueError):
            return []

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _trace(self, arrow: str, content: bytes) -> None:
        """Log what goes over the wire, without the key, where that is wanted."""
        if _WIRE.isEnabledFor(logging.DEBUG):
            text = content.decode("utf-8", "replace")
            _WIRE.debug("%s %s %s", arrow, self.url, text.replace(self._key, "…") if self._is_secret() else text)

    def _is_secret(self) -> bool:
        return len(self._key) >= _SHORTEST_SECRET and self._key.lower() not in _PLACEHOLDERS

    async def _post(self, content: bytes, *, streamed: bool) -> httpx2.Response:
        self._trace("→", content)
        try:
            address, headers = self._completions, self._client.headers
            request = httpx2.Request("POST", address, headers=headers, content=content, extensions=self._terms)
            response = await self._client.send(request, stream=streamed)
            if response.is_success:
                return response
            await response.aread()
        except httpx2.TimeoutException as error:
            if isinstance(error, httpx2.ConnectTimeout):
                raise Unavailable(f"{self.url} did not accept the connection within {_CONNECT_S:g} s.") from error
            raise self._silent() from error
        except _Elsewhere as error:
            message = f"{self.url} redirects to {error}, which is not followed: nothing was sent to it."
            raise ModelError(message, fix="If you trust that address, set it as `model.base_url`.") from error
        except Unbounded as error:
            raise self._unbounded(error) from error
        except httpx2.HTTPError as error:
            fix = "Is it running?" if is_loopback(self.url) else "Check the address, and that this machine is online."
            reason = one_line(str(error)).rstrip(".")
            raise self._hidden(Unavailable(f"{self.url} cannot be reached: {reason}.", fix=fix)) from error
        self._trace(f"← {response.status_code}", response.content)
        raise self._explain(response.status_code, response.headers, response.text)

    async def _events(self, response: httpx2.Response) -> AsyncIterator[Chunk]:
        decoder, ended, empty = Decoder(), False, True
        parts, until = response.aiter_bytes(), asyncio.get_running_loop().time() + _LONGEST_S
        async for part in _and_end(parts):
            if asyncio.get_running_loop().time() > until:
                raise Unbounded(f"did not end its answer within {_LONGEST_S:g} s")
            for event in decoder.close() if part is None else decoder.feed(part):
                if event == b"[DONE]":
                    await _drain(parts)
                    return
                chunk = self._read(event)
                empty, ended = False, ended or _ends(chunk)
                yield chunk
        if empty:
            raise ModelError(f"{self.url} answered, but not with a completion.", fix=base_url_hint(self.url))
        if not ended:
            raise self._broken_off()

    def _read(self, text: bytes) -> Chunk:
        self._trace("←", text)
        try:
            chunk = read_json(text, LOOSE)
        except Malformed as error:
            start = one_line(text[:200].decode("utf-8", "replace"))
            message = f"{self.url} sent what is not JSON ({one_line(str(error))}): {start}"
            raise self._hidden(ModelError(message, fix=base_url_hint(self.url))) from error
        if not isinstance(chunk, dict):
            message = f"{self.url} sent what is not a completion: {one_line(json.dumps(chunk)[:400])}"
            raise self._hidden(ModelError(message, fix=base_url_hint(self.url)))
        if chunk.get("error"):
            raise self._hidden(explain_in_stream(chunk, self.url))
        return chunk

    def _explain(self, status: int, headers: httpx2.Headers, text: str) -> ModelError:
        error = self._hidden(explain(status, headers, Refusal.read(text), self.url))
        if status == 401 and not self._key:
            error.fix = quirks().fixes["keyless"]
        return error

    def _hidden(self, error: ErrorT) -> ErrorT:
        """Return the error without the user's key, which an endpoint may repeat in whatever it says."""
        if self._is_secret():
            error.message = error.message.replace(self._key, "…")
        return error

    def _silent(self) -> ModelError:
        message = f"{self.url} said nothing for {self._timeout_s:g} s."
        return ModelError(message, fix="Try again, or raise `model.timeout_s`.")

    def _unbounded(self, error: Unbounded) -> ModelError:
        return ModelError(
            f"{self.url} {error}.", fix="Is this a model's endpoint? If this continues, choose another one."
        )

    def _broken_off(self) -> ModelError:
        fix = "Try again; at the prompt: /retry."
        return Unavailable(f"The connection to {self.url} broke off in the middle of the answer.", fix=fix)


def is_loopback(url: str) -> bool:
    """Check whether the address is on this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _http_client(url: str, key: str, timeout_s: float) -> httpx2.AsyncClient:
    secure, chosen = url.startswith("https:"), _origin(httpx2.URL(url))

    async def check(request: httpx2.Request) -> None:
        if _origin(request.url) != chosen:
            raise _Elsewhere(one_line(str(request.url)), request=request)

    return httpx2.AsyncClient(
        base_url=url,
        headers=PLAIN | _HEADERS | _accounts() | {"Authorization": f"Bearer {key or _NO_KEY}"},
        timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S),
        verify=_tls() if secure else False,
        follow_redirects=secure,
        event_hooks={"request": [check], "response": [bound]},  # also for what a redirect makes of a request
        trust_env=not is_loopback(url),  # a proxy of the environment does not reach this machine's own servers
    )


def _accounts() -> dict[str, str]:
    """Return which of the key's accounts pays, if the environment says so."""
    return {header: value for header, name in _ACCOUNTS.items() if (value := os.environ.get(name))}


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def _and_end(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
    """Yield the parts, then None at the end."""
    async for part in parts:
        yield part
    yield None


async def _drain(parts: AsyncIterator[bytes]) -> None:
    """Read what follows the end, so that the connection can be reused."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in parts:
                pass


def _ends(chunk: Chunk) -> bool:
    choices = chunk.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and choice.get("finish_reason") for choice in choices
    )
