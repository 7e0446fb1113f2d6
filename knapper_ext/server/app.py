"""The HTTP server: routes, the guard in front of them, and the serving process."""

import asyncio
import errno
import gc
import ipaddress
import re
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_core import __version__
from agent_core.api import (
    agent_operations,
    page_operations,
    settings_operations,
    stop_operations,
    workspace_operations,
)
from agent_core.api.agent_host import AgentHost, Rooms, opened_rooms
from agent_core.api.http_door import HttpDoor, HttpRoute, open_http_doors
from agent_core.api.identity import NotAllowed, Sessions, TokenBook
from agent_core.api.operations import ApiOperation, Nothing, api_of
from agent_core.api.serving_files import announced
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.own_installation import add_extra
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line
from agent_core.operations import functions  # noqa: F401 - its operations are methods
from agent_core.operations.operation import all_operations
from agent_core.storage import prepare_state_dir
from agent_core.workspace.workspace import Workspace
from sandbox.wire.strict_json import MESSAGE, Malformed, read_json

from .guard import LINKS, MOST_REQUESTS, Guard, access_log, network
from .page_files import PAGE, PageFiles
from .picture_door import PATH as PICTURE_PATH
from .picture_door import PictureDoor
from .responses import DoorEntry, answered, error_response, failure, json_response

if TYPE_CHECKING:
    from .metrics import Metrics


# Login of a browser: an identity with all permissions creates a link, which the page behind it uses once.


class LoginDoor:
    """Creates login links, and exchanges a link for a session cookie and its key."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def link(self, url: str) -> str:
        """Return a login link for the server at this URL."""
        return f"{url}/login?code={self._sessions.link()}"

    async def new_link(self, request: Request) -> Response:
        """Respond with a login link, if the identity has all permissions of the page."""
        identity = request.scope["identity"]
        if not identity.may_log_in:
            message = (
                f"The page can do everything, so its links need all scopes and agents; "
                f"`{identity.name}` has less."
            )
            return failure(NotAllowed(message, fix="Type `knapper login` where the workspace is."))
        return json_response(
            {"login": self.link(f"{request.url.scheme}://{request.headers['host']}")}
        )

    async def log_in(self, request: Request) -> Response:
        """Respond with the key of a new session and set its cookie; the request body has the code of a link.

        This is not a GET, so that a program that previews a link before a person opens it does not use it up.
        """
        try:
            value = read_json(await request.body(), MESSAGE)
        except Malformed:
            value = None
        code = value.get("code") if isinstance(value, dict) else None
        given = self._sessions.log_in(code) if isinstance(code, str) else None
        if given is None:
            message = "This login link was used already, or is too old."
            return error_response(
                403, "used-link", message, "Another one, where the workspace is: knapper login"
            )
        cookie, key = given
        answer = json_response({"key": key})
        name, is_secure = self._sessions.cookie, request.url.scheme == "https"
        answer.set_cookie(
            name, cookie, httponly=True, samesite="strict", secure=is_secure, path="/"
        )
        return answer


_SUBJECTS: Final = (
    agent_operations,
    page_operations,
    settings_operations,
    stop_operations,
    workspace_operations,
)
OPERATIONS: Final = [
    each for module in _SUBJECTS for each in vars(module).values() if isinstance(each, ApiOperation)
]
OPERATIONS.extend(map(api_of, all_operations()))
OPERATIONS.sort(key=attrgetter("path", "method"))
"""All operations by path; a fixed part comes before a parameter in its place."""
_GRACE_S: Final = 10.0
_HOST: Final = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?")
_LATE: Final = (
    "agent_core.model.client",
    "agent_core.functions.search",
)  # needed by the first message
_HEADERS: Final = 32 << 10  # bytes of a request's head
_HEAD_S: Final = 15.0  # timeout for the head of a request
_FREE_PIECES: Final = 512  # allowed pieces of a body
_PIECE: Final = 512  # one more piece is allowed per this many bytes
_MOST_CONNECTIONS: Final = 1_000
_MOST_STRANGERS: Final = 500  # connections without a valid token so far
_OF_AN_ADDRESS: Final = 100  # of these, per address
_GRACE_OF_STRANGERS_S: Final = 5.0  # in which a burst of connections can show its token
_MOST_KNOWN: Final = 400  # connections with a valid token


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a server: `names` are additional host names that clients use; `spans` turns on OpenTelemetry."""

    host: str = "127.0.0.1"
    port: int = 8700
    certificate: str = ""
    key: str = ""
    is_behind_proxy: bool = False
    names: tuple[str, ...] = ()
    spans: bool = False

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the server."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Doors:
    """The open server: its application, agents, URL, login link, and the doors that extensions add."""

    app: ASGIApp
    host: AgentHost
    url: str
    login: str
    added: Sequence[HttpDoor]

    def end_streams(self) -> None:
        """End the streams of all clients."""
        self.host.end_streams()
        for door in self.added:
            door.end_streams()


@asynccontextmanager
async def opened_doors(
    workspace: Workspace, options: ServeOptions, port: int
) -> AsyncIterator[Doors]:
    """Open the API of a workspace and run its agents' due turns while the block runs."""
    state = prepare_state_dir(workspace.root)
    url = f"{'https' if options.certificate else 'http'}://{_authority(options.host, port)}"
    tokens = TokenBook(workspace.store, time.time)
    sessions = Sessions(time.monotonic, port)
    login = LoginDoor(sessions)
    with (
        access_log(state / "access.log") as log,
        announced(state, url, sessions.token, options.certificate),
    ):
        async with AsyncExitStack() as stack:
            spans = None
            if options.spans:
                from .tracing import Spans  # noqa: PLC0415 - an optional dependency

                spans = await stack.enter_async_context(aclosing(Spans()))
            rooms = await stack.enter_async_context(opened_rooms(workspace, _GRACE_S))
            doors = open_http_doors(rooms)
            for door in doors:
                await stack.enter_async_context(door.opened())
            rooms.host.hearers += [spans.hear] if spans else []
            own = {options.host, *(("127.0.0.1", "localhost", "::1") if options.is_local else ())}
            usual = 443 if options.certificate else 80
            with_ports = [_authority(name, port) for name in own]
            bare = [_authority(name) for name in own] if port == usual else []
            guard = Guard(
                application(rooms, login, doors),
                tokens,
                sessions,
                [*with_ports, *bare, *options.names],
                log,
            )
            yield Doors(guard, rooms.host, url, login.link(url), doors)


def application(rooms: Rooms, login: LoginDoor, http_doors: Iterable[HttpDoor]) -> Starlette:
    """Return the application with all routes, without the guard that must wrap it."""
    document = openapi(OPERATIONS)

    async def described(_: Request) -> Response:
        return json_response(document)

    routes = [
        Route(one.path, partial(answered, one, rooms), methods=[one.method]) for one in OPERATIONS
    ]
    routes += [Route("/openapi.json", described), Route("/login", login.log_in, methods=["POST"])]
    routes += [Route(LINKS, login.new_link, methods=["POST"])]
    pages = PageFiles.read()
    routes += [Route(address, pages.first) for address in ("/", "/login")]
    routes.append(Route(f"{PAGE}/{{name:path}}", pages.part))
    routes += [Route(PICTURE_PATH, PictureDoor(rooms).answer, methods=["GET"])]
    routes += [Route("/metrics", MetricsDoor(rooms.host).answer, methods=["GET"])]
    for door in http_doors:
        for one in door.routes():
            methods = [*one.methods] if isinstance(one, HttpRoute) else None
            routes.append(Route(one.path, DoorEntry(door, one, rooms), methods=methods))
    return Starlette(routes=routes, exception_handlers={HTTPException: _refuse})


async def serve(
    workspace: Workspace,
    options: ServeOptions,
    tell: Callable[[Doors], None],
    stopping: asyncio.Event,
) -> None:
    """Serve until `stopping` is set; `tell` is called with the open server before the first request.

    Raises:
        UsageError: the address or the certificate cannot be used.
    """
    sock = _bind(options)
    async with opened_doors(workspace, options, sock.getsockname()[1]) as doors:
        config = uvicorn.Config(
            doors.app,
            http=partial(_PatientProtocol, None if options.is_behind_proxy else Crowds()),  # type: ignore[arg-type]  # it is only called
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # malformed requests of strangers need not reach the terminal
            access_log=False,
            server_header=False,
            proxy_headers=options.is_behind_proxy,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=int(_GRACE_S),
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_HEADERS,
            ssl_certfile=options.certificate or None,
            ssl_keyfile=options.key or None,
        )
        try:
            config.load()  # before anything is told
        except OSError as error:
            sock.close()
            why = f"The certificate and its key cannot be used: {error.strerror or error}."
            raise UsageError(
                why, fix="Give files in the form PEM, and the key that belongs to the certificate."
            ) from error
        server = _Server(config)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[sock]))
            tell(doors)
            for module in _LATE:
                await asyncio.to_thread(import_module, module)
            gc.freeze()  # loaded modules stay: scanning them in every collection would block the event loop
            await stopping.wait()
            doors.end_streams()
            server.should_exit = True


class _Server(uvicorn.Server):
    """A server that leaves signal handling to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing while the block runs."""
        yield


class _BoundedRequest(h11.Connection):
    """A parser of requests that limits the size of each head and the number of pieces of each body.

    h11 limits only a head that is still incomplete. Each piece of a body has a fixed cost, however small it is, and
    many that arrive at once block the event loop.
    """

    _pieces = _bytes = 0

    def next_event(self) -> Any:  # Any: as in h11
        """Return the next event."""
        is_head = self.their_state is h11.IDLE
        before = len(self.trailing_data[0]) if is_head else 0
        event = super().next_event()
        if is_head:
            self._pieces = self._bytes = 0
            if before - len(self.trailing_data[0]) > _HEADERS:
                raise h11.RemoteProtocolError("The head is too long.", error_status_hint=431)
        elif isinstance(event, h11.Data):
            self._pieces, self._bytes = self._pieces + 1, self._bytes + len(event.data)
            if self._pieces > _FREE_PIECES + self._bytes / _PIECE:
                raise h11.RemoteProtocolError("The body comes in too many pieces.")
        return event


class Crowd:
    """Open connections by owner, with a limit per owner and a total limit.

    When an owner exceeds its limit, its oldest connection ends; when the total is exceeded, the oldest one of the
    owner with the most ends. So a new client always gets in, and an owner of many connections harms only itself. A
    connection counts for its owner's limit when it is `grace_s` old: by then it may have another owner.
    """

    def __init__(self, most: int, of_one: int, grace_s: float = 0) -> None:
        self._most, self._of_one, self._grace_s = most, of_one, grace_s
        self._owners: dict[_PatientProtocol, str] = {}  # the oldest connection first

    def add(self, owner: str, connection: "_PatientProtocol") -> None:
        """Add a connection, and end the oldest one if a limit is exceeded."""
        self._owners[connection] = owner
        if len(self._owners) > self._most:
            [(crowd, _)] = Counter(self._owners.values()).most_common(1)
            self._of(crowd)[0].end()
        if self._grace_s:
            connection.loop.call_later(self._grace_s, self._enforce_limit, connection)
        else:
            self._enforce_limit(connection)

    def _enforce_limit(self, connection: "_PatientProtocol") -> None:
        """End the owner's oldest connection if there are too many up to this one."""
        if connection in self._owners:
            of_owner = self._of(self._owners[connection])
            if of_owner.index(connection) >= self._of_one:
                of_owner[0].end()

    def _of(self, owner: str) -> "list[_PatientProtocol]":
        return [each for each, name in self._owners.items() if name == owner]

    def drop(self, connection: "_PatientProtocol") -> None:
        """Remove a connection that has ended or changed its owner."""
        self._owners.pop(connection, None)


@dataclass(frozen=True, slots=True)
class Crowds:
    """Connections without a valid token so far, by address, and those with one, by token."""

    strangers: Crowd = field(
        default_factory=lambda: Crowd(_MOST_STRANGERS, _OF_AN_ADDRESS, _GRACE_OF_STRANGERS_S)
    )
    known: Crowd = field(default_factory=lambda: Crowd(_MOST_KNOWN, MOST_REQUESTS))


class _PatientProtocol(H11Protocol):
    """One connection, closed if the head of a request does not arrive in time; uvicorn would wait forever."""

    _ends: asyncio.TimerHandle | None = None

    def __init__(
        self, crowds: Crowds | None, *given: Any, **named: Any
    ) -> None:  # Any: as in uvicorn
        super().__init__(*given, **named)
        self.conn = _BoundedRequest(h11.SERVER, _HEADERS)
        self._crowds = crowds
        self._place: tuple[Crowd, str] | None = None
        self.app_state = {**self.app_state, "known": self._note_known}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the timeout for the head of a request."""
        super().connection_made(transport)
        self._watch()
        if self._crowds is not None:
            self._stand(self._crowds.strangers, network(self.client[0] if self.client else ""))

    def data_received(self, data: bytes) -> None:
        """Process data; the timeout continues until the head is complete."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout and remove the connection from its crowd."""
        super().connection_lost(exc)
        self._stop()
        self._leave()

    def send_400_response(self, msg: str) -> None:
        """Respond to malformed HTTP, unless a response has begun, and close the connection."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # the running handler can no longer respond
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def end(self) -> None:
        """Abort the connection."""
        self._leave()
        self.transport.abort()

    def _note_known(self, token: str) -> None:
        """Count the connection under its valid token from now on."""
        if self._crowds is not None and not self.transport.is_closing():
            self._stand(self._crowds.known, token)

    def _stand(self, crowd: Crowd, owner: str) -> None:
        if self._place != (crowd, owner):
            self._leave()
            self._place = crowd, owner
            crowd.add(owner, self)

    def _leave(self) -> None:
        if self._place is not None:
            self._place[0].drop(self)
            self._place = None

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._ends is None:
            self._ends = self.loop.call_later(_HEAD_S, self.transport.close)

    def _stop(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None


async def must_be_safe(workspace: Workspace, options: ServeOptions) -> str:
    """Return a warning about the address, or "".

    Raises:
        UsageError: other machines can reach the server, and there is no token; or an additional name is none.
    """
    if wrong := next((name for name in options.names if not _HOST.fullmatch(name)), None):
        raise UsageError(
            f"{one_line(wrong, 200)} is no name of a host.", fix="Write it as NAME or NAME:PORT."
        )
    if options.is_local:
        return ""
    if not await workspace.store.tokens():
        fix = "Make one first: knapper tokens add NAME --scope chat --scope read"
        raise UsageError(
            f"{options.host} can be reached by others, and there is no token.", fix=fix
        )
    if options.certificate or options.is_behind_proxy:
        return ""
    return "Tokens travel in clear text: give --tls-cert and --tls-key, or --behind-proxy if a proxy adds TLS."


def _bind(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; without it, a body waits until its head is acknowledged.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((options.host, options.port))
    except OSError as error:
        sock.close()
        is_taken = error.errno == errno.EADDRINUSE
        why = "another program uses it" if is_taken else (error.strerror or str(error))
        fix = "Choose another with --port, or --port 0 for any."
        raise UsageError(
            f"{options.host}:{options.port} cannot be served: {why}.", fix=fix
        ) from error
    sock.listen(512)
    sock.setblocking(False)
    return sock


def _authority(host: str, port: int | None = None) -> str:
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "There is nothing at this address." if error.status_code == 404 else str(error.detail)
    fix = "GET /openapi.json lists what there is."
    return error_response(error.status_code, "no-route", message, fix)


# `/metrics`: numbers for Prometheus, for tokens with the scope `read` for all agents. Counting starts with the first
# request, so that only servers with a collector pay for the package `prometheus-client`.

MISSING: Final = "The package prometheus-client is missing."


class MetricsDoor:
    """The metrics of one server."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._metrics: Metrics | None = None
        self._opening = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        try:
            identity = request.scope["identity"]
            identity.needs("read")
            if identity.agents:
                fix = "Make one without --agent: knapper tokens add NAME --scope read"
                raise NotAllowed(
                    "These numbers cover all agents, but this token is limited to some.", fix=fix
                )
        except KnapperError as error:
            return failure(error)
        if find_spec("prometheus_client") is None:
            return error_response(404, "no-metrics", MISSING, f"Type: {add_extra('metrics')}")
        async with self._opening:
            if self._metrics is None:
                module = await asyncio.to_thread(import_module, f"{__package__}.metrics")
                made: Metrics = module.Metrics(self._host.workspace)
                self._metrics = made
                self._host.hearers.append(made.hear)
        text, kind = await asyncio.to_thread(self._metrics.text, request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": kind})


# The OpenAPI document, generated from the same operations and models that validate requests.

Json = dict[str, Any]  # Any: JSON
_REFS: Final = "#/components/schemas/{model}"
_ERROR: Final[Json] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "fix": {"type": ["string", "null"]},
                "problems": {"type": "array", "items": {"type": "object"}},
            },
        }
    },
}


def openapi(operations: Iterable[ApiOperation]) -> Json:
    """Return the OpenAPI document."""
    schemas: Json = {"Error": _ERROR}
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(
            operation, schemas
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Knapper", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _describe(operation: ApiOperation, schemas: Json) -> Json:
    kind = "text/event-stream" if operation.streams else "application/json"
    schema: Json = {"type": "string"} if operation.streams else {"type": "object"}
    answers = {
        str(operation.status): {
            "description": operation.summary,
            "content": {kind: {"schema": schema}},
        },
        "default": {
            "description": "What went wrong.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        },
    }
    query = operation.query.model_json_schema(ref_template=_REFS)
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.names
    ]
    parameters += (
        {"name": name, "in": "query", "required": name in query.get("required", []), "schema": part}
        for name, part in query.get("properties", {}).items()
    )
    described: Json = {
        "operationId": f"{operation.method.lower()}_{operation.handler.__name__}",
        "summary": operation.summary,
        "description": f"{(operation.handler.__doc__ or '').strip()} Scopes: {' or '.join(operation.scopes)}.",
        "parameters": parameters,
        "responses": answers,
    }
    if operation.body is not Nothing:
        name = operation.body.__name__
        schema = operation.body.model_json_schema(ref_template=_REFS)
        schemas |= schema.pop("$defs", {}) | {name: schema}
        content = {"application/json": {"schema": {"$ref": _REFS.format(model=name)}}}
        described["requestBody"] = {"required": True, "content": content}
    return described
