"""`self` in a function: each method is a request to the host, which may refuse it."""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, cast

from ..caps import PROGRESS_EVERY_S
from .channel import Channel
from .response import Response, fetch

_OFFERED = "progress, scratch, call, fetch, secret, now and memory"


class Memory:
    """The memory blocks that the function may reach; each method is a request to the host."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def read(self, block: str) -> str:
        """A block's text."""
        return str(self._ask("read", block))

    def append(self, block: str, text: str) -> None:
        """Add text at a block's end."""
        self._ask("append", block, text=text)

    def replace(self, block: str, old: str, new: str) -> None:
        """Put new text where the old one stands."""
        self._ask("replace", block, old=old, new=new)

    def write(self, block: str, text: str) -> None:
        """Give a block another text."""
        self._ask("write", block, text=text)

    def _ask(self, act: str, block: str, **given: str) -> Any:  # a value that crosses
        return self._channel.request("memory", {"act": act, "block": block, **given})


class Context:
    """What a function may ask of the host while it runs, and a folder of its own."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self._channel = channel
        self._told_at = 0.0
        self.scratch = scratch
        self.memory = Memory(channel)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show how far the call is; telling more often than twenty times a second costs nothing."""
        now = time.monotonic()
        if done != total and now - self._told_at < PROGRESS_EVERY_S:
            return
        self._told_at = now
        self._channel.request("progress", {"done": done, "total": total, "note": str(note)})

    def call(self, function: str, /, **arguments: Any) -> Any:  # values that cross
        """The value that another function of the workspace gives for these arguments."""
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
        """The response to a request that the host makes, if its host was granted to this function."""
        return fetch(self._channel, url, method=method, headers=headers, body=body, timeout=timeout)

    def secret(self, name: str) -> str:
        """A secret by its name, if this function was granted it."""
        return str(self._channel.request("secret", {"name": name}))

    def now(self) -> datetime:
        """The time, with its zone; a replay of this call is given the same."""
        return cast("datetime", self._channel.request("now", {}))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"self has no {name!r}; it has {_OFFERED}")
