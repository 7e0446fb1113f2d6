"""Tokens in the store: who may use the server, and for what."""

from collections.abc import Iterator
from typing import Any, Final

from agent_core.base.records import dataclass

from .subject import dump, is_signed, parse_row, sign
from .tables import SqlSession, Tables, change, query

_TOKENS: Final = "select id, name, digest, scopes, agents, expires, added_at, seal from token"


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token: `digest` is the hash of its secret; no `agents` means all, `expires` None means never."""

    id: str
    name: str
    digest: str
    scopes: tuple[str, ...]
    agents: tuple[str, ...]
    expires: float | None
    added_at: float = 0.0


class TokenStore(Tables):
    """The tokens of a workspace. Rows are trusted only if this user's program wrote them."""

    @change
    def add_token(self, session: SqlSession, row: TokenRow) -> bool:
        """Store a token with the current time. Return False if there is one of that name."""
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
        return [*_own(session, session.all(f"{_TOKENS} order by name"))]

    @query
    def token(self, session: SqlSession, id: str) -> TokenRow | None:
        """Return one token."""
        return next(_own(session, session.all(f"{_TOKENS} where id = ?", id)), None)

    @change
    def revoke_token(self, session: SqlSession, name: str) -> bool:
        """Delete a token. Return False if there is none of that name."""
        return bool(session.all("delete from token where name = ? returning 1", name))


def _own(
    session: SqlSession, rows: list[tuple[Any, ...]]
) -> Iterator[TokenRow]:  # Any: columns as SQLite types them
    for id, name, digest, scopes, agents, expires, added_at, seal in rows:
        values = (id, name, digest, scopes, agents, expires)
        if is_signed(session.sealer, seal, "token", *map(str, values)):
            scopes, agents = (tuple(parse_row(text, [str])) for text in (scopes, agents))
            yield TokenRow(id, name, digest, scopes, agents, expires, added_at)
