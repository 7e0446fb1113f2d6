"""`self` in a function: each method is a request to the host, which may refuse it.

The body of a response of `self.fetch` is read on demand and decoded here, in the sandbox.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Self, cast

from ..wire.caps import MOST_STATE, PROGRESS_EVERY_S
from .channel import Channel
from .web import Body, Pairs, send

_READ = 64 << 10
_ENCODINGS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_FIRST_LINE = 200


class Headers(Mapping[str, str]):
    """Headers by case-insensitive name. Several of one name are joined by commas."""

    def __init__(self, pairs: Pairs) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._names.setdefault(name.lower(), name)
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values[name.lower()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        return list(self._values.get(name.lower(), ()))


class BodyText(str):
    """The text of a body: `response.text`, which can also be called, as `response.text()`, with an encoding or not."""

    __slots__ = ("_body",)
    _body: bytes

    def __new__(cls, body: bytes, encoding: str) -> Self:
        """Decode the body."""
        text = super().__new__(cls, body.decode(encoding, "replace"))
        text._body = body
        return text

    def __call__(self, encoding: str | None = None) -> str:
        """Return the text, decoded again if an encoding is named."""
        return self._body.decode(encoding, "replace") if encoding else str(self)


class Response:
    """A response with status, headers and URL; `read`, `text`, `json` or iteration fetch the body, once.

    `status_code`, `content` and `text` as an attribute exist because well-known HTTP clients have them.
    """

    def __init__(self, head: dict[str, Any], body: Body) -> None:
        self.status: int = head["status"]
        self.headers = Headers(head["headers"])
        self.url: str = head["url"]
        self._body = body
        packing = self.headers.get("content-encoding", "").strip().lower()
        self._pieces = _decode(body, packing, head["decoded"])
        self._left = b""
        self._whole: bytes | None = None

    @property
    def status_code(self) -> int:
        """The status, under the name that other clients use."""
        return self.status

    @property
    def ok(self) -> bool:
        """True if the status is a success."""
        return self.status < 400

    def raise_for_status(self) -> None:
        """Raise OSError if the status is a failure."""
        if not self.ok:
            raise OSError(f"{self.url} answered with status {self.status}")

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes of the body, or all of it without a size."""
        parts, have = [self._left], len(self._left)
        while (size < 0 or have < size) and (piece := next(self._pieces, b"")):
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        cut = len(data) if size < 0 else size
        self._left = data[cut:]
        return data[:cut]

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._left or next(self._pieces, b""):
            self._left = b""
            yield piece

    @property
    def content(self) -> bytes:
        """The whole body; it can be read repeatedly."""
        if self._whole is None:
            self._whole = self.read()
        return self._whole

    @property
    def text(self) -> BodyText:
        """The body as text, in the encoding of the response or UTF-8; `text(encoding)` decodes it again."""
        _, separator, remainder = self.headers.get("content-type", "").lower().partition("charset=")
        charset = remainder.partition(";")[0].strip(" \"'")
        try:
            is_known = bool(separator) and "".encode(charset) == b""
        except (LookupError, ValueError):
            is_known = False
        return BodyText(self.content, charset if is_known else "utf-8")

    def json(self) -> Any:  # any JSON from the server
        """Return the body as JSON. Raise ValueError, with the beginning of the body, if it is not JSON."""
        import json  # noqa: PLC0415 - a response of another kind does not need it

        data = self.read()
        try:
            return json.loads(data)
        except ValueError as error:
            begins = data[:_FIRST_LINE].decode("utf-8", "replace")
            raise ValueError(
                f"{self.url} answered {self.status} with no JSON ({error}): {begins!r}"
            ) from error

    def close(self) -> None:
        """Drop the unread rest of the body."""
        self._body.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Response {self.status} of {self.url}>"


def _decode(body: Body, packing: str, limit: int) -> Iterator[bytes]:
    """Yield the pieces of a body, decompressed. Raise OSError if they exceed the limit in bytes."""
    pieces, bits, size = iter(lambda: body.read(_READ), b""), _ENCODINGS.get(packing), 0
    for piece in pieces if bits is None else _inflate(pieces, bits):
        size += len(piece)
        if size > limit:
            body.close()
            raise OSError(f"the response unpacks to more than {limit} bytes")
        yield piece


def _inflate(pieces: Iterator[bytes], bits: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(bits)
    for piece in pieces:
        data = piece
        while data:
            if inflater.eof:
                inflater = zlib.decompressobj(bits)  # gzip may have several members
            try:
                plain = inflater.decompress(data, _READ)
            except zlib.error as error:
                raise OSError(f"the response is not packed as it says: {error}") from error
            data = inflater.unconsumed_tail or inflater.unused_data.lstrip(b"\0")
            if plain:
                yield plain
    if plain := inflater.flush():
        yield plain


def fetch(
    channel: Channel,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | str | None = None,
    timeout: float | None = None,
) -> Response:
    """Let the host make a request and return the response. The host follows redirects to granted hosts."""
    if not isinstance(body, bytes | str | None):
        raise TypeError(
            "the body of a request is bytes or text: json.dumps a value, and say so in Content-Type"
        )
    pairs = [[str(name), str(value)] for name, value in (headers or {}).items()]
    if "accept-encoding" not in {name.lower() for name, _ in pairs}:
        pairs.append(["Accept-Encoding", "gzip"])
    request = {
        "url": url,
        "method": method.upper(),
        "headers": pairs,
        "timeout": timeout,
        "follow": True,
    }
    return Response(
        *send(channel, request, body.encode() if isinstance(body, str) else body or b"")
    )


_OFFERED = "ask, confirm, progress, scratch, state, call, call_key, fetch, secret, now and memory"


class FunctionMemory:
    """The memory blocks that the function may access; each method is a request to the host."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def read(self, block: str) -> str:
        """Return a block's text."""
        return str(self._ask("read", block))

    def append(self, block: str, text: str) -> None:
        """Add text at the end of a block."""
        self._ask("append", block, text=text)

    def replace(self, block: str, old: str, new: str) -> None:
        """Replace the old text in a block with new text."""
        self._ask("replace", block, old=old, new=new)

    def write(self, block: str, text: str) -> None:
        """Replace the whole text of a block."""
        self._ask("write", block, text=text)

    def _ask(self, act: str, block: str, **arguments: str) -> Any:  # a value that can be sent
        return self._channel.request("memory", {"act": act, "block": block, **arguments})


def _json(value: Any) -> str:  # any value from function code
    """Return a state as JSON text. Raise ValueError if JSON cannot hold it or it is too large."""
    import json  # noqa: PLC0415 - few functions have a state

    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        is_same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"self.state takes what JSON can hold: {error}") from error
    if not is_same:
        raise ValueError(
            "self.state takes what JSON can hold: texts as keys, lists in place of tuples and sets"
        )
    try:  # the size that it has in the store, where a lone surrogate means that all of the text is escaped
        size = len(text.encode())
    except UnicodeEncodeError:
        size = len(json.dumps(value, separators=(",", ":")))
    if size > MOST_STATE:
        raise ValueError(
            f"self.state takes {MOST_STATE} bytes of JSON, and this is {size}: keep less, or a summary"
        )
    return text


class Context:
    """The requests that a function can make to the host while it runs, and its private folder."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self._channel = channel
        self._told_at = -PROGRESS_EVERY_S  # a clock of the component starts at 0
        self.scratch = scratch
        self.memory = FunctionMemory(channel)
        self._state: Any = None
        self._read_state: tuple[int, str] | None = (
            None  # version and text at its first read in the call
        )

    @property
    def state(self) -> Any:  # a value of JSON
        """A small JSON value that belongs to this function, `{}` at first. It is stored if the call returns."""
        if self._read_state is None:
            version, self._state = self._channel.request("state", {})
            self._read_state = version, _json(self._state)
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        _json(value)
        self.state  # noqa: B018 - read the old state with its version, so that no other call's change is lost
        self._state = value

    def begin(self) -> None:
        """Forget the state, so that the next call reads it again."""
        self._state, self._read_state = None, None

    def keep_state(self) -> None:
        """Send the state to the host if the call has changed it."""
        if self._read_state is None or (text := _json(self._state)) == self._read_state[1]:
            return
        import json  # noqa: PLC0415 - few functions have a state

        self._channel.request("state", {"value": json.loads(text), "version": self._read_state[0]})

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show the progress of the call. Reports beyond twenty per second are dropped."""
        now = time.monotonic()
        if done != total and now - self._told_at < PROGRESS_EVERY_S:
            return
        self._told_at = now
        self._channel.request("progress", {"done": done, "total": total, "note": str(note)})

    def call(self, function: str, /, **arguments: Any) -> Any:  # values that can be sent
        """Call another function of the workspace with these arguments and return its result."""
        return self._channel.request("call", {"function": function, "arguments": arguments})

    def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Let the host make a request and return the response, if the URL's host was granted to this function."""
        return fetch(self._channel, url, method=method, headers=headers, body=body, timeout=timeout)

    def secret(self, name: str) -> str:
        """Return a secret by its name, if it was granted to this function."""
        return str(self._channel.request("secret", {"name": name}))

    @property
    def call_key(self) -> str:
        """The key of this call, which stays the same if it is repeated after a crash: send it as `Idempotency-Key`."""
        return str(self._channel.request("call_key", {}))

    def ask(
        self,
        question: str,
        *,
        choices: Sequence[Any] = (),  # values that have a text
        type: Callable[[str], Any] = str,
        default: Any = None,
        after: float | None = None,
    ) -> Any:  # one of the choices, or a value of the type
        """Ask a person and return the answer: one of the choices, or a value of the type, such as `Decimal`.

        The call waits, at most an hour. Without an answer `after` so many seconds, the default is the answer.
        """
        texts = list(map(str, choices))
        name = getattr(type, "__name__", "")
        request = {"question": str(question), "choices": texts, "type": name, "after": after}
        request["default"] = None if default is None else str(default)
        answer = str(self._channel.request("ask", request))
        if texts:
            return choices[texts.index(answer)]
        return getattr(type, "fromisoformat", type)(answer)

    def confirm(
        self, question: str, *, default: bool | None = None, after: float | None = None
    ) -> bool:
        """Ask a person a question for a yes or a no, and return whether it is a yes."""
        words = {True: "yes", False: "no", None: None}
        answer = self.ask(question, choices=("yes", "no"), default=words[default], after=after)
        return bool(answer == "yes")

    def now(self) -> datetime:
        """Return the current time with its zone. A replay of this call gets the same time."""
        return cast("datetime", self._channel.request("now", {}))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"self has no {name!r}; it has {_OFFERED}")
