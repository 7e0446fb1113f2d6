"""Fetches a page that the user requested, by the rules for functions: every address is checked, no secrets are sent.

Redirects are checked, too. Private addresses are refused. This machine's own addresses are allowed only if the user
typed them: `localhost`, `127.0.0.1` or `[::1]`, and never through a redirect or another name.
"""

from collections.abc import Sequence
from typing import Any, Final

from agent_core.access.broker import Broker, FetchCaps
from agent_core.access.broker.exchange import Target, as_address, kind_of, read, resolve
from agent_core.access.call_exit import CallExit
from agent_core.base.untrusted import fence, one_line
from sandbox import RequestRefused

from .cutting import Unreadable
from .material import Material

_PIECE: Final = 64 << 10
_SAVE: Final = "If you trust it, save it as a file and add that."
_HEADERS: Final = [
    ["Accept", "text/html, text/*, application/json, application/pdf;q=0.9, */*;q=0.5"]
]


async def fetch(url: str, most: int, broker: Broker | None = None) -> Material:
    """Return the content of the URL.

    Raises:
        Unreadable: it is refused, fails, or is too large.
    """
    try:
        target = read(url, FetchCaps().url)
        address = as_address(target.host)
        # Whether the URL itself names this machine.
        own = target.host == "localhost" or (address is not None and address.is_loopback)
        _public(target.host, address, own=own)
        return await _fetch_public(url, target, own, broker or Broker(FetchCaps(response=most)))
    except RequestRefused as refused:
        raise Unreadable(f"It was not fetched: {refused}.") from refused


async def _fetch_public(url: str, target: Target, own: bool, parent_broker: Broker) -> Material:  # noqa: FBT001 - see `fetch`
    async def resolved(host: str, port: int) -> Sequence[str]:
        addresses = await (parent_broker.resolve or resolve)(host, port)
        for text in addresses:
            _public(host, as_address(text), own=own and host == target.host)
        return addresses

    async def is_elsewhere(place: str) -> bool:
        """Check whether a redirect may lead there: to any public address."""
        host = read(f"http://{place}/", FetchCaps().url).host
        if host == "localhost":
            raise Unreadable(f"It redirects to {host}, this machine.", fix=_SAVE)
        _public(host, as_address(host), own=False)
        return True

    broker = Broker(parent_broker.caps, resolved, parent_broker.tls, parent_broker.note)
    async with broker.session(
        "sources", (target.place,), CallExit(want_host=is_elsewhere)
    ) as session:
        head = await session.answer("fetch", {"url": url, "headers": _HEADERS, "follow": True})
        _require_answer(head)
        if head["status"] != 200:
            raise Unreadable(
                f"The server answered {head['status']} {one_line(head['reason'], 60)}."
            )
        data = bytearray()
        while head["stream"] is not None:
            piece = await session.answer("fetch_read", {"stream": head["stream"], "size": _PIECE})
            _require_answer(piece)
            if not piece:
                break
            data += piece
    headers = {name.lower(): value for name, value in reversed(head["headers"])}
    if headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise Unreadable(
            f"The server sent it compressed ({fence(headers['content-encoding'], 40)}), unasked."
        )
    notes = ("It was read from this machine, as the URL says.",) if own else ()
    return Material(
        bytes(data), headers.get("content-type", ""), head["url"].partition("?")[0], notes
    )


def _public(
    host: str, address: Any, *, own: bool
) -> None:  # Any: an address of either version, or None
    kind = kind_of(address) if address is not None else None
    if kind is not None and not (own and address.is_loopback):
        named = f"{host} is" if host == str(address) else f"{host} is {address},"
        raise Unreadable(f"{named} {kind} address, so it is not fetched.", fix=_SAVE)


def _require_answer(answer: Any) -> None:  # Any: the broker's answer
    if isinstance(answer, dict) and "failed" in answer:
        raise Unreadable(f"It could not be fetched: {one_line(answer['message'])}.")
