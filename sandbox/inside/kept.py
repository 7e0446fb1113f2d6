"""A stateful worker: one call after another in the same module, with names that keep their values."""

import sys
from pathlib import Path
from types import ModuleType

from ..wire.protocol import Frame
from .channel import Channel
from .edge import attempt
from .jobs import WorkerJobs, call_in, reply_of, surround


def serve(first: Frame, channel: Channel, scratch: Path) -> None:
    """Answer call after call until the host has no more."""
    state = _State(WorkerJobs(channel, scratch))
    job: Frame | None = first
    while job is not None:
        reply = state.reply(job)
        attempt(sys.stdout.flush)
        attempt(sys.stderr.flush)
        channel.reply(reply, job["result"])
        job = channel.hear()


class _State:
    """The module, imported by the first call."""

    def __init__(self, workshop: WorkerJobs) -> None:
        self._workshop = workshop
        self._module: ModuleType | None = None

    def reply(self, job: Frame) -> Frame:
        """Return the reply to one call."""
        return reply_of(lambda: self._call(job), self._workshop)

    def _call(self, job: Frame) -> Frame:
        surround(job)
        if self._module is None:
            self._module = self._workshop.load(job)
        return call_in(self._module, self._workshop, job)
