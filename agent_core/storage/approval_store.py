"""Approvals in the store: what the user allowed a function to reach, and pending questions about it.

Questions and answers are trusted only if this user's program wrote them; readers check the seals of approvals.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from agent_core.base.events import GrantAnswered, GrantAsked
from agent_core.base.records import dataclass

from .conversation_store import lines_closed_to
from .journal import read_entry
from .subject import Entry, Removal, Write, dump, is_signed, parse_row, sign
from .tables import SqlSession, Tables, change, perform, query
from .turn_store import IMPORTED


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """An approval by the user as it is stored. See `SaveApproval`."""

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str
    at: float


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A pending question. `question` is JSON that only its sender interprets."""

    id: str
    agent: str
    turn: str
    question: dict[str, Any]  # Any: JSON
    asked_at: float = 0.0


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer to a question of a turn; `version` is the digest of what the question was about."""

    answer: GrantAnswered
    version: str
    at: float
    agent: str
    turn: str


@dataclass(frozen=True, slots=True)
class SaveApproval(Write):
    """The user's approval of what a function may reach, for the content with this digest. A later one replaces it.

    `content` and `grants` are JSON text; `seal` proves that this user approved it here.
    """

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str


@dataclass(frozen=True, slots=True)
class DropApproval(Removal):
    """Delete every approval of a function, or the one for this content."""

    function: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class SaveMadeCode(Write):
    """The code that an agent wrote: hashes of statements."""

    agent: str
    codes: frozenset[str]


_DECISION: Final = {"answer": str, "word": str, "by": str}
_ENDED: Final = {"answer": "no", "word": "", "by": "ended"}
NOBODY: Final = ""
"""The turn of a question that no process waits for: it stays pending until it is answered."""
_MOST_OF_NOBODY: Final = 100
_MOST_OF_A_FUNCTION: Final = (
    8  # of these: one function does not push out what is asked about others
)


class ApprovalStore(Tables):
    """The approvals of a user, and the questions to them. The first answer to a question counts."""

    @change
    def ask_user(self, session: SqlSession, row: QuestionRow) -> None:
        """Store a question with the current time, unless a person has already answered one with its id."""
        known = session.one("select decision, answer_seal from question where id = ?", row.id)
        if (
            known is not None
            and _is_answered(session, row.id, *known)
            and parse_row(known[0], _DECISION) != _ENDED
        ):
            return
        session.all("delete from question where id = ?", row.id)
        values = (row.id, row.agent, row.turn, dump(row.question))
        session.all(
            "insert into question (id, agent, turn, question, asked_at, seal) values (?, ?, ?, ?, ?, ?)",
            *(*values, session.clock.now(), sign(session.sealer, "question", *values)),
        )
        if row.turn == NOBODY:
            _drop_older_of_nobody(session)

    @change
    def take_answer(self, session: SqlSession, id: str) -> dict[str, str] | None:
        """Return the answer to a question that no process waits for, if this user's program gave it, and delete both.

        So an answer counts once.
        """
        row = session.one("select decision, answer_seal from question where id = ?", id)
        if row is None or not _is_answered(session, id, *row):
            return None
        session.all("delete from question where id = ?", id)
        decision: dict[str, str] = parse_row(row[0], _DECISION)
        return decision

    @change
    def drop_kept_answers(
        self, session: SqlSession, function: str
    ) -> list[dict[str, Any]]:  # Any: JSON
        """Delete the answered questions about a function that no process waits for, and return the questions."""
        rows = session.all(
            "select id, question from question where turn = ? and decision is not null", NOBODY
        )
        dropped = [
            (id, question)
            for id, text in rows
            if (question := parse_row(text, dict))["function"] == function
        ]
        for id, _ in dropped:
            session.all("delete from question where id = ?", id)
        return [question for _, question in dropped]

    @query
    def pending_questions(self, session: SqlSession, token: str | None = None) -> list[QuestionRow]:
        """Return the questions that nobody has answered, oldest first.

        With a `token`, those of conversations that are private to another one are left out.
        """
        rows = session.all(
            "select q.id, q.agent, q.turn, q.question, q.asked_at, q.seal, t.line from question q"
            " left join turn t on t.id = q.turn where q.decision is null order by q.seq"
        )
        agents = set[str]() if token is None else {agent for _, agent, *_ in rows}
        closed = {line for agent in agents for line in lines_closed_to(session, agent, token)}
        return [
            QuestionRow(id, agent, turn, parse_row(text, dict), asked_at)
            for id, agent, turn, text, asked_at, seal, line in rows
            if line not in closed
            and is_signed(session.sealer, seal, "question", id, agent, turn, text)
        ]

    @change
    def answer_question(self, session: SqlSession, id: str, decision: dict[str, str]) -> bool:
        """Store the answer to a question. Return False if there is no such question, or it already has an answer."""
        return _answer(session, id, decision)

    @query
    def decision(self, session: SqlSession, id: str) -> dict[str, str] | None:
        """Return the answer to a question, if this user's program gave it, or None while it is pending."""
        row = session.one("select decision, answer_seal from question where id = ?", id)
        if row is None:  # the row was removed: no answer can follow
            return dict(_ENDED)
        if not _is_answered(session, id, *row):
            return None
        decision: dict[str, str] = parse_row(row[0], _DECISION)
        return decision

    @change
    def settle_questions(self, session: SqlSession, turn: str) -> None:
        """Answer no to the pending questions of a turn that has ended."""
        for (id,) in session.all(
            "select id from question where turn = ? and decision is null", turn
        ):
            _answer(session, id, _ENDED)

    @query
    def makers(self, session: SqlSession, codes: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the agents that wrote each of these statements here, by the hash of the statement."""
        agents: dict[str, frozenset[str]] = {}
        rows = session.all(
            "select agent, code, seal from made where code in (select value from json_each(?))",
            dump([*codes]),
        )
        for agent, code, seal in rows:
            if is_signed(session.sealer, seal, "made", agent, code):
                agents[code] = agents.get(code, frozenset()) | {agent}
        return agents

    @query
    def approvals(self, session: SqlSession) -> list[ApprovalRow]:
        """Return every approval of what a function may reach, the newest last. The reader checks the seals."""
        return [
            ApprovalRow(*row)
            for row in session.all(
                "select function, digest, content, grants, by, seal, at from approval order by seq"
            )
        ]

    @query
    def answers_given(self, session: SqlSession, last: int) -> list[GivenAnswer]:
        """Return the last answers that a person gave in turns here, the newest last."""
        rows = session.all(
            "select e.payload, e.at, t.agent, t.id, t.seq from entry e join turn t on t.seq = e.turn"
            " where e.kind = 'grant_answered' and instr(e.payload, '\"by\":\"human\"') > 0"
            " and e.attempt <> ? order by e.seq desc limit ?",
            IMPORTED,  # an agent's file may say of anybody what it likes
            last,
        )
        asked = session.all(
            "select payload from entry where kind = 'grant_asked'"
            " and turn in (select cast(value as integer) from json_each(?))",
            dump([row[4] for row in rows]),
        )
        versions = dict[str, str]()
        for (text,) in asked:
            question = read_entry(Entry(GrantAsked.type, parse_row(text, dict)))
            if isinstance(question, GrantAsked):
                versions[question.question] = question.version
        answers = list[GivenAnswer]()
        for text, at, agent, turn, _ in reversed(rows):
            answer = read_entry(Entry(GrantAnswered.type, parse_row(text, dict)))
            if isinstance(answer, GrantAnswered):
                version = versions.get(answer.question, "")
                answers.append(GivenAnswer(answer, version, at, agent, turn))
        return answers

    @query
    def calls_since(
        self, session: SqlSession, function: str, at: float
    ) -> tuple[int, float | None]:
        """Return how many of a function's recorded calls began after a moment, and when the last one was."""
        row = session.all(
            "select count(*), max(at) from call where function = ? and at >= ?", function, at
        )[0]
        return int(row[0]), row[1]


def _drop_older_of_nobody(session: SqlSession) -> None:
    """Keep the newest questions that no process waits for, in all and of each function."""
    rows = session.all(
        "select id, question from question where turn = ? and decision is null order by seq desc",
        NOBODY,
    )
    of_function = Counter[str]()
    for place, (id, text) in enumerate(rows):
        name = str(parse_row(text, dict).get("function"))
        of_function[name] += 1
        if place >= _MOST_OF_NOBODY or of_function[name] > _MOST_OF_A_FUNCTION:
            session.all("delete from question where id = ?", id)


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
    return (
        decision is not None
        and seal is not None
        and is_signed(session.sealer, seal, "answer", id, decision)
    )


@perform.register
def _save_approval(save: SaveApproval, session: SqlSession) -> None:
    session.all(
        "delete from approval where function = ? and digest = ?", save.function, save.digest
    )
    session.all(
        "insert into approval (function, digest, content, grants, by, seal, at) values (?, ?, ?, ?, ?, ?, ?)",
        *(
            save.function,
            save.digest,
            save.content,
            save.grants,
            save.by,
            save.seal,
            session.clock.now(),
        ),
    )


@perform.register
def _save_made_code(save: SaveMadeCode, session: SqlSession) -> None:
    for code in sorted(save.codes):
        session.all("delete from made where agent = ? and code = ?", save.agent, code)
        seal = sign(session.sealer, "made", save.agent, code)
        session.all("insert into made (agent, code, seal) values (?, ?, ?)", save.agent, code, seal)


@perform.register
def _drop_approval(drop: DropApproval, session: SqlSession) -> None:
    session.all(
        "delete from approval where function = ?1 and (digest = ?2 or ?2 = '')",
        drop.function,
        drop.digest,
    )
