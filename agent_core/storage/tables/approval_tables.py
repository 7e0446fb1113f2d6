"""The tables of approvals, of questions to the user, and of tokens.

Questions, answers and tokens are trusted only if this user's program wrote them.
"""

from collections.abc import Iterator
from typing import Any, Final

from ..approval_store import DropYes, QuestionRow, SaveYes, YesRow
from ..subject import dump, is_signed, parse_row, sign
from ..token_store import TokenRow
from .session import SqlSession
from .tables import Tables, change, perform, query

_DECISION: Final = {"answer": str, "word": str, "by": str}
_TOKENS: Final = "select id, name, digest, scopes, agents, expires, added_at, seal from token"
_ENDED: Final = {"answer": "no", "word": "", "by": "ended"}


class ApprovalTables(Tables):
    """The user's approvals, whose seals the reader checks, and the pending questions."""

    @change
    def ask_user(self, session: SqlSession, row: QuestionRow) -> None:
        """Store a question with the current time, unless a person has answered one with its id."""
        known = session.one("select decision, answer_seal from question where id = ?", row.id)
        if known is not None and _is_answered(session, row.id, *known) and parse_row(known[0], _DECISION) != _ENDED:
            return
        session.all("delete from question where id = ?", row.id)
        values = (row.id, row.agent, row.turn, dump(row.question))
        session.all(
            "insert into question (id, agent, turn, question, asked_at, seal) values (?, ?, ?, ?, ?, ?)",
            *(*values, session.clock.now(), sign(session.sealer, "question", *values)),
        )

    @query
    def pending_questions(self, session: SqlSession) -> list[QuestionRow]:
        """Return the questions that nobody has answered, oldest first."""
        rows = session.all(
            "select id, agent, turn, question, asked_at, seal from question where decision is null order by seq"
        )
        return [
            QuestionRow(id, agent, turn, parse_row(text, dict), asked_at)
            for id, agent, turn, text, asked_at, seal in rows
            if is_signed(session.sealer, seal, "question", id, agent, turn, text)
        ]

    @change
    def answer_question(self, session: SqlSession, id: str, decision: dict[str, str]) -> bool:
        """Store the answer to a question that has none."""
        return _answer(session, id, decision)

    @query
    def decision(self, session: SqlSession, id: str) -> dict[str, str] | None:
        """Return the answer to a question, if this user's program gave it."""
        row = session.one("select decision, answer_seal from question where id = ?", id)
        if row is None:  # the row was removed: no answer can follow
            return dict(_ENDED)
        if not _is_answered(session, id, *row):
            return None
        decision: dict[str, str] = parse_row(row[0], _DECISION)
        return decision

    @change
    def settle_questions(self, session: SqlSession, turn: str) -> None:
        """Answer no to the pending questions of a turn."""
        for (id,) in session.all("select id from question where turn = ? and decision is null", turn):
            _answer(session, id, _ENDED)

    @query
    def yeses(self, session: SqlSession) -> list[YesRow]:
        """Return every approval, the newest last."""
        return [
            YesRow(*row)
            for row in session.all("select function, digest, content, grants, by, seal, at from yes order by seq")
        ]


def _answer(session: SqlSession, id: str, decision: dict[str, str]) -> bool:
    row = session.one("select decision, answer_seal from question where id = ?", id)
    if row is None or _is_answered(session, id, *row):
        return False
    text = dump(decision)
    session.all(
        "update question set decision = ?, answered_at = ?, answer_seal = ? where id = ?",
        *(text, session.clock.now(), sign(session.sealer, "answer", id, text), id),
    )
    return True


def _is_answered(session: SqlSession, id: str, decision: str | None, seal: str | None) -> bool:
    """Check whether this user's program wrote the answer: a stranger's does not count."""
    return decision is not None and seal is not None and is_signed(session.sealer, seal, "answer", id, decision)


@perform.register
def _save_yes(write: SaveYes, session: SqlSession) -> None:
    session.all("delete from yes where function = ? and digest = ?", write.function, write.digest)
    session.all(
        "insert into yes (function, digest, content, grants, by, seal, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(write.function, write.digest, write.content, write.grants, write.by, write.seal, session.clock.now()),
    )


@perform.register
def _drop_yes(write: DropYes, session: SqlSession) -> None:
    session.all("delete from yes where function = ?1 and (digest = ?2 or ?2 = '')", write.function, write.digest)


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
        return [*_own(session, session.all(f"{_TOKENS} order by name"))]

    @query
    def token(self, session: SqlSession, id: str) -> TokenRow | None:
        """Return one token."""
        return next(_own(session, session.all(f"{_TOKENS} where id = ?", id)), None)

    @change
    def revoke_token(self, session: SqlSession, name: str) -> bool:
        """Delete a token."""
        return bool(session.all("delete from token where name = ? returning 1", name))


def _own(session: SqlSession, rows: list[tuple[Any, ...]]) -> Iterator[TokenRow]:  # Any: columns as SQLite types them
    for id, name, digest, scopes, agents, expires, added_at, seal in rows:
        values = (id, name, digest, scopes, agents, expires)
        if is_signed(session.sealer, seal, "token", *map(str, values)):
            scopes, agents = (tuple(parse_row(text, [str])) for text in (scopes, agents))
            yield TokenRow(id, name, digest, scopes, agents, expires, added_at)
