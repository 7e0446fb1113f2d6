"""What extensions keep in the state, beside the tables of the program: a table for each subject, rows of JSON by id.

An extension names its subjects at the hook `SUBJECTS`, and says how a row of each is forgotten. Without the extension
its rows stay: they are moved with the rest, and whoever forgets is told which tables nothing could look into.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from agent_core.base.errors import StorageError
from agent_core.base.extensions import SUBJECTS, offers
from agent_core.base.matching import Mention
from agent_core.base.records import dataclass

from .subject import dump, parse_row
from .tables import SqlSession, Tables, change, query

PREFIX: Final = "ext_"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_FORM: Final = "create table {table} (id text primary key, value text not null)"

ForgetText: TypeAlias = Callable[[Any, Mention], Any]  # Any: JSON
"""Takes the value of a row, and returns it without the text; None drops the row."""


@dataclass(frozen=True, slots=True)
class AddedSubject:
    """What an extension keeps, by one name: `forget` is called for each row when a person has a text forgotten."""

    forget: ForgetText


class AddedStore(Tables):
    """The rows of extensions."""

    @change
    def save_added(self, session: SqlSession, subject: str, id: str, value: object) -> None:
        """Store a row, instead of the one with its id.

        Raises:
            StorageError: no extension that is here has this subject, or the value has no JSON form.
        """
        table = _table_of(subject)
        make_added(session, table)
        insert = f"insert into {table} (id, value) values (?, ?)"  # noqa: S608  (a checked name)
        session.all(
            f"{insert} on conflict (id) do update set value = excluded.value", id, dump(value)
        )

    @change
    def drop_added(self, session: SqlSession, subject: str, id: str) -> None:
        """Delete a row, if it is there."""
        table = _table_of(subject)
        if table in session.tables():
            session.all(f"delete from {table} where id = ?", id)  # noqa: S608  (a checked name)

    @query
    def added(self, session: SqlSession, subject: str) -> dict[str, Any]:  # Any: JSON
        """Return the rows of a subject, by id."""
        table = _table_of(subject)
        return _rows(session, table) if table in session.tables() else {}

    @query
    def unread_tables(self, session: SqlSession) -> list[str]:
        """Return the tables of extensions that are not here: forgetting cannot look into them."""
        subjects = _subjects()
        return [table for table in added_tables(session) if table not in subjects]


def added_tables(session: SqlSession) -> list[str]:
    """Return the tables of all extensions, in order."""
    return sorted(name for name in session.tables() if is_added(name))


def is_added(table: str) -> bool:
    """Return whether a table has the name of one of an extension."""
    return table.startswith(PREFIX) and _NAME.fullmatch(table.removeprefix(PREFIX)) is not None


def added_form(table: str) -> str:
    """Return the statement that makes a table of an extension: there is no other form of one."""
    return _FORM.format(table=table)


def make_added(session: SqlSession, table: str) -> None:
    """Make a table of an extension, unless it is there."""
    if table not in session.tables():
        session.all(added_form(table))


def forget_added(session: SqlSession, mention: Mention) -> dict[str, int]:
    """Forget a text in the rows of the extensions that are here; return how many rows had it, by table."""
    subjects = _subjects()
    counts = dict[str, int]()
    for table in added_tables(session):
        if table not in subjects:
            continue
        for id, value in _rows(session, table).items():
            left = subjects[table].forget(value, mention)
            if left == value:
                continue
            counts[table] = counts.get(table, 0) + 1
            session.all(f"delete from {table} where id = ?", id)  # noqa: S608  (a checked name)
            if left is not None:
                insert = f"insert into {table} (id, value) values (?, ?)"  # noqa: S608  (the same)
                session.all(insert, mention.without(id), dump(left))
    return counts


def _rows(session: SqlSession, table: str) -> dict[str, Any]:  # Any: JSON
    found = session.all(f"select id, value from {table} order by id")  # noqa: S608  (a checked name)
    return {id: parse_row(value) for id, value in found}


def _subjects() -> Mapping[str, AddedSubject]:
    """Return the subjects of the extensions that are here, by the names of their tables."""
    named: Mapping[str, AddedSubject] = offers(SUBJECTS)
    return {f"{PREFIX}{name}": subject for name, subject in named.items()}


def _table_of(subject: str) -> str:
    table = f"{PREFIX}{subject}"
    if table not in _subjects() or not is_added(table):
        fix = f"Name it at the hook {SUBJECTS}: letters, digits and underscores."
        raise StorageError(f"No extension here keeps `{subject}`.", fix=fix)
    return table
