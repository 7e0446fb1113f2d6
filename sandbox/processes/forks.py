"""The host's control of a zygote that imports packages: it forks only when ordered to, and is stopped between calls.

The zygote's filter asks here about each fork. Leave is given once for each order; a fork that nobody ordered fails as
it does in a worker. What the package's code does with its leave is looked at too: each must come back as a new worker.
"""

import asyncio
import os
import select
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from .usage import pid_of, threads_of

STILL_S: Final = 0.05  # after which a zygote that stands still
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV and _SEND
_QUESTION: Final = 80  # bytes, which begin with a number that the answer repeats
_ANSWER: Final = struct.Struct("=QqiI")  # that number, a value, an error, flags
_GO_ON: Final = 1
_REFUSED: Final = -1  # EPERM
_MOST_REFUSED: Final = 1000  # forks without an order, after which a zygote is ended


class Forks:
    """The forks of one zygote, from before it imports anything. `due` counts the workers that are still to come."""

    def __init__(self, listener: int, pidfd: int, due: Callable[[], int], give_up: Callable[[], None]) -> None:
        self._listener = listener
        self._pidfd = pidfd
        self._pid = pid_of(pidfd)
        self._due = due
        self._give_up = give_up
        self._given = 0  # leaves that did not come back as a worker yet
        self._refused = 0
        self._workers: set[int] = set()
        self._rest: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener, self._decide)

    def _decide(self) -> None:
        """Answer one question of the kernel."""
        import fcntl  # noqa: PLC0415 - Windows does not have it, and imports this module too

        if not self._is_asked():
            self._loop.remove_reader(self._listener)  # nobody is left to ask
            return
        question = bytearray(_QUESTION)
        is_due = self._given < self._due()
        try:
            fcntl.ioctl(self._listener, _RECEIVE, question)
            number = int.from_bytes(question[:8], sys.byteorder)
            answer = _ANSWER.pack(number, 0, 0, _GO_ON) if is_due else _ANSWER.pack(number, 0, _REFUSED, 0)
            fcntl.ioctl(self._listener, _SEND, answer)
        except FileNotFoundError:  # whoever asked has ended or been interrupted meanwhile
            return
        self._given += is_due
        self._refused += not is_due
        if self._refused > _MOST_REFUSED:
            self._give_up()

    def _is_asked(self) -> bool:
        """Return whether there is a question. Some kernels block if there is none to receive."""
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        return any(events & select.POLLIN for _descriptor, events in poller.poll(0))

    def is_sound(self, worker: int | None) -> bool:
        """Return whether the answer to a fork order is true, with the number of the new worker if it has one.

        No leave may be used for anything but a worker that was ordered, and no thread runs besides the zygote's own.
        """
        if worker is not None:
            if worker <= 0 or worker in self._workers or not self._given:
                return False
            self._given -= 1
            self._workers.add(worker)
        return self._given < self._due() and not self.has_threads

    def forget(self, worker: int) -> None:
        """Note that a worker has been reaped. Its number may be reused now."""
        self._workers.discard(worker)

    @property
    def has_threads(self) -> bool:
        """True if the zygote has more than one thread."""
        return threads_of(self._pid) > 1

    def wake(self) -> None:
        """Wake the zygote, because there is an order."""
        if self._rest is not None:
            self._rest.cancel()
        self._signal(signal.SIGCONT)

    def let_rest(self) -> None:
        """Stop the zygote in a moment, so that background work of packages does not run between calls."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = self._loop.call_later(STILL_S, self._signal, signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended, which is noticed where it is heard
            signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Close the descriptors. Further questions are refused."""
        if self._rest is not None:
            self._rest.cancel()
        self._loop.remove_reader(self._listener)
        os.close(self._listener)
        os.close(self._pidfd)
