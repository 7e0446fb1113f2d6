"""`self` in a function: each method is a request to the host, which may refuse it."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, cast

from ..wire.caps import PROGRESS_EVERY_S
from .channel import Channel
from .response import Response, fetch

_OFFERED = "progress, scratch, call, fetch, secret, now and memory"


class FunctionMemory:
    """The memory blocks that the function may reach; each method is a request to the host."""

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

    def _ask(self, act: str, block: str, **arguments: str) -> Any:  # a value that crosses
        return self._channel.request("memory", {"act": act, "block": block, **arguments})


class Context:
    """The requests that a function may make of the host while it runs, and a folder of its own."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self._channel = channel
        self._told_at = 0.0
        self.scratch = scratch
        self.memory = FunctionMemory(channel)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show the progress of the call. Reports beyond twenty per second cost nothing."""
        now = time.monotonic()
        if done != total and now - self._told_at < PROGRESS_EVERY_S:
            return
        self._told_at = now
        self._channel.request("progress", {"done": done, "total": total, "note": str(note)})

    def call(self, function: str, /, **arguments: Any) -> Any:  # values that cross
        """Return the value of another function of the workspace for these arguments."""
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
        """Return the response to a request that the host makes, if the URL's host was granted to this function."""
        return fetch(self._channel, url, method=method, headers=headers, body=body, timeout=timeout)

    def secret(self, name: str) -> str:
        """Return a secret by its name, if it was granted to this function."""
        return str(self._channel.request("secret", {"name": name}))

    def now(self) -> datetime:
        """Return the time with its zone. A replay of this call gets the same time."""
        return cast("datetime", self._channel.request("now", {}))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"self has no {name!r}; it has {_OFFERED}")
