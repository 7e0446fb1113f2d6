"""One checked request of a worker, its redirects, and its failures."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urljoin

from sandbox import RequestRefused

from .broker import METHODS, FetchCaps
from .target import Target, read, shown

Headers: TypeAlias = tuple[tuple[str, str], ...]
Kind: TypeAlias = Literal["name", "connection", "tls", "timeout", "response"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# The connection is the broker's: a function may not set headers that frame a message or address the next hop.
_OURS = frozenset({"host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer"}) | {
    "transfer-encoding",
    "upgrade",
    "expect",
    "content-length",
    "http2-settings",
}
_PRIVATE = frozenset({"authorization", "cookie"})  # must not be sent to another origin
_OF_BODY = "content-"


class FetchFailed(Exception):
    """A fetch that was allowed but failed: a value for the worker, which raises the matching OSError."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request; `follows` tells whether the broker follows redirects."""

    method: str
    target: Target
    headers: Headers = ()
    body: bytes = b""
    follows: bool = False
    timeout_s: float = math.inf

    def redirected(self, location: str, status: int, limit: int) -> "FetchRequest":
        """Return the request that a response's Location asks for, by the rules of RFC 9110, 15.4."""
        try:
            url = urljoin(self.target.url, location)
        except ValueError as error:
            raise RequestRefused(f"{self.target.url} redirects to {shown(location)}, which is not a URL") from error
        target = read(url, limit)
        if (self.target.scheme, target.scheme) == ("https", "http"):
            raise RequestRefused(f"{self.target.url} redirects to {target.url}, out of TLS")
        order = replace(self, target=target)
        if (status == 303 and self.method != "HEAD") or (status in {301, 302} and self.method == "POST"):
            order = replace(order, method="GET", body=b"", headers=without(order.headers, prefix=_OF_BODY))
        is_same = (target.scheme, target.host, target.port) == (self.target.scheme, self.target.host, self.target.port)
        return order if is_same else replace(order, headers=without(order.headers, _PRIVATE))


def take(
    arguments: Mapping[str, Any], before: bytes, caps: FetchCaps
) -> FetchRequest:  # Any: values that cross the sandbox
    """Return the request in a worker's untrusted arguments; `before` is the part of the body that was sent earlier.

    Raises:
        RequestRefused: it cannot be sent.
    """
    method, body = arguments.get("method", "GET"), arguments.get("body", b"")
    if not isinstance(method, str) or method not in METHODS:
        raise RequestRefused(f"the method is one of {', '.join(sorted(METHODS))}")
    if not isinstance(body, bytes) or len(before) + len(body) > caps.request:
        raise RequestRefused(f"the body of a request is bytes, {caps.request} of them at most")
    target = read(arguments.get("url"), caps.url)
    headers = headers_of(arguments.get("headers", []), caps.headers)
    timeout = arguments.get("timeout")
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise RequestRefused("a timeout is seconds, more than 0")
    timeout_s = math.inf if timeout is None else float(min(timeout, 1e9))
    return FetchRequest(method, target, headers, before + body, arguments.get("follow") is True, timeout_s)


def headers_of(pairs: object, limit: int) -> Headers:
    """Return the headers to send unchanged, from pairs of text."""
    if not isinstance(pairs, list):
        raise RequestRefused("headers are a list of pairs")
    headers = tuple(_header(pair) for pair in pairs)
    if sum(len(name) + len(value) + 4 for name, value in headers) > limit:
        raise RequestRefused(f"the headers of a request may take {limit} bytes")
    return without(headers, _OURS)


def without(headers: Headers, names: frozenset[str] = frozenset(), prefix: str = "\n") -> Headers:
    """Return the headers except those with these names, or with names that start with the prefix."""
    return tuple(pair for pair in headers if pair[0].lower() not in names and not pair[0].lower().startswith(prefix))


def _header(pair: object) -> tuple[str, str]:
    match pair:
        case [str(name), str(value)] if _NAME.fullmatch(name) and _VALUE.fullmatch(value):
            return name, value.strip(" \t")
        case [str(name), str()]:
            raise RequestRefused(
                f"the header {shown(name)} holds what a header cannot hold: a line break, a control"
                " character, or text beyond Latin-1"
            )
        case _:
            raise RequestRefused("a header is a pair of texts, its name and its value")
