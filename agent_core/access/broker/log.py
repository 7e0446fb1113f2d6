"""The log of outgoing requests for the user: one line per request, in a private file of limited size."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_core.base import machine
from agent_core.base.untrusted import one_line

NAME: Final = "requests.log"
MOST_BYTES: Final = 1 << 20
_LONGEST: Final = 4_000


class RequestLog:
    """Appends to `requests.log`; a full log becomes `requests.log.1` and replaces the previous one."""

    def __init__(self, folder: Path, clean: Callable[[str], str], now: Callable[[], float]) -> None:
        self._path = folder / NAME
        self._clean = clean
        self._now = now

    def __call__(self, text: str) -> None:
        """Write one line; if that fails, as on a full disk, the request continues without it."""
        when = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        line = self._clean(f"{when.replace('+00:00', 'Z')} {text}")
        with suppress(OSError):
            data = f"{one_line(line, _LONGEST)}\n".encode()
            descriptor = self._open_with_room(len(data))
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)

    def _open_with_room(self, more: int) -> int:
        descriptor = self._open()
        machine.lock(descriptor)  # of two processes, only one rotates the file
        if os.fstat(descriptor).st_size + more <= MOST_BYTES:
            return descriptor
        try:
            if os.path.samestat(os.fstat(descriptor), os.lstat(self._path)):
                self._path.replace(self._path.with_name(f"{NAME}.1"))
            return self._open()
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.CLOEXEC | machine.NOFOLLOW, 0o600)
