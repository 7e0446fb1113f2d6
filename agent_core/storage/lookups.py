"""The facts about functions, read from SQL: sources, the manifest, verdicts, readings, statistics."""

import json
from collections.abc import Sequence
from typing import Any

from agent_core.base.errors import IntegrityError

from .connection import SqlSession
from .rows import is_signed, parse_row
from .store import OpenWrite, ReadingRow, VersionRow, YesRow
from .tallies import CallRow, KindRow, Stats
from .writes import content_hash

CHANGES = (
    "select c.module, coalesce(c.version, ''), coalesce(x.text, ''), c.by, c.turn, c.model, c.reason, c.at,"
    " coalesce(t.agent, '') from change c left join text x on x.hash = c.version left join turn t on t.id = c.turn"
)


def text(session: SqlSession, name: str) -> str | None:
    """Return the text with this hash, verified against it."""
    row = session.one("select text from text where hash = ?", name)
    return _checked(name, row[0]) if row else None


def manifest(session: SqlSession) -> dict[str, str]:
    """Return the version of each module."""
    return dict(session.all("select module, version from manifest order by module"))


def version(session: SqlSession, name: str) -> VersionRow | None:
    """Return the first line of history with this version."""
    row = session.one(f"{CHANGES} where c.version = ? order by c.seq limit 1", name)
    return _version(row) if row else None


def module_history(session: SqlSession, module: str) -> list[VersionRow]:
    """Return a module's lines of history."""
    return [_version(row) for row in session.all(f"{CHANGES} where c.module = ? order by c.seq", module)]


def function_history(session: SqlSession, function: str) -> list[VersionRow]:
    """Return the history of every module of which one version contains the function's `def`."""
    holders = (
        "select module from change join text on hash = version"
        " where instr(text, 'def ' || ?1 || '(') or instr(text, 'def ' || ?1 || '[')"
    )
    return [_version(row) for row in session.all(f"{CHANGES} where c.module in ({holders}) order by c.seq", function)]


def verdict(session: SqlSession, name: str, function: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the last verdict, if this user's program wrote it."""
    row = session.one("select verdict, seal from verdict where version = ? and function = ?", name, function)
    is_own = row is not None and is_signed(session.sealer, row[1], "verdict", name, function, row[0])
    return parse_row(row[0], dict) if row and is_own else None


def pending(session: SqlSession, function: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the kept candidate, if this user's program wrote it."""
    return _pending(session, session.all(f"{_PENDING} where function = ?", function)).get(function)


def all_pending(session: SqlSession) -> dict[str, dict[str, Any]]:  # Any: JSON
    """Return the kept candidates by name, as far as this user's program wrote them."""
    return _pending(session, session.all(f"{_PENDING} order by function"))


_PENDING = "select function, candidate, seal from pending"


def _pending(session: SqlSession, rows: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:  # Any: columns; JSON
    return {
        name: parse_row(text, dict)
        for name, text, seal in rows
        if is_signed(session.sealer, seal, "pending", name, text)
    }


def open_writes(session: SqlSession) -> list[OpenWrite]:
    """Return the intents, oldest first."""
    rows = session.all("select path, version, text, expected, at from intent order by seq")
    return [OpenWrite(path, name or None, text, expected, at) for path, name, text, expected, at in rows]


def readings(session: SqlSession) -> dict[str, ReadingRow]:
    """Return the whole cache of readings, as far as this user's program wrote it."""
    rows = session.all("select path, mtime_ns, size, inode, version, reading, seal from reading")
    return {
        path: ReadingRow(path, (mtime_ns, size, int(inode)), version, reading)
        for path, mtime_ns, size, inode, version, reading, seal in rows
        if is_signed(session.sealer, seal, "reading", path, version, reading) and inode.isdecimal()
    }


def sketches(session: SqlSession, keys: Sequence[str]) -> dict[str, str]:
    """Return the sketches that exist."""
    sql = "select key, sketch from sketch where key in (select value from json_each(?))"
    return dict(session.all(sql, json.dumps([*keys])))


_STATS = (
    "select function, version, calls, returned, failed, failing, holding, first, last, seconds, worst, since, worked,"
    " longest, memory, cpu from call_total"
)


def call_stats(session: SqlSession, function: str) -> list[Stats]:
    """Return a row per version."""
    query = (f"{_STATS} where function = ? order by last", function) if function else (f"{_STATS} order by last",)
    return [Stats(*row) for row in session.all(*query)]


def call_kinds(session: SqlSession, function: str) -> list[KindRow]:
    """Return a row for each version, outcome and type of error."""
    rows = session.all(
        "select version, outcome, error, calls, last from call_kind where function = ? order by calls desc, last desc",
        function,
    )
    return [KindRow(*row) for row in rows]


def recent_calls(session: SqlSession, function: str) -> list[CallRow]:
    """Return the kept calls, newest first."""
    rows = session.all(
        "select version, turn, outcome, error, message, seconds, memory, at, cpu from call where function = ?"
        " order by n desc",
        function,
    )
    return [CallRow(*row) for row in rows]


def failing(session: SqlSession, failures: int) -> frozenset[tuple[str, str]]:
    """Return the versions that have failed so often in a row; the index contains only those that ever did."""
    rows = session.all("select function, version from call_total where worst > 0 and worst >= ?", failures)
    return frozenset((function, version) for function, version in rows)


def releases(session: SqlSession, function: str) -> list[tuple[str, float]]:
    """Return versions and times."""
    rows = session.all("select version, at from release where function = ? order by seq", function)
    return [(version, at) for version, at in rows]


def judged_at(session: SqlSession) -> dict[tuple[str, str], float]:
    """Return the times of verdicts."""
    rows = session.all("select function, version, at from verdict")
    return {(function, version): at for function, version, at in rows}


def pinned(session: SqlSession) -> set[str]:
    """Return what any agent has pinned."""
    return {row[0] for row in session.all("select distinct function from pin")}


def pins(session: SqlSession, agent: str) -> set[str]:
    """Return the pinned functions of an agent."""
    return {row[0] for row in session.all("select function from pin where agent = ?", agent)}


def yeses(session: SqlSession) -> list[YesRow]:
    """Return every approval, the newest last."""
    return [
        YesRow(*row)
        for row in session.all("select function, digest, content, grants, by, seal, at from yes order by seq")
    ]


def _version(row: tuple[Any, ...]) -> VersionRow:  # Any: columns as SQLite types them
    version_row = VersionRow(*row)
    if version_row.version:
        _checked(version_row.version, version_row.text)
    return version_row


def _checked(name: str, text: str) -> str:
    if content_hash(text) != name:
        raise IntegrityError(f"The stored text {name[:12]} is not what its hash says.", fix="Restore the state file.")
    return text


def check(session: SqlSession) -> str | None:
    """Return the first finding of SQLite's own check, or of the foreign keys."""
    result = session.all("pragma quick_check(1)")[0][0]
    if result != "ok":
        return str(result)
    loose = session.one("pragma foreign_key_check")
    # Entries have no foreign key to their turn: see migrations/0006.
    loose = loose or session.one("select 'entry' from entry where turn not in (select seq from turn) limit 1")
    return f"a row of `{loose[0]}` points at nothing" if loose else None
