"""A worker that goes on: one call after another in the same module, whose names keep what they hold."""

import sys
from pathlib import Path
from types import ModuleType

from ..protocol import Frame
from .channel import Channel
from .edge import attempt
from .jobs import Workshop, call_in, reply_of, surround


def serve(first: Frame, channel: Channel, scratch: Path) -> None:
    """Answer call after call until the host has no more."""
    state = _State(Workshop(channel, scratch))
    job: Frame | None = first
    while job is not None:
        reply = state.reply(job)
        attempt(sys.stdout.flush)
        attempt(sys.stderr.flush)
        channel.reply(reply, job["result"])
        job = channel.hear()


class _State:
    """The module, imported by the first call."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._module: ModuleType | None = None

    def reply(self, job: Frame) -> Frame:
        """The reply to one call."""
        return reply_of(lambda: self._call(job), self._workshop)

    def _call(self, job: Frame) -> Frame:
        surround(job)
        if self._module is None:
            self._module = self._workshop.load(job)
        return call_in(self._module, self._workshop, job)
