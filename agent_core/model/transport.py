"""Bytes to an endpoint and back, through the SDK. The one module that imports it (which costs half a second).

The SDK's lower-level `post` keeps its transport, headers and errors; the typed request on top of it walks
every message on every call. Its client is cheap once the TLS context is shared between clients.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import httpx2
import openai

from sandbox.foreign import LOOSE, Malformed, read_json

from ..errors import ModelError
from .failures import Refusal, Unavailable, explain, explain_in_stream
from .quirks import quirks
from .sse import Decoder
from .wire import Entry

Chunk: TypeAlias = Entry

_NO_KEY: Final = "none"  # the SDK wants a key, servers on this machine do not care
_CONNECT_S: Final = 10.0
_LISTING_S: Final = 3.0
_DRAIN_S: Final = 0.5
_PATH_HINT: Final = "Is this the base URL? It usually ends in /v1."
_HEADERS: Final = {"Content-Type": "application/json"}


class Transport:
    """Sends completions to one address."""

    def __init__(self, url: str, *, key: str = "", timeout_s: float = 600) -> None:
        self.url = url
        self._key = key
        self._timeout_s = timeout_s
        self._client = openai.AsyncOpenAI(
            base_url=url, api_key=key or _NO_KEY, max_retries=0, http_client=_http_client(url, timeout_s)
        )

    async def complete(self, content: bytes, *, streamed: bool) -> AsyncGenerator[Chunk, None]:
        """One try: the chunks of the answer, or the whole answer as one."""
        response = await self._post(content, streamed=streamed)
        try:
            if "application/json" in response.headers.get("content-type", ""):
                yield self._read(await response.aread())
                return
            async for chunk in self._events(response):
                yield chunk
        except httpx2.TimeoutException as error:
            raise self._silent() from error
        except httpx2.HTTPError as error:
            raise self._broken_off() from error
        finally:
            await response.aclose()

    async def listing(self) -> list[Chunk]:
        """The entries of GET /models; empty where the endpoint does not say."""
        try:
            async with asyncio.timeout(_LISTING_S):
                response = await self._client.get("/models", cast_to=httpx2.Response)
            entries = read_json(response.content, LOOSE)["data"]
        except (openai.OpenAIError, TimeoutError, ValueError, LookupError, TypeError):
            return []
        found = entries if isinstance(entries, list) else []
        return [entry for entry in found if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(self, content: bytes, *, streamed: bool) -> httpx2.Response:
        try:
            answer = await self._client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                content=content,
                options={"headers": _HEADERS},
                stream=streamed,
                stream_cls=openai.AsyncStream[object],
            )
        except openai.APIStatusError as error:
            response = error.response
            raise self._explain(response.status_code, response.headers, response.text) from error
        except openai.APITimeoutError as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                raise Unavailable(f"{self.url} did not take the connection within {_CONNECT_S:g} s.") from error
            raise self._silent() from error
        except openai.APIConnectionError as error:
            mend = "Is it running?" if is_loopback(self.url) else "Check the address, and that this machine is online."
            raise Unavailable(f"{self.url} cannot be reached: {error.__cause__}.", mend=mend) from error
        return cast("httpx2.Response", answer)  # what `cast_to` names, whatever the overload says

    async def _events(self, response: httpx2.Response) -> AsyncIterator[Chunk]:
        decoder, ended, empty = Decoder(), False, True
        parts = response.aiter_bytes()
        async for part in _and_end(parts):
            for event in decoder.close() if part is None else decoder.feed(part):
                if event == b"[DONE]":
                    await _drain(parts)
                    return
                chunk = self._read(event)
                empty, ended = False, ended or _ends(chunk)
                yield chunk
        if empty:
            raise ModelError(f"{self.url} answered, but not with a completion.", mend=_PATH_HINT)
        if not ended:
            raise self._broken_off()

    def _read(self, text: bytes) -> Chunk:
        try:
            chunk = read_json(text, LOOSE)
        except Malformed as error:
            start = text[:200].decode("utf-8", "replace")
            raise ModelError(f"{self.url} sent what is not JSON ({error}): {start}", mend=_PATH_HINT) from error
        if not isinstance(chunk, dict):
            raise ModelError(f"{self.url} sent what is not a completion: {str(chunk)[:200]}", mend=_PATH_HINT)
        if chunk.get("error"):
            raise explain_in_stream(chunk, self.url)
        return chunk

    def _explain(self, status: int, headers: httpx2.Headers, text: str) -> ModelError:
        refusal = Refusal.read(text.replace(self._key, "…") if self._key else text)
        error = explain(status, headers, refusal, self.url)
        if status == 401 and not self._key:
            error.mend = quirks().mends["keyless"]
        return error

    def _silent(self) -> ModelError:
        said = f"{self.url} said nothing for {self._timeout_s:g} s."
        return ModelError(said, mend="Try again, or raise `model.timeout_s`.")

    def _broken_off(self) -> ModelError:
        return Unavailable(f"The connection to {self.url} broke off in the middle of the answer.", mend="Try again.")


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def _http_client(url: str, timeout_s: float) -> httpx2.AsyncClient:
    secure = url.startswith("https:")
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S),
        verify=_tls() if secure else False,
        follow_redirects=secure,
        trust_env=not is_loopback(url),  # a proxy of the environment does not reach this machine's own servers
    )


@cache
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def _and_end(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
    """The parts, and None when there are no more."""
    async for part in parts:
        yield part
    yield None


async def _drain(parts: AsyncIterator[bytes]) -> None:
    """Read what follows the end, so that the connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in parts:
                pass


def _ends(chunk: Chunk) -> bool:
    choices: Iterable[Any] = chunk.get("choices") or ()  # Any: foreign JSON
    return any(isinstance(choice, dict) and choice.get("finish_reason") for choice in choices)
