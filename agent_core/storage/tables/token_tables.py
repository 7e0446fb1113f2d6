"""The table of tokens. Rows are trusted only if this user's program wrote them."""

from collections.abc import Iterator
from typing import Any, Final

from ..subject import dump, is_signed, parse_row, sign
from ..token_store import TokenRow
from .session import SqlSession
from .tables import Tables, change, query

_ROWS: Final = "select id, name, digest, scopes, agents, expires, added_at, seal from token"


class TokenTables(Tables):
    """The tokens of the server."""

    @change
    def add_token(self, session: SqlSession, row: TokenRow) -> bool:
        """Store a token whose name is free."""
        if session.one("select 1 from token where name = ?", row.name):
            return False
        values = (row.id, row.name, row.digest, dump(row.scopes), dump(row.agents), row.expires)
        session.all(
            "insert into token (id, name, digest, scopes, agents, expires, added_at, seal)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            *(*values, session.clock.now(), sign(session.sealer, "token", *map(str, values))),
        )
        return True

    @query
    def tokens(self, session: SqlSession) -> list[TokenRow]:
        """Return all tokens, by name."""
        return [*_own(session, session.all(f"{_ROWS} order by name"))]

    @query
    def token(self, session: SqlSession, id: str) -> TokenRow | None:
        """Return one token."""
        return next(_own(session, session.all(f"{_ROWS} where id = ?", id)), None)

    @change
    def revoke_token(self, session: SqlSession, name: str) -> bool:
        """Delete a token."""
        return bool(session.all("delete from token where name = ? returning 1", name))


def _own(session: SqlSession, rows: list[tuple[Any, ...]]) -> Iterator[TokenRow]:  # Any: columns as SQLite types them
    for id, name, digest, scopes, agents, expires, added_at, seal in rows:
        values = (id, name, digest, scopes, agents, expires)
        if is_signed(session.sealer, seal, "token", *map(str, values)):
            yield TokenRow(id, name, digest, _list(scopes), _list(agents), expires, added_at)


def _list(text: str) -> tuple[str, ...]:
    return tuple(parse_row(text, [str]))
