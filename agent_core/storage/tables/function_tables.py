"""The tables of functions: sources, the manifest, verdicts, kept candidates, readings and pins."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from agent_core.base.errors import IntegrityError, StorageError

from ..function_store import (
    BEGUN,
    BeginState,
    BeginWrite,
    DropPending,
    DropReading,
    DropState,
    EndWrite,
    OpenWrite,
    PinFunction,
    ReadingRow,
    SavePending,
    SaveReading,
    SaveState,
    SaveTended,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    StateRow,
    TendedRow,
    UndoTended,
    UnpinFunction,
    VersionRow,
)
from ..subject import ManifestConflict, SaveText, StateConflict, content_hash, dump, is_signed, parse_row, sign
from .session import SqlSession
from .tables import Tables, perform, query

MOST_STATES = 20  # per function, one for each turn
_BAD = '"thumb":"bad"'  # in the form that `dump` writes
_PENDING = "select function, candidate, seal from pending"
_CHANGES = (
    "select c.module, coalesce(c.version, ''), coalesce(x.text, ''), c.by, c.turn, c.model, c.reason, c.at,"
    " coalesce(t.agent, ''), c.kept_out"
    " from change c left join text x on x.hash = c.version left join turn t on t.id = c.turn"
)


class FunctionTables(Tables):
    """The facts about functions, and the texts that other rows refer to by hash."""

    @query
    def text(self, session: SqlSession, name: str) -> str | None:
        """Return the text with this hash, verified against it."""
        row = session.one("select text from text where hash = ?", name)
        return _check_text(name, row[0]) if row else None

    @query
    def manifest(self, session: SqlSession) -> dict[str, str]:
        """Return the version of each module."""
        return dict(session.all("select module, version from manifest order by module"))

    @query
    def kept_out(self, session: SqlSession) -> dict[str, frozenset[str]]:
        """Return the functions that the newest lines of history keep out."""
        sql = (
            "select module, kept_out from change c where kept_out <> ''"
            " and seq = (select max(seq) from change where module = c.module)"
        )
        return {module: frozenset(names.split()) for module, names in session.all(sql)}

    @query
    def version(self, session: SqlSession, name: str) -> VersionRow | None:
        """Return the first line of history with this version."""
        row = session.one(f"{_CHANGES} where c.version = ? order by c.seq limit 1", name)
        return _version(row) if row else None

    @query
    def module_history(self, session: SqlSession, module: str) -> list[VersionRow]:
        """Return a module's lines of history."""
        return [_version(row) for row in session.all(f"{_CHANGES} where c.module = ? order by c.seq", module)]

    @query
    def kept_modules(self, session: SqlSession, folder: str) -> list[str]:
        """Return the files of a folder that have a history."""
        sql = "select distinct module from change where substr(module, 1, ?) = ? order by module"
        rows = session.all(sql, len(folder) + 1, f"{folder}/")
        return [module for (module,) in rows]

    @query
    def function_history(self, session: SqlSession, function: str) -> list[VersionRow]:
        """Return the history of every module that has a version with the function's `def`."""
        holders = (
            "select module from change join text on hash = version where instr(module, '/') = 0"  # others: no modules
            " and (instr(text, 'def ' || ?1 || '(') > 0 or instr(text, 'def ' || ?1 || '[') > 0)"
        )
        return [
            _version(row) for row in session.all(f"{_CHANGES} where c.module in ({holders}) order by c.seq", function)
        ]

    @query
    def verdict(self, session: SqlSession, name: str, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the last verdict, if this user's program wrote it."""
        row = session.one("select verdict, seal from verdict where version = ? and function = ?", name, function)
        is_own = row is not None and is_signed(session.sealer, row[1], "verdict", name, function, row[0])
        return parse_row(row[0], dict) if row and is_own else None

    @query
    def pending(self, session: SqlSession, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the kept candidate, if this user's program wrote it."""
        return _pending(session, session.all(f"{_PENDING} where function = ?", function)).get(function)

    @query
    def all_pending(self, session: SqlSession) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return the kept candidates that this user's program wrote, by name."""
        return _pending(session, session.all(f"{_PENDING} order by function"))

    @query
    def open_writes(self, session: SqlSession) -> list[OpenWrite]:
        """Return the intents, oldest first."""
        rows = session.all("select path, version, text, expected, at from intent order by seq")
        return [OpenWrite(path, name or None, text, expected, at) for path, name, text, expected, at in rows]

    @query
    def readings(self, session: SqlSession, paths: Collection[str] | None = None) -> dict[str, ReadingRow]:
        """Return the cached readings that this user's program wrote."""
        sql = "select path, mtime_ns, size, inode, version, reading, seal from reading"
        some = " where path in (select value from json_each(?))"
        rows = session.all(sql) if paths is None else session.all(sql + some, json.dumps([*paths]))
        return {
            path: ReadingRow(path, (mtime_ns, size, int(inode)), version, reading)
            for path, mtime_ns, size, inode, version, reading, seal in rows
            if is_signed(session.sealer, seal, "reading", path, version, reading) and inode.isdecimal()
        }

    @query
    def judged_at(self, session: SqlSession) -> dict[tuple[str, str], float]:
        """Return the times of verdicts."""
        rows = session.all("select function, version, at from verdict")
        return {(function, version): at for function, version, at in rows}

    @query
    def complaints(self, session: SqlSession) -> dict[tuple[str, str], str]:
        """Return the notes that this user's program wrote."""
        rows = session.all("select version, function, verdict, seal from verdict where instr(verdict, ?) > 0", _BAD)
        verdicts = {
            (function, name): parse_row(verdict, dict)
            for name, function, verdict, seal in rows
            if is_signed(session.sealer, seal, "verdict", name, function, verdict)
        }
        bad = {pair: verdict for pair, verdict in verdicts.items() if verdict.get("thumb") == "bad"}
        return {pair: str(verdict.get("note", "")) for pair, verdict in bad.items()}

    @query
    def tended(self, session: SqlSession) -> list[TendedRow]:
        """Return the changes, oldest first."""
        sql = "select n, run, function, kind, before, after, note, at, undone from tended order by n"
        rows = [TendedRow(*row) for row in session.all(sql)]
        return [replace(row, undone=bool(row.undone)) for row in rows]

    @query
    def states(self, session: SqlSession, function: str = "") -> list[StateRow]:
        """Return the states, oldest first."""
        sql = "select n, function, turn, value, at from state where ?1 = '' or function = ?1 order by n"
        return [
            StateRow(n, name, turn, parse_row(value), at) for n, name, turn, value, at in session.all(sql, function)
        ]

    @query
    def pinned(self, session: SqlSession) -> set[str]:
        """Return the functions that any agent has pinned."""
        return {row[0] for row in session.all("select distinct function from pin")}

    @query
    def pins(self, session: SqlSession, agent: str) -> set[str]:
        """Return the pinned functions of an agent."""
        return {row[0] for row in session.all("select function from pin where agent = ?", agent)}


def _pending(session: SqlSession, rows: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:  # Any: columns; JSON
    return {
        name: parse_row(text, dict)
        for name, text, seal in rows
        if is_signed(session.sealer, seal, "pending", name, text)
    }


def _version(row: tuple[Any, ...]) -> VersionRow:  # Any: columns as SQLite types them
    *facts, kept_out = row
    version_row = replace(VersionRow(*facts), kept_out=tuple(kept_out.split()))
    if version_row.version:
        _check_text(version_row.version, version_row.text)
    return version_row


def _check_text(name: str, text: str) -> str:
    if content_hash(text) != name:
        raise IntegrityError(f"The stored text {name[:12]} is not what its hash says.", fix="Restore the state file.")
    return text


@perform.register
def _save_text(write: SaveText, session: SqlSession) -> None:
    _keep(session, content_hash(write.text), write.text)


def _keep(session: SqlSession, name: str, text: str) -> None:
    session.all("insert into text (hash, text) values (?, ?) on conflict do nothing", name, text)


@perform.register
def _save_version(write: SaveVersion, session: SqlSession) -> None:
    if content_hash(write.text) != write.version:
        raise StorageError(f"Version {write.version[:12]} of `{write.module}` is not the hash of its source.")
    _keep(session, write.version, write.text)
    session.all(
        "insert into change (module, version, by, turn, model, reason, at, kept_out) values (?, ?, ?, ?, ?, ?, ?, ?)",
        *(write.module, write.version, write.by, write.turn, write.model, write.reason, session.clock.now()),
        " ".join(write.kept_out),
    )


@perform.register
def _set_manifest(write: SetManifest, session: SqlSession) -> None:
    row = session.one("select version from manifest where module = ?", write.module)
    current = row[0] if row else None
    if current != write.expected:
        raise ManifestConflict(write.module, write.expected, current)
    if write.version is not None:
        if not session.one("select 1 from text where hash = ?", write.version):
            message = f"Version {write.version[:12]} of `{write.module}` was never saved."
            raise StorageError(message, fix="Save the version first.")
        session.all(
            "insert into manifest (module, version) values (?, ?)"
            " on conflict (module) do update set version = excluded.version",
            *(write.module, write.version),
        )
    elif current is not None:
        session.all("delete from manifest where module = ?", write.module)
        session.all(
            "insert into change (module, version, by, turn, model, reason, at) values (?, null, ?, ?, '', ?, ?)",
            *(write.module, write.by, write.turn, write.reason, session.clock.now()),
        )


@perform.register
def _save_verdict(write: SaveVerdict, session: SqlSession) -> None:
    row = (write.version, write.function, dump(write.verdict))
    session.all(
        "insert into verdict (version, function, verdict, at, seal) values (?, ?, ?, ?, ?)"
        " on conflict (version, function) do update set verdict = excluded.verdict, at = excluded.at,"
        " seal = excluded.seal",
        *(*row, session.clock.now(), sign(session.sealer, "verdict", *row)),
    )


@perform.register
def _save_pending(write: SavePending, session: SqlSession) -> None:
    row = (write.function, dump(write.candidate))
    session.all(
        "insert into pending (function, candidate, at, seal) values (?, ?, ?, ?)"
        " on conflict (function) do update set candidate = excluded.candidate, at = excluded.at, seal = excluded.seal",
        *(*row, session.clock.now(), sign(session.sealer, "pending", *row)),
    )


@perform.register
def _drop_pending(write: DropPending, session: SqlSession) -> None:
    session.all("delete from pending where function = ?", write.function)


@perform.register
def _begin_write(write: BeginWrite, session: SqlSession) -> None:
    _end_write(EndWrite(write.path, write.version), session)  # a repeated write moves to the end
    session.all(
        "insert into intent (path, version, text, expected, at) values (?, ?, ?, ?, ?)",
        *(write.path, write.version or "", write.text, write.expected, session.clock.now()),
    )


@perform.register
def _end_write(write: EndWrite, session: SqlSession) -> None:
    session.all("delete from intent where path = ? and version = ?", write.path, write.version or "")


@perform.register
def _save_reading(write: SaveReading, session: SqlSession) -> None:
    seal = sign(session.sealer, "reading", write.path, write.version, write.reading)
    session.all(
        "insert into reading (path, mtime_ns, size, inode, version, reading, seal) values (?, ?, ?, ?, ?, ?, ?)"
        " on conflict (path) do update set mtime_ns = excluded.mtime_ns, size = excluded.size, inode = excluded.inode,"
        " version = excluded.version, reading = excluded.reading, seal = excluded.seal",
        *(write.path, *write.stamp[:2], str(write.stamp[2]), write.version, write.reading, seal),
    )


@perform.register
def _drop_reading(write: DropReading, session: SqlSession) -> None:
    session.all("delete from reading where path = ?", write.path)


@perform.register
def _save_state(write: SaveState, session: SqlSession) -> None:
    if _newest_state(session, write.function) != write.expected:
        raise StateConflict(write.function)
    if write.turn:
        session.all("delete from state where function = ? and turn = ?", write.function, write.turn)
    _add_state(session, write.function, write.turn, write.value)
    session.all(
        "delete from state where function = ?1 and n <= (select n from state where function = ?1"
        " order by n desc limit 1 offset ?2)",
        *(write.function, MOST_STATES),
    )


@perform.register
def _begin_state(write: BeginState, session: SqlSession) -> None:
    if _newest_state(session, write.function):
        _add_state(session, write.function, BEGUN, {})


@perform.register
def _drop_state(write: DropState, session: SqlSession) -> None:
    if _newest_state(session, write.function) != write.n:
        raise StateConflict(write.function)
    session.all("delete from state where n = ?", write.n)


def _newest_state(session: SqlSession, function: str) -> int:
    return int(session.all("select coalesce(max(n), 0) from state where function = ?", function)[0][0])


def _add_state(session: SqlSession, function: str, turn: str, value: object) -> None:
    now = session.clock.now()
    session.all("insert into state (function, turn, value, at) values (?, ?, ?, ?)", function, turn, dump(value), now)


@perform.register
def _save_tended(write: SaveTended, session: SqlSession) -> None:
    session.all(
        "insert into tended (run, function, kind, before, after, note, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(write.run, write.function, write.kind, write.before, write.after, write.note, session.clock.now()),
    )


@perform.register
def _undo_tended(write: UndoTended, session: SqlSession) -> None:
    session.all("update tended set undone = true where n = ?", write.n)


@perform.register
def _pin(write: PinFunction, session: SqlSession) -> None:
    session.all("insert into pin values (?, ?) on conflict do nothing", write.agent, write.function)


@perform.register
def _unpin(write: UnpinFunction, session: SqlSession) -> None:
    session.all("delete from pin where agent = ? and function = ?", write.agent, write.function)
