"""Recovery of state files. A file that is damaged or not this user's is set aside with its log, never deleted.

If several processes find such a file, one sets it aside, and the others notice the change.
"""

import mmap
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal

import apsw

from agent_core.base import machine
from agent_core.base.errors import ForeignState, StorageError
from agent_core.base.records import dataclass
from agent_core.base.seal import Sealer

from ..folder import open_lock
from ..subject import ANYTHING, Misfit, Shape, StoreClock, parse_row, sign
from . import search_index
from .connection import DAMAGE, blank, bounded, connect

SUFFIX = ".seal"
LOGS = ("-wal", "-shm")
_PURPOSE = "state"
_ID_BYTES = 24
_LONGEST = 1_000
_MAGIC = b"SQLite format 3\0"
COMPANIONS = (
    *LOGS,
    "",
)  # the file itself last: a new file must never be used with the old one's log
JOURNAL = "-journal"


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The place of a state file, the sealer of its required seal, and the clock that names files set aside."""

    path: Path
    clock: StoreClock
    sealer: Sealer


def open_or_replace(place: StatePlace) -> tuple[apsw.Connection, str | None]:
    """Return a good connection, and a sentence if a file was set aside for it.

    Raises:
        WorkspaceError: the key of the seals cannot be used; nothing was moved.
        ForeignState: the file does not have this user's seal; nothing was moved.
        StorageError: a process with another key has the file open; nothing was moved.
    """
    place.sealer.require()
    with _alone(place.path):
        notes = [*_without_journal(place), *_without_foreign(place)]
        try:
            db = _open_state(place)
        except DAMAGE:
            notes.append(_replace_state(place))
            db = _open_state(place)
        return db, " ".join(notes) or None


def replace(place: StatePlace, *, is_damaged: Callable[[], bool]) -> tuple[apsw.Connection, str]:
    """Return a connection to a new file. The old file is set aside if it is still the damaged one."""
    with _alone(place.path):
        if is_damaged():
            sentence = _replace_state(place)
            return _open_state(place), sentence
        notes = [*_without_journal(place), *_without_foreign(place)]
        return _open_state(place), " ".join(
            [
                f"The state file `{place.path}` was set aside or removed by another process; "
                "the current one is used from now on.",
                *notes,
            ]
        )


def set_aside(path: Path, clock: StoreClock) -> str:
    """Set a file without this user's seal aside, unopened, at the user's request; return its new name, or "".

    Raises:
        StorageError: a process has the file open; nothing was moved.
        WorkspaceError: the key of the seals cannot be used.
    """
    place = StatePlace(path, clock, Sealer(None))
    place.sealer.require()
    with _alone(path):
        if not os.path.lexists(path) or origin(path, place.sealer) != "foreign":
            return ""
        _check_unused(path)
        return _put_aside(place, "foreign").name


def adopt(path: Path, name: str, clock: StoreClock) -> str:
    """Adopt a file that was set aside and that the user calls theirs. Return the new name of the replaced file.

    Raises:
        StorageError: there is no such file, it is not this program's, or a process has the state open.
        WorkspaceError: the key of the seals cannot be used.
    """
    place, aside = StatePlace(path, clock, Sealer(None)), path.with_name(Path(name).name)
    if not aside.is_file() or aside.is_symlink() or aside == path:
        raise StorageError(
            f"There is no file {name} in {path.parent}.", fix=f"Look into {path.parent}."
        )
    with _alone(path):
        for file in (path, aside):
            _check_unused(file)
        Path(f"{aside}{JOURNAL}").unlink(missing_ok=True)
        aside.chmod(0o600)
        try:
            db = connect(aside)
        except DAMAGE as error:
            raise StorageError(f"{name} is damaged or not this program's: {error}.") from error
        replaced = _put_aside(place, "replaced").name if path.exists() else ""
        with bounded(db):
            # Seal each verdict, candidate and recorded call that has the expected shape; the user adopts the file.
            list(db.execute("delete from reading"))
            for table, columns, shape in _SIGNED:
                rows = list(db.execute(f"select rowid, {', '.join(columns)} from {table}"))  # noqa: S608  (our own names)
                seals = [
                    (sign(place.sealer, table, *row), n)
                    for n, *row in rows
                    if _is_of(row[-1], shape)
                ]
                db.executemany(f"update {table} set seal = ? where rowid = ?", seals)  # noqa: S608  (our own names)
            search_index.forget_signs(db)
            search_index.forget_words(db)
            mark(db, sealed_id(path, place.sealer))
        db.close()
        aside.rename(path)
        return replaced


def _without_journal(place: StatePlace) -> Iterator[str]:
    """Set a rollback journal aside: this program writes none, and SQLite would apply it."""
    journal = Path(f"{place.path}{JOURNAL}")
    if os.path.lexists(journal):
        aside = _free(place, "foreign").with_name(f"{_free(place, 'foreign').name}.journal")
        journal.rename(aside)
        yield f"`{journal}` was not written by this program. It was set aside unread as `{aside.name}`."


def _without_foreign(place: StatePlace) -> Iterator[str]:
    """Set a file aside that does not match its seal; the user must decide about one without a seal."""
    path = place.path
    match origin(path, place.sealer) if os.path.lexists(path) else "own":
        case "own":
            return
        case "damaged":
            yield _replace_state(place, "was damaged, or was replaced by another")
        case "foreign":
            _check_unused(path)
            raise ForeignState(
                f"The state file `{path}` does not carry your seal: it came from someone else, was made with another "
                "XDG_DATA_HOME, or is older than the seal. It was not opened, and is where it was.",
                fix="Set XDG_DATA_HOME as it was; or set the file aside and begin a new one: knapper state set-aside",
            )


def _check_unused(path: Path) -> None:
    if holder := machine.lock_holder(path, Path(f"{path}-shm")):
        raise StorageError(
            f"Process {holder} has the state file `{path}` open, so it was not moved.",
            fix="Be the same user with the same XDG_DATA_HOME as that process, or end it first.",
        )


def _replace_state(place: StatePlace, reason: str = "was damaged") -> str:
    aside = _put_aside(place, "corrupt")
    return (
        f"The state file `{place.path}` {reason}. It was set aside as `{aside.name}`, and a new one was created: "
        "earlier conversations are in the kept file; functions are loaded from their folder."
    )


def _open_state(place: StatePlace) -> apsw.Connection:
    """Return a connection; a missing file is created, complete and sealed, and gets its name when it is ready."""
    if place.path.exists():
        return connect(place.path)
    for suffix in COMPANIONS:
        Path(f"{place.path}{suffix}").unlink(missing_ok=True)
    new_path = place.path.with_name(f"{place.path.name}.{secrets.token_hex(6)}.new")
    descriptor = os.open(new_path, machine.MAKING, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(blank())
        db = connect(new_path)
        try:
            mark(db, sealed_id(place.path, place.sealer))
        finally:
            db.close()
        new_path.rename(place.path)
    finally:
        for suffix in ("", *LOGS):
            Path(f"{new_path}{suffix}").unlink(missing_ok=True)
    return connect(place.path)


def _put_aside(place: StatePlace, reason: str) -> Path:
    aside = _free(place, reason)
    for suffix in COMPANIONS:
        part = Path(f"{place.path}{suffix}")
        if os.path.lexists(part):
            part.rename(f"{aside}{suffix}")
    return aside


def _free(place: StatePlace, reason: str) -> Path:
    stamp = datetime.fromtimestamp(place.clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
    base = place.path.with_name(f"{place.path.name}.{reason}-{stamp}")
    aside, number = base, 1
    while any(os.path.lexists(f"{aside}{suffix}") for suffix in ("", ".journal")):
        number += 1
        aside = base.with_name(f"{base.name}-{number}")
    return aside


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = open_lock(path.with_name(f"{path.name}.recovery"))
    try:
        machine.lock(descriptor)
        yield
    finally:
        os.close(descriptor)


_PROBLEM: Final = {
    "code": str,
    "message": str,
    "severity": str,
    "line?": (int, None),
    "fix?": (str, None),
}
_VERDICT: Final = {
    "problems": [_PROBLEM],
    "fixes?": [{"message": str}],
    "standing?": str,
    "confirmed?": [str],
}
_CANDIDATE: Final = {"name": str, "version": str, "source": str, "needs?": dict, **_VERDICT}
_HEARD: Final = {"name": str, "arguments": ANYTHING, "refused?": str}
_OUTCOME: Final = {
    "outcome": str,
    "value": ANYTHING,
    "digest": str,
    "error": (None, {"type": str, "message": str}),
    "output": str,
}
_RECORDED: Final = {
    "module": str,
    "modules": {"*": str},
    "arguments": dict,
    "seed": int,
    "zone": str,
    "heard": [_HEARD],
    "lacking": [str],
    "outcome": _OUTCOME,
}
_SIGNED: Final[tuple[tuple[str, tuple[str, ...], Shape], ...]] = (
    ("verdict", ("version", "function", "verdict"), _VERDICT),
    (
        "pending",
        ("function", "candidate"),
        {"code": str, "module": str, "reason": str, "verdict": _CANDIDATE},
    ),
    ("recorded", ("function", "outcome", "turn", "data"), _RECORDED),
)


def _is_of(text: str, shape: Shape) -> bool:
    try:
        parse_row(text, shape)
    except Misfit:
        return False
    return True


def sealed_id(path: Path, sealer: Sealer) -> str:
    """Seal a new id for the file that will be at this path; the caller must write the id into it.

    Raises:
        WorkspaceError: the key of the seals cannot be used.
        OSError: the seal cannot be written.
    """
    id = f"knapper:{secrets.token_hex(_ID_BYTES)}"
    temporary = Path(f"{path}{SUFFIX}.{secrets.token_hex(6)}.new")
    descriptor = os.open(temporary, machine.MAKING, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{id} {sealer.seal(_PURPOSE, id)}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(f"{path}{SUFFIX}")
    finally:
        temporary.unlink(missing_ok=True)
    return id


def mark(db: apsw.Connection, id: str) -> None:
    """Write the id into a file and flush it out of the log, so that it is readable without opening the database."""
    with db:
        db.execute("delete from origin")
        db.execute("insert into origin values (?)", (id,))
    list(db.execute("pragma wal_checkpoint(truncate)"))


def origin(path: Path, sealer: Sealer) -> Literal["own", "foreign", "damaged"]:
    """Return the origin of a file: it is this user's own if the seal names its id and its logs belong to it.

    SQLite gives a log the owner and the mode of its file; a log from a checkout or an archive has others.
    """
    id, _, seal = _begins(Path(f"{path}{SUFFIX}")).decode("ascii", "replace").strip().partition(" ")
    if not id or not sealer.holds(seal, _PURPOSE, id):
        return "foreign" if _begins(path).startswith(_MAGIC) else "damaged"
    own = _marks(path)
    logs = [_marks(Path(f"{path}{suffix}")) for suffix in LOGS]
    if own is None or not stat.S_ISREG(own[0]) or not all(marks in (own, None) for marks in logs):
        return "foreign"
    with _open_file(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return "damaged"
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return "own" if content.find(id.encode()) >= 0 else "damaged"


def _marks(path: Path) -> tuple[int, int] | None:
    """Return the kind and mode of a file, and its owner; None if it does not exist."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process may have just removed a log
        return None
    return status.st_mode, status.st_uid


def _begins(path: Path) -> bytes:
    try:
        with _open_file(path) as file:
            return file.read(_LONGEST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _open_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, machine.LOOKING), "rb")
