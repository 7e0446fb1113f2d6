"""Fetches over the call's own channel: the host connects, checks and verifies; bodies are sent in pieces."""

from typing import Any, Final, NoReturn

from .channel import Channel

PIECE: Final = 32 << 10  # bytes of a body in one frame, whatever the result may take
Pairs = list[list[str]]

_dropped: list[int] = []  # streams to be closed; a destructor may run in the middle of a request, and so makes none


class Body:
    """A response's body as the host passes it on."""

    def __init__(self, channel: Channel, stream: int | None) -> None:
        self._channel = channel
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return up to this many bytes, b"" at the end."""
        if self._stream is None or size <= 0:
            return b""
        piece: bytes = _checked(self._channel.request("fetch_read", {"stream": self._stream, "size": size}))
        if not piece:
            self._stream = None
        return piece

    def close(self) -> None:
        """Tell the host to drop what was not read."""
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                self._channel.request("fetch_close", {"stream": stream})
            except PermissionError:  # the host has closed it already: it failed, or took too long
                return

    def drop(self) -> None:
        """Close the body with the next request, for use where no request can be made."""
        stream, self._stream = self._stream, None
        if stream is not None:
            _dropped.append(stream)

    __del__ = drop


def send(channel: Channel, request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], Body]:  # values that cross
    """Return the head of the response and its body. Raise OSError if there is none."""
    while _dropped:
        Body(channel, _dropped.pop()).close()
    whole = len(body) - len(body) % PIECE
    for start in range(0, whole, PIECE):
        channel.request("fetch_send", {"data": body[start : start + PIECE]})
    answer = _checked(channel.request("fetch", {**request, "body": body[whole:]}))
    return answer, Body(channel, answer["stream"])


def _checked(answer: Any) -> Any:  # values that cross
    if isinstance(answer, dict) and "failed" in answer:
        _fail(answer["failed"], answer["message"])
    return answer


def _fail(kind: str, message: str) -> NoReturn:
    """Raise what the standard library would have raised on a connection of its own."""
    match kind:
        case "timeout":
            raise TimeoutError(message)
        case "connection":
            raise ConnectionError(message)
        case "tls":
            import ssl  # noqa: PLC0415 - only a function that met a bad certificate pays for it

            raise ssl.SSLError(message)
        case "name":
            import socket  # noqa: PLC0415

            raise socket.gaierror(socket.EAI_NONAME, message)
        case _:
            raise OSError(message)
