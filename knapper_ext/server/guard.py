"""The checks on every request before other code reads it: its origin, its size and its sender.

This is pure ASGI, so that it does not delay streams. Each request is logged as one line in `.knapper/access.log`,
without its query, headers and body.
"""

import asyncio
import ipaddress
import json
import logging.handlers
import os
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_core.api.identity import LINKER, ApiRefusal, Identity, Sessions, TokenBook
from agent_core.base.errors import KnapperError, WorkspaceError
from agent_core.base.offload import aside
from agent_core.base.plain_files import ADDING, open_plain
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line
from agent_core.functions.service.pins import HAS_OWN_TOKEN
from agent_core.operations.history_pages import MOST_HELD, Hold
from sandbox.wire.strict_json import has_more_values

from .responses import failure

KEY: Final = "Knapper-Key"
"""The header with the key that proves that the page itself logged in, because the cookie goes to every port."""
MOST_BODY: Final = 2 << 20
_MOST_OF_STRANGERS: Final = 16 << 10  # bytes of a body without a token: the client can only log in
_LARGE: Final = 256 << 10
_LARGE_AT_ONCE: Final = (
    2  # bodies of this size per token, until their operations have begun; others wait unread
)
MOST_LARGE: Final = 16
"""The maximum number of concurrent requests of one token with such a body: each may keep parts of it until its end."""
MOST_VALUES: Final = (
    100_000  # JSON values in a body: parsing creates all of them before they can be checked
)
_BODY_S: Final = 15.0  # for the whole body of a request
_PIECE: Final = 64 << 10  # bytes of a response that are sent at once
_LOOK_S: Final = 15.0  # between checks that the token of an open stream is still valid
_READS: Final = frozenset({"GET", "HEAD"})
_PER_SECOND, _AT_ONCE = 100.0, 400.0  # requests of one identity
MOST_STREAMS: Final = 64  # concurrent streams of one token
MOST_REQUESTS: Final = 200
"""The maximum number of concurrent requests of one token, and of connections."""
_WRONG_TOKENS: Final = 20  # per minute and address
_MOST_ADDRESSES: Final = 1_000
_NETWORK_BITS: Final = 64  # of an IPv6 address: its owner chooses the rest
_OPEN: Final = (
    "/",
    "/login",
    "/page/",
    "/favicon.ico",
)  # paths that a browser may load before login
LINKS: Final = "/login/links"
"""The path that creates login links for `knapper login`."""
_SAFE_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Buckets:
    """A token bucket for each of the most recent names: it fills up with time, and each request takes one."""

    def __init__(self, per_second: float, most: float) -> None:
        self._per_second, self._most = per_second, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # with the time of each

    def take(self, name: str) -> bool:
        """Take one from the bucket of a name and return whether there was one."""
        now = time.monotonic()
        level, at = self._levels.pop(name, (self._most, now))
        level = min(self._most, level + (now - at) * self._per_second)
        self._levels[name] = level - (level >= 1), now
        if len(self._levels) > _MOST_ADDRESSES:
            self._levels.popitem(last=False)
        return level >= 1


@dataclass(slots=True)
class _Seen:
    """The data for the log line of a request."""

    status: int = 0
    is_over: bool = False
    name: str = "-"
    began: float = field(default_factory=time.monotonic)


class Shares:
    """A limit on how many units of a shared resource each client may use at once."""

    def __init__(self, most: int, what: str) -> None:
        self._most, self._what = most, what
        self._had = Counter[str]()

    @contextmanager
    def of_request(self, name: str) -> Iterator[Callable[[], None]]:
        """Provide a function that takes one unit for a client's request; the unit is released when the request ends.

        The function raises ApiRefusal if the client has reached the limit.
        """
        with ExitStack() as taken:

            def take() -> None:
                if self._had[name] >= self._most:
                    message = f"A token may have {self._most} {self._what} at once."
                    raise ApiRefusal(
                        429, "too-many", message, "Send it again when one of them is answered."
                    )
                self._had[name] += 1
                taken.callback(self._give_back, name)

            yield take

    def _give_back(self, name: str) -> None:
        self._had -= Counter([name])  # drops a name that has none


class HeldPages:
    """The bytes of pages that are read or being sent, by token, with a limit for each."""

    def __init__(self) -> None:
        self._held = Counter[str]()
        self._released: dict[str, asyncio.Event] = {}  # of tokens with readers that wait

    @contextmanager
    def of_request(self, name: str) -> Iterator[Hold]:
        """Provide the `Hold` of a token's request; what it still holds is released when the request ends."""
        own = Counter[str]()

        async def hold(size: int) -> Callable[[], None]:
            size = min(size, MOST_HELD)
            while self._held[name] + size > MOST_HELD:
                await self._released.setdefault(name, asyncio.Event()).wait()
            own[name] += size
            self._held[name] += size
            return lambda: release(size)

        def release(size: int) -> None:
            size = min(size, own[name])
            own[name] -= size
            self._held -= Counter({name: size})  # drops a name that has none
            if (released := self._released.pop(name, None)) is not None:
                released.set()

        try:
            yield hold
        finally:
            release(own[name])


class LargeBodies:
    """A limit on large bodies in memory, per token, because parsing one takes many times its size."""

    def __init__(self) -> None:
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._open = Shares(MOST_LARGE, f"requests of more than {_LARGE >> 10} KiB")

    @asynccontextmanager
    async def of_request(
        self, name: str, headers: Headers, receive: Receive, most: int
    ) -> AsyncIterator[Callable[[], None]]:
        """Wait until a request's body of up to `most` bytes may be read. Yield a function to call afterwards.

        Raises:
            ApiRefusal: the client has too many such requests that are not answered yet.
        """
        length = headers.get("content-length", "")
        is_short = "transfer-encoding" not in headers and not (
            length.isdecimal() and int(length) > _LARGE
        )
        if is_short or most <= _LARGE:
            yield lambda: None
            return
        slot = self._slots.setdefault(name, asyncio.Semaphore(_LARGE_AT_ONCE))
        with self._open.of_request(name) as begin:
            try:
                begin()
            except ApiRefusal:
                await _discard_body(receive, most)
                raise
            await slot.acquire()
            with ExitStack() as held:
                held.callback(slot.release)
                yield held.close


class Guard:
    """The outermost ASGI application, which checks requests."""

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenBook,
        sessions: Sessions,
        hosts: Iterable[str],
        log: logging.Logger,
    ) -> None:
        """Create the guard. `hosts` are the host names that clients use, with non-default ports."""
        self._app = app
        self._streams, self._running = (
            Shares(MOST_STREAMS, "streams"),
            Shares(MOST_REQUESTS, "requests"),
        )
        self._large, self._pages = LargeBodies(), HeldPages()
        self._tokens = tokens
        self._sessions = sessions
        self._hosts = frozenset(host.lower() for host in hosts)
        self._log = log
        self._requests = Buckets(_PER_SECOND, _AT_ONCE)
        self._wrong = Buckets(_WRONG_TOKENS / 60, _WRONG_TOKENS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _Seen()

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            body = message.get("body", b"")
            for at in range(
                _PIECE, len(body), _PIECE
            ):  # the server waits before each until the client took the last
                await send({**message, "body": body[at - _PIECE : at], "more_body": True})
            seen.is_over = message["type"] == "http.response.body" and not message.get(
                "more_body", False
            )
            await send(
                {**message, "body": body[(len(body) - 1) // _PIECE * _PIECE :]} if body else message
            )

        try:
            await self._pass_on(scope, receive, answered, seen)
        except KnapperError as error:
            if seen.status:  # the response has already begun
                raise
            response = failure(error)
            if response.status_code == 401:
                response.headers["WWW-Authenticate"] = "Bearer"
            await response(scope, receive, answered)
        finally:
            line = {
                "at": round(time.time(), 3),
                "from": (scope.get("client") or ("-", 0))[0],
                "who": seen.name,
                "method": scope["method"],
                "path": one_line(scope["path"], 200),
                "status": seen.status,
                "ms": round((time.monotonic() - seen.began) * 1000, 1),
            }
            self._log.info(json.dumps(line))

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, seen: _Seen) -> None:
        headers = Headers(scope=scope)
        address = (
            f"from {network((scope.get('client') or ('-', 0))[0])}"  # cannot be the name of a token
        )
        scope["identity"] = identity = await self._check_request(scope, headers, address)
        HAS_OWN_TOKEN.set(identity is not None and not identity.is_owner)
        seen.name = identity.name if identity else "-"
        name, most = (identity.name, MOST_BODY) if identity else (address, _MOST_OF_STRANGERS)
        with (
            self._running.of_request(name) as begin,
            self._streams.of_request(name) as scope["open_stream"],
            self._pages.of_request(name) as scope["hold"],
        ):
            begin()
            async with self._large.of_request(name, headers, receive, most) as scope["body_done"]:
                body = await _body(headers, receive, most)
                heard = _Heard(body, receive, partial(self._is_still, headers, identity))
                del body
                await self._app(scope, heard, send)
        if heard.is_cut_off and seen.status and not seen.is_over:
            await send({"type": "http.response.body"})

    async def _check_request(self, scope: Scope, headers: Headers, address: str) -> Identity | None:
        origin = self._origin_of(scope, headers)
        identity = await self._identity(headers, scope["method"], origin, address)
        path = scope["path"]
        if identity is not None and (known := scope.get("state", {}).get("known")):
            known(identity.name)  # the connection is authenticated
        if identity is None and not (path in _OPEN or path.startswith("/page/")):
            how = "Send the header Authorization: Bearer TOKEN (in a shell: export KNAPPER_TOKEN=TOKEN)"
            fix = f"{how}; make one with: knapper tokens add NAME --scope chat"
            raise ApiRefusal(401, "no-token", "This needs a token.", fix)
        if identity is LINKER and path != LINKS:
            raise ApiRefusal(403, "not-allowed", "This token can only request login links.")
        if not self._requests.take(identity.name if identity else address):
            raise ApiRefusal(429, "too-many", "Too many requests at once.", "Wait a second.")
        return identity

    def _origin_of(self, scope: Scope, headers: Headers) -> str | None:
        """Return the origin of a request, which must be one of our pages, or None if it has none.

        Raises:
            ApiRefusal: the request comes from another page, is for another host, or has a token in its URL.
        """
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            message = f"This server does not answer to the name `{one_line(host, 100)}`."
            raise ApiRefusal(
                421, "wrong-host", message, "Use its address, or start it with --allow-host NAME."
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host:
            raise ApiRefusal(403, "wrong-origin", "Pages of other sites cannot use this server.")
        # A browser may come from a page of another origin only by a link to our page.
        is_own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        is_visit = (
            headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
        if not is_own and not (
            is_visit and scope["method"] in _READS and scope["path"] in ("/", "/login")
        ):
            raise ApiRefusal(
                403,
                "wrong-origin",
                "Pages of other sites, or of other ports, cannot use this server.",
            )
        if b"token=" in scope.get("query_string", b"").lower():
            fix = "Send it as a header: Authorization: Bearer TOKEN"
            raise ApiRefusal(
                400, "token-in-address", "A token in an address ends up in logs: revoke it.", fix
            )
        return origin

    async def _identity(
        self, headers: Headers, method: str, origin: str | None, address: str
    ) -> Identity | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind:
            identity = await self._of_token(kind, token)
            if identity is None:
                if not self._wrong.take(address):
                    raise ApiRefusal(
                        429,
                        "too-many",
                        "Too many wrong tokens from this address.",
                        "Wait a minute.",
                    )
                raise ApiRefusal(
                    401,
                    "wrong-token",
                    "The token is wrong, expired or revoked.",
                    "knapper tokens list",
                )
            return identity
        # Browsers send the origin of a request: a request that changes something must come from our page.
        return self._of_page(headers) if method in _READS or origin is not None else None

    async def _of_token(self, kind: str, token: str) -> Identity | None:
        if kind.lower() != "bearer":
            return None
        return self._sessions.asks_for_links(token.strip()) or await self._tokens.identify(
            token.strip()
        )

    def _of_page(self, headers: Headers) -> Identity | None:
        # Other servers on the host may set the same cookie or malformed ones.
        pairs = [part.partition("=") for part in ";".join(headers.getlist("cookie")).split(";")]
        cookies = [
            value.strip() for name, _, value in pairs if name.strip() == self._sessions.cookie
        ]
        key = headers.get(KEY, "")
        return next(
            (owner for cookie in cookies if (owner := self._sessions.identify(cookie, key))), None
        )

    async def _is_still(self, headers: Headers, identity: Identity | None) -> bool:
        """Return whether a token or cookie is still valid; it counts as valid if the check fails."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        with suppress(KnapperError):
            return identity == (
                await self._of_token(kind, token) if kind else self._of_page(headers)
            )
        return True


class _Heard:
    """The `receive` function for the application: returns the body that was read, then the client's messages. When the
    client may no longer listen, it reports a disconnect and sets `is_cut_off`.
    """

    def __init__(
        self, body: bytes, receive: Receive, may_listen: Callable[[], Awaitable[bool]]
    ) -> None:
        self._body: bytes | None = body
        self._receive = receive
        self._may_listen = may_listen
        self.is_cut_off = False

    async def __call__(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while not self.is_cut_off:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    return await self._receive()
            self.is_cut_off = not await self._may_listen()
        return {"type": "http.disconnect"}


async def _body(headers: Headers, receive: Receive, most: int) -> bytes:
    if headers.get("content-encoding", "identity") != "identity":
        raise ApiRefusal(
            415,
            "compressed",
            "Compressed requests are not read.",
            "Send it without Content-Encoding.",
        )
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts, size, more = [], 0, True
    try:
        async with asyncio.timeout(_BODY_S):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ApiRefusal(400, "gone", "The request ended before its body did.")
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > most:
                    raise _too_large(most)
    except TimeoutError:
        raise ApiRefusal(408, "slow", f"The body took longer than {_BODY_S:g} s.") from None
    body = b"".join(parts)
    if await aside(size, has_more_values, body, MOST_VALUES):
        raise ApiRefusal(413, "too-large", f"A request may have {MOST_VALUES:,} values.")
    return body


async def _discard_body(receive: Receive, most: int) -> None:
    """Read a body piece by piece and keep none: a client that still sends it would not read the response."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_BODY_S):
            while size <= most:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _too_large(most: int) -> ApiRefusal:
    size = f"{most >> 20} MiB" if most == MOST_BODY else f"{most >> 10} KiB without a token"
    return ApiRefusal(413, "too-large", f"A request may have {size}.")


def network(address: str) -> str:
    """Return the address that represents one sender: an IPv4 address, or the network of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address) or ip.ipv4_mapped:
        return str(getattr(ip, "ipv4_mapped", None) or ip)
    return str(ipaddress.ip_network((ip, _NETWORK_BITS), strict=False))


@contextmanager
def access_log(path: Path) -> Iterator[logging.Logger]:
    """Open the access log: private, and at most two files of 8 MiB.

    Raises:
        WorkspaceError: it cannot be written, or is another name of a file, which may be anyone's.
    """
    try:
        os.close(open_plain(path, ADDING))
    except OSError as error:
        fix = "Remove it if you did not put it there, and check that there is room."
        raise WorkspaceError(f"`{path}` cannot be written: {error.strerror}.", fix=fix) from error
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=8 << 20, backupCount=1, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.Logger("knapper.access")  # separate from the process's logging
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        handler.close()
