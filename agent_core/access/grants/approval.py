"""The question to the user before a function gets access, the answer, also as a model reads it, and the queue.

A question is what it shows: its id holds the digest of all that a yes would cover, so an answer to another text, or to
code that has changed, is an answer to another question. The questions of all turns go to one approver, one at a time;
an answer may also come from another process.
"""

import asyncio
import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias, get_args
from uuid import uuid4

from agent_core.base import events
from agent_core.base.errors import WorkspaceError
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.records import asdict, dataclass, field, fields, replace
from agent_core.base.untrusted import one_line
from agent_core.registry.source import hash_of
from agent_core.storage import NOBODY, ApprovalStore, QuestionRow
from sandbox.wire.lines import first_lines

from .content import content_of
from .task import TaskReach
from .value import NOTHING, UNSAID, Grants

if TYPE_CHECKING:
    from agent_core.base.receipt import Fact
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

Answer: TypeAlias = Literal["once", "yes", "no"]
Moment: TypeAlias = Literal[
    "join", "call", "run", "grant", "helper", "program", "open", "change", "task"
]
BOUND: Final = ("helper", "program", "open", "change", "task")
"""The moments of questions whose approval is for one text only, and is not stored."""
By: TypeAlias = Literal[
    "human", "policy", "earlier", "often", "never", "unavailable", "ended", "task", "always"
]

_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "network": "--network",
        "read": "--read",
        "write": "--write",
        "secrets": "--secret",
        "packages": "--package",
        "memory": "--block",
        "functions": "--call",
    }
)

_OCCASION_CHARS, _DIGEST_CHARS = 16, 32  # of an id
_NEW, DIFF_HEAD = (
    "@@ -0,0 ",
    3,
)  # in the diff of a new text, this is the last of so many lines before the text

# The placeholders for items that a human must name.
_NAMED: Mapping[str, str] = MappingProxyType(
    {
        "network": "HOST",
        "read": "FOLDER",
        "write": "FOLDER",
        "secrets": "NAME",
        "memory": "LABEL",
        "functions": "NAME",
    }
)


@dataclass(frozen=True, slots=True)
class Question:
    """The grants that a function is missing: `why` is the model's reason, `lines` are the lines of code that need them.

    `granted` is what the previous version had, `diff` the change since then; `is_again` means that nothing new is
    requested, and only the content is new. The `moment` is before a function joins, before a call, while one runs, when
    the user grants manually, before a helper is changed, before a program runs, for the functions that it calls, while
    one runs and opens a file, before an agent deletes functions or changes several at once, or for all that a turn is
    expected to need.
    `caller` is the function that makes the call, if any. `version` is the digest of what an approval is bound to: the
    code of the function with all that it uses, or a text.

    `installs` lists what an approval installs, `doubts` what is unknown about its effect, and `precedents` which of it
    the user has given to functions that this one calls by name, one line each. `creates` are files and folders to be
    written that are not there yet. `folder` is the requested folder, or the one around the requested files, to which an
    approval may be widened: for this function, for all functions of its `maker`, the agent that made it, or, if it
    `is_for_turn`, for the programs of this turn. `changed` is the reason why an earlier approval is not in force.
    `unset` are names of requested secrets without a value, `facts` what the gate found of a function that would join.
    `asker` is the agent that has the turn; it may work for another one, `whom`. Texts are a model's, so they are shown
    as untrusted. `occasion` tells apart two questions about the same.

    Make one with `of` or `of_text`, which bind it to what it is about.
    """

    function: str
    missing: Grants = NOTHING
    granted: Grants = NOTHING
    why: str = ""
    lines: tuple[tuple[int, str], ...] = ()
    diff: str = ""
    version: str = ""
    is_again: bool = False
    moment: Moment = "call"
    installs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    precedents: tuple[str, ...] = ()
    caller: str = ""
    creates: tuple[str, ...] = ()
    folder: str = ""
    maker: str = ""
    is_for_turn: bool = False
    changed: str = ""
    unset: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    asker: str = ""
    whom: str = ""
    occasion: str = field(default_factory=lambda: uuid4().hex, compare=False)

    @classmethod
    def of(
        cls,
        function: "Function",
        snapshot: "Snapshot",
        missing_grants: Grants = NOTHING,
        held_grants: Grants = NOTHING,
    ) -> Self:
        """Return the question about a function and all that it uses, as they are in this snapshot."""
        return cls(
            function.name,
            missing_grants,
            held_grants,
            version=content_of(function, snapshot).digest,
        )

    @classmethod
    def of_text(
        cls, name: str, text: str, moment: Moment, missing_grants: Grants = NOTHING
    ) -> Self:
        """Return the question about something that is a text."""
        return cls(name, missing_grants, version=hash_of(text), moment=moment)

    @property
    def says(self) -> list[str]:
        """What is missing, as sentences for the user; what is not there yet is created."""
        made = {
            sentence: sentence.replace("read and write", "create", 1)
            for sentence in _writing(self.creates)
        }
        return [made.get(sentence, sentence) for sentence in self.missing.sentences()]

    def asking_also(self, more_grants: Grants) -> "Question":
        """Return the question about more grants, too; it asks again only if all of them were granted before."""
        missing = self.missing | more_grants
        is_again = self.is_again and self.granted.covers(missing)
        return replace(self, missing=missing, is_again=is_again)

    @property
    def digest(self) -> str:
        """The digest of all that is shown and of all that an approval covers."""
        about = json.dumps({**self.to_json(), "occasion": ""}, sort_keys=True)
        return hashlib.sha256(about.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The id by which it is answered: its occasion and its digest."""
        occasion = hashlib.sha256(self.occasion.encode("utf-8", "replace")).hexdigest()
        return occasion[:_OCCASION_CHARS] + self.digest[:_DIGEST_CHARS]

    @property
    def is_about_text(self) -> bool:
        """Whether an approval is for a text that the user must have seen: not only for what a function may reach."""
        is_change = self.is_again or bool(self.changed) or bool(self.diff and not self.is_new)
        return is_change or self.moment in BOUND or not self.missing.sentences()

    @property
    def is_new(self) -> bool:
        """Whether the difference is the whole text of something new."""
        head = first_lines(self.diff, DIFF_HEAD)
        return len(head) == DIFF_HEAD and head[-1].startswith(_NEW)

    @property
    def command(self) -> str:
        """The command that grants the request; empty if nothing but an answer does."""
        if self.moment in BOUND:
            return ""
        items = [
            f"{flag} {shlex.quote(value)}"
            for kind, flag in _FLAGS.items()
            for value in (
                _NAMED.get(kind, UNSAID) if item == UNSAID else item
                for item in self.missing.items(kind)
            )
            if value != UNSAID
        ]
        return " ".join([f"knapper functions grant {self.function}", *items])

    @property
    def wider(self) -> Grants:
        """The grants of an approval for the folder."""
        return (
            Grants.from_json(dict.fromkeys(self.missing.to_json(), (self.folder,)))
            if self.folder
            else self.missing
        )

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the question in its stored form while it is pending."""
        own = {
            one.name: getattr(self, one.name) for one in fields(self)
        }  # `asdict` would copy each text
        return {**own, "missing": self.missing.to_json(), "granted": self.granted.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: the result of `to_json`
        """Build the question from JSON."""
        lines = tuple((int(number), str(text)) for number, text in data["lines"])
        grants = {name: Grants.from_json(data[name]) for name in ("missing", "granted")}
        texts = {
            name: tuple(data.get(name, ()))
            for name in ("installs", "doubts", "precedents", "creates", "unset", "facts")
        }
        return cls(**{**data, **grants, **texts, "lines": lines})


def _writing(items: tuple[str, ...]) -> list[str]:
    return Grants(write=items).sentences()


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer: yes for the next call only, yes permanently, or no; `word` is a message for the model.

    `by` is the origin: human (now), policy (nobody could be asked), earlier (the human's no in the same turn), often
    (several refusals in the turn), never (no human can grant it), unavailable (what it needs is not available), ended
    (the turn ended before an answer), or task (the human's yes to what the turn is expected to
    need), or always (the human's no for good). `is_wide` means that the approval is for the question's folder. A no
    that `is_lasting` is for good: nobody is asked for the same again.
    """

    answer: Answer
    word: str = ""
    by: By = "human"
    is_wide: bool = False
    is_lasting: bool = False

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the decision in its stored form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:  # Any: JSON
        """Build the decision from JSON; an invalid one is a no."""
        if data["answer"] not in get_args(Answer) or data["by"] not in get_args(By):
            return cls("no", by="unavailable")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that waits for an answer, by its `id`; `asked_at` is in seconds since the epoch."""

    question: Question
    agent: str
    turn: str
    asked_at: float

    @property
    def id(self) -> str:
        """The id by which it is answered."""
        return self.question.id


def questions_of(rows: Iterable[QuestionRow]) -> list[PendingQuestion]:
    """Return stored questions, without those of another version of the program, which asks them itself."""
    pending = []
    for row in rows:
        with suppress(TypeError, ValueError, KeyError):
            question = Question.from_json(row.question)
            if question.id == row.id:
                pending.append(PendingQuestion(question, row.agent, row.turn, row.asked_at))
    return pending


class QuestionChanged(WorkspaceError):
    """What an approval would cover is not what the user was asked about; `question` is what they are asked now."""

    code = "question-changed"

    def __init__(self, question: Question) -> None:
        message = f"`{question.function}` has changed since the question, so nothing was granted."
        fix = f"Look at the new question, {question.id}, or type: {question.command}"
        super().__init__(message, fix=fix)
        self.question = question


def successor(id: str, pending: Iterable[PendingQuestion]) -> PendingQuestion | None:
    """Return the pending question that took the place of one, because what it is about has changed."""
    return next((row for row in pending if row.id[:_OCCASION_CHARS] == id[:_OCCASION_CHARS]), None)


Approver: TypeAlias = Callable[[Question], Awaitable[Decision]]
"""Asks a human a question; without one, nobody is asked and the answer is no."""


LONGEST_WORD = 400
_SAID: Mapping[By, str] = MappingProxyType(
    {
        "human": "The user was asked and said no.",
        "earlier": "The user has said no to this in this turn, and was not asked again.",
        "often": "The user has said no several times in this turn, and is not asked again before the next one.",
        "policy": "Nobody can be asked here.",
        "never": "",
        "unavailable": "",
        "ended": "The turn ended before the user answered.",
        "task": "",
        "always": "The user has said that it never may, and was not asked again.",
    }
)
_NO_MORE = (
    "Do not try the same again in this turn: nobody would be asked. Do it in a way that needs less, or tell the user"
    " what you need it for."
)
_AS_THEY_SAY = "Change it as they say before you try again: for the same code they are not asked again in this turn."


def denial(question: Question, decision: Decision, *, by_hand: bool = False) -> str:
    """Return the refusal message for a model, or for the human whose own call it is (`by_hand`)."""
    missing = "; ".join(question.says)
    new = " in this new version" if question.is_again else ""
    new += f" ({question.changed})" if question.is_again and question.changed else ""
    message = (
        f"`{question.function}` may not{new}: {missing}."
        if missing
        else f"`{question.function}` needs the user's yes."
    )
    if by_hand and decision.by == "human":
        again = (
            "Do the same again to be asked again."
            if question.moment == "join"
            else f"Call it again to be asked again. To grant it for good: {question.command}"
        )
        return f"{message} The question was answered with no.\n{again}"
    word = one_line(decision.word, LONGEST_WORD)
    match decision.by:
        case "policy":
            advice = (
                [f"Grant it at a terminal: {question.command}"]
                if question.missing and question.command
                else []
            )
        case "never" | "unavailable":
            advice = [word]
        case _:
            advice = [f"They say: “{word}”.", _AS_THEY_SAY] if word else [_NO_MORE]
    return "\n".join([f"{message} {_SAID[decision.by]}".rstrip(), *advice])


def says_what_to_do(text: str) -> bool:
    """Check whether a text for the model contains the advice after a refusal."""
    return _NO_MORE in text or _AS_THEY_SAY in text


MOST_NOES, MOST_NOES_IN_A_TURN = 3, 6
_MOST_KEPT: Final = 20_000  # characters of a question that nobody could be asked
_LOOK_S: Final = 0.2  # between two checks whether a question was answered elsewhere
Answered = tuple[Question, Decision]


class TurnSink(Protocol):
    """A turn in which questions arise."""

    id: str
    step: int
    policy: Policy
    task: TaskReach

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""

    @property
    def on_behalf_of(self) -> str:
        """The agent that began it, or called it as a helper."""

    def note_done(self, fact: "Fact", name: str) -> None:
        """Record something that was done, for the receipt."""

    def ask_nobody(self) -> None:
        """Answer all questions with no for the rest of the turn."""

    async def show(self, event: events.StoredEvent, /) -> None:
        """Store an event of the turn, and report it to its listeners."""


class ApprovalQueue:
    """A queue of questions to one approver; without one, every answer is no."""

    def __init__(
        self,
        approver: Approver | None = None,
        store: ApprovalStore | None = None,
        wait_s: float | None = None,
        policy: Policy = DEFAULT,
    ) -> None:
        """Create the queue; `wait_s` is how long to wait for an answer in a turn that another agent began.

        The `policy` holds outside of turns, which have their own.
        """
        self.approver = approver
        self.rows = store
        self.wait_s = wait_s
        self.policy = policy
        self.one_at_a_time = asyncio.Lock()
        self.waiting: list[
            list[Answered]
        ] = []  # for each waiting question, the answers since it began to wait

    def asking(self, approver: Approver | None) -> "ApprovalQueue":
        """Return a queue of questions to another approver."""
        return ApprovalQueue(approver, self.rows, self.wait_s, self.policy)


@dataclass(slots=True)
class Approvals:
    """The questions of one turn: the approver, the turn to notify, and the user's refusals in it.

    Outside of a turn, nobody is notified, and refusals are not remembered. Questions that are asked again, perhaps
    by another process, have the same `occasion`.
    """

    queue: ApprovalQueue
    turn: TurnSink | None = None
    refusals: list[Answered] = field(default_factory=list)
    occasion: str = ""

    @property
    def policy(self) -> Policy:
        """What may be asked and grown: the turn's policy, or outside of one the workspace's."""
        return self.queue.policy if self.turn is None else self.turn.policy

    @property
    def turn_id(self) -> str:
        """The turn's ID; empty outside of one."""
        return "" if self.turn is None else self.turn.id

    @property
    def agent(self) -> str:
        """The agent whose turn it is; empty outside of one."""
        return "" if self.turn is None else self.turn.agent

    async def ask(self, question: Question) -> Decision:
        """Ask the user and return the answer, which is no if nobody can be asked."""
        queue, approver = self.queue, self.queue.approver
        if self.turn is not None:
            question = replace(question, asker=self.turn.agent, whom=self.turn.on_behalf_of)
        if self.occasion:
            question = replace(question, occasion=self._occasion_of(question))
        if approver is None:
            return await self.close(question, await self._answer_by_id(question))
        meanwhile: list[Answered] = []
        queue.waiting.append(meanwhile)
        try:
            async with queue.one_at_a_time:
                prior_decision = self._prior_decision(question, meanwhile)
                if prior_decision is not None:
                    return await self.close(question, prior_decision)
                decision = await self._decision(question, approver)
                for answers in queue.waiting:
                    answers.append((question, decision))
                return await self.close(question, decision)
        finally:
            queue.waiting = [entry for entry in queue.waiting if entry is not meanwhile]

    async def _answer_by_id(self, question: Question) -> Decision:
        """Return the answer that was given by the question's id; without one, a no.

        A question of no occasion is kept, so that an answer counts when it is asked again; one of a program has an
        answer only if a process that could ask was killed meanwhile.
        """
        rows, turn = self.queue.rows, self.turn
        if rows is None or turn is None:
            return Decision("no", by="policy")
        if self.occasion:
            given = await rows.decision(question.id)
        else:
            about = (
                question.function,
                question.missing,
            )  # a call and what it opens may ask for the same
            if any((prior.function, prior.missing) == about for prior, _ in self.refusals):
                return Decision("no", by="policy")
            what = [
                turn.agent,
                question.moment,
                question.missing.to_json(),
                question.folder,
                question.occasion,
            ]
            question = replace(
                question, occasion=json.dumps(["unattended", question.function, *what])
            )
            if len(json.dumps(row := question.to_json())) <= _MOST_KEPT:
                await rows.ask_user(QuestionRow(question.id, turn.agent, NOBODY, row))
            given = await rows.take_answer(question.id)
        if given is None or given["by"] == "ended":
            denied = Decision("no", by="policy")
            self.refusals.append((question, denied))
            return denied
        return Decision.from_json(given)

    def _occasion_of(self, question: Question) -> str:
        what = [question.function, question.moment, question.missing.to_json(), question.folder]
        return json.dumps([self.occasion, *what])

    async def close(self, question: Question, decision: Decision) -> Decision:
        """Report the answer to the turn, and return the same decision."""
        if self.turn is not None:
            # A no to all that a task needs leaves each part of it to be asked.
            is_refusal = decision.answer == "no" and question.moment != "task"
            if is_refusal and decision.by == "human":
                self.refusals.append((question, decision))
            if decision.by == "human":
                what = " and ".join(question.says) or "join"
                self.turn.note_done("asked", f"may {question.function} {what}? {decision.answer}")
            await self.turn.show(
                events.GrantAnswered(
                    turn=self.turn.id,
                    step=self.turn.step,
                    question=question.id,
                    function=question.function,
                    says=tuple(question.says),
                    answer=decision.answer,
                    word=decision.word,
                    by=decision.by,
                    command=question.command if decision.by == "policy" else "",
                )
            )
        return decision

    async def _decision(self, question: Question, approver: Approver) -> Decision:
        """Return the first answer: the approver's, or one that was given by the question's id."""
        turn, queue, rows = self.turn, self.queue, self.queue.rows
        agent, asker = (turn.agent, turn.id) if turn is not None else ("", question.id)
        limit = asyncio.timeout(queue.wait_s if question.whom else None)
        try:
            if rows is not None:
                await rows.ask_user(QuestionRow(question.id, agent, asker, question.to_json()))
                if (
                    before := await rows.decision(question.id)
                ) is not None:  # given to a process that has ended
                    return Decision.from_json(before)
            if turn is not None:
                await turn.show(asking(question, turn.id, turn.step))
            async with limit:
                return await (
                    _first_answer(question, approver, rows)
                    if rows is not None
                    else approver(question)
                )
        except TimeoutError:
            if turn is None or not limit.expired():
                raise
            turn.ask_nobody()
            return Decision("no", by="policy")
        finally:
            if rows is not None:
                await rows.settle_questions(asker)

    def _prior_decision(self, question: Question, meanwhile: Iterable[Answered]) -> Decision | None:
        """Return the answer that holds without asking: an earlier no, or what was answered while this one waited."""
        code = (question.function, question.version, question.missing)
        for prior, decision in self.refusals:
            if decision.word or not prior.missing:
                is_same = (prior.function, prior.version, prior.missing) == code
            else:
                is_same = set(prior.missing.sentences()) <= set(question.missing.sentences())
            if is_same:  # a "never" was for the one function that was shown
                return replace(decision, by="earlier", is_lasting=False)
        own = [_kinds(prior) for prior, _ in self.refusals if prior.function == question.function]
        is_often = any(
            sum(kind in kinds for kinds in own) >= MOST_NOES for kind in _kinds(question)
        )
        if is_often or len(self.refusals) >= MOST_NOES_IN_A_TURN:
            return Decision("no", by="often")
        same = _without_asker(question)
        answers = (
            decision
            for prior, decision in meanwhile
            if decision.answer == "yes" and _without_asker(prior) == same
        )
        return next(answers, None)  # an approval for one call is not shared


async def _first_answer(question: Question, approver: Approver, store: ApprovalStore) -> Decision:
    """Return the stored answer: the approver's, unless someone else was first."""
    here = asyncio.ensure_future(approver(question))
    elsewhere = asyncio.create_task(_answered_elsewhere(question.id, store))
    said = ""
    try:
        await asyncio.wait((here, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if elsewhere.done():
            said = answered_in_words(elsewhere.result().answer)
            return elsewhere.result()
        decision = here.result()
        await store.answer_question(question.id, decision.to_json())
        stored = await store.decision(question.id)  # None if someone else wrote to the row
        return decision if stored is None else Decision.from_json(stored)
    except asyncio.CancelledError as cancelled:  # it says why the question is over
        said = said or " ".join(map(str, cancelled.args))
        raise
    finally:
        here.cancel(said)
        elsewhere.cancel()
        await asyncio.gather(here, elsewhere, return_exceptions=True)


async def _answered_elsewhere(id: str, store: ApprovalStore) -> Decision:
    """Wait until the row of a question has an answer, and return it."""
    while (decision := await store.decision(id)) is None:  # noqa: ASYNC110 - another process answers it
        await asyncio.sleep(_LOOK_S)
    return Decision.from_json(decision)


def answered_in_words(answer: str) -> str:
    """Return what a window that asked the same says when another one was first; it ends the question with this."""
    return f"answered in another window: {answer}"


class FollowedQuestions:
    """The questions of a turn that another process runs: they are asked here, too, and the first answer counts.

    Values of secrets are asked for only where this user `owns_secrets` of that process: no other one could read them.
    """

    def __init__(
        self, approver: Approver, store: ApprovalStore, owns_secrets: Callable[[], bool]
    ) -> None:
        self._approver = approver
        self._store = store
        self._owns_secrets = owns_secrets
        self._asked: dict[str, asyncio.Task[None]] = {}

    def hear(self, event: events.Event) -> None:
        """Ask what the turn asks, and stop when it has its answer."""
        match event:
            case events.GrantAsked() if event.question not in self._asked:
                self._asked[event.question] = asyncio.create_task(self._ask(event.question))
            case events.GrantAnswered() if event.question in self._asked:
                self._asked.pop(event.question).cancel(answered_in_words(event.answer))
            case _:
                pass

    async def aclose(self, why: str = "") -> None:
        """Stop asking, because nobody waits for an answer any more; a window that asks says `why`."""
        asked = [*self._asked.values()]
        self._asked.clear()
        for task in asked:
            task.cancel(why)
        await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, id: str) -> None:
        for pending in questions_of(await self._store.pending_questions()):
            if pending.id == id:
                await _first_answer(pending.question, self._decide, self._store)

    async def _decide(self, question: Question) -> Decision:
        asked = question if self._owns_secrets() else replace(question, unset=())
        return await self._approver(asked)


def _without_asker(question: Question) -> Question:
    return replace(question, caller="", asker="", whom="")


def _kinds(question: Question) -> frozenset[str]:
    """Return the kinds of grants that a question is about; joining is a kind, too."""
    return frozenset(question.missing.to_json()) or frozenset({"join"})


def asking(question: Question, turn: str, step: int = 0) -> events.GrantAsked:
    """Return the event of a question."""
    names = {field.name for field in fields(events.GrantAsked)}
    same = {name: value for name, value in question.to_json().items() if name in names}
    says, command = tuple(question.says), question.command
    return events.GrantAsked(
        turn=turn, step=step, question=question.id, says=says, command=command, **same
    )
