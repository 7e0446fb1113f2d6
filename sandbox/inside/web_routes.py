"""HTTP clients with the host in place of a network, from the moment that they are imported.

`urllib.request` goes through `http.client`, `requests` through `urllib3`, `httpx` through `httpcore`. What imports
none of them pays for nothing. Clients on asyncio get an error that says so.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from .channel import Channel
from .web_socket import WebSocket

_ASYNC = (
    "clients on asyncio have no network here: fetch with self.fetch, urllib.request, or a package that does not wait"
    " with await (requests, httpx.Client)"
)


def install(channel: Channel) -> None:
    """Route clients that are imported already, and those imported later."""
    for name, route in _ROUTES.items():
        if (module := sys.modules.get(name)) is not None:
            route(module, channel)
    sys.meta_path[:] = [_Finder(channel), *(finder for finder in sys.meta_path if not isinstance(finder, _Finder))]


class _Finder:
    """Finder that lets the others find a module, and adds the route to it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is routed, None for all others."""
        route = _ROUTES.get(name) or (_urllib3 if name.endswith(_VENDORED) else None)
        if route is None:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            self._add(spec.loader, route)
        return spec

    def _add(self, loader: Any, route: "Route") -> None:  # Any: the method of an instance is replaced
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            route(module, self._channel)

        loader.exec_module = exec_module


Route = Callable[[Any, Channel], None]  # Any: a module of somebody else's


def _http_client(module: Any, channel: Channel) -> None:
    _connect(channel, module.HTTPConnection, secure=False)
    if hasattr(module, "HTTPSConnection"):
        _connect(channel, module.HTTPSConnection, secure=True)


def _urllib3(module: Any, channel: Channel) -> None:
    _connect(channel, module.HTTPConnection, secure=False)
    _connect(channel, module.HTTPSConnection, secure=True)


def _connect(channel: Channel, kind: Any, *, secure: bool) -> None:
    def connect(self: Any) -> None:
        if getattr(self, "_tunnel_host", None) or getattr(self, "proxy", None):
            raise PermissionError("there are no proxies here: the host fetches directly, from what was granted")
        self.sock = WebSocket(channel, (self.host, self.port), secure=secure, timeout=self.timeout)
        self.is_verified = True  # the host verifies, and urllib3 would warn

    kind.connect = connect


def _httpcore(module: Any, channel: Channel) -> None:
    def connect_tcp(_self: Any, host: str, port: int, timeout: float | None = None, *_args: Any, **_more: Any) -> Any:
        return _Stream(WebSocket(channel, (host, port), secure=False, timeout=timeout))

    module.SyncBackend.connect_tcp = connect_tcp


class _Stream:
    """A network stream in the terms of httpcore."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._socket.settimeout(timeout)
        self._socket.sendall(buffer)

    def start_tls(self, ssl_context: object, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        self._socket.start_tls()
        return self

    def get_extra_info(self, info: str) -> None:
        return None

    def close(self) -> None:
        self._socket.close()


def _asyncio(module: Any, _channel: Channel) -> None:
    async def refuse(*_arguments: Any, **_options: Any) -> NoReturn:
        raise PermissionError(_ASYNC)

    module.BaseEventLoop.create_connection = module.BaseEventLoop.getaddrinfo = refuse


_VENDORED = ".urllib3.connection"
_ROUTES: dict[str, Route] = {
    "http.client": _http_client,
    "urllib3.connection": _urllib3,
    "httpcore._backends.sync": _httpcore,
    "httpcore2._backends.sync": _httpcore,
    "asyncio.base_events": _asyncio,
}
