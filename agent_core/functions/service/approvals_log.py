"""The log of approvals: who allowed what, when, on which text, what used it, what is still open, and how to undo it."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Final

from agent_core.access.grants import Grants
from agent_core.access.grants.approval import Question, questions_of
from agent_core.access.grants.book import NEVER
from agent_core.access.grants.content import content_of
from agent_core.base.records import dataclass
from agent_core.storage import Store
from sandbox.wire.strict_json import read_json

if TYPE_CHECKING:
    from agent_core.access.grants import GrantStore
    from agent_core.registry.registry import Registry
    from agent_core.storage import ApprovalRow, CallOwners, GivenAnswer, QuestionRow

    from .grant_service import GrantService

AGENT_PREFIX: Final = "agent:"
_DIGEST_CHARS: Final = 12


@dataclass(frozen=True, slots=True)
class LoggedApproval:
    """One row. `kind` is kept (a yes that holds until it is taken back), answered (in a turn) or open (a question).

    `text` names what it was about, by the digest of the code with all that it uses, and `modules` are those at their
    versions. `stands` tells whether it is in force now; `calls` since then, as far as they are recorded, used it.
    `undo` is the command that takes it back; empty if nothing is left of it.
    """

    at: float
    kind: str
    function: str
    says: tuple[str, ...]
    answer: str
    by: str
    word: str = ""
    text: str = ""
    modules: tuple[str, ...] = ()
    stands: bool = False
    calls: int = 0
    last_call: float | None = None
    agent: str = ""
    turn: str = ""
    question: str = ""
    undo: str = ""


class ApprovalsLog:
    """The approvals of one workspace, as rows."""

    def __init__(
        self,
        store: Store,
        registry: "Registry",
        book: "GrantStore",
        granting: Callable[[], "GrantService"],
    ) -> None:
        """Create it; `granting`, which loads the sandbox, is opened only for an approval whose function is here."""
        self._store = store
        self._registry = registry
        self._book = book
        self._granting = granting

    async def rows(
        self, name: str = "", last: int = 100, owners: "CallOwners" = None
    ) -> list[LoggedApproval]:
        """Return the newest rows, the oldest first; of one function if it is named.

        Questions and answers in turns are those of the `owners`; None means all.
        """
        found = [row async for row in self._kept()]
        found += map(_answered_row, await self._store.answers_given(last))
        found += self._open(await self._store.pending_questions())
        seen = list[LoggedApproval]()
        for row in sorted(found, key=lambda row: row.at):
            agent = row.agent or row.function.removeprefix(AGENT_PREFIX)
            is_agents = bool(row.agent) or row.function.startswith(AGENT_PREFIX)
            if name in ("", row.function) and (owners is None or not is_agents or agent in owners):
                seen.append(row)
        return seen[-last:]

    async def _kept(self) -> AsyncIterator[LoggedApproval]:
        snapshot = self._registry.snapshot()
        for row, is_ours in await self._book.log():
            if row.function.startswith(NEVER):
                yield _denied_row(row, stands=is_ours)
                continue
            function = snapshot.functions.get(row.function)
            stands = is_ours and row.function.startswith(AGENT_PREFIX)
            if is_ours and function is not None:
                held = await self._granting().in_force(function, snapshot)
                stands = bool(held) and content_of(function, snapshot).digest == row.digest
            calls, last_call = await self._store.calls_since(row.function, row.at)
            yield _kept_row(row, stands=stands, calls=calls, last_call=last_call)

    def _open(self, rows: "list[QuestionRow]") -> Iterator[LoggedApproval]:
        for pending in questions_of(rows):
            question = pending.question
            yield LoggedApproval(
                pending.asked_at,
                "open",
                question.function,
                tuple(question.says),
                "",
                "",
                text=question.version[:_DIGEST_CHARS],
                agent=pending.agent,
                turn=pending.turn,
                question=pending.id,
                undo=f"knapper functions answer {pending.id} no",
            )


def _answered_row(given: "GivenAnswer") -> LoggedApproval:
    answer = given.answer
    return LoggedApproval(
        given.at,
        "answered",
        answer.function,
        answer.says,
        answer.answer,
        answer.by,
        word=answer.word,
        text=given.version[:_DIGEST_CHARS],
        agent=given.agent,
        turn=given.turn,
        question=answer.question,
    )


def _denied_row(row: "ApprovalRow", *, stands: bool) -> LoggedApproval:
    """Return what a person said that a function never may, which stands until it is lifted."""
    function = row.function.removeprefix(NEVER)
    grants = Grants.from_json(read_json(row.grants))
    return LoggedApproval(
        row.at,
        "kept",
        function,
        tuple(grants.sentences()),
        "never",
        row.by,
        stands=stands,
        undo=f"knapper functions grant {function}" * stands,
    )


def _kept_row(
    row: "ApprovalRow", *, stands: bool, calls: int, last_call: float | None
) -> LoggedApproval:
    grants = Grants.from_json(read_json(row.grants))
    undo = Question(row.function, grants).command.replace(" grant ", " revoke ", 1)
    if not grants:
        undo += " --all"
    return LoggedApproval(
        row.at,
        "kept",
        row.function,
        tuple(grants.sentences()),
        "yes",
        row.by,
        text=row.digest[:_DIGEST_CHARS],
        modules=tuple(
            f"{module} {version[:_DIGEST_CHARS]}" for module, version in read_json(row.content)
        ),
        stands=stands,
        calls=calls,
        last_call=last_call,
        undo=undo * stands,
    )
