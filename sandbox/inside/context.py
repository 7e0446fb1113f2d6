"""`self` in a function: each method is a request to the host, which may refuse it."""

import time
from pathlib import Path
from typing import Any, NoReturn

from .channel import Channel

_PROGRESS_EVERY_S = 0.05
_GRANTS = {"fetch": "network", "secret": "secret", "memory": "memory"}


class Context:
    """What a function may ask of the host while it runs, and a folder of its own."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        self._channel = channel
        self._told_at = 0.0
        self.scratch = scratch

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show how far the call is; telling more often than twenty times a second costs nothing."""
        now = time.monotonic()
        if done != total and now - self._told_at < _PROGRESS_EVERY_S:
            return
        self._told_at = now
        self._channel.request("progress", {"done": done, "total": total, "note": str(note)})

    def call(self, function: str, /, **arguments: Any) -> Any:  # values that cross
        """The value that another function of the workspace gives for these arguments."""
        return self._channel.request("call", {"function": function, "arguments": arguments})

    def __getattr__(self, name: str) -> NoReturn:
        grant = _GRANTS.get(name)
        if grant is None:
            raise AttributeError(f"self has no {name!r}; it has progress, scratch and call")
        raise PermissionError(f"self.{name} needs the grant {grant!r}, and grants come in a later release")
