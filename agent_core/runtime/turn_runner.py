"""Runs the turns of one agent, one at a time: claims each from the store, begins it, runs the loop, and closes it.

However a turn ends, its history is valid and on disk.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent_core.base import events
from agent_core.base.errors import KnapperError
from agent_core.base.limits import OF_MESSAGES, Allowance, SpendingLimits
from agent_core.base.receipt import Receipt
from agent_core.context import History, resume
from agent_core.functions.debug import Debugger, DebuggerSlot
from agent_core.storage import (
    BETWEEN,
    ENDED,
    LIMITS_FROM,
    AnswerAsk,
    ClaimedTurn,
    Entry,
    Inbound,
    Post,
    SetThread,
    Store,
    Write,
)

from .client_calls import ClientFunctions, beginning
from .entries import AFTER, HEARD, ONLY, facts_entry, messages_of, notice, receipt_in, said_by
from .loop import Ended
from .session import STOPPED, AgentSession, closing_answers, is_reply, settle
from .turn import Account, Emit, OwnName, Turn, TurnGroup, TurnJournal, TurnOrigin, TurnQuestions

if TYPE_CHECKING:
    from agent_core.access.grants import Approver
    from agent_core.functions.service import FunctionService
    from agent_core.registry.registry import Snapshot

    from .colleagues import Colleagues
    from .model_session import ModelSession

_log = logging.getLogger("knapper.turns")


class TurnLoop(Protocol):
    """Runs the turns of an agent: the steps of a model, or the members of a group."""

    model_session: "ModelSession"

    @property
    def is_group(self) -> bool:
        """True if members of a group take turns."""

    async def run(self, turn: Turn) -> Ended:
        """Run a turn, and return how it ended."""

    def sees(self, snapshot: "Snapshot", made: frozenset[str], /) -> "Snapshot":
        """Return what the agent may call of a snapshot; `made` are the functions that it made in this turn."""

    async def aclose(self) -> None:
        """Close the model."""


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """The options of one turn: who is asked about grants, who debugs, its group, and the allowance that pays for it.

    `meta_self` is the `self` of its meta-functions, which is the agent. A runner does not hold the agent, so that it is
    freed when its users are done.
    """

    meta_self: object
    approver: "Approver | None" = None
    debugger: Debugger | None = None
    group: TurnGroup | None = None
    allowance: Allowance | None = None
    on_behalf_of: str = ""  # the calling agent if this agent is a helper
    restarts: bool = False  # whether an interrupted turn of the user resumes


@dataclass(slots=True)
class TurnRunner:
    """The runner of one agent's turns; `turn` is the running turn."""

    name: str
    store: Store
    owner: str
    loop: TurnLoop
    session: AgentSession
    colleagues: "Colleagues"
    functions: "FunctionService"
    history: History
    turn: Turn | None = None
    receipt: Receipt = field(default_factory=Receipt)  # of the last turn
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    ends_at_once: bool = False  # interrupt the turn that is about to begin

    async def run(self, posts: Sequence[Post], options: TurnOptions) -> AsyncGenerator[events.Event, None]:
        """Post these events to the inbox, run the turn that they begin, and yield its events.

        Leaving the iteration early interrupts the turn.
        """
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        async with self.one_at_a_time:
            self.receipt = Receipt()
            work = asyncio.create_task(self._run_next(posts, queue.put_nowait, options))
            work.add_done_callback(lambda _: queue.put_nowait(None))
            try:
                while (event := await queue.get()) is not None:
                    yield event
            finally:
                if self.turn is not None:
                    self.turn.ending.interruption.request()
                await work
                self.ends_at_once = False

    def interrupt(self, *, resumes: bool) -> None:
        """Interrupt the running turn, or the one that is about to begin."""
        if self.turn is not None:
            self.turn.ending.resumes |= resumes
            self.turn.ending.interruption.request()
        else:
            self.ends_at_once = self.one_at_a_time.locked()

    @asynccontextmanager
    async def alone(self, kind: str, options: TurnOptions) -> AsyncIterator[Turn]:
        """Run a block in a turn that no message began; its event is claimed before everything that waits."""
        async with self.one_at_a_time:
            await self.store.post(Post(self.name, kind, {}, due=0.0))
            claimed = await self._next(restarts=options.restarts)
            assert claimed is not None
            turn = self.turn = self.turn_of(claimed, options)
            try:
                yield turn
            finally:
                self.turn = None
                await self.store.finish(turn.id, turn.attempt)

    async def begin(self, turn: Turn, inbound: Inbound) -> None:
        """Store the first entries of a turn, and notify its listeners."""
        opening = await self.session.opening(inbound, is_first=not any(self.history))
        before = str(inbound.payload.get(AFTER) or "")
        earlier = receipt_in(await self.store.load(before)) if before else None
        done = [facts_entry(earlier.to_json())] if earlier else []
        await turn.append([*beginning(inbound, self.history.open_calls(), opening), *done])
        said, trace = said_by(inbound), turn.origin.trace
        turn.tell(events.TurnStarted(agent=self.name, message=said, event=inbound.kind, trace=trace))
        for problem in self.colleagues.directory.news():
            turn.warn(problem)

    def turn_of(self, claimed: ClaimedTurn, options: TurnOptions, emit: Emit = lambda _: None) -> Turn:
        """Return the turn for a claimed event, with everything that its steps need."""
        queue, session = self.functions.granting.queue, self.session
        payload, is_between = claimed.event.payload, claimed.event.kind in BETWEEN
        thread = str(payload.get("thread") or "") if is_between else ""
        colleagues, limits, account = self.colleagues, self.colleagues.limits(), None
        if thread or colleagues.profile.limits != SpendingLimits() or limits.keys() - OF_MESSAGES or colleagues.peers():
            parent = options.allowance or SpendingLimits(**limits, where=LIMITS_FROM)
            own = lambda: colleagues.profile.limits  # noqa: E731 - as the file says then
            account = Account(self.name, thread or claimed.id, self.store, own, session.clock, parent)
        # An answer to a turn that the user began, or its restart, continues it.
        is_continuation = claimed.event.kind == "answer" or (claimed.event.kind == "again" and not payload.get("from"))
        origin = TurnOrigin(
            thread=thread or claimed.id,
            owes=str(payload.get("owes") or "") if is_between else "",
            hops=int(payload.get("hops") or 0) if is_between else 0,
            is_asked=claimed.event.kind in ("message", "login", "ask", "answer", "handoff", HEARD),
            is_users=not is_between or (is_continuation and not payload.get("owes")),
            verify=session.verify and session.style.verify and not any(map(is_reply, self.history)),
            on_behalf_of=options.on_behalf_of or (str(payload.get("from") or "") if is_between else ""),
            trace=str(payload.get("trace") or ""),
            only=frozenset(payload.get(ONLY) or ()),
            restarts=options.restarts,
            continues=str(payload.get(AFTER) or ""),
            client=ClientFunctions.of(claimed.event),
            group=options.group,
            account=account,
        )
        questions = TurnQuestions(
            queue if options.approver is None else queue.asking(options.approver),
            slot=None if options.debugger is None else DebuggerSlot(options.debugger),
        )
        return Turn(
            claimed.id,
            self.name,
            claimed.attempt,
            self.store,
            self.history,
            emit,
            options.meta_self,
            origin,
            TurnJournal(claimed.n),
            questions,
            session.style,
            session.clock,
            OwnName(self.name),
        )

    async def _run_next(self, posts: Sequence[Post], emit: Emit, options: TurnOptions) -> None:
        for post in posts:
            await self.store.post(post)
        skip = BETWEEN if posts else ()  # the user's message comes before those of other agents
        with self.functions.in_use():
            claimed = await self._next(skip, restarts=options.restarts)
            if claimed is None:
                return
            self.colleagues.refresh()
            try:
                await self._run_claimed(self.turn_of(claimed, options, emit), claimed.event)
            finally:
                self.colleagues.release()

    async def _next(self, skip: Collection[str] = (), *, restarts: bool) -> ClaimedTurn | None:
        """Return the next turn, after closing earlier ones whose end was not stored, for example on a full disk."""
        claimed = await self.store.next(self.name, self.owner, skip=skip)
        while claimed is not None and claimed.attempt > 1:
            await settle(self.store, claimed, self.session, restarts=restarts)
            await resume(self.store, self.name, self.history, messages_of)
            claimed = await self.store.next(self.name, self.owner, skip=skip)
        return claimed

    async def _run_claimed(self, turn: Turn, inbound: Inbound) -> None:
        await self.begin(turn, inbound)
        self.turn = turn
        if self.ends_at_once:
            turn.ending.interruption.request()
        try:
            ended = await self._steps(turn)
        finally:
            self.turn = None
        if ended.warning:
            turn.warn(ended.warning, ended.fix)
        # An agent that sees only some functions always sees those that it made.
        if "*" not in self.colleagues.profile.functions:
            for name in turn.made & self.functions.registry.snapshot().functions.keys():
                await self.session.own_set.add(name)
        state = "done" if ended.reason == "replied" else ended.reason
        posts, writes = _closing(turn, ended)
        writes = [*writes, *self.session.beat()]
        why = [Entry(ENDED, {"text": ended.why})] if ended.why and ended.reason != "replied" else []
        await turn.append_receipt(*why)
        self.receipt = turn.receipt
        await self.store.finish(turn.id, turn.attempt, state, posts=posts, writes=writes)
        made, usage, receipt = turn.receipt.to_json(), turn.work.tokens, turn.receipt.text
        _log.info("%s: turn %s ended (%s): %s", self.name, turn.id, ended.reason, receipt)
        reason, reply, steps = ended.reason, ended.reply, turn.step
        turn.tell(events.TurnEnded(reason=reason, reply=reply, steps=steps, usage=usage, made=made, receipt=receipt))

    async def _steps(self, turn: Turn) -> Ended:
        try:
            ended = await self.loop.run(turn)
        except Exception as error:
            # A bug, or an error such as a full disk: make the history valid first; the interface reports the error.
            why = f"{error.message} {error.fix}".strip() if isinstance(error, KnapperError) else "The program failed."
            await self._settle_calls(
                turn, "The turn ended here because the program failed.", Entry(ENDED, {"text": why})
            )
            await turn.append_receipt()
            writes = _closing(turn, Ended("failed", warning="The program failed."))[1]
            await self.store.finish(turn.id, turn.attempt, "failed", writes=writes)
            raise
        if ended.reason == "interrupted":
            await self._settle_calls(turn, STOPPED if turn.is_handed_back else "The user ended the turn here.")
        return ended

    async def _settle_calls(self, turn: Turn, why: str, *more: Entry) -> None:
        """Answer the calls of a turn that ended early, so that its history is valid."""
        await turn.append([*closing_answers(await self.store.load(turn.id)), notice(why), *more])


def _closing(turn: Turn, ended: Ended) -> tuple[list[Post], list[Write]]:
    """Return the posts and writes that end a turn: its spending, and its reply to the agent that asked."""
    writes = turn.origin.account.writes(is_last=True) if turn.origin.account else []
    if ended.reason == "repeated" and turn.origin.thread != turn.id:
        return [], [*writes, SetThread(turn.origin.thread, "stuck", ended.why)]
    if turn.is_handed_back and ended.reason == "interrupted":
        kept = {
            "thread": turn.origin.thread,
            "owes": turn.origin.owes,
            "hops": turn.origin.hops,
            "from": turn.origin.on_behalf_of,
            "trace": turn.origin.trace,
            ONLY: sorted(turn.origin.only),
            AFTER: turn.id,
        }
        return [Post(turn.agent, "again", {**kept, "tries": 0}, key=f"again:{turn.id}")], writes
    if not turn.origin.owes or ended.reason in ("parked", "handed_off", "stuck"):
        return [], writes
    if ended.reason == "replied":
        return [], [*writes, AnswerAsk(turn.origin.owes, ended.reply)]
    why = ended.why or "The turn was ended by the user."
    return [], [*writes, AnswerAsk(turn.origin.owes, f"{ended.reply}\n{why}".strip(), "failed")]
