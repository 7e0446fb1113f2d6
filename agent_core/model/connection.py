"""The only client of an address: that of the `openai` package, over an HTTP client with our limits.

The package reads events and statuses, says whether and when to ask again, and keeps the connections. Our part is the
wording of errors and the protection of the user: no redirect to another origin, answers of limited size, no proxy for
servers on this machine, and no key in any text.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

import httpx2

from agent_core.base.errors import ContextOverflow, ModelError, Unavailable
from agent_core.base.late import LatePackages
from agent_core.base.network_variables import (
    UnusableVariable,
    certificates,
    checked_address,
    checked_key,
    masked_address,
    proxy_for,
)
from agent_core.base.offload import aside
from agent_core.base.records import dataclass, replace
from agent_core.base.settings import ModelSettings
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import LOOSE, MAX_VALUES, PART, Malformed, Strictness, read_json

from .dialect import (
    AZURE,
    AzureTerms,
    Dialect,
    Instead,
    base_url_hint,
    dialect_of,
    is_loopback,
    quirks,
    refuses,
    root_of,
    wants_change,
)
from .reply import RetryPiece
from .responses import ENDS, ResponseReader, to_responses
from .wire import bulk_of, dumps

with LatePackages(
    "openai.types"
):  # 440 modules, of which 80 are used: more than half of the time of this import
    import openai
    from openai import AsyncStream, OpenAIError
    from openai._models import FinalRequestOptions
    from openai._streaming import ServerSentEvent

# Errors for the refusals of an endpoint, worded so that the user can act on them.

_MAY_PASS: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NOT_TAKEN: Final = frozenset({400, 422, 501})
_SHOWN_CHARS: Final = 400
_SEARCHED_CHARS: Final = 20_000  # of an error, to find a requested wait
_CODE_CHARS: Final = 200
_LONGEST_WAIT_S: Final = 120.0  # the longest wait that the package honors
_WAIT: Final = re.compile(r'"retryDelay": "([0-9.]+)s"|try again in ([0-9.]+) ?s')


class ModelMissing(ModelError):
    """Error raised when the endpoint answers, but not under this path or model name."""


class NotTaken(ModelError):
    """Error raised when the endpoint rejects the form of the request; it may accept another form."""


class FunctionsRefused(NotTaken):
    """Error raised when the endpoint accepts no functions for this model."""


class ParameterRefused(ModelError):
    """Error raised when the endpoint rejects a parameter that can be renamed or omitted."""

    def __init__(self, message: str, *, fix: str = "", parameter: str) -> None:
        super().__init__(message, fix=fix)
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the endpoint reports it, in any of the usual forms."""

    message: str
    code: str = ""
    parameter: str = ""
    wait_s: str = ""
    is_page: bool = False
    """True if it was a web page, as of a server that is no endpoint."""

    @classmethod
    def read(cls, text: str) -> "Refusal":
        """Parse the body of an error response."""
        try:
            return cls.of(read_json(text, LOOSE))
        except Malformed:
            if text.lstrip()[:1] == "<":
                return cls("a web page instead of JSON", is_page=True)
            return cls(_short(text))

    @classmethod
    def of(cls, body: Any) -> "Refusal":  # Any: foreign JSON
        """Read parsed JSON: {"error": {"message", "code", "param"}}, {"error": "…"}, {"message": …}, {"detail": …}."""
        body = body[0] if isinstance(body, list) and body else body
        inner = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(inner, dict):
            return cls(_short(str(inner)))
        message = inner.get("message") or inner.get("detail") or json.dumps(inner)
        code = inner.get("code") or inner.get("type") or ""
        wait_s = _WAIT.search(json.dumps(inner)[:_SEARCHED_CHARS])
        code, parameter = str(code)[:_CODE_CHARS], str(inner.get("param") or "")[:_CODE_CHARS]
        return cls(_short(str(message)), code, parameter, wait_s[1] or wait_s[2] if wait_s else "")


def explain(status: int, headers: Mapping[str, str], refusal: Refusal, where: str) -> ModelError:
    """Return the error for a refused request; `where` is the endpoint's address."""
    message = f"{where} says ({status}): {refusal.message.rstrip('.') or 'nothing'}."
    words = f"{refusal.code} {refusal.message}"
    if status == 413 or quirks().overflow.search(words):
        return ContextOverflow(
            message, fix="Shorten the conversation, or set `model.context_tokens`."
        )
    for name in quirks().refused if status in {400, 422} else ():
        quoted = (f"{quote}{name}{end}" for quote in "'`\"" for end in (quote, "."))
        if refusal.parameter.partition(".")[0] == name or any(
            text in refusal.message for text in quoted
        ):
            return ParameterRefused(message, parameter=name)
    if status != 429 and refuses("functions", words):
        return FunctionsRefused(message, fix=quirks().fixes["functions"])
    if status == 402 or quirks().no_credit.search(words):
        return ModelError(message, fix=quirks().fixes["402"])
    # The same request cannot succeed, but another form may.
    is_about_writing = status != 429 and (
        wants_change(refusal.message) or refuses("constraint", refusal.message)
    )
    if status in _MAY_PASS and headers.get("x-should-retry") != "false" and not is_about_writing:
        asked_s = 0.0
        with suppress(ValueError):  # a date
            asked_s = float(headers.get("retry-after") or refusal.wait_s or 0)
        is_long = asked_s > _LONGEST_WAIT_S  # for automatic retries
        wait = f"It says to wait {asked_s:.0f} s: try again then, or choose another model."
        return Unavailable(message, fix=wait if is_long else _fix(status))
    return _final(
        status, message, words, NotTaken if is_about_writing or status in _NOT_TAKEN else ModelError
    )


def redirected(where: str, place: str) -> ModelError:
    """Return the error for a redirect that would lead to another server than the user chose."""
    message = (
        f"{where} redirects to {one_line(place)}, which is not followed: nothing was sent to it."
    )
    return ModelError(message, fix="If you trust that address, set it as `model.base_url`.")


def _final(status: int, message: str, words: str, kind: type[ModelError]) -> ModelError:
    if status in {400, 403, 422} and quirks().filtered.search(words):
        return ModelError(message, fix=quirks().fixes["filtered"])
    if (kind is ModelError and status == 404) or (
        status in {400, 422} and quirks().no_model.search(words)
    ):
        return ModelMissing(message)
    if status in {401, 403}:
        message = (
            f"The key was refused. {message}"
            if status == 401
            else f"The key may not do this. {message}"
        )
    return kind(message, fix=_fix(status))


def _fix(status: int) -> str:
    return quirks().fixes.get(str(status if status < 500 else 500), quirks().fixes["other"])


def explain_in_stream(error: Any, where: str) -> ModelError:  # Any: foreign JSON
    """Return the error for a refusal that arrives as a chunk of a stream, under status 200."""
    code = error.get("code") if isinstance(error, dict) else None
    return explain(code if isinstance(code, int) else 500, {}, Refusal.of({"error": error}), where)


def _short(text: str) -> str:
    return one_line(" ".join(text[: 4 * _SHOWN_CHARS].split()), _SHOWN_CHARS)


# The client.

Chunk: TypeAlias = dict[str, Any]  # Any: foreign JSON
Body: TypeAlias = Mapping[
    str, Any
]  # Any: JSON values; a value of type `bytes` is JSON text already

MOST_BYTES: Final = 8 << 20  # per answer
MOST_ERROR_BYTES: Final = 64 << 10  # per error; the rest is not read
_LONGEST_S: Final = 3_600.0  # for one answer, even if its stream is active
_LISTED: Final = 12
_CONNECT_S: Final = 10.0
_BESIDE_S: Final = 3.0  # for requests next to the endpoint
_NO_KEY: Final = "none"  # some servers require a key of any value
_SHORTEST_SECRET: Final = (
    8  # `none`, `x` and `dummy` are not secrets and may occur in error messages
)
_PLACEHOLDERS: Final = frozenset(
    {
        "lm-studio",
        "not-needed",
        "not-required",
        "no-key-required",
        "sk-no-key-required",
        "placeholder",
    }
)
_WIRE: Final = logging.getLogger("agent_core.wire")
_DEEPEST: Final = 256  # levels of an event: arguments that come as an object have up to 200
_END_MARK: Final = "[DONE]"
_EVENTS_AT_ONCE: Final = 200


class Unbounded(OpenAIError, httpx2.RequestError):
    """A response that is not read, or not to its end; the message continues a sentence that starts with the address."""


class Elsewhere(OpenAIError, httpx2.RequestError):
    """Error raised when a redirect would lead to another server than the user chose."""


@dataclass(slots=True)
class _Attempt:
    """The attempt to send one request: its address, why it failed, and the answer that refused it."""

    where: str
    failure: ModelError | None = None
    refused: httpx2.Response | None = None


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Client(httpx2.AsyncClient):
    """An HTTP client that records why a request failed, and asks an unresponsive server only once."""

    proxy_variable = ""

    async def send(
        self, request: httpx2.Request, **options: Any
    ) -> httpx2.Response:  # Any: the package's
        """Send a request; see the base class."""
        try:
            return await super().send(request, **options)
        except httpx2.HTTPError as error:
            if isinstance(error, httpx2.TimeoutException) and not isinstance(
                error, httpx2.ConnectTimeout
            ):
                raise openai.APITimeoutError(request) from error
            if attempt := _attempt.get(None):
                if self.proxy_variable and isinstance(
                    error, httpx2.ConnectError | httpx2.ProxyError
                ):
                    said = one_line(str(error)).rstrip(".")
                    message = f"{attempt.where} cannot be reached through the proxy in {self.proxy_variable}: {said}."
                    fix = "Is that proxy running, and right? Correct the variable, or unset it."
                elif isinstance(error, httpx2.ConnectTimeout):
                    message, fix = (
                        f"{attempt.where} did not accept the connection within {_CONNECT_S:g} s.",
                        "",
                    )
                else:
                    message = (
                        f"{attempt.where} cannot be reached: {one_line(str(error)).rstrip('.')}."
                    )
                    is_here = is_loopback(attempt.where)
                    fix = (
                        "Is it running?"
                        if is_here
                        else "Check the address, and that this machine is online."
                    )
                attempt.failure = Unavailable(message, fix=fix)
            raise


async def _check_origin(request: httpx2.Request) -> None:
    """Reject a redirect to another origin than that of the first request; a hook of the HTTP client."""
    origin = request.url.scheme, request.url.host, request.url.port
    if request.extensions.setdefault("origin", origin) != origin:
        raise Elsewhere(one_line(str(request.url)), request=request)


async def _limit_response(response: httpx2.Response) -> None:
    """Limit how much of a response is read; a hook of the HTTP client."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise Unbounded(
            f"packed its answer ({coding[:20]!r}), which was not asked for and is not unpacked"
        )
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, is_error=response.is_error)


async def _judge(response: httpx2.Response) -> None:
    """Record the error for a refusal, and set the headers that tell the package whether and when to retry."""
    attempt = _attempt.get(None)
    if attempt is None or response.is_success:
        return
    refusal = Refusal.read((await response.aread()).decode("utf-8", "replace"))
    if response.has_redirect_location:
        attempt.failure = redirected(attempt.where, response.headers["location"])
    else:
        attempt.failure = explain(response.status_code, response.headers, refusal, attempt.where)
        if refusal.is_page:
            attempt.failure.fix = f"{base_url_hint(attempt.where)} {attempt.failure.fix}".strip()
    response.headers["x-should-retry"] = (
        "true" if isinstance(attempt.failure, Unavailable) else "false"
    )
    if refusal.wait_s:
        response.headers.setdefault("retry-after", refusal.wait_s)
    if response.headers.get("retry-after") == "0":  # the package ignores a wait of zero
        response.headers["retry-after-ms"] = "1"
    attempt.refused = response


class _Events(AsyncStream[object]):
    """The events of a stream that hold a JSON object; others keep the connection open, or say nothing that is asked.

    They are parsed here, within limits and next to the event loop: the package would do it in the loop, without any.
    """

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        passed = 0
        async for event in super()._iter_events():
            if event.data.startswith(_END_MARK):
                yield event
            elif event.data.lstrip()[:1] in ("{", "["):
                yield _ParsedEvent(event, await _parse(event.data, PART))
            passed += 1
            if (
                passed % _EVENTS_AT_ONCE == 0
            ):  # many of them arrive in one read, which would not wait
                await asyncio.sleep(0)


class _ParsedEvent(ServerSentEvent):
    """An event with the value of its JSON text."""

    def __init__(self, event: ServerSentEvent, value: Any) -> None:  # Any: foreign JSON
        super().__init__(event=event.event, data=event.data)
        self._value = value

    def json(self) -> Any:  # Any: foreign JSON
        """Return the value."""
        return self._value


async def _parse(text: str | bytes, strictness: Strictness) -> Any:  # Any: foreign JSON
    """Return the value of one event or answer, parsed in a thread if it is large.

    Raises:
        Malformed: it is no JSON, or exceeds a limit.
    """
    return await aside(
        len(text), read_json, text, strictness, deepest=_DEEPEST, most_values=MAX_VALUES
    )


T = TypeVar("T")
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


async def read_aside(size: int, read: Callable[[], T], where: str = "The endpoint") -> T:
    """Return what reads a part of a reply, in a thread if it is large.

    Raises:
        ModelError: the part has a form that no reader expects.
    """
    try:
        return await aside(size, read)
    except _UNREADABLE as error:
        what = one_line(str(error))[:200] if isinstance(error, Malformed) else type(error).__name__
        message = f"{where} sent an answer in a form that cannot be read ({what})."
        raise ModelError(message, fix="Try again, or choose another model.") from error


class _Bounded(httpx2.AsyncByteStream):
    """A response body that is read up to a limit: an error is cut off there, and a longer answer raises `Unbounded`."""

    def __init__(self, body: httpx2.AsyncByteStream, *, is_error: bool) -> None:
        self._body = body
        self._is_error = is_error
        self.is_done = False
        """Whether the end mark of a stream arrived, which the package does not expose."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        now = asyncio.get_running_loop().time
        remaining, until = MOST_ERROR_BYTES if self._is_error else MOST_BYTES, now() + _LONGEST_S
        last = b""
        async for part in self._body:
            self.is_done = self.is_done or b"[DONE]" in last + part
            last = part[-8:]
            yield part[:remaining]
            remaining -= len(part)
            if remaining < 0 and self._is_error:
                return
            if remaining < 0:
                raise Unbounded(
                    f"sent more than {MOST_BYTES >> 20} MiB in one answer, which was not read to its end"
                )
            if now() > until:
                raise Unbounded(f"did not end its answer within {_LONGEST_S:g} s")

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


class Connection:
    """A client of one address, kept open while in use; requests may run concurrently."""

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        name: str = "",
        timeout_s: float = 600,
        retries: int = 0,
        azure: AzureTerms | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client: Azure's own if `azure` is given; `transport` replaces the network.

        `name` replaces the address in messages to the user.

        Raises:
            ModelError: the address, the key, or a variable that decides how it is reached cannot be used.
        """
        try:
            url, key = checked_address(url), checked_key(key)
            http_client = _http_client(url, timeout_s, transport)
        except UnusableVariable as error:
            raise ModelError(error.message, fix=error.fix) from error
        self.url = url = url.rstrip("/")
        self._where = name or masked_address(url)
        self._key = key
        self._timeout_s = timeout_s
        self._retries = retries
        credential = "azure_ad_token" if azure and azure.is_token else "api_key"
        terms: Any = {credential: key or _NO_KEY, "max_retries": 0, "http_client": http_client}
        self._client: openai.AsyncOpenAI = (
            openai.AsyncAzureOpenAI(azure_endpoint=url, api_version=azure.version, **terms)
            if azure
            else openai.AsyncOpenAI(base_url=url, **terms)
        )
        self._client._platform = "Unknown"  # otherwise the package starts `uname`
        self._client.platform_headers = dict  # type: ignore[method-assign]  # no endpoint learns about this machine

    async def stream(
        self, path: str, content: bytes, *, streamed: bool
    ) -> AsyncGenerator[Chunk | RetryPiece, None]:
        """Post JSON text; yield a report of each wait before a retry, then the chunks, or the whole answer as one.

        Raises:
            ModelError: the endpoint cannot be used or the connection broke; the message says why and what to do.
        """
        failed = 0
        while True:
            begun, attempt = False, _Attempt(self._where)
            try:
                response = await self._post(path, content, attempt, streamed=streamed)
                try:
                    async with aclosing(self._chunks(response, streamed=streamed)) as chunks:
                        async for chunk in chunks:
                            begun = True
                            yield chunk
                    return
                finally:
                    await response.aclose()
            except Unavailable as error:
                failed += 1
                refused = attempt.refused
                is_final = refused is not None and not self._client._should_retry(
                    refused
                )  # it says to wait too long
                if begun or is_final or failed > self._retries:
                    raise
                options, headers = (
                    FinalRequestOptions(method="post", url=path),
                    refused.headers if refused else None,
                )
                wait_s = self._client._calculate_retry_timeout(1 - failed, options, headers)
                yield RetryPiece(error.message, wait_s)
                await asyncio.sleep(wait_s)

    async def ask(
        self, path: str, body: Chunk | None = None, *, timeout_s: float
    ) -> Any:  # Any: foreign JSON
        """Return the answer to a GET, or to a POST of `body`; `/…` is a path of the endpoint, `//…` one of its server.

        Raises:
            ModelError: no answer in time, or an unusable one.
        """
        url = root_of(self.url) + path[1:] if path.startswith("//") else path
        attempt = _Attempt(f"{self._where}{path}" if url is path else masked_address(url))
        token = _attempt.set(attempt)
        options: Any = {"max_retries": 0}  # Any: a part of the package's types
        try:
            async with asyncio.timeout(timeout_s):
                response = await (
                    self._client.get(url, cast_to=httpx2.Response, options=options)
                    if body is None
                    else self._client.post(url, cast_to=httpx2.Response, body=body, options=options)
                )
        except TimeoutError as error:
            raise Unavailable(f"{self._where} said nothing for {timeout_s:g} s.") from error
        except OpenAIError as error:
            raise self._to_model_error(error, attempt) from error
        finally:
            _attempt.reset(token)
        return await self._json(response)

    async def fetch(
        self, path: str, body: Chunk | None = None, *, timeout_s: float = _BESIDE_S
    ) -> Chunk:
        """Return the object at a path of the endpoint's server; an empty one if none arrives in time."""
        with suppress(ModelError):
            answer = await self.ask(f"/{path}", body, timeout_s=timeout_s)
            return answer if isinstance(answer, dict) else {}
        return {}

    async def listed(self, *, timeout_s: float = _BESIDE_S) -> list[Chunk]:
        """Return the entries of `listing`; an empty list if the endpoint fails to answer."""
        with suppress(ModelError):
            return await self.listing(timeout_s=timeout_s)
        return []

    async def listing(self, *, timeout_s: float) -> list[Chunk]:
        """Return the entries of GET /models, each with an `id`.

        Raises:
            ModelError: no answer in time, or not a list.
        """
        entries = await self.ask("/models", timeout_s=timeout_s)
        entries = entries.get("data") if isinstance(entries, dict) else entries
        if not isinstance(entries, list):
            raise ModelError(
                f"{self._where}/models sent no list of models.", fix=base_url_hint(self.url)
            )
        return [
            entry
            for entry in entries
            if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _post(
        self, path: str, content: bytes, attempt: _Attempt, *, streamed: bool
    ) -> httpx2.Response:
        """Return the response to a request, with an unread body if it is streamed."""
        self._trace("→", content)
        token = _attempt.set(attempt)
        try:
            response: Any = await self._client.post(
                path,
                cast_to=httpx2.Response,
                content=content,
                stream=streamed,
                stream_cls=AsyncStream[object],
            )
        except OpenAIError as error:
            raise self._to_model_error(error, attempt) from error
        finally:
            _attempt.reset(token)
        assert isinstance(response, httpx2.Response), "it was asked for"
        return response

    async def _chunks(
        self, response: httpx2.Response, *, streamed: bool
    ) -> AsyncGenerator[Chunk, None]:
        try:
            kind = response.headers.get("content-type", "")
            if "application/json" in kind or not (streamed or "text/event-stream" in kind):
                await response.aread()
                if not _is_of_completion(chunk := self._check_chunk(await self._json(response))):
                    raise self._no_completion()
                yield chunk
                return
            ended, empty = False, True
            async with _Events(cast_to=object, response=response, client=self._client) as events:
                async for event in events:
                    chunk = self._check_chunk(event)
                    empty, ended = empty and not _is_of_completion(chunk), ended or _ends(chunk)
                    yield chunk
        except OpenAIError as error:
            raise self._to_model_error(error) from error
        except (ValueError, RecursionError) as error:
            raise self._not_json(error) from error
        except httpx2.HTTPError as error:  # while reading a complete answer
            raise (
                self._silent() if isinstance(error, httpx2.TimeoutException) else self._broken_off()
            ) from error
        if empty:
            raise self._no_completion()
        if not ended and not (isinstance(response.stream, _Bounded) and response.stream.is_done):
            raise self._broken_off()

    async def _json(self, response: httpx2.Response) -> Any:  # Any: foreign JSON
        if not response.content.strip():
            raise ModelError(f"{self._where} sent an empty answer.", fix=base_url_hint(self.url))
        try:
            return await _parse(response.content, LOOSE)
        except Malformed as error:
            raise self._not_json(error, response.text) from error

    def _check_chunk(self, chunk: object) -> Chunk:
        if _WIRE.isEnabledFor(logging.DEBUG):
            self._trace("←", json.dumps(chunk).encode())
        if not isinstance(chunk, dict):
            message = (
                f"{self._where} sent what is not a completion: {one_line(json.dumps(chunk)[:400])}"
            )
            raise self._hidden(ModelError(message, fix=base_url_hint(self.url)))
        failed = chunk.get("response") if chunk.get("type") == "response.failed" else None
        if error := (failed if isinstance(failed, dict) else chunk).get("error"):
            raise self._hidden(explain_in_stream(error, self._where))
        if chunk.get("type") == "error":
            raise self._hidden(explain_in_stream(chunk, self._where))
        return chunk

    def _to_model_error(self, error: OpenAIError, attempt: _Attempt | None = None) -> ModelError:
        """Return the error for the user from an error of the package, in an attempt or in a stream that had begun."""
        cause = error if isinstance(error, Unbounded | Elsewhere) else error.__cause__
        if isinstance(cause, Elsewhere):
            return redirected(self._where, str(cause))
        if isinstance(cause, Unbounded):
            fix = "Is this a model's endpoint? If this continues, choose another one."
            return self._hidden(ModelError(f"{self._where} {cause}.", fix=fix))
        if isinstance(error, openai.APITimeoutError) and not isinstance(
            cause, httpx2.ConnectTimeout
        ):
            return self._silent()
        if attempt is None:
            if type(error) is openai.APIError:
                return self._hidden(explain_in_stream(error.body, self._where))
            return self._broken_off()
        failure = attempt.failure
        assert failure is not None, "every failure of a request was noted"
        if isinstance(error, openai.AuthenticationError) and not self._key:
            failure.fix = quirks().fixes["keyless"]
        if isinstance(error, openai.APIStatusError):
            self._trace(f"← {error.status_code}", error.response.content)
        return self._hidden(failure)

    def _trace(self, arrow: str, content: bytes) -> None:
        """Log the traffic, without the key, if debug logging is enabled."""
        if _WIRE.isEnabledFor(logging.DEBUG):
            _WIRE.debug(
                "%s %s %s",
                arrow,
                self._where,
                self._without_key(content.decode("utf-8", "replace")),
            )

    def _without_key(self, text: str) -> str:
        """Return a text without the user's key, which an endpoint may echo."""
        is_secret = len(self._key) >= _SHORTEST_SECRET and self._key.lower() not in _PLACEHOLDERS
        return text.replace(self._key, "…") if is_secret else text

    def _hidden(self, error: ModelError) -> ModelError:
        error.message = self._without_key(error.message)
        return error

    def _not_json(self, error: Exception, text: str = "") -> ModelError:
        if isinstance(error, Malformed) and error.code in ("size", "depth"):
            message = f"{self._where} sent more at once than an answer has: {error}."
            return ModelError(
                message, fix="Is this a model's endpoint? If this continues, choose another one."
            )
        text = text or getattr(error.__cause__, "doc", "")
        if text.lstrip()[:1] == "<":
            return ModelError(
                f"{self._where} sent a web page instead of JSON.", fix=base_url_hint(self.url)
            )
        message = f"{self._where} sent what is not JSON ({one_line(str(error))[:200]}): {one_line(text[:200])}"
        return self._hidden(ModelError(message, fix=base_url_hint(self.url)))

    def _no_completion(self) -> ModelError:
        return Unavailable(
            f"{self._where} answered, but not with a completion.", fix=base_url_hint(self.url)
        )

    def _silent(self) -> ModelError:
        message = f"{self._where} said nothing for {self._timeout_s:g} s."
        return ModelError(message, fix="Try again, or raise `model.timeout_s`.")

    def _broken_off(self) -> ModelError:
        fix = "Try again; at the prompt: /retry."
        return Unavailable(
            f"The connection to {self._where} broke off in the middle of the answer.", fix=fix
        )


class Endpoint(Connection):
    """A client of one model at one address."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        settings: ModelSettings | None = None,
        azure: AzureTerms | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client; `azure` and `transport` as for a `Connection`."""
        self.settings = settings or ModelSettings()
        timeout_s, retries = self.settings.timeout_s, self.settings.retries
        super().__init__(
            url, key=key, timeout_s=timeout_s, retries=retries, azure=azure, transport=transport
        )
        self.model = model
        self._entry: Chunk | None = None
        self._path = (
            f"/deployments/{quote(model, safe='')}/chat/completions"
            if azure
            else "/chat/completions"
        )
        self.speak(dialect_of(self.url))

    def speak(self, dialect: Dialect) -> None:
        """Use this dialect from now on, with the API from the settings."""
        api = self.settings.api
        self.dialect = dialect if api == "auto" else replace(dialect, api=api)
        self._instead: dict[str, Instead] = dict(dialect.instead)

    @property
    def source(self) -> str:
        """The name of this endpoint and model in what came with a reply, which goes back to no other."""
        named = f"{self.dialect.api} {self.url} {self.model}"
        return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:16]

    async def entry(self) -> Chunk:
        """Return the model's entry in GET /models, requested once; empty if there is none."""
        if self._entry is None:
            self._entry = next(
                (entry for entry in await self.listed() if entry["id"] == self.model), {}
            )
        return self._entry

    async def complete(self, body: Body) -> AsyncGenerator[Chunk | RetryPiece, None]:
        """Yield the chunks of one completion, or the whole response as one chunk unless the body has `"stream": True`.

        The model's name is filled in. A `RetryPiece` reports every wait before a retry.

        Raises:
            ContextOverflow: the endpoint reports that the request is too long.
            ModelError: it cannot be used or the connection broke; the message says why and what to do.
        """
        while True:
            try:
                async with aclosing(self._complete(body)) as chunks:
                    reader = ResponseReader() if self.dialect.api == "responses" else None
                    async for chunk in chunks:
                        if reader is None or isinstance(chunk, RetryPiece):
                            yield chunk
                            continue
                        for piece in await read_aside(
                            bulk_of(chunk), partial(reader.read, chunk), self._where
                        ):
                            yield piece
            except ParameterRefused as error:
                if error.parameter in self._instead:
                    raise ModelError(error.message) from error
                self._instead[error.parameter] = quirks().refused[error.parameter]
            except ModelMissing as error:
                raise await self._missing(error) from error
            else:
                return

    def _complete(self, body: Body) -> AsyncGenerator[Chunk | RetryPiece, None]:
        values: dict[str, Any] = {"model": self.model, **self.dialect.beside, **body}
        is_chat = self.dialect.api == "chat"
        path, values = (self._path, values) if is_chat else ("/responses", to_responses(values))
        for name, instead in self._instead.items():
            value = values.pop(name, None)
            if instead.value:
                values[name] = instead.value
            elif instead.name and value is not None:
                values[instead.name] = value
        # Values of type `bytes` are JSON text already.
        parts = (
            dumps(name) + b":" + (value if isinstance(value, bytes) else dumps(value))
            for name, value in values.items()
        )
        return self.stream(
            path, b"{" + b",".join(parts) + b"}", streamed=bool(values.get("stream"))
        )

    async def _missing(self, error: ModelMissing) -> ModelError:
        if (
            self._path != "/chat/completions" or self.dialect.name == AZURE
        ):  # it lists models, but a request names a deployment
            fix = "Name a deployment of the resource as the model: --model NAME."
            return ModelError(error.message, fix=fix)
        names = [entry["id"] for entry in await self.listed()]
        if not names:
            return ModelError(
                error.message, fix=f"{base_url_hint(self.url)} Or name another model."
            )
        if self.model in names:
            chat = " Or set `model.api` to chat: not every endpoint has the Responses API."
            return ModelError(
                error.message,
                fix=base_url_hint(self.url) + chat * (self.dialect.api == "responses"),
            )
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        listed = ", ".join(names[:_LISTED]) + more
        return ModelError(
            f"There is no model `{self.model}` at {self.url}.", fix=f"There are: {listed}."
        )


def _http_client(
    url: str, timeout_s: float, transport: httpx2.AsyncBaseTransport | None
) -> _Client:
    secure = url.startswith("https:")
    proxy = (
        None if is_loopback(url) or transport else proxy_for(url)
    )  # none reaches servers on this machine
    client = _Client(
        headers={"Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
        verify=certificates() if secure else False,
        follow_redirects=secure,
        # Also for requests that follow from redirects.
        event_hooks={"request": [_check_origin], "response": [_limit_response, _judge]},
        proxy=proxy.for_client() if proxy else None,
        trust_env=False,  # what it would read was chosen above
        transport=transport,
    )
    client.proxy_variable = proxy.variable if proxy else ""
    return client


def _is_of_completion(chunk: Chunk) -> bool:
    """Check whether a chunk, or a whole answer, is part of a reply, in either API."""
    return bool(
        chunk.get("choices") or "output" in chunk or str(chunk.get("type")).startswith("response.")
    )


def _ends(chunk: Chunk) -> bool:
    if chunk.get("type") in ENDS:
        return True
    choices = chunk.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and choice.get("finish_reason") for choice in choices
    )
