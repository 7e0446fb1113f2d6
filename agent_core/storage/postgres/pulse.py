"""The pulse of a process: a connection that sends a heartbeat every second and receives what others write.

A process without recent heartbeats, or with a lost connection, loses its agents to any process that claims them. It may
not know that yet: the fence of the turns rejects its writes.
"""

import os
import random
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Event, Lock, Thread
from typing import Final

import psycopg

from agent_core import __version__

from ..worker_store import LOST, Hear
from .connection import Db, connect, measure_skew

BEAT_S: Final = 1.0
DEAD_S: Final = 3.0
_GONE_S: Final = 1.3  # a lost connection is normally restored by then
_PAUSE_S: Final = 0.2
_FORGOTTEN: Final = "1 day"
CHANNEL: Final = "knapper"

IS_GONE: Final = "not exists (select 1 from pg_stat_activity a where a.pid = w.backend)"
# After a restart of the database, processes that were alive before it get this long to reconnect.
_FIRST_BACK: Final = (
    "coalesce((select min(a.backend_start) from pg_stat_activity a join worker o on o.backend = a.pid"
    " where o.beat > pg_postmaster_start_time()), clock_timestamp())"
)
IS_ALIVE: Final = (
    f"(w.beat > clock_timestamp() - interval '{DEAD_S} s'"
    f" and (w.beat > clock_timestamp() - interval '{_GONE_S} s' or not {IS_GONE})"
    f" or w.beat < pg_postmaster_start_time() and {_FIRST_BACK} > clock_timestamp() - interval '{_GONE_S} s')"
)
_BEAT: Final = (
    "insert into worker (id, name, version, skew, backend) values ($1, $2, $3, $4, pg_backend_pid())"
    " on conflict (id) do update set beat = clock_timestamp(), backend = excluded.backend, skew = excluded.skew"
)
_HELD: Final = "select agent from lease where owner = $1"
_SWEEP: Final = (
    f"delete from worker w where w.beat < clock_timestamp() - interval '{_FORGOTTEN}'",  # noqa: S608  (our own text)
    f"delete from lease where owner is null and at < clock_timestamp() - interval '{_FORGOTTEN}'",  # noqa: S608
)


class Pulse:
    """The thread with the connection. The first caller that needs it starts it; it reconnects by itself."""

    def __init__(self, conninfo: str, owner: str) -> None:
        self.owner = owner
        self.name = f"process {os.getpid()} on {socket.gethostname()}"
        self.held: set[str] = set()
        """The agents that this process holds, as far as it knows."""
        self.has_slots = False
        """True if this process runs the turns of all agents; each message wakes only one such process."""
        self._conninfo = conninfo
        self._skew = 0.0
        self._hearers: list[tuple[Hear, bool]] = []
        self._stopped = Event()
        self._beating = Event()
        self._starting = Lock()
        self._thread: Thread | None = None

    @property
    def is_started(self) -> bool:
        """True once it was started."""
        return self._thread is not None

    def start(self, patience_s: float = 0.0) -> None:
        """Start the thread, and wait for the first beat."""
        with self._starting:
            if self._thread is None and not self._stopped.is_set():
                self._thread = Thread(target=self._run, name="knapper-pulse", daemon=True)
                self._thread.start()
        self._beating.wait(patience_s)

    def subscribe(self, hear: Hear, *, to_run: bool) -> Callable[[], None]:
        """Call `hear` in the thread with each topic; the returned callable unsubscribes.

        With `to_run`, `hear` does not receive work for which another process was woken.
        """
        hearer = (hear, to_run)
        self._hearers.append(hearer)
        return lambda: self._hearers.remove(hearer)

    def stop(self) -> None:
        """End the thread at the next beat or notification."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(psycopg.Error), closing(connect(self._conninfo)) as db:
                db.execute(f"listen {CHANNEL}")
                for sweep in _SWEEP:
                    db.execute(sweep)
                self._skew = measure_skew(db)
                self._beat(db)
                self._tell("")  # news from before this connection was missed
                while not self._stopped.is_set():
                    # Handle notifications until the next beat.
                    for note in db.notifies(timeout=BEAT_S):
                        topic, _, whom = note.payload.partition(" ")
                        self._tell(topic, is_for_another=bool(whom) and self.has_slots and whom != self.owner)
                        if self._stopped.is_set():
                            break
                    self._beat(db)
            self._stopped.wait(random.uniform(_PAUSE_S, 2 * _PAUSE_S))  # noqa: S311  (a pause)

    def _beat(self, db: Db) -> None:
        if not self._stopped.is_set():
            db.execute(_BEAT, (self.owner, self.name, __version__, self._skew))
            self._beating.set()
            held = self.held.copy()
            if held and held & self.held - {agent for (agent,) in db.execute(_HELD, (self.owner,)).fetchall()}:
                self._tell(LOST)

    def _tell(self, topic: str, *, is_for_another: bool = False) -> None:
        for hear, to_run in tuple(self._hearers):
            if not (to_run and is_for_another):
                hear(topic)
