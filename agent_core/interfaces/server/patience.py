"""Connections on which the head of a request does not come are closed: uvicorn itself would wait for it forever."""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 15.0
"""Seconds for the head of a request, from its first byte or from the connection."""


class PatientProtocol(H11Protocol):
    """One connection. As long as it waits for a whole head, its time runs."""

    _ends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what came, and go on waiting if it is no whole head."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._ends is None:
            self._ends = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop(self) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None
