"""Runs the turns of one agent, one at a time: claims each from the store, begins it, runs the loop, and closes it.

However a turn ends, its history is valid and on disk.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError
from agent_core.base.limits import NAMES, OF_MESSAGES, Allowance, SpendingLimits
from agent_core.base.receipt import Receipt
from agent_core.context import History, resume
from agent_core.functions.debug import Debugger, DebuggerSeat
from agent_core.storage import (
    BETWEEN,
    ENDED,
    LIMITS_FROM,
    Amounts,
    ClaimedTurn,
    Entry,
    Inbound,
    Post,
    SpendInThread,
    Store,
    ThreadRow,
    Write,
)

from .client_calls import ClientFunctions, beginning
from .identity import OwnName
from .session import STOPPED, AgentSession, closing, closing_answers, is_reply, settle
from .turn import (
    AFTER,
    HEARD,
    ONLY,
    Company,
    Emit,
    Turn,
    TurnJournal,
    TurnOrigin,
    TurnQuestions,
    facts_entry,
    messages_of,
    notice,
    receipt_in,
    said_by,
)
from .turn_policy import Ended

if TYPE_CHECKING:
    from agent_core.access.grants import Approver
    from agent_core.functions.service import FunctionService

    from .colleagues import Colleagues
    from .groups.loop import GroupLoop
    from .loop import AgentLoop

_COUNTED: Final = tuple(name for name in NAMES if name not in ("hops", "seconds"))  # the others are not sums
_log = logging.getLogger("knapper.turns")


TurnLoop: TypeAlias = "AgentLoop | GroupLoop"
"""Runs the turns of an agent: the steps of a model, or the members of a group."""


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """The options of one turn: who is asked about grants, who debugs, its group, and the allowance that pays for it.

    `hand` is the `self` of its meta-functions, which is the agent. A runner does not hold the agent, so that the agent
    is freed when its users are done.
    """

    hand: object
    approver: "Approver | None" = None
    debugger: Debugger | None = None
    company: Company | None = None
    spends_for: Allowance | None = None
    works_for: str = ""  # the calling agent if this agent is a helper
    goes_on: bool = False  # whether an interrupted turn of the user resumes


def _is_of_user(inbound: Inbound) -> bool:
    """Return whether an event continues a turn that the user began: an answer to it, or its restart."""
    payload = inbound.payload
    return not payload.get("owes") and (
        inbound.kind == "answer" or (inbound.kind == "again" and not payload.get("from"))
    )


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
            claimed = await self._next(goes_on=options.goes_on)
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
        for problem in self.colleagues.news():
            turn.warn(problem)

    def turn_of(self, claimed: ClaimedTurn, options: TurnOptions, emit: Emit = lambda _: None) -> Turn:
        """Return the turn for a claimed event, with everything that its steps need."""
        queue, session = self.functions.granting.queue, self.session
        payload, is_between = claimed.event.payload, claimed.event.kind in BETWEEN
        thread = str(payload.get("thread") or "") if is_between else ""
        own = self.colleagues.profile.limits
        limits = self.colleagues.limits().keys() - OF_MESSAGES
        has_account = bool(thread or own.amounts() or limits or self.colleagues.peers())
        origin = TurnOrigin(
            thread=thread or claimed.id,
            owes=str(payload.get("owes") or "") if is_between else "",
            hops=int(payload.get("hops") or 0) if is_between else 0,
            is_asked=claimed.event.kind in ("message", "login", "ask", "answer", "handoff", HEARD),
            is_users=not is_between or _is_of_user(claimed.event),
            verify=session.verify and session.style.verify and not any(map(is_reply, self.history)),
            works_for=options.works_for or (str(payload.get("from") or "") if is_between else ""),
            trace=str(payload.get("trace") or ""),
            only=frozenset(payload.get(ONLY) or ()),
            goes_on=options.goes_on,
            continues=str(payload.get(AFTER) or ""),
            client=ClientFunctions.of(claimed.event),
            company=options.company,
            account=self._account(thread or claimed.id, options.spends_for) if has_account else None,
        )
        questions = TurnQuestions(
            queue if options.approver is None else queue.asking(options.approver),
            seat=None if options.debugger is None else DebuggerSeat(options.debugger),
        )
        return Turn(
            claimed.id,
            self.name,
            claimed.attempt,
            self.store,
            self.history,
            emit,
            options.hand,
            origin,
            TurnJournal(claimed.n),
            questions,
            session.style,
            session.clock,
            OwnName(self.name),
        )

    def _account(self, thread: str, spends_for: Allowance | None) -> "Account":
        parent = spends_for or SpendingLimits(**self.colleagues.limits(), where=LIMITS_FROM)
        own = lambda: self.colleagues.profile.limits  # noqa: E731 - as the file says then
        return Account(self.name, thread, self.store, own, self.session.clock, parent)

    async def _run_next(self, posts: Sequence[Post], emit: Emit, options: TurnOptions) -> None:
        for post in posts:
            await self.store.post(post)
        skip = BETWEEN if posts else ()  # the user's message comes before those of other agents
        with self.functions.in_use():
            claimed = await self._next(skip, goes_on=options.goes_on)
            if claimed is None:
                return
            self.colleagues.look()
            try:
                await self._run_claimed(self.turn_of(claimed, options, emit), claimed.event)
            finally:
                self.colleagues.look_away()

    async def _next(self, skip: Collection[str] = (), *, goes_on: bool) -> ClaimedTurn | None:
        """Return the next turn, after closing earlier ones whose end was not stored, for example on a full disk."""
        claimed = await self.store.next(self.name, self.owner, skip=skip)
        while claimed is not None and claimed.attempt > 1:
            await settle(self.store, claimed, self.session, goes_on=goes_on)
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
            self.session.touch()
        if ended.warning:
            turn.warn(ended.warning, ended.fix)
        # An agent that sees only some functions always sees those that it made.
        if "*" not in self.colleagues.profile.functions:
            for name in turn.made & self.functions.registry.snapshot().functions.keys():
                await self.session.own_set.add(name)
        state = "done" if ended.reason == "replied" else ended.reason
        posts, writes = closing(turn, ended)
        writes = [*writes, *self.session.beat()]
        why = [Entry(ENDED, {"text": ended.why})] if ended.why and ended.reason != "replied" else []
        await turn.append_receipt(*why)
        self.receipt = turn.receipt
        await self.store.finish(turn.id, turn.attempt, state, posts=posts, writes=writes)
        _log.info("%s: turn %s ended (%s): %s", self.name, turn.id, ended.reason, turn.receipt.text)
        made, usage, receipt = turn.receipt.to_json(), turn.work.tokens, turn.receipt.text
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
            writes = closing(turn, Ended("failed", warning="The program failed."))[1]
            await self.store.finish(turn.id, turn.attempt, "failed", writes=writes)
            raise
        if ended.reason == "interrupted":
            await self._settle_calls(turn, STOPPED if turn.is_handed_back else "The user ended the turn here.")
        return ended

    async def _settle_calls(self, turn: Turn, why: str, *more: Entry) -> None:
        """Answer the calls of a turn that ended early, so that its history is valid."""
        await turn.append([*closing_answers(await self.store.load(turn.id)), notice(why), *more])


class Account:
    """The budget of a turn: the agent's limits, within what its thread, shared with other agents, has left."""

    def __init__(
        self,
        agent: str,
        thread: str,
        store: Store,
        own: Callable[[], SpendingLimits],
        clock: Clock,
        parent: Allowance | SpendingLimits,
    ) -> None:
        """Open the account; `own` returns the limits in the agent's file now.

        `parent` also pays: the caller's allowance, or the limits of a thread. These belong to this turn alone until a
        message makes it a thread with other agents.
        """
        self._alone = None if isinstance(parent, Allowance) else Allowance(parent)
        self.allowance = Allowance(own(), parent if isinstance(parent, Allowance) else self._alone)
        self._own = own
        self.thread = thread
        self._agent = agent
        self._store = store
        self._clock = clock
        self._began = clock.monotonic()
        self._saved: Amounts = {}
        self._before: Amounts | None = None

    async def broken(self) -> str | None:
        """Return why the next request must not be sent, or None. Call it before each request."""
        row = await self._store.thread(self.thread)
        if row is not None and row.state != "open":
            return f"The thread was stopped: {row.why}" if row.why else "The thread was stopped."
        self._refresh(row)
        self.allowance.limits = self._own()
        return self.allowance.broken()

    def spend(self, **amounts: int | float) -> None:
        """Add to the amounts spent."""
        self.allowance.spend(**amounts)

    def writes(self, *, is_last: bool = False) -> list[Write]:
        """Return the write of what was spent since the last one; none until a thread exists or the turn ends."""
        if self._before is None and not is_last:
            return []
        spent, saved = self._own_spent(), self._saved
        amounts = {name: fresh for name, amount in spent.items() if (fresh := amount - saved.get(name, 0)) > 0}
        self._saved = spent
        return [SpendInThread(self.thread, self._agent, amounts)] if amounts else []

    def _own_spent(self) -> Amounts:
        before = self._before or {}
        return {name: self.allowance.spent[name] - before.get(name, 0) for name in _COUNTED}

    def _refresh(self, row: ThreadRow | None) -> None:
        """Take over what others spent in the thread meanwhile, and what this agent spent in it before this turn."""
        if row is not None:
            own = self._own_spent()
            if self._before is None:
                mine = row.spent.get(self._agent, {})
                self._before = {name: mine.get(name, 0) - self._saved.get(name, 0) for name in _COUNTED}
                for name in _COUNTED:
                    self.allowance.spent[name] += self._before[name]
            total = row.total()
            for name in _COUNTED:
                total[name] = total.get(name, 0) + own[name] - self._saved.get(name, 0)
            total["seconds"] = max(self._clock.now() - row.started, 0)
            self.allowance.parent = row.allowance(**total)
        self.allowance.spent["seconds"] = self._clock.monotonic() - self._began
        if self._alone is not None:
            self._alone.spent["seconds"] = self.allowance.spent["seconds"]
