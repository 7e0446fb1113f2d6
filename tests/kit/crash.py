"""Real worker processes that report acknowledged work and can be killed at any moment.

They are forked from a server that has already imported the code under test, so a hundred kills are quick.
"""

import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

from tests.kit.program import FORKING
from tests.kit.waiting import patience_s

Work = Callable[[str, Connection], None]
"""The work of a process: it receives an argument and sends one text per acknowledged item."""


def _work(work: Work, environment: dict[str, str], argument: str, reports: Connection) -> None:
    """Run the work in the environment of the test; the fork server has the environment of the test that started it."""
    os.environ.clear()
    os.environ.update(environment)
    work(argument, reports)


class Worker:
    """A process at work. It ends by itself or by `kill`; reports sent before the end are kept."""

    def __init__(self, work: Work, argument: str) -> None:
        self._reports, sender = FORKING.Pipe(duplex=False)
        self._process = FORKING.Process(
            target=_work, args=(work, dict(os.environ), argument, sender)
        )
        self._process.start()
        self._last = ""
        sender.close()

    def next_report(self) -> str:
        """Wait for one report and return it.

        Raises:
            AssertionError: none came in time; the message has the one before.
            EOFError: the process has ended.
        """
        most_s = patience_s()
        if not self._reports.poll(most_s):
            instead = f"its last report: {self._last!r}"
            raise AssertionError(f"waited {most_s:.0f} s for a report; {instead}")
        self._last = str(self._reports.recv())
        return self._last

    def kill(self) -> None:
        """Kill the process, the closest that a process gets to a power failure."""
        self._process.kill()

    def reports(self) -> list[str]:
        """Wait for the process to end and return all reports not read so far."""
        found = []
        try:
            while True:
                found.append(self.next_report())
        except EOFError:
            pass
        except OSError:  # a report cut off by the kill was never complete
            pass
        self._process.join()
        self._reports.close()
        self._process.close()
        return found


def kill_after(worker: Worker, delay_s: float) -> list[str]:
    """Let the worker run for `delay_s`, kill it, and return what it had acknowledged."""
    time.sleep(delay_s)
    worker.kill()
    return worker.reports()


def kill_at_work(worker: Worker, delay_s: float) -> list[str]:
    """Wait for the first report, then do as `kill_after` does."""
    first = worker.next_report()
    return [first, *kill_after(worker, delay_s)]


def own_name() -> str:
    """Return a name prefix that no other process uses."""
    return f"{os.getpid()}-{time.monotonic_ns()}"
