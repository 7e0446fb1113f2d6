"""Real processes that work, report what they were told is done, and can be killed at any instant.

They are forked from a server that has imported the work already, so that a hundred kills are quick.
"""

import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from tests.kit.program import FORKING

Work = Callable[[str, Connection], None]
"""What a process does: it is given an argument, and sends one text per thing that is acknowledged."""


def _work(work: Work, environment: dict[str, str], argument: str, reports: Connection) -> None:
    """Work in the environment of the test; the server that forks has that of the test that started it."""
    os.environ.clear()
    os.environ.update(environment)
    work(argument, reports)


class Worker:
    """A process at work. It ends by itself or by `kill`; what it sent before is kept."""

    def __init__(self, work: Work, argument: str) -> None:
        self._reports, sender = FORKING.Pipe(duplex=False)
        self._process = FORKING.Process(target=_work, args=(work, dict(os.environ), argument, sender))
        self._process.start()
        sender.close()

    def next_report(self) -> str:
        """Wait for one report."""
        return str(self._reports.recv())

    def kill(self) -> None:
        """End it as a power cut would end it, as far as a process can tell."""
        self._process.kill()

    def reports(self) -> list[str]:
        """Wait for its end: everything it sent and that was not yet read."""
        found = []
        try:
            while True:
                found.append(str(self._reports.recv()))
        except EOFError:
            pass
        except OSError:  # a report cut in two by the kill: it was never complete
            pass
        self._process.join()
        self._reports.close()
        self._process.close()
        return found


def kill_after(worker: Worker, delay_s: float) -> list[str]:
    """Let it start and work for a while, kill it, and return what it had acknowledged."""
    time.sleep(delay_s)
    worker.kill()
    return worker.reports()


def kill_at_work(worker: Worker, delay_s: float) -> list[str]:
    """The same, and the while begins when it has acknowledged something."""
    first = worker.next_report()
    return [first, *kill_after(worker, delay_s)]


def own_name() -> str:
    """A prefix for names that no other process uses."""
    return f"{os.getpid()}-{time.monotonic_ns()}"
