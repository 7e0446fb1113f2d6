"""The numbered migrations of a database: each file runs once, in order, and a table records its number.

Several processes may start at once: an advisory lock lets one of them do it. All tables are in a schema of their own.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg

from agent_core.base import old_name
from agent_core.base.errors import StorageError
from agent_core.base.own_installation import origin

from .connection import SCHEMA, Db

FOLDER: Final = Path(__file__).with_name("migrations")
OLDEST: Final = 13
_LOCK: Final = 0x546F6F6C  # "Tool"
_NO_EXTENSION: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.UndefinedFile,
    psycopg.errors.InvalidSchemaName,
)


def check_server(db: Db, place: str) -> None:
    """Refuse a server that the store cannot use.

    Raises:
        StorageError: it is too old, a replica, or keeps texts in another encoding than UTF-8.
    """
    if db.info.server_version < OLDEST * 10_000:
        message = f"The database {place} is PostgreSQL {db.info.server_version // 10_000}; {OLDEST} is the oldest"
        raise StorageError(f"{message} that works.", fix="Upgrade the server.")
    if db.execute("select pg_is_in_recovery()").fetchall()[0][0]:
        raise StorageError(f"The database {place} is a read-only replica.", fix="Give the address of the primary.")
    encoding = db.execute("show server_encoding").fetchall()[0][0]
    if encoding != "UTF8":
        fix = "Make one with: createdb --encoding=UTF8 --template=template0 NAME"
        raise StorageError(f"The database {place} keeps texts as {encoding}.", fix=fix)


def migrate(db: Db, place: str, folder: Path = FOLDER) -> None:
    """Upgrade the schema to the version that this program knows.

    Raises:
        StorageError: a newer program has made it.
    """
    files = {int(file.name[:4]): file for file in folder.glob("[0-9][0-9][0-9][0-9]_*.sql")}
    latest = max(files, default=0)
    if schema(db) == latest:
        return
    db.execute("select pg_advisory_lock($1)", (_LOCK,))
    try:
        _move_old_schema(db, place)
        current = schema(db)
        if current > latest:
            message = f"The database {place} has schema {current}, and this program knows schemas up to {latest}."
            raise StorageError(message, fix=f"Upgrade the program; this copy came from {origin()}.")
        for number in range(current + 1, latest + 1):
            _run(db, number, files[number].read_text(encoding="utf-8"))
        with suppress(*_NO_EXTENSION):  # searches say that it is missing
            db.execute("create extension if not exists vector with schema public")
    finally:
        if not db.closed:
            db.execute("select pg_advisory_unlock($1)", (_LOCK,))


def settle(db: Db, place: str, workspace: str) -> None:
    """Note whose database it is, if it is nobody's yet: versions of functions are those of one folder.

    Raises:
        StorageError: it belongs to another workspace.
    """
    if not workspace:
        return
    with db.transaction():
        db.execute("lock table home in exclusive mode")  # of two workspaces at the same moment one is first
        db.execute("insert into home select $1::text where not exists (select 1 from home)", (workspace,))
    if (workspace,) not in db.execute("select workspace from home").fetchall():
        message = f"The database {place} has the functions of another folder than this workspace's."
        raise StorageError(message, fix="Work in that folder, or let this one share them: knapper storage join")


def schema(db: Db) -> int:
    """Return the number of the last migration that ran; nothing is written."""
    if not _is_there(db, f"{SCHEMA}.migration"):
        return 0
    return int(db.execute("select coalesce(max(number), 0) from migration").fetchall()[0][0])


def _move_old_schema(db: Db, place: str) -> None:
    """Give the tables that were made under the old name the new one: the schema, and the functions that name it."""
    old = old_name.NAME
    if schema(db) or not _is_there(db, f"{old}.migration"):
        return
    with db.transaction():
        users = "select count(*) from pg_stat_activity where datname = current_database() and application_name = $1"
        if count := db.execute(users, (old,)).fetchall()[0][0]:
            message = f"Processes of the program under its old name have {count} connections to the database {place}"
            raise StorageError(f"{message}, so its schema {old} is not renamed.", fix="End them, then try again.")
        try:
            db.execute(f"alter schema {old} rename to {SCHEMA}")
        except psycopg.errors.InsufficientPrivilege as error:
            message = f"The schema {old} of the database {place} cannot be renamed: {error.diag.message_primary}."
            raise StorageError(message, fix=f"Let its owner type: ALTER SCHEMA {old} RENAME TO {SCHEMA}") from error
        named = "select pg_get_functiondef(oid) from pg_proc where pronamespace = $1::regnamespace and prosrc ~ $2"
        for (definition,) in db.execute(named, (SCHEMA, old)).fetchall():
            db.execute(definition.replace(old, SCHEMA).encode())
    old_name.say(f"Moved the schema {old} of the database {place} to {SCHEMA}.")


def _is_there(db: Db, table: str) -> bool:
    return db.execute("select to_regclass($1)", (table,)).fetchall()[0][0] is not None


def _run(db: Db, number: int, sql: str) -> None:
    with db.transaction():
        if number == 1:
            db.execute(f"create schema if not exists {SCHEMA}")
            db.execute("create table migration (number bigint primary key, at timestamptz not null default now())")
        db.execute(sql.encode())
        db.execute("insert into migration (number) values ($1)", (number,))
