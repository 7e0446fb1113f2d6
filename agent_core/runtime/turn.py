"""One open turn: its journal, its budget, its listeners, and its cancellation.

Entries are written to disk before listeners are notified and before the history in memory changes. What listeners are
told of them is what `EventFold` makes of them, here and wherever the journal is read.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_core.access.grants import NOTHING, Answered, ApprovalQueue, Approvals, Grants, TaskReach
from agent_core.base import events
from agent_core.base.limits import NAMES, Allowance, SpendingLimits
from agent_core.base.messages import SEND
from agent_core.base.offload import to_its_end
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.receipt import Fact, Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.context import History
from agent_core.context.folds import ReceiptReader
from agent_core.model.reply import (
    CallPiece,
    Piece,
    ReadingPiece,
    RetryPiece,
    TextPiece,
    ThoughtPiece,
    TokenUsage,
)
from agent_core.storage import (
    BETWEEN,
    Amounts,
    EndedTurn,
    Entry,
    Inbound,
    Post,
    SpendInThread,
    Store,
    TurnStore,
    Write,
    agent_of,
)
from agent_core.storage.journal import (
    MessageEntry,
    NoticeEntry,
    TurnMarks,
    facts_entry,
    mark,
    read_all,
    read_entry,
    receipt_entry,
    write_entry,
)
from agent_core.storage.turn_store import N_BITS

from .event_fold import TOLD_KINDS, EventFold
from .message_protocol import MessageProtocol
from .taken_up import entry_of, is_alone, senders, sent_from

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.messages import Call
    from agent_core.functions.debug import DebuggerSlot
    from agent_core.storage.picture_files import PictureFiles

    from .reply_work import ReplyWork
    from .shared_debugger import SharedDebugger
    from .turn_end import Ended, GoOn


_LONG_WAIT_S: Final = 5.0  # a longer wait is told each time
_COUNTED: Final = tuple(
    name for name in NAMES if name not in ("hops", "seconds")
)  # the others are not sums
Emit = Callable[[events.Event], None]

MAX_CALLS: Final = 40
"""The maximum number of calls per reply; the others are answered as skipped."""


@dataclass(frozen=True, slots=True)
class TurnGroup:
    """The group that a turn belongs to: the names of its agents, and the allowance that its turns share."""

    names: Collection[str]
    allowance: Allowance


class Account:
    """The budget of a turn: the agent's limits, within what its thread, shared with other agents, has left."""

    def __init__(
        self,
        agent: str,
        thread: str,
        store: Store,
        own: Callable[[], SpendingLimits],
        clock: "Clock",
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
        if row is not None:
            # What others spent in the thread meanwhile, and what this agent spent in it before this turn.
            own = self._own_spent()
            if self._before is None:
                mine = row.spent.get(self._agent, {})
                self._before = {
                    name: mine.get(name, 0) - self._saved.get(name, 0) for name in _COUNTED
                }
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
        amounts = {
            name: fresh
            for name, amount in spent.items()
            if (fresh := amount - saved.get(name, 0)) > 0
        }
        self._saved = spent
        return [SpendInThread(self.thread, self._agent, amounts)] if amounts else []

    def _own_spent(self) -> Amounts:
        before = self._before or {}
        return {name: self.allowance.spent[name] - before.get(name, 0) for name in _COUNTED}


class Interrupted(Exception):
    """Raised if the user asked to end the turn."""


class Interruption:
    """The stop switch of one turn. The block can be entered repeatedly until a stop is requested."""

    def __init__(self) -> None:
        self.requested = False
        self._inside: set[asyncio.Task[object]] = set()

    def request(self) -> None:
        """End the turn: cancel the code inside the block, and refuse further entries.

        It may be asked from several sides at once: a second cancellation would end who runs the turn, too.
        """
        if self.requested:
            return
        self.requested = True
        for task in self._inside:
            task.cancel()

    async def __aenter__(self) -> None:
        if self.requested:
            raise Interrupted
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inside.discard(task)
        if self.requested and kind is asyncio.CancelledError and task.uncancel() == 0:
            raise Interrupted from error


class OwnName:
    """A filter that strips an agent's name from the beginning of its reply, where some models write it."""

    def __init__(self, agent: str) -> None:
        forms = ("{}:", "[{}]:", "[from: {}]:", "[from: {}]")
        self._forms = tuple(form.format(agent).casefold() for form in forms)
        self._held: str | None = ""

    def of(self, text: str) -> str:
        """Return a whole reply without the name at its beginning."""
        bare = text.lstrip()
        form = next((form for form in self._forms if bare.casefold().startswith(form)), None)
        return bare[len(form) :].lstrip() if form else text

    def piece(self, text: str) -> str:
        """Return the text that can be shown after this piece; a beginning that may be the name is held back."""
        if self._held is None:
            return text
        self._held += text
        bare = self._held.lstrip().casefold()
        if any(form.startswith(bare) for form in self._forms):
            return ""
        held, self._held = self._held, None
        return self.of(held)

    def rest(self) -> str:
        """Return the text that is still held back at the end of a reply; the next piece begins another reply."""
        held, self._held = self._held, ""
        return self.of(held or "")


@dataclass(slots=True)
class TurnOrigin:
    """What started a turn, on whose behalf, and within which limits."""

    thread: str = ""  # the thread of messages between agents that the turn continues or starts
    owes: str = ""  # the question of another agent that its reply answers
    hops: int = 0  # messages between the user and this turn
    is_asked: bool = True  # whether someone waits for an answer; false for a heartbeat
    is_users: bool = (
        True  # whether it accepts messages of the user; false if another agent began it
    )
    is_unattended: bool = (
        False  # whether nobody watches it: a timer, another agent or a script began it
    )
    verify: bool = False  # whether its first reply must contain a thought and a message
    on_behalf_of: str = ""  # the agent that began it or called it as a helper
    trace: str = ""  # the incoming `traceparent`
    only: frozenset[str] = frozenset()  # the agents that the sender may use; empty means all
    restarts: bool = False  # whether it resumes at the next start even if the user began it
    continues: str = ""  # the interrupted turn that this one continues
    is_clients: bool = False  # whether a client began it, which waits for the reply
    max_steps: int = 0  # that its sender chose; 0 means the usual limit
    group: TurnGroup | None = None
    account: Account | None = None


@dataclass(slots=True)
class TurnJournal:
    """The state of a turn's journal in storage, which has `n` entries."""

    n: int
    fold: EventFold
    last: int = 0  # the number of the last entry
    waits: bool = True  # whether messages may be waiting; updated by each append, which saves a query per step
    shared: Mapping[str, int] | None = (
        None  # the versions of shared blocks, also updated by each append
    )
    started: set[str] = field(default_factory=set)  # the calls that have started
    unwritten: list[Entry] = field(
        default_factory=list
    )  # usage, facts and calls that only compute: not on disk yet
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class TurnWork:
    """What a turn has done and used so far."""

    facts: ReceiptReader = field(default_factory=ReceiptReader)
    refused: dict[str, int] = field(
        default_factory=dict
    )  # rejected candidates: how often each was called before
    reply: "ReplyWork[Any] | None" = None  # the changes of functions in the reply; Any: `Done`
    folders: Grants = NOTHING
    """What a person gave to the programs of this turn, until one has a way out."""
    function_messages: list[str] = field(
        default_factory=list
    )  # messages that functions showed the user
    tokens: dict[str, int] = field(
        default_factory=lambda: {"prompt_tokens": 0, "completion_tokens": 0, "cached_tokens": 0}
    )


@dataclass(slots=True)
class TurnQuestions:
    """Where a turn asks about grants, the answers that were no, and its debugger: its own, and as windows share it."""

    queue: ApprovalQueue = field(default_factory=ApprovalQueue)
    refusals: list[Answered] = field(default_factory=list)
    slot: "DebuggerSlot | None" = None
    debugger: "SharedDebugger | None" = None


@dataclass(slots=True)
class TurnEnding:
    """Whether and how a turn will end, apart from its reply."""

    interruption: Interruption = field(default_factory=Interruption)
    parked: list[str] = field(default_factory=list)  # the agents that it waits for
    handed_to: str = ""
    stuck: str = ""  # why a person has to decide
    resumes: bool = False  # whether it resumes at the next start if it is interrupted
    awaits_answers: bool = False  # to calls that are answered in a later turn


@dataclass(frozen=True, slots=True)
class SplitCalls:
    """The calls of a reply that run here, and entries of those that others answer later, and of refused ones."""

    ours: Sequence["Call"]
    opened: Sequence["Entry"] = ()
    refused: Sequence["Entry"] = ()


class TurnTools(Protocol):
    """The sources of the functions that a turn's model can call, as its steps use them."""

    @property
    def has_short_replies(self) -> bool:
        """Whether who sent the message wants no more of a reply than was asked for."""

    def look(self) -> None:
        """Take in what changed."""

    def split(self, calls: Sequence["Call"], most: int) -> SplitCalls:
        """Split the calls of a reply into those that run here and others; `most` is the limit of calls per reply."""

    async def news(self, turn: "Turn") -> Sequence[Entry]:
        """Return what the model is told before a step of changes by others."""

    async def follow(self, turn: "Turn", ended: "Ended") -> "GoOn | Ended":
        """Decide what follows a reply that would end the turn."""


@dataclass(slots=True)
class Turn:
    """The running turn of one conversation, by its line; `meta_self` is the `self` of meta-functions."""

    id: str
    line: str
    attempt: int
    store: TurnStore
    history: History
    emit: Emit
    meta_self: object
    tools: "TurnTools"
    origin: TurnOrigin
    journal: TurnJournal
    questions: TurnQuestions
    style: MessageProtocol
    clock: "Clock"
    own_name: OwnName
    policy: Policy = DEFAULT
    task: TaskReach = field(default_factory=TaskReach)
    work: TurnWork = field(default_factory=TurnWork)
    ending: TurnEnding = field(default_factory=TurnEnding)
    step: int = 0
    model: str = ""
    pictures: "PictureFiles | None" = None
    """Where the pictures are kept that calls return; None: they are not shown."""
    _retried_for: str = ""  # the reason for the last wait that was told

    def taken(self, waiting: Sequence[Inbound]) -> list[Inbound]:
        """Return the waiting events that this turn accepts; the others begin separate turns.

        A note never overtakes an earlier message of the same agent in the same thread, such as a question that still
        waits.
        """
        taken: list[Inbound] = []
        left: set[tuple[str, str]] = set()
        for event in waiting:
            thread = event.thread
            is_taken = self._takes(event)
            if is_taken and event.kind != "note":
                taken.append(event)
                continue
            places = {(name, thread) for name in senders(event)}
            if is_taken and not places & left:
                taken.append(event)
            else:
                left |= places
        return taken

    def _takes(self, inbound: Inbound) -> bool:
        if is_alone(inbound):
            return False
        if inbound.kind in BETWEEN:
            group = self.origin.group
            among = group is not None and inbound.from_ in group.names
            in_thread = inbound.kind in ("note", "stop") and inbound.thread == self.origin.thread
            return in_thread or (among and inbound.kind in ("note", "handoff"))
        if inbound.policy and inbound.policy != self.policy.to_json():
            return False  # it begins a turn that has its own
        return inbound.kind != "message" or self.origin.is_users

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""
        return agent_of(self.line)

    @property
    def grows(self) -> bool:
        """Whether its model makes and changes functions."""
        return self.policy.grows

    @property
    def approvals(self) -> Approvals:
        """The questions about grants that come up in this turn."""
        return Approvals(self.questions.queue, self, self.questions.refusals)

    @property
    def on_behalf_of(self) -> str:
        """The agent that began the turn or called it as a helper."""
        return self.origin.on_behalf_of

    def ask_nobody(self) -> None:
        """Answer all questions with no for the rest of the turn, because no one is there to ask."""
        self.questions.queue = self.questions.queue.asking(None)

    @property
    def resumes_later(self) -> bool:
        """True if the turn resumes after its end: the program stopped it, not the user who began it."""
        return self.ending.resumes and (
            not self.origin.is_users or (self.origin.restarts and not self.origin.is_clients)
        )

    async def append(
        self, entries: Sequence[Entry], *, writes: Sequence[Write] = (), takes: Sequence[str] = ()
    ) -> None:
        """Store entries atomically with the writes, then add them to the history and tell the listeners of them.

        Usage and facts noted since the last append are stored before them. A cancellation takes effect when all of it
        is done: the turn must know what the store has, or it would take its own entries for those of another process.
        """
        if self.style.packs:
            entries = [self._pack(entry) for entry in entries]
        async with self.journal.lock:
            await self._append(entries, writes, takes)

    async def _append(
        self, entries: Sequence[Entry], writes: Sequence[Write], takes: Sequence[str]
    ) -> None:
        journal = self.journal
        unwritten = [*journal.unwritten] if entries else []
        entries = self._with_step([*unwritten, *entries])
        appending = self.store.append(
            self.id, self.attempt, journal.n, entries, writes=writes, takes=takes
        )
        appended, cancellation = await to_its_end(appending)
        journal.n, journal.waits, journal.shared = appended.n, appended.waits, appended.shared
        if appended.cancelled:
            self.ending.interruption.request()
        del journal.unwritten[: len(unwritten)]
        journal.started.update(call.call_id for _, call in read_all(events.CallStarted, entries))
        for entry in entries:
            self.work.facts.take(entry)
        journal.last = appended.last or journal.last
        for seq, entry in enumerate(entries, appended.last - len(entries) + 1):
            self.history.take(entry, self.id, seq)
            for event in journal.fold.of(entry, seq):
                if not isinstance(event, events.Text | events.Thought):  # told in pieces before
                    self.emit(event)
        if cancellation is not None:
            raise cancellation

    def _with_step(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries; if they are the first of a step, one of them names it for whoever is told of them."""
        if self.journal.fold.step != self.step:
            for place, entry in enumerate(entries):
                if entry.kind in TOLD_KINDS:
                    entries[place] = mark(entry, TurnMarks(step=self.step))
                    break
        return entries

    async def finish(
        self,
        state: str,
        *entries: Entry,
        reply: str = "",
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
    ) -> None:
        """Store the last entries of the turn, what was noted, and the whole receipt; close it, and tell that it ended.

        The receipt has the reply, the steps and the usage, too, where the entries imply others.
        """
        whole, fold = deepcopy((self.work.facts, self.journal.fold))
        for entry in self._with_step([*self.journal.unwritten, *entries, receipt_entry(Receipt())]):
            whole.take(entry)
            fold.of(entry, 0)
        end: dict[str, object] = {"reply": reply, "steps": self.step, "usage": self.work.tokens}
        for implied in fold.end(EndedTurn(self.id, state, 0, 0.0)):
            shown = implied.to_json()
            end = {name: value for name, value in end.items() if shown[name] != value}
        await self.append([*entries, receipt_entry(whole.receipt, **end)])
        closing = self.store.finish(self.id, self.attempt, state, posts=posts, writes=writes)
        _, cancellation = await to_its_end(closing)
        last = self.journal.last | (1 << N_BITS) - 1
        for event in self.journal.fold.end(EndedTurn(self.id, state, last, 0.0)):
            self.emit(event)
        if cancellation is not None:
            raise cancellation

    def tell(self, event: events.Event) -> None:
        """Notify the listeners of a piece of this step, or of its progress: what is not in the journal."""
        self.emit(replace(event, turn=self.id, step=self.step))

    async def show(self, event: events.StoredEvent, /) -> None:
        """Store an event that nothing else in the journal implies, and notify the listeners of it."""
        await self.append([write_entry(event)])

    def say(self, text: str) -> None:
        """Show the user something that is on disk."""
        self.tell(events.Text(text=f"\n\n{text}" if self.work.function_messages else text))
        self.work.function_messages.append(text)

    def _pack(self, entry: Entry) -> Entry:
        """Return the entry with its message packed with type and time. A packed entry is returned unchanged."""
        kind = "system_alert"
        match read_entry(entry):
            case MessageEntry() as message if message.speaker:
                kind = "agent_message"
            case MessageEntry() as message:
                kind = "user_message"
            case NoticeEntry() as message:
                pass
            case _:
                return entry
        if message.packed:
            return entry
        packed = self.style.event(kind, {"message": message.text}, self.clock.now())
        return replace(entry, payload={**entry.payload, "packed": packed})

    def taken_up(self, inbound: Inbound) -> Entry:
        """Return the entry of an event from the inbox."""
        return sent_from(entry_of(inbound, self.style, self.clock.now()), inbound)

    async def warn(self, message: str, fix: str = "") -> None:
        """Show the user a warning and what to do about it. The turn continues."""
        await self.show(events.Warned(message=message, fix=fix))

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show the user what the turn waits for while the block runs."""
        self.tell(events.Waiting(what=what))
        try:
            yield
        finally:
            self.tell(events.Waiting(what=""))

    async def tell_piece(self, piece: Piece, kind: type[events.Text | events.Thought]) -> None:
        """Show the user a piece of the reply; `kind` is the event class of its text."""
        match piece:
            case TextPiece():
                if text := self.own_name.piece(piece.text):
                    self.tell(kind(text=text))
            case ThoughtPiece():
                self.tell(events.Thought(text=piece.text))
            case CallPiece() if piece.name != SEND:  # its text is a message, shown when it is sent
                self.tell(
                    events.Writing(place=piece.place, name=piece.name, arguments=piece.arguments)
                )
            case RetryPiece() if piece.reason != self._retried_for or piece.wait_s > _LONG_WAIT_S:
                self._retried_for = piece.reason  # told once: the waits after it are short
                await self.warn(f"{piece.reason} Trying again in {piece.wait_s:.1f} s.")
            case ReadingPiece(done, total, left_s):
                self.tell_reading(total, done, left_s)

    def tell_reading(
        self, total: int, done: int | None = None, left_s: float | None = None
    ) -> None:
        """Show that the model's server is reading the prompt, with its progress if the server reports it."""
        self.tell(events.Reading(total=total, done=done, left_s=left_s))

    def count(
        self, usage: TokenUsage, model: str, cost: float, context_limit: int | None = None
    ) -> None:
        """Add the tokens and the cost in dollars of one request to the turn's totals.

        With the model's `context_limit`, the request was for a step, and the user is told when it is stored.
        """
        step_usage = events.Usage(
            model=model,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            cached_tokens=usage.cached,
            estimated=usage.estimated,
            context_limit=context_limit,
        )
        self._count(step_usage)
        if self.origin.account is not None:
            self.origin.account.spend(tokens=usage.prompt + usage.completion, cost=cost)
        if self.origin.group is not None:
            self.origin.group.allowance.spend(tokens=usage.prompt + usage.completion)

    def _count(self, usage: events.Usage) -> None:
        for name in self.work.tokens:
            self.work.tokens[name] += getattr(usage, name)
        self.journal.unwritten.append(write_entry(usage))

    def spend(self, prompt_tokens: int, completion_tokens: int, model: str) -> None:
        """Count and report the tokens of a model that was asked about a function during this turn."""
        usage = events.Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        self.note_usage(usage, model)

    def note_usage(self, usage: events.Usage, model: str) -> None:
        """Count what another model used for this turn; the user is told with the next entries."""
        unplaced = replace(usage, turn="", step=0, agent="", seq=0, context_tokens=0)
        self._count(replace(unplaced, model=model, context_limit=0))

    @property
    def receipt(self) -> Receipt:
        """The effects of the turn that are on disk."""
        return self.work.facts.receipt

    @property
    def made(self) -> frozenset[str]:
        """The functions that were created or changed in this turn."""
        return frozenset(self.receipt.names("created", "changed"))

    def note_done(self, fact: Fact, name: str) -> None:
        """Note an effect; it is stored with the next entries."""
        self.journal.unwritten.append(facts_entry({fact: [name]}))

    def note_made(self, receipt: Receipt) -> None:
        """Note the effects of another turn that was part of this one; they are stored with the next entries."""
        if receipt:
            self.journal.unwritten.append(facts_entry(receipt.to_json()))
