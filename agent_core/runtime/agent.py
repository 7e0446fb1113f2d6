"""The agent: `Agent.turn` runs the loop, and every interface consumes its events.

A turn is a sequence of steps. A step is one model reply with the calls that it requests, and it ends when every call is
answered or handed to a client. The runner runs an agent's turns one at a time: it claims each from the store, begins
it, runs the loop, and closes it. However a turn ends, its history is valid and on disk.
"""

import asyncio
import logging
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, overload

from agent_core.access.grants import NOTHING, Grants, TaskReach
from agent_core.access.grants.approval import FollowedQuestions
from agent_core.base import events
from agent_core.base.caps import Payer, paid_by
from agent_core.base.errors import (
    AgentBusy,
    KnapperError,
    LostLease,
    ModelError,
    UsageError,
    WorkspaceError,
)
from agent_core.base.limits import OF_MESSAGES, Allowance, SpendingLimits
from agent_core.base.matching import MARK
from agent_core.base.pictures import (
    MAX_BYTES,
    Picture,
    PictureFile,
    UnusablePicture,
    check_count,
    with_pictures,
)
from agent_core.base.plain_files import read_beginning
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.receipt import Receipt
from agent_core.base.records import asdict, dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.context import History, PageReader, RequestPrompt, claim, resume
from agent_core.context import pop as pop_turn
from agent_core.context.folds import receipt_in
from agent_core.functions.debug import Debugger, DebuggerSlot
from agent_core.functions.gate.draft import ALONE
from agent_core.functions.service import Author, FunctionService, StaleView
from agent_core.registry.answer_shapes import AnswerShape
from agent_core.registry.function import fits
from agent_core.storage import (
    AGAIN,
    BETWEEN,
    FROM_USER,
    LIMITS_FROM,
    MAIN,
    SUMMARY,
    AnswerAsk,
    ClaimedTurn,
    ConversationRow,
    Entry,
    Inbound,
    Post,
    SetThread,
    Store,
    Write,
    agent_of,
    dump,
)
from agent_core.storage.inbox import ALONE as BEGINS_ALONE
from agent_core.storage.inbox import (
    CLIENT,
    CONTINUES,
    EXPECTS,
    HEARD,
    HERE,
    MAX_STEPS,
    MODEL,
    ONLY,
    POLICY,
)
from agent_core.storage.journal import (
    EndEntry,
    MessageEntry,
    facts_entry,
    notice,
    read_all,
    read_marks,
    text_of,
    write_entry,
)
from sandbox.wire.strict_json import whole_characters

from .event_fold import EventFold
from .live_feed import LiveFeed
from .message_protocol import is_readable
from .session import GO_ON, SENT, STOPPED, AgentSession, closing_answers, is_reply, settle
from .shared_debugger import FollowedStops, OwnDebugger
from .taken_up import begun, is_alone, is_unwatched
from .turn import Account, Emit, OwnName, Turn, TurnGroup, TurnJournal, TurnOrigin, TurnQuestions
from .turn_end import Ended
from .turn_follower import TurnFollower

if TYPE_CHECKING:
    from agent_core.access.grants import Approver
    from agent_core.base.messages import Message
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.registry.registry import Snapshot

    from .colleagues import Colleagues
    from .dispatch import MakesHelpers
    from .model_session import ModelSession, ShowsWait
    from .source import ToolSources


T = TypeVar("T")
PictureSource: TypeAlias = Path | str | bytes | PictureFile | Picture
"""A picture for a message: a file by its path, its content, or one that is kept."""

_log = logging.getLogger("knapper.turns")
_EXPECTS: Final = "expect_reach(network=[hosts], read=[files, folders], write=[…], packages=[…], secrets=[…], why=…)"
_ABOUT_MODES: Final[Mapping[str, str]] = {
    "plan": "This turn is a plan. Only read: nothing is kept, made or written, and what would is refused. End with"
    f" your proposal: what you would do, step by step. Before that, name all that it will have to reach: {_EXPECTS}.",
    "task": "Before the first call that reaches anything, name at once all that this task will have to reach, so that"
    f" the user is asked once: {_EXPECTS}. Leave out what it does not need and what is allowed already.",
}
"""What the model is told at the end of the message that begins a turn of this mode."""


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
    shape: AnswerShape | None = None  # of the reply to the message that is sent with it
    follows: bool = False  # whether a turn that runs elsewhere is told of


_PAUSE_S: Final = 0.05  # between looks at what another process does with a message
_LOOK_S: Final = 0.5  # between looks whether a process that tells of its turn still runs it
_PRECEDENCE_S: Final = 1.0
_LIE_S: Final = 2.0
TAKEN_OVER: Final = (
    "Another process took over this turn, perhaps while this one was suspended; it goes on there."
)
_NOBODY_ASKS: Final = "the process that asked has ended"
_OFFER_S: Final = 3.0  # how long others have to take up a message for which no model is here
_STEP_LIMIT: Final = 1_000_000
_OTHER_MODEL: Final = (
    "The message asks for the model {}, which cannot be opened in the process that answers it"
    " ({}) Its own model answers."
)
_HANDED_OVER: Final = "No model can answer here ({}) Another window that has one is asked to."
_WITHDRAWN: Final = (
    "The message was taken back in another window before a turn had it: nothing answers it."
)
_MISSED_LIMIT: Final = 20  # turns that are told of at once
_SENT_LIMIT: Final = 1_000  # messages that are known to come from here
# The user's message comes before those of other agents, but not before its own turn that was cut off.
_LATER_KINDS: Final = tuple(kind for kind in BETWEEN if kind != AGAIN)
_OWN_KINDS: Final = (AGAIN, "answer")  # they go on with a turn of the agent itself


@dataclass(slots=True)
class TurnRunner:
    """The runner of the turns of one conversation, by its line; `turn` is the running turn."""

    line: str
    store: Store
    owner: str
    loop: TurnLoop
    session: AgentSession
    tools: "ToolSources"
    functions: "FunctionService"
    history: History
    memory: "AgentMemory"
    turn: Turn | None = None
    following: TurnFollower | None = None  # of a turn that another process runs, or will run
    receipt: Receipt = field(default_factory=Receipt)  # of the last turn
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    ends_at_once: bool = False  # interrupt the turn that is about to begin
    sent: deque[str] = field(default_factory=lambda: deque(maxlen=_SENT_LIMIT))  # from here
    passed: tuple[str, float] = ("", 0.0)  # a message that is left to its sender, and since when
    leaves: bool = False  # stop waiting for the turn that another process runs, which goes on
    is_stale: bool = False  # another process may have continued the conversation
    seen: int = 0  # the number of the last entry or end of a turn that was told of
    settled: str = ""  # about a turn that was cut off, until somebody is told
    has_claimed: bool = False  # a turn, since the conversation is held
    ring: Callable[[], object] = lambda: None  # tells other processes that a turn began or ended
    has_others: Callable[[], bool] = lambda: False  # whether other processes answer messages here
    offered_since: float | None = None  # when our message was left to others, as no model is here
    stops: FollowedStops | None = None  # of the turn that is followed
    own_debugger: OwnDebugger | None = None  # of this window

    @property
    def name(self) -> str:
        """The agent whose turns they are."""
        return agent_of(self.line)

    async def run(
        self, posts: Sequence[Post], options: TurnOptions
    ) -> AsyncGenerator[events.Event, None]:
        """Post these events to the inbox, run the turn that they begin, and yield its events.

        Leaving the iteration early interrupts the turn.
        """
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        async with self.one_at_a_time:
            self.receipt = Receipt()
            work = asyncio.create_task(self._answer(posts, queue.put_nowait, options))
            work.add_done_callback(lambda _: queue.put_nowait(None))
            try:
                while (event := await queue.get()) is not None:
                    yield event
            finally:
                self.leaves = not posts
                self._request_end()
                try:
                    await work
                finally:
                    self.ends_at_once = False
                    self.leaves = False

    def interrupt(self, *, resumes: bool) -> None:
        """Interrupt the running turn, or the one that is about to begin.

        If it `resumes`, one that another process runs, or will run, goes on there.
        """
        if self.turn is not None:
            self.turn.ending.resumes |= resumes
        self.leaves = resumes and self.one_at_a_time.locked()
        self._request_end()

    def _request_end(self) -> None:
        if self.turn is not None:
            self.turn.ending.interruption.request()
        else:
            self.ends_at_once = self.one_at_a_time.locked()
        if self.following is not None:
            self.following.comes.set()

    @asynccontextmanager
    async def owned(self) -> AsyncIterator[None]:
        """Hold the conversation, as it is now, while the block runs.

        Raises:
            AgentBusy: another process runs it.
        """
        await self.take()
        try:
            yield
        finally:
            await self.let_go()

    async def take(self) -> None:
        """Hold the conversation, and read it again if another process may have changed it.

        Raises:
            AgentBusy: another process runs it.
        """
        if not self.store.has(self.line):
            self.is_stale = not await self.store.take_back(self.line) or self.is_stale
        try:
            if self.is_stale:
                await self.reload()
        except BaseException:
            await self.let_go()
            raise

    async def let_go(self) -> None:
        """Let other processes run the conversation; a group holds its members as long as it is open."""
        if self.loop.is_group:
            return
        await self.store.lend(self.line)
        if self.has_claimed:
            self.has_claimed = False
            self.ring()

    async def reload(self) -> None:
        """Read the conversation again, which another process may have continued."""
        before = len([*self.history])
        await resume(self.store, self.line, self.history)
        if len([*self.history]) != before:
            self.loop.model_session.shown.thaw()
        await self.memory.blocks.reload()
        await self.session.own_set.load()
        await self.session.load_pause()
        self.is_stale = False

    async def _answer(self, posts: Sequence[Post], emit: Emit, options: TurnOptions) -> None:
        """Run the next turn, or with `posts` those until the last of them is answered, here or elsewhere.

        Only the turn that answers is told of.
        """
        own = [await self.post(post) for post in posts]
        follower = TurnFollower(self.store, self.line, own[-1] if own else "")
        await self._tell_missed(follower, emit, options)
        if not own:
            running = await self.store.running_event(self.line) if options.follows else ""
            try:
                await self._give_precedence()
                await self.take()
            except AgentBusy:
                if not running:
                    raise
                own = [running]
                follower.message = running
            else:
                try:
                    await self._tell_missed(follower, emit, options)
                    await self._run_next((), emit, options)
                finally:
                    await self.let_go()
                return
        approver = options.approver or self.functions.granting.queue.approver
        self.following = follower
        questions = (
            FollowedQuestions(approver, self.store, lambda: follower.is_of_this_user)
            if approver
            else None
        )
        self.stops = stops = FollowedStops(self.store, self.own_debugger)

        def tell(event: events.Event) -> None:
            if self.turn is None:  # else the turn asks itself
                stops.hear(event)
                if questions is not None:
                    questions.hear(event)
            emit(event)

        try:
            self.offered_since = None
            await self._await_answer(own, tell, options, questions, posted=bool(posts))
        finally:
            follower.close()
            self.following = None
            self.stops = None
            await stops.aclose()
            if questions is not None:
                await questions.aclose()

    async def _give_precedence(self) -> None:
        """Leave the next message to its sender for a second.

        Raises:
            AgentBusy: it is due to its sender.
        """
        waiting = await self.store.waiting(self.line)
        if not waiting or not waiting[0].here or waiting[0].id in self.sent:
            return
        if self._passes(waiting[0].id):
            raise self._due_to_another()

    def _passes(self, message: str) -> bool:
        """Return whether the next message that waits is left to its sender, which has a second from now."""
        now = self.session.clock.monotonic()
        if self.passed[0] != message:
            self.passed = (message, now)
        return now - self.passed[1] < _PRECEDENCE_S

    async def _await_answer(
        self,
        own: Sequence[str],
        emit: Emit,
        options: TurnOptions,
        questions: FollowedQuestions | None,
        *,
        posted: bool,
    ) -> None:
        """Run or follow turns until the last of our `own` messages is answered, or another process is left to it."""
        follower = self.following
        assert follower is not None
        is_told = not posted
        was_stopped = False
        is_left = False
        while not (follower.is_over or self.leaves):
            if await follower.is_withdrawn():
                emit(events.Warned(message=_WITHDRAWN))
                break
            try:
                await self._take_in_order(own, follower)
            except AgentBusy as busy:
                if not is_told or busy.is_stopped > was_stopped:
                    whom = "This message waits for it." if posted else "It is waited for."
                    fix = busy.fix if busy.is_stopped else ""
                    emit(events.Warned(message=f"{busy.message} {whom}", fix=fix))
                is_told = True
                was_stopped = busy.is_stopped
                await self._follow(follower, emit)
                await self._tell_missed(follower, emit, options)
                await self._stop_following(follower)
            else:
                if questions is not None:
                    await questions.aclose(_NOBODY_ASKS)
                is_answered = await self._run_held(own, follower, emit, options, posted=posted)
                is_left = is_answered is None
                if is_answered:
                    return
            if not follower.is_over:
                for event in await follower.wait(_LOOK_S, _LOOK_S if is_left else _PAUSE_S):
                    emit(event)
        if options.follows:  # commands show what was said elsewhere, too
            await self.reload()

    async def _run_held(
        self,
        own: Sequence[str],
        follower: TurnFollower,
        emit: Emit,
        options: TurnOptions,
        *,
        posted: bool,
    ) -> bool | None:
        """Do as `_run_own` does, and let go. A turn that another process took over is left to that.

        None is returned if our message was left to others for now, because no model is here.
        """
        is_answered: bool | None = None
        is_lost = False
        try:
            await self._tell_missed(follower, emit, options)
            if not (posted and await self._hand_over(follower, emit)):
                is_answered = await self._run_own(own, follower, emit, options)
        except* LostLease:
            is_lost = True
            is_answered = False
        finally:
            await self.let_go()
        if is_lost:
            emit(events.Warned(message=TAKEN_OVER))
            await self._leave_to_others(follower, emit)
        return is_answered

    async def _leave_to_others(self, follower: TurnFollower, emit: Emit) -> None:
        """Follow for a while without taking the conversation, which a lock that lies gives to two processes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIE_S):
                while not (follower.is_over or self.ends_at_once or self.leaves):
                    await self._follow(follower, emit)
                    for event in await follower.wait(_PAUSE_S, _PAUSE_S):
                        emit(event)

    async def _hand_over(self, follower: TurnFollower, emit: Emit) -> bool:
        """Return whether our message is left to another process for now, because this one has no model for it."""
        await self._follow(follower, emit)
        if follower.turn or self.loop.is_group or not self.has_others():
            return False
        now = self.session.clock.monotonic()
        if self.offered_since is None:
            try:
                await self.loop.model_session.model()
            except (ModelError, UsageError) as error:
                emit(events.Warned(message=_HANDED_OVER.format(one_line(error.message, 200))))
                self.offered_since = now
            else:
                return False
        return now - self.offered_since < _OFFER_S

    async def post(self, post: Post) -> str:
        """Post an event of this window, and return its id."""
        id = await self.store.post(post)
        self.sent.append(id)
        return id

    async def _follow(self, follower: TurnFollower, emit: Emit) -> None:
        for event in await follower.news():
            emit(event)
        if follower.is_over:
            self.seen = max(self.seen, follower.last)

    async def _tell_missed(self, follower: TurnFollower, emit: Emit, options: TurnOptions) -> None:
        """Tell of the turns that ended elsewhere since the last one that was told of here, before the followed one."""
        if not options.follows or follower.turn:
            return
        for ended in await self.store.ended_turns(self.line, self.seen, most=_MISSED_LIMIT):
            message = follower.message
            if message and ended.id == await self.store.turn_of(message, self.line):
                break
            await self._follow(TurnFollower(self.store, self.line, "", ended.id), emit)

    async def has_missed(self) -> bool:
        """Return whether a turn runs, or has ended, that was not told of here."""
        if self.one_at_a_time.locked():
            return False
        # One that has only begun has no number yet; its process may have been killed.
        is_running = bool(await self.store.running_event(self.line))
        return is_running or await self.store.last_seq(self.line) > self.seen

    async def _stop_following(self, follower: TurnFollower) -> None:
        """End the turn that another process runs for our message, or withdraw the message, if the user says so."""
        if not self.ends_at_once:
            return
        if follower.turn:
            follower.end_turn()
            await self.store.cancel(follower.turn)  # else its process notices at its next entry
            self.ends_at_once = False
        else:
            follower.is_over = await self.store.withdraw(follower.message)

    async def _run_own(
        self,
        own: Sequence[str],
        follower: TurnFollower,
        emit: Emit,
        options: TurnOptions,
    ) -> bool:
        """Run due turns until the last of our `own` messages is answered; return whether it is.

        Another process that waits with an earlier message gets a second to answer it where it can be asked.
        """
        while True:
            await self._follow(follower, emit)
            if follower.is_over:
                return True
            if await follower.is_withdrawn():
                return False
            if await self._is_due_to_another(own, follower):
                return False
            is_answered = await self._run_next(_LATER_KINDS, emit, options, own)
            if is_answered is None:  # it was cut off, and ends here or goes on later
                await self._follow(follower, emit)
                return follower.is_over or not await self._goes_on_later(own[-1])
            if is_answered:
                return True

    async def _take_in_order(self, own: Sequence[str], follower: TurnFollower) -> None:
        """Take the conversation as `take` does, unless the next turn is due to another process, which would wait.

        Raises:
            AgentBusy: another process runs it, or is due.
        """
        is_free = not await self.store.running_event(self.line)
        if is_free and await self._is_due_to_another(own, follower):
            raise self._due_to_another()
        await self.take()

    def _due_to_another(self) -> AgentBusy:
        return AgentBusy(f"A message for `{self.name}` was sent just before.", fix="Wait a second.")

    async def _is_due_to_another(self, own: Sequence[str], follower: TurnFollower) -> bool:
        """Return whether the next message that waits is left to its sender, none of our `own` being before it."""
        if follower.turn:
            return False
        waiting = [
            id for id, kind in await self.store.waiting_events(self.line) if kind not in BETWEEN
        ]
        return bool(waiting) and waiting[0] not in own and self._passes(waiting[0])

    async def _goes_on_later(self, message: str) -> bool:
        """Return whether the turn of a message of ours was cut off and will go on, unless the user ends it."""
        again = await self.store.resumption_of(message) if message in self.sent else ""
        if again and self.ends_at_once:
            await self.store.withdraw(again)
            return False
        return bool(again)

    @asynccontextmanager
    async def alone(self, kind: str, options: TurnOptions) -> AsyncIterator[Turn]:
        """Run a block in a turn that no message began; its event is claimed before everything that waits."""
        async with self.one_at_a_time, self.owned():
            await self.store.post(Post(self.line, kind, {}, due=0.0))
            claimed = await self._next(restarts=options.restarts)
            assert claimed is not None
            turn = self.turn = self.turn_of(claimed, options)
            try:
                with paid_by(Payer(turn.id, turn.line, told=turn)):
                    yield turn
            finally:
                self.turn = None
                await self.store.finish(turn.id, turn.attempt)
                self.seen = await self.store.last_seq(self.line)

    async def begin(self, turn: Turn, inbound: Inbound) -> None:
        """Store the first entries of a turn, and notify its listeners."""
        opening = await self.session.opening(inbound, is_first=not any(self.history))
        before = inbound.after
        earlier = receipt_in(await self.store.load(before)) if before else None
        done = [facts_entry(earlier.to_json())] if earlier else []
        opening[-1] = begun(opening[-1], inbound, turn.policy)
        first = self.tools.begin(inbound, self.history.open_calls(), opening)
        about = _ABOUT_MODES.get(turn.policy.mode)
        await turn.append([*first, *done, *([notice(about)] if about else [])])

    def turn_of(
        self, claimed: ClaimedTurn, options: TurnOptions, emit: Emit = lambda _: None
    ) -> Turn:
        """Return the turn for a claimed event, with everything that its steps need."""
        queue, session = self.functions.granting.queue, self.session
        event = claimed.event
        is_between = event.kind in BETWEEN
        thread = event.thread if is_between else ""
        tools, limits, account = self.tools, session.thread_limits, None
        if (
            thread
            or tools.profile.limits != SpendingLimits()
            or limits.keys() - OF_MESSAGES
            or tools.has_company
        ):
            parent = options.allowance or SpendingLimits(**limits, where=LIMITS_FROM)
            own = lambda: tools.profile.limits  # noqa: E731 - as the file says then
            account = Account(
                self.name, thread or claimed.id, self.store, own, session.clock, parent
            )
        # An answer to a turn that the user began, or its restart, continues it.
        is_continuation = event.kind == "answer" or (event.kind == "again" and not event.from_)
        is_users = not is_between or (is_continuation and not event.owes)
        origin = TurnOrigin(
            thread=thread or claimed.id,
            owes=event.owes if is_between else "",
            hops=event.hops if is_between else 0,
            is_asked=event.kind in ("message", "login", "ask", "answer", "handoff", HEARD),
            is_users=is_users,
            is_unattended=not is_users or is_unwatched(event),
            verify=session.verify and session.style.verify and not any(map(is_reply, self.history)),
            on_behalf_of=options.on_behalf_of or (event.from_ if is_between else ""),
            trace=event.trace,
            only=frozenset(event.only),
            restarts=options.restarts,
            continues=event.after,
            is_clients=event.client is not None,
            max_steps=event.max_steps if 0 < event.max_steps <= _STEP_LIMIT else 0,
            group=options.group,
            account=account,
        )
        questions = TurnQuestions(
            queue if options.approver is None else queue.asking(options.approver),
            slot=None if options.debugger is None else DebuggerSlot(options.debugger),
        )
        return Turn(
            claimed.id,
            self.line,
            claimed.attempt,
            self.store,
            self.history,
            emit,
            options.meta_self,
            tools,
            origin,
            TurnJournal(claimed.n, EventFold(claimed.line, claimed.id)),
            questions,
            session.style,
            session.clock,
            OwnName(self.name),
            self._policy_of(event),
            TaskReach(Grants.from_json(event.expects)) if event.expects else TaskReach(),
            pictures=self.loop.model_session.pictures,
        )

    def _policy_of(self, inbound: Inbound) -> Policy:
        """Return the policy of the turn that an event begins: that which came with it, or the workspace's.

        A message of another agent brings that agent's, which only narrows.
        """
        usual = self.session.usual_policy
        if inbound.policy is None:
            return usual
        policy = Policy.from_json(inbound.policy)
        is_others = inbound.kind not in _OWN_KINDS and inbound.from_
        return usual.narrowed(policy) if is_others else policy

    async def _run_next(
        self, skip: Collection[str], emit: Emit, options: TurnOptions, own: Sequence[str] = ()
    ) -> bool | None:
        """Run the next turn, and return whether it took up the last of our `own` messages; None if nothing is due.

        Of other turns, nobody is told who waits for the answer to a message and does not follow the conversation.
        """
        message = own[-1] if own else ""
        with self.functions.use:
            claimed = await self._next(skip, own, restarts=options.restarts)
            if self.settled and (options.follows or not own):
                emit(events.Warned(message=self.settled))
            self.settled = ""
            if claimed is None:
                self.seen = await self.store.last_seq(self.line)
                return None
            is_own = await self._took(claimed, message)
            is_told = is_own or options.follows or not own or claimed.event.id in own
            self.tools.look()
            turn = self.turn_of(claimed, options, emit if is_told else lambda _: None)
            is_part = bool(options.on_behalf_of) or options.group is not None
            self.is_stale = True  # until all is stored that is said to have happened
            try:
                async with (
                    fed(turn, "" if is_part else self.store.place),
                    self._with_model(turn, claimed.event),
                ):
                    await self._run_claimed(turn, claimed.event, options.shape)
            finally:
                self.tools.end()
            self.is_stale = False
            self.seen = await self.store.last_seq(self.line)
        return is_own or await self._took(claimed, message)

    @asynccontextmanager
    async def _with_model(self, turn: Turn, inbound: Inbound) -> AsyncIterator[None]:
        """Have the model that the sender of a message chose for it answer while the block runs, if it can here."""
        models = self.loop.model_session.models
        wanted = inbound.model
        before = models.chosen
        if not wanted or inbound.id in self.sent or wanted in (before, models.name):
            yield
            return
        is_changed = False
        try:
            await self.loop.model_session.change(wanted)
            is_changed = True
        except KnapperError as error:
            why = one_line(error.message, 200)
            turn.tell(events.Warned(message=_OTHER_MODEL.format(one_line(wanted, 80), why)))
        try:
            yield
        finally:
            if is_changed:
                await self._change_back(turn, before)

    async def _change_back(self, turn: Turn, model: str | None) -> None:
        try:
            await self.loop.model_session.change(model)
        except KnapperError as error:  # the turn has its answer: the other model stays
            turn.tell(events.Warned(message=error.message, fix=error.fix))

    async def _took(self, claimed: ClaimedTurn, message: str) -> bool:
        return bool(message) and claimed.id == await self.store.turn_of(message, self.line)

    async def _next(
        self, skip: Collection[str] = (), own: Sequence[str] = (), *, restarts: bool
    ) -> ClaimedTurn | None:
        """Return the next turn, after closing earlier ones whose end was not stored, for example on a full disk.

        One whose sender waits for the answer begins again: that of another process, or of our `own` messages, but none
        that failed here, because its sender has the error.
        """
        claimed = await self.store.next(self.line, self.owner, skip=skip)
        self.has_claimed |= claimed is not None
        while claimed is not None and claimed.attempt > 1:
            has_sender = claimed.event.id in own or claimed.event.id not in self.sent
            is_owed = restarts or (is_alone(claimed.event) and has_sender)
            self.settled = await settle(self.store, claimed, self.session, restarts=is_owed)
            await resume(self.store, self.line, self.history)
            claimed = await self.store.next(self.line, self.owner, skip=skip)
        return claimed

    async def _run_claimed(
        self, turn: Turn, inbound: Inbound, shape: AnswerShape | None = None
    ) -> None:
        self.session.policy = turn.policy
        await self.begin(turn, inbound)
        if shape is not None and inbound.client == shape.terms:
            assert self.tools.guest is not None, "it is made of these terms"
            self.tools.guest.fault_of = shape.fault
        self.ring()
        self.turn = turn
        if self.ends_at_once:
            turn.ending.interruption.request()
        payer = Payer(turn.id, turn.line, turn.origin.is_unattended, turn)
        try:
            with paid_by(payer):
                ended = await self._steps(turn)
        finally:
            self.turn = None
        # An agent that sees only some functions always sees those that it made.
        if "*" not in self.tools.profile.functions:
            for name in turn.made & self.functions.registry.snapshot().functions.keys():
                await self.session.own_set.add(name)
        state = "done" if ended.reason == "replied" else ended.reason
        posts, writes = _closing(turn, ended)
        writes = [*writes, *self.session.beat()]
        why = list[Entry]()
        if ended.warning:
            why.append(write_entry(events.Warned(message=ended.warning, fix=ended.fix)))
        if ended.reason != "replied" and ended.why:
            why.append(write_entry(EndEntry(text=ended.why)))
        if ended.reason == "failed":  # else the model would read the next message as one with this
            why.append(notice(UNANSWERED))
        elif ended.reason == "limits" and ended.advice:
            why.append(notice(f"The turn ended here: {ended.advice}"))
        self.receipt = turn.receipt
        await turn.finish(state, *why, reply=ended.reply, posts=posts, writes=writes)
        receipt = turn.receipt.text
        _log.info("%s: turn %s ended (%s): %s", self.name, turn.id, ended.reason, receipt)

    async def _steps(self, turn: Turn) -> Ended:
        try:
            ended = await self.loop.run(turn)
        except Exception as error:
            # A bug, or an error such as a full disk: make the history valid first; the interface reports the error.
            why = (
                f"{error.message} {error.fix}".strip()
                if isinstance(error, KnapperError)
                else "The program failed."
            )
            await self._settle_calls(
                turn,
                "The turn ended here because the program failed.",
                write_entry(EndEntry(text=why)),
            )
            writes = _closing(turn, Ended("failed", warning="The program failed."))[1]
            await turn.finish("failed", writes=writes)
            raise
        if ended.reason == "interrupted":
            await self._settle_calls(
                turn, STOPPED if turn.resumes_later else "The user ended the turn here."
            )
        return ended

    async def _settle_calls(self, turn: Turn, why: str, *more: Entry) -> None:
        """Answer the calls of a turn that ended early, so that its history is valid."""
        await turn.append([*closing_answers(await self.store.load(turn.id)), notice(why), *more])


@asynccontextmanager
async def fed(turn: Turn, store: str) -> AsyncIterator[None]:
    """Tell other processes of this user of a turn while it runs, as its listeners here; without a `store`, nobody."""
    feed = LiveFeed(turn.id, turn.ending.interruption.request)
    emit = turn.emit

    def tell(event: events.Event) -> None:
        feed.tell(event)
        emit(event)

    if store:
        turn.emit = tell
        await feed.serve(store, turn.line)
    try:
        yield
    finally:
        await feed.aclose()


UNANSWERED: Final = "The turn ended here: it failed, and the user has no answer to this."


def _closing(turn: Turn, ended: Ended) -> tuple[list[Post], list[Write]]:
    """Return the posts and writes that end a turn: its spending, and its reply to the agent that asked."""
    writes = turn.origin.account.writes(is_last=True) if turn.origin.account else []
    if ended.reason == "repeated" and turn.origin.thread != turn.id:
        return [], [*writes, SetThread(turn.origin.thread, "stuck", ended.why)]
    if turn.resumes_later and ended.reason == "interrupted":
        kept = {
            "thread": turn.origin.thread,
            "owes": turn.origin.owes,
            "hops": turn.origin.hops,
            "from": turn.origin.on_behalf_of,
            "trace": turn.origin.trace,
            ONLY: sorted(turn.origin.only),
            POLICY: turn.policy.to_json(),
            CONTINUES: turn.id,
        }
        return [Post(turn.line, "again", {**kept, "tries": 0}, key=f"again:{turn.id}")], writes
    if not turn.origin.owes or ended.reason in ("parked", "handed_off", "stuck"):
        return [], writes
    if ended.reason == "replied":
        return [], [*writes, AnswerAsk(turn.origin.owes, ended.reply)]
    why = ended.why or "The turn was ended by the user."
    return [], [*writes, AnswerAsk(turn.origin.owes, f"{ended.reply}\n{why}".strip(), "failed")]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message comes from: a window (prompt, page, command, pipe, door, library), and whose it is.

    `token` is the id of the token with which a program asked, `user` is whom that program serves, and `name` is the
    token's, or another by which people know the sender.
    """

    window: str = "library"
    token: str = ""
    user: str = ""
    name: str = ""

    def to_json(self) -> str:
        """Return it as the store keeps it."""
        return dump({name: text for name, text in asdict(self).items() if text})


SaveAgentFile = Callable[[str, Path | str], Awaitable[None]]
"""Writes the agent with this name to a file."""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The figures of an agent for a status bar."""

    agent: str
    model: str
    context_tokens: int
    context_limit: int
    functions_shown: int
    """The number of workspace functions that the model was last shown."""
    functions_known: int
    """The number of workspace functions."""
    functions_own: int = 0
    """The number of built-in functions, which are not included in the others."""
    conversation: str = ""
    """The name of the conversation, "" if it is the main one."""
    policy: Policy = DEFAULT
    """What a message that is sent now may reach and grow."""


@dataclass(frozen=True, slots=True)
class RemovedTurn:
    """A turn that was removed from the context: the text that began it, a message of the user or an event."""

    text: str
    is_message: bool
    policy: Policy | None = None


class Agent:
    """An assistant in one of its conversations, by the `line` of the store; it runs one turn at a time.

    Several of one agent may be open at once, each in another conversation.

    `colleagues` are the other agents that it can reach, and `helper_desk` manages helpers; only agents that have them
    are offered the functions for that.
    """

    colleagues: "Colleagues"
    helper_desk: "MakesHelpers"

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        name: str,
        store: Store,
        functions: FunctionService,
        loop: TurnLoop,
        owner: str,
        *,
        session: AgentSession,
        memory: "AgentMemory",
        save: SaveAgentFile,
        resources: AsyncExitStack | None = None,
    ) -> None:
        """Create the agent in the conversation of its `session`; it closes `resources` when it is closed."""
        line = session.line
        self.name = name
        self.line = line
        self.memory = memory
        self.functions = functions
        self.session = session
        self.model_session = loop.model_session
        self.models = loop.model_session.models
        self.tools = loop.model_session.tools
        self.restored = ""
        self.conversation = ConversationRow(line, MAIN if line == name else "")
        self.allowance: Allowance | None = (
            None  # the allowance of the calling turn if this agent is a helper
        )
        self.on_behalf_of = ""  # the calling agent if this agent is a helper
        self.origin = Origin()  # of the messages that are sent through this window
        self.proposal: Grants | None = None  # what the last plan would have to reach
        self._begins: tuple[Policy, Grants] | None = None  # of the next message alone
        self.policy: Policy | None = None  # of these messages, if it is not the workspace's
        self.max_steps = 0  # of their turns, if this window chose a limit
        self.model_flag = ""  # of their turns, if this window was begun with one
        self.restarts = False  # whether an interrupted turn of the user resumes elsewhere or later
        self._store = store
        self._loop = loop
        self._save = save
        history = self._history = History()
        # It must not hold the agent: one that nobody holds any more is closed at once.
        self._pages = PageReader(store, line, lambda: history.page_chars, functions.value_part)
        self._turns = TurnRunner(
            line, store, owner, loop, session, self.tools, functions, self._history, memory
        )
        self._unread = StaleView()
        self._closed = asyncio.Event()
        self._resources = resources or AsyncExitStack()
        self._resources.callback(
            self._closed.set
        )  # not bound to the agent, which may be gone by then
        self._resources.push_async_callback(loop.aclose)
        self._resources.callback(functions.on_change(self._unread.heard))

    def __repr__(self) -> str:
        """Return its name, its model if one is open, and the length of its conversation."""
        facts = [self.models.name, f"{len([*self._history])} messages in the context"]
        return f"<Agent {self.name}: {one_line(', '.join(filter(None, facts)), 200)}>"

    @property
    def receipt(self) -> "Receipt":
        """The effects of the last turn, as in its `turn_ended`: `text` for people, `to_json()` for programs.

        If opening the agent settled an interrupted turn, these are the effects of that turn.
        """
        return self._turns.receipt

    @property
    def owners(self) -> tuple[str, ...]:
        """The agents whose calls it may read: itself."""
        return (self.name,)

    @property
    def grows(self) -> bool:
        """Whether it makes and changes functions in the running turn, or did in the last one."""
        return self.session.policy.grows

    @property
    def policy_now(self) -> Policy:
        """The policy of the messages that are sent through this window."""
        return self.policy or self.session.usual_policy

    def take_up_proposal(self) -> None:
        """Let the next message begin a task, with what the last plan would have to reach.

        Raises:
            UsageError: there is no plan.
        """
        if self.proposal is None:
            raise UsageError(
                "There is no plan to take up.", fix="Make one first: /mode plan, and say what for."
            )
        self._begins = replace(self.policy_now, mode="task"), self.proposal
        self.proposal = None

    def expect_reach(self, grants: Grants, why: str) -> str:
        """Note what the running turn will have to reach, and return what the model is told of it."""
        turn = self.turn_now
        turn.task.expected |= grants
        turn.task.why = why
        self.proposal = turn.task.expected if turn.policy.only_reads else None
        match turn.policy.mode:
            case "plan":
                return "Noted as a part of your proposal."
            case "task":
                return "Noted: the user is asked for it once, when something first needs it."
        return "Noted. In this turn each new reach is asked as it comes."

    @property
    def author(self) -> Author:
        """The author of a change that this agent makes now."""
        turn, model = self._turns.turn, self.models.name
        if turn is None:
            return Author("agent", self.name, "", model, self._unread)
        about = (
            self._unread,
            turn.approvals,
            turn.questions.slot,
            turn.spend,
            self._history.last_request,
        )
        together = turn.work.reply.together() if turn.work.reply else ALONE
        return Author("agent", self.name, turn.id, model, *about, together)

    async def restore(self) -> None:
        """Restore the conversation from storage and settle an interrupted turn.

        Calls with an unknown end are answered as unknown and never rerun automatically. Messages that no turn took up
        wait for the next one: whoever sent them may be about to run it.
        """
        await self._load_conversation()
        await self.session.own_set.load()
        await self.session.load_pause()
        if not self._store.has(self.line):  # it is read again before a turn runs here
            await resume(self._store, self.line, self._history)
            self._turns.seen = await self._store.last_seq(self.line)
            return
        claimed = await claim(self._store, self.line, self._turns.owner, leaves=FROM_USER)
        if claimed is not None and claimed.attempt > 1:
            is_owed = self.restarts or is_alone(claimed.event)
            self.restored = await settle(self._store, claimed, self.session, restarts=is_owed)
            self._turns.receipt = receipt_in(await self._store.load(claimed.id))
            claimed = None
        await resume(self._store, self.line, self._history)
        if claimed is not None:
            await self._turns.begin(self._turns.turn_of(claimed, TurnOptions(self)), claimed.event)
            self.tools.end()
            await self._store.finish(claimed.id, claimed.attempt, "interrupted")
        self._turns.seen = await self._store.last_seq(self.line)
        await self._turns.let_go()

    async def _load_conversation(self) -> None:
        """Read the conversation's name and what it is a branch of."""
        self.conversation = await self._store.conversation(self.line) or self.conversation

    async def turn(  # noqa: PLR0913 - what a window may give
        self,
        message: str | None,
        *,
        approver: "Approver | None" = None,
        debugger: "Debugger | None" = None,
        heard: Sequence[Post] = (),
        group: TurnGroup | None = None,
        shape: AnswerShape | None = None,
        pictures: Sequence[PictureSource] = (),
        follows: bool = False,
    ) -> AsyncGenerator[events.Event, None]:
        """Run one turn and yield its events; with None as `message`, process the waiting events.

        A message waits until no other process runs a turn of the conversation, or is answered there. With None and
        `follows`, a turn that runs elsewhere is told of, and goes on here if its process ends.

        `heard` are events for the inbox that came before the message; this turn takes them up. `group` is the group
        that the turn belongs to. `approver` is asked about grants and `debugger` handles stops in this turn, instead of
        those of the workspace. The reply to the message has the `shape`, and the `pictures` go with the message.
        Leaving the iteration early interrupts the turn.

        Raises:
            AgentBusy: without a message, another process runs a turn.
            UsageError: the message is not valid UTF-8 text, a picture cannot be used, or a group was asked for a reply
                of a shape.
            WorkspaceError: the agent or its workspace is closed.
        """
        self._must_be_open()
        if shape is not None and self._loop.is_group:
            raise UsageError("A group gives no reply of a shape.", fix="Ask one agent.")
        kept = await self._keep(pictures)
        posts = [*heard, *([] if message is None else [self._post(message, shape, kept)])]
        if message is not None and not heard and group is None:
            posts[-1].payload[HERE] = True
            if self.origin.window != "prompt":  # whoever runs it: the answer is to it alone
                posts[-1].payload[BEGINS_ALONE] = True
        if message == GO_ON and not await self.goes_on():  # the receipt continues, too
            for ended in await self._store.ended_turns(
                self.line, await self._store.last_seq(self.line) - 1
            ):
                posts[-1].payload[CONTINUES] = ended.id
        is_named = bool(self.conversation.name)
        if self.policy_now.only_reads:
            self.proposal = NOTHING  # until the model names what it would have to reach
        options = TurnOptions(
            self,
            approver,
            debugger,
            group,
            self.allowance,
            self.on_behalf_of,
            self.restarts,
            follows=follows,
            shape=shape,
        )
        async with aclosing(self._turns.run(posts, options)) as turn:
            async for event in turn:
                yield (
                    replace(event, agent=self.name)
                    if self._loop.is_group and not event.agent
                    else event
                )
                if not is_named and isinstance(event, events.TurnStarted):
                    await self._load_conversation()  # it has its first words

    @overload
    async def ask(
        self, message: str, *, result: None = None, pictures: Sequence[PictureSource] = ()
    ) -> str: ...
    @overload
    async def ask(
        self, message: str, *, result: type[T], pictures: Sequence[PictureSource] = ()
    ) -> T: ...
    @overload
    async def ask(
        self, message: str, *, result: object, pictures: Sequence[PictureSource] = ()
    ) -> Any: ...  # Any: as the shape says

    async def ask(
        self, message: str, *, result: object = None, pictures: Sequence[PictureSource] = ()
    ) -> Any:
        """Run one turn and return the reply, or a value of the type `result`.

        `pictures` are files or their contents, which the model is shown with the message. `result` may also be a JSON
        Schema, or a text with fields, such as `name, age int`. The agent works as usual; if its reply is no such value,
        it is asked for one, and once more with what was wrong.

        Raises:
            TurnError: the turn ended without a reply, or the reply is no such value.
            UsageError: no reply can have this type.
        """
        if result is None:
            return await self._reply_to(message, pictures=pictures)
        shape = AnswerShape.of(result)
        return shape.read(await self._reply_to(message, shape, pictures))

    async def _reply_to(
        self,
        message: str,
        shape: AnswerShape | None = None,
        pictures: Sequence[PictureSource] = (),
    ) -> str:
        """Run one turn and return the reply.

        Raises:
            TurnError: the turn ended without a reply.
        """
        warned, reason = None, "interrupted"
        # `aclosing` ends the turn before this returns
        async with aclosing(self.turn(message, shape=shape, pictures=pictures)) as turn:
            async for event in turn:
                if isinstance(event, events.Warned):
                    warned = event
                elif isinstance(event, events.TurnEnded):
                    reason = event.reason
                    if reason == "replied":
                        return event.reply
        raise events.no_reply(f"The agent `{self.name}`", warned, reason)

    async def save(self, path: Path | str) -> None:
        """Write this agent to a new file, as one JSON document that only its owner can read.

        Raises:
            UsageError: it cannot be written; an existing file is left unchanged.
        """
        await self._save(self.name, path)

    async def interrupt(self, *, resumes: bool = False) -> None:
        """Interrupt the running turn. Its history stays valid, and its reason is `interrupted`.

        If it `resumes`, a turn that another agent began continues when a runner next starts.
        """
        self._turns.interrupt(resumes=resumes)

    def send(self, message: str) -> str:
        """Show the user a message of the running turn, and return the answer for the model.

        Raises:
            UsageError: the message is empty.
        """
        if not is_readable(message):
            what = "The message is empty, so the user was shown nothing."
            raise UsageError(
                what, fix="Send the text that they are to read, or send nothing if there is none."
            )
        if (turn := self._turns.turn) is not None:
            turn.say(OwnName(self.name).of(message))
        return SENT

    @property
    def turn_now(self) -> Turn:
        """The running turn.

        Raises:
            UsageError: no turn is running.
        """
        if self._turns.turn is None:
            raise UsageError("No turn is running.")
        return self._turns.turn

    def left(self) -> "SpendingLimits":
        """Return the limits that remain for the running turn; without one, those of the agent's profile."""
        account = self._turns.turn.origin.account if self._turns.turn is not None else None
        return account.allowance.left() if account is not None else self.tools.profile.limits

    async def has_missed(self) -> bool:
        """Return whether another process runs a turn, or has ended one, that nobody was told of here."""
        return await self._turns.has_missed()

    def on_turn(self, ring: Callable[[], object], has_others: Callable[[], bool]) -> None:
        """Call `ring` when a turn begins or ends here. `has_others`: whether other processes answer messages."""
        self._turns.ring = ring
        self._turns.has_others = has_others

    async def say_during_turn(self, message: str, *, pictures: Sequence[PictureSource] = ()) -> str:
        """Store a message that the running turn picks up at its next step, and return its id."""
        kept = await self._keep(pictures)
        id = await self._turns.post(self._post(message, pictures=kept))
        self._turns.ring()  # other windows show that it waits
        return id

    async def withdraw(self, id: str) -> bool:
        """Take a message back that no turn has taken up yet; return whether it still waited."""
        is_back = await self._store.withdraw(id)
        if is_back:
            self._turns.ring()
        return is_back

    @property
    def has_others(self) -> bool:
        """True if other processes of this machine answer messages here, too."""
        return self._turns.has_others()

    @property
    def has_own_terms(self) -> bool:
        """True if this window chose a model with a command, or a policy, for the turns that it begins."""
        return bool(self.models.chosen) or self.policy_now != DEFAULT

    @property
    def is_following(self) -> bool:
        """True if another process runs a turn that is told of here, or will answer a message of this window."""
        return self._turns.following is not None and self._turns.turn is None

    def step_with(self, window: str, debugger: Debugger) -> None:
        """Step what stops at breakpoints of this `window` in other processes."""
        self._turns.own_debugger = OwnDebugger(window, debugger, self.snapshot)

    async def take_over_stop(self, debugger: Debugger) -> None:
        """Step a function here that stands still in this conversation.

        Raises:
            UsageError: none is stepped in another window.
        """
        turn = self._turns.turn
        if turn is not None and turn.questions.debugger is not None:
            turn.questions.debugger.take_back()
        elif self._turns.stops is not None:
            await self._turns.stops.take(debugger, self.snapshot())
        else:
            raise UsageError("No function is stopped in another window.")

    def is_stepped_here(self, stopped: events.CallStopped) -> bool:
        """Return whether this window steps a function that stands still."""
        stops = self._turns.stops
        if self.is_following and stops is not None:
            return stops.are_ours
        return not stopped.is_elsewhere

    def is_from_elsewhere(self, message_id: str) -> bool:
        """Return whether a message was sent through another window."""
        return bool(message_id) and message_id not in self._turns.sent

    async def _keep(self, sources: Sequence[PictureSource]) -> list[Picture]:
        """Return these pictures after keeping those that are not kept yet.

        Raises:
            UnusablePicture: one cannot be used.
        """
        kept = list[Picture]()
        if sources:
            check_count(sources)
        files = self.model_session.pictures
        for source in sources:
            if isinstance(source, Picture):
                kept.append(source)
                continue
            if files is None:
                raise UsageError(f"`{self.name}` takes no pictures.")
            file = source if isinstance(source, PictureFile) else await _read_picture_file(source)
            kept.append(await files.keep(file.data, file.name))
        return kept

    def _post(
        self,
        message: str,
        shape: AnswerShape | None = None,
        pictures: Sequence[Picture] = (),
    ) -> Post:
        if whole_characters(message) != message:
            raise UsageError(
                "The message is not text in UTF-8, and was not sent.", fix="Send it in UTF-8."
            )
        payload: dict[str, Any] = {"text": message}
        if pictures:
            payload = with_pictures(payload, pictures)
        if shape is not None:
            payload[CLIENT] = shape.terms
        # What belongs to a message goes with it, because another process may answer it.
        if self.policy_now != DEFAULT or self.policy is not None:
            payload[POLICY] = self.policy_now.to_json()
        if self.max_steps:
            payload[MAX_STEPS] = self.max_steps
        model = self.models.chosen or self.model_flag
        if model:
            payload[MODEL] = model
        if self._begins is not None:
            payload |= {POLICY: self._begins[0].to_json(), EXPECTS: self._begins[1].to_json()}
            self._begins = None
        return Post(self.line, "message", payload, origin=self.origin.to_json())

    async def goes_on(self) -> bool:
        """Return whether a turn that was cut off begins again with the next turn."""
        return any(kind == AGAIN for _, kind in await self._store.waiting_events(self.line))

    async def waiting(self) -> list[str]:
        """Return the messages that no turn has picked up yet, oldest first."""
        waiting = await self._store.waiting(self.line)
        return [message.text for message in waiting if message.kind == "message"]

    async def measure(self) -> None:
        """Estimate how much of the context window a resumed conversation takes, before its first reply."""
        await self.model_session.estimate(self._history, self.snapshot())

    async def pop(self) -> RemovedTurn | None:
        """Remove the last turn from the context (not from the record), and return what began it."""
        self._must_be_idle()
        await self.memory.recall.catch_up()  # recall keeps what leaves the context
        async with self._turns.owned():
            entries = await pop_turn(self._store, self.line)
            await resume(self._store, self.line, self._history)
        said = next((entry for entry in entries if entry.kind == "user"), None)
        began = said or next((entry for entry in entries if entry.kind == "notice"), None)
        text = text_of(began) if began else ""
        begins = [given for given in map(read_marks, entries) if given.policy is not None]
        policy = Policy.from_json(begins[0].policy or {}) if begins else None
        return RemovedTurn(text, said is not None, policy) if entries else None

    async def remove_turns(self) -> int:
        """Remove every turn from the context (not from the record) and return their number."""
        self._must_be_idle()
        await self.memory.recall.catch_up()
        async with self._turns.owned():
            hidden = await self._store.hide_turns(self.line)
        self._history.clear()
        self.model_session.shown.thaw()
        self.model_session.meter.context_tokens = 0
        return hidden

    async def user_texts(self) -> list[str]:
        """Return what the user wrote in this conversation, including messages that a summary replaced."""
        entries = await self._store.history(self.line, kinds=("user",))
        messages = [message for _, message in read_all(MessageEntry, entries)]
        return [message.text for message in messages if not message.speaker]

    async def require_own_message(self) -> None:
        """Require that the last message may be sent again: it is whole, and this user wrote it.

        Raises:
            UsageError: it came with an agent's file, so anyone may have written it, or a part of it was forgotten.
        """
        said = await self._store.history(self.line, kinds=("user",))
        if said and said[-1].is_imported:
            raise UsageError(
                "The last message was imported with an agent's file.",
                fix="Type it yourself to send it.",
            )
        if MARK in (await self.user_texts() or [""])[-1]:
            what = "Part of the last message was forgotten, so it is not sent again."
            raise UsageError(what, fix="Type your message again.")

    async def keep_unsaved(self, waiting: "ShowsWait" = nullcontext) -> tuple[str, ...]:
        """Ask the model which of the user's sentences to keep, if `memory.keep_unsaved` is set, and return these.

        They are added to the block `human`, an edit that can be undone. If the model fails, nothing is kept. `waiting`
        shows the user that the model is being asked.
        """
        if self._turns.one_at_a_time.locked():
            return ()
        return await self.model_session.keep_unsaved(self._history, None, waiting)

    async def summarize(self) -> str:
        """Summarize the older part of the conversation now, and return a sentence about the result.

        Raises:
            ModelError: the model is not available.
        """
        self._must_be_idle()
        async with self._turns.alone(SUMMARY, TurnOptions(self, restarts=self.restarts)) as turn:
            return await self.model_session.summarize(turn, self.snapshot())

    async def read_on(self, name: str, page: int) -> str:
        """Return a page of a text that was shown in part.

        Raises:
            UsageError: there is no text with this name or no such page.
        """
        return await self._pages.page(name, page)

    @property
    def hidden(self) -> frozenset[str]:
        """The functions that this agent is not shown, including other programs' functions outside of its profile."""
        patterns = self.tools.profile.functions
        foreign = {} if "*" in patterns else self.functions.foreign()
        return self.snapshot().hidden | {
            name for name, row in foreign.items() if not fits(patterns, row.function)
        }

    def snapshot(self) -> "Snapshot":
        """Return the functions that this agent may call now."""
        turn = self._turns.turn
        made = turn.made if turn is not None else frozenset[str]()
        return self._loop.sees(self.functions.registry.snapshot(), made)

    async def prompt(self) -> RequestPrompt:
        """Return what the model would be sent now: the system message, the conversation and the functions.

        Raises:
            ModelError: the model is not available, and the prompt depends on it.
        """
        return await self.model_session.prompt(self._history, self.snapshot())

    async def shown(self, message: str) -> frozenset[str]:
        """Return the functions that the model is shown with a message: those it could call for it."""
        session = self.model_session
        if session.models.mode != "native":
            return frozenset(await session.announced(message, (), self.snapshot()))
        return frozenset(function.name for function in session.functions.all()) | session.shown.told

    async def history(self) -> list["Message"]:
        """Return the messages of the conversation that are in the context."""
        return list(self._history)

    def status(self) -> AgentStatus:
        """Return the figures for a status bar. This is cheap."""
        session, models, total = self.model_session, self.models, self.functions.count()
        own = len(session.shown.pinned)
        shown = len(session.shown.told) or min(max(len(session.functions.all()) - own, 0), total)
        tokens = session.meter.context_tokens
        name = self.conversation.name or self.conversation.id
        where = "" if self.line == self.name else name
        known = (models.context_limit, shown, total, own)
        return AgentStatus(self.name, models.name, tokens, *known, where, self.policy_now)

    async def lend(self) -> bool:
        """Let other processes use the agent and its model until `take_back`; return False if it must be closed.

        A group cannot be lent, because it holds its members as long as it is open.
        """
        if self._loop.is_group:
            return False
        await self.models.aclose()
        await self._store.lend(self.line)
        return True

    async def take_back(self) -> bool:
        """Take a lent agent back; return False if it was changed elsewhere and must be opened again."""
        return await self._store.take_back(self.line)

    async def aclose(self) -> None:
        """Release the model and the agent's lock; a second call does nothing."""
        await self._resources.aclose()

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _must_be_open(self) -> None:
        if self._closed.is_set():
            fix = "Open it again: `workspace.agent`, within the `async with` of its workspace."
            raise WorkspaceError(f"The agent `{self.name}` is closed.", fix=fix)

    def _must_be_idle(self) -> None:
        self._must_be_open()
        if self._turns.one_at_a_time.locked():
            raise WorkspaceError("A turn is running.", fix="End it with Ctrl-C first.")


async def _read_picture_file(source: Path | str | bytes) -> PictureFile:
    """Return a picture by its path or content.

    Raises:
        UnusablePicture: it cannot be read.
    """
    if isinstance(source, bytes):
        return PictureFile(source)
    try:
        data = await asyncio.to_thread(read_beginning, source, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnusablePicture(f"{one_line(str(source), 200)} cannot be read: {why}.") from error
    return PictureFile(data, Path(source).name)
