"""The session of an agent with its user: the boot, logins, timed heartbeats and their pauses, and its own set.

It also settles interrupted turns, of this process or another: each unanswered call gets an answer, and none runs again.
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.clock import Clock
from agent_core.base.events import CallAnswered, FunctionAnswered, FunctionAsked
from agent_core.base.limits import NAMES
from agent_core.base.messages import SEND, Assistant, Call, Message
from agent_core.base.policy import DEFAULT, Policy
from agent_core.base.records import dataclass, replace
from agent_core.base.settings import HeartbeatSettings, RunnerSettings
from agent_core.base.untrusted import one_line
from agent_core.context.folds import (
    RECEIPT_KINDS,
    RECORD_KINDS,
    ReceiptReader,
    calls_without_answer,
    questions_asked,
    receipt_in,
)
from agent_core.functions.answers import Skipped, Unknown, answer, word
from agent_core.memory.blocks import Alias
from agent_core.storage import (
    BETWEEN,
    SUMMARY,
    Amounts,
    AnswerAsk,
    Entry,
    Inbound,
    JoinOwnSet,
    LeaveOwnSet,
    Post,
    SaveAgent,
    SetBeat,
    Store,
    Write,
)
from agent_core.storage import ClaimedTurn as Claimed
from agent_core.storage.agent_store import HELPER_RUN
from agent_core.storage.inbox import CONTINUES, EXPECTS, MAX_STEPS, MODEL, ONLY, POLICY
from agent_core.storage.journal import (
    ParkedEntry,
    ReplyEntry,
    answer_to,
    assistant,
    cut_off,
    facts_entry,
    notice,
    read_all,
    read_entry,
    receipt_entry,
    write_entry,
)

from .message_protocol import MessageProtocol
from .programs import calls_made
from .taken_up import begun, entry_of, login

Kind: TypeAlias = Literal["login", "heartbeat", "system", "notice"]


OLD_NAMES: Final[Mapping[str, Alias]] = {
    "message_chatgpt": Alias("message_llm"),
    "search_functions": Alias("list_functions", {"need": "pattern"}),
}
TIMED: Final = "the time for it has come, and nobody has said anything. You need not answer."
_BOOTED: Final = (
    "I am awake, and the persona is mine. I try out whether a message reaches the user."
)
GO_ON: Final = "Your last turn was cut off. Go on with what I asked for."
"""The message that resumes an interrupted turn, as if the user had sent it."""
SENT: Final = "The user was shown it."
_FIRST: Final = "Hello! I am here."
_BOOT: Final = "boot-"
_MOST_TRIES: Final = (
    5  # in a row without an answered call; then the turn probably crashes each process that runs it
)
_MOST_CUTS: Final = 50  # for one message
_PAUSE_S: Final = 1.0
_FIRST_DUE: Final = 0.0
_SAID_CHARS: Final = 200  # of the message that a turn answers which is begun again
_MAX_PAUSE_MINUTES: Final = 360.0  # that an agent can give itself
_CLOSED: Final = ("unknown", "skipped")  # how an interrupted turn answers its open calls
STOPPED: Final = "The program was stopped here."


class OwnSet:
    """The functions that one agent is always shown."""

    def __init__(self, agent: str, store: Store) -> None:
        self.names: frozenset[str] = frozenset()
        self._agent = agent
        self._store = store

    async def load(self) -> None:
        """Read the set from the store."""
        self.names = frozenset(await self._store.own_set(self._agent))

    async def add(self, function: str) -> None:
        """Add a function."""
        await self._store.apply([JoinOwnSet(self._agent, function)])
        await self.load()

    async def remove(self, function: str) -> None:
        """Remove a function; the file stays."""
        await self._store.apply([LeaveOwnSet(self._agent, function)])
        await self.load()


class AgentSession:
    """The session of one agent with its user in one conversation, in the agent's style.

    With `verify`, the first reply must have a thought and a message if the style requires them.
    """

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        agent: str,
        store: Store,
        protocol: MessageProtocol | None = None,
        heartbeat: HeartbeatSettings | None = None,
        clock: Clock | None = None,
        *,
        verify: bool = True,
        line: str = "",
        thread_limits: Amounts | None = None,
        policy: Policy = DEFAULT,
    ) -> None:
        """Create the session; without a `line`, that of the main conversation.

        `thread_limits` are those of a thread of messages that begins now; `policy` is the workspace's.
        """
        self.usual_policy = self.policy = policy
        self.thread_limits = thread_limits or {}
        self.style = protocol or MessageProtocol()
        self.clock = clock or Clock()
        self.verify = verify
        self.own_set = OwnSet(agent, store)
        self.line = line or agent
        self._agent = agent
        self._store = store
        self._settings = heartbeat or HeartbeatSettings()
        self._is_here = False
        self._paused_until = 0.0

    def turn_policy(self) -> Policy:
        """Return the policy of the running turn, or of the last one."""
        return self.policy

    async def opening(self, inbound: Inbound, *, is_first: bool) -> list[Entry]:
        """Return the first entries of a turn: the boot of a new agent, the login of a new session, and the event."""
        await self.own_set.load()  # a person may have renamed a function
        began = entry_of(inbound, self.style, self.clock.now())
        if not self.style.packs or (self._is_here and not is_first):
            return [began]
        self._is_here = True
        if inbound.kind == "login":
            return [began]
        login_entry = login(await self._last_message_at(), self.style, self.clock.now())
        # The login comes first: some endpoints require a user message before an assistant message.
        if not is_first:
            return [login_entry, began]
        # A short example conversation shows the model how to reach the user, who does not see it.
        call = Call(f"{_BOOT}{self.clock.new_id()[-8:]}", SEND, json.dumps({"message": _FIRST}))
        return [
            login_entry,
            assistant(Assistant(_BOOTED, (call,))),
            write_entry(answer_to(call, SENT, "returned")),
            began,
        ]

    async def post(self, kind: Kind, text: str = "") -> None:
        """Queue an event for the next turn, or for the next step of the running one.

        `login`: the user is present but has said nothing, so the agent speaks first. `heartbeat`: `text` is the reason.
        `system`: `text` is a message from the program. `notice`: it is one that the user asked for.
        """
        payload: dict[str, Any] = {"reason": text} if kind == "heartbeat" else {"text": text}
        if kind == "login":
            payload = {"last": await self._last_message_at()}
        await self._store.post(Post(self.line, kind, payload))

    async def _last_message_at(self) -> float | None:
        said = await self._store.history(self.line, kinds=("user",))
        return said[-1].at if said else None

    async def load_pause(self) -> None:
        """Load the time until which the agent has paused its heartbeats."""
        self._paused_until = float((await self._agent_settings()).get("paused_until") or 0)

    def beat(self) -> list[SetBeat]:
        """Return the write that schedules the next heartbeat, for any process; empty if heartbeats are off."""
        every = self._settings.every_minutes * 60
        if not (every and self.style.packs):
            return []
        due = max(self.clock.now() + every, self._paused_until)
        return [SetBeat(self._agent, due, {"reason": TIMED})]

    async def schedule(self) -> None:
        """Schedule the next heartbeat, unless an earlier turn has scheduled one."""
        await self._store.apply([replace(write, stays=True) for write in self.beat()])

    async def pause(self, minutes: float) -> str:
        """Pause timed heartbeats, up to a maximum, and return a sentence about the result."""
        for_minutes = max(min(minutes, _MAX_PAUSE_MINUTES), 0)
        self._paused_until = self.clock.now() + for_minutes * 60
        settings = {**await self._agent_settings(), "paused_until": self._paused_until}
        await self._store.apply([SaveAgent(self._agent, settings)])
        capped = (
            f", which is the longest that may be ({minutes:g} were asked for)"
            if minutes > _MAX_PAUSE_MINUTES
            else ""
        )
        return f"No timed heartbeat for {for_minutes:g} minutes{capped}."

    async def _agent_settings(self) -> dict[str, Any]:  # Any: JSON
        return await self._store.agent_settings(self._agent) or {}


def thread_limits(settings: RunnerSettings) -> Amounts:
    """Return the limits of a thread of messages that begins now."""
    return {name: most for name in NAMES if (most := getattr(settings, name)) is not None}


def run_name(helper: str, turn: str, call: str) -> str:
    """Return the name of the agent that runs a helper for a call; it stays the same after a crash."""
    digest = hashlib.sha256(f"{turn}:{call}".encode()).hexdigest()
    return f"{HELPER_RUN}{helper[:40]}-{digest[:12]}"


def is_reply(message: Message) -> bool:
    """Check whether a message is a reply of the model and not part of the boot example."""
    return isinstance(message, Assistant) and not any(
        call.id.startswith(_BOOT) for call in message.calls
    )


def closing_answers(entries: Sequence[Entry]) -> list[Entry]:
    """Return an answer for each open call of a turn's last reply; a call that had started may have taken effect."""
    skipped = Skipped("the turn ended before it was started.")
    outcomes = [
        (call, Unknown() if was_started else skipped)
        for call, was_started in calls_without_answer(entries)
    ]
    answers = list[Entry]()
    for call, outcome in outcomes:
        lines = [answer(outcome, 1000)]
        lines += questions_asked(entries, call.id)
        lines += calls_made(entries, call.id)
        answers.append(write_entry(answer_to(call, "\n".join(lines), word(outcome))))
    return answers


async def settle(
    store: Store, claimed: Claimed, session: AgentSession, *, restarts: bool = False
) -> str:
    """Close a turn that another process left open, with one answer for every open call.

    A parked turn stays parked, and a summary is abandoned. A turn that another agent began (with `restarts`, also one
    of the user) is finished if its reply is on disk; otherwise it starts again, unless the user ended it. Any other
    turn is interrupted.
    """
    if claimed.event.kind == SUMMARY:
        await store.finish(claimed.id, claimed.attempt)
        return ""
    entries = await store.load(claimed.id)
    steps = [entry for entry in entries if entry.kind not in RECORD_KINDS]
    last = read_entry(steps[-1]) if steps else None
    if isinstance(last, ParkedEntry):
        state = "client_calls" if last.calls else "parked"
        await store.finish(claimed.id, claimed.attempt, state)
        return ""
    is_between = claimed.event.kind in BETWEEN
    is_repeated = (is_between or restarts) and not claimed.streamed
    if is_repeated and isinstance(last, ReplyEntry) and not last.calls:
        writes = _owed_answer(claimed, AnswerAsk("", last.text))
        await store.finish(claimed.id, claimed.attempt, "done", writes=writes)
        return ""
    ending = [cut_off(claimed.streamed)]
    if not claimed.streamed:
        ending = closing_answers([*entries, *await _answers_since(store, entries)])
    is_again = not claimed.cancelled and (is_between or (restarts and claimed.event.client is None))
    cuts = _Cuts.of(claimed, entries) if is_again else None
    # If the turn does not start again by itself, the user can ask for it.
    given_up = f" That was {cuts.said}: it is given up." if cuts else ""
    is_over = cuts is None or cuts.are_too_many
    ending.append(
        notice(f"{STOPPED}{given_up} The user may ask you to go on." if is_over else STOPPED)
    )
    if not any(entry.kind in ("user", "notice") for entry in entries):
        began = entry_of(claimed.event, session.style, session.clock.now())
        ending.insert(0, begun(began, claimed.event, session.usual_policy))
    # The receipts of helpers whose runs were interrupted with this turn.
    runs: list[str] = []
    for _, cut in read_all(CallAnswered, ending):
        if cut.outcome == word(Unknown()):
            runs.append(run_name(cut.name, claimed.id, cut.call_id))
    receipts = [
        receipt_in(await store.history(run, kinds=RECEIPT_KINDS, with_removed=True)) for run in runs
    ]
    ending += [facts_entry(receipt.to_json()) for receipt in receipts if receipt]
    receipt = ReceiptReader.of([*entries, *ending])
    await store.append(claimed.id, claimed.attempt, claimed.n, [*ending, receipt_entry(receipt)])
    await store.settle_questions(claimed.id)
    await store.settle_requests(claimed.id)
    posts, writes = _after(claimed, cuts, await store.now())
    await store.finish(claimed.id, claimed.attempt, "interrupted", posts=posts, writes=writes)
    if is_between:
        return ""
    what_next = "It goes on now." if posts else "/retry sends its message again."
    return (
        f"The last turn was cut off when the program was stopped. Until then: {receipt.text}."
        f" {what_next}"
    )


async def _answers_since(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Return entries for the answers that functions of a turn got after its process had ended."""
    answers = list[Entry]()
    for _, asked in read_all(FunctionAsked, entries):
        given = await store.decision(asked.question)
        if given is not None and given["answer"] == "yes":
            answered = FunctionAnswered(
                question=asked.question, call=asked.call, answer=given["word"], by="human"
            )
            answers.append(write_entry(answered))
    return answers


@dataclass(frozen=True, slots=True)
class _Cuts:
    """How often the turn of one message was interrupted: in total, and in a row without an answered call."""

    total: int
    in_a_row: int

    @classmethod
    def of(cls, claimed: Claimed, entries: Sequence[Entry]) -> "_Cuts":
        """Count one more interruption, of a turn with these entries."""
        answered = any(
            given.outcome not in _CLOSED and not given.call_id.startswith(_BOOT)
            for _, given in read_all(CallAnswered, entries)
        )
        event = claimed.event
        return cls(event.cuts + 1, 0 if answered else event.tries + 1)

    @property
    def are_too_many(self) -> bool:
        """True if the turn itself probably ends the processes that run it."""
        return self.in_a_row > _MOST_TRIES or self.total > _MOST_CUTS

    @property
    def said(self) -> str:
        """The reason for giving up, for the agent and for the agent that asked."""
        if self.in_a_row > _MOST_TRIES:
            return f"cut off {self.in_a_row} times in a row before a call was answered"
        return f"cut off {self.total} times"

    def due(self, now: float) -> float:
        """Return when the turn resumes: at once; from the second interruption in a row with backoff, after others."""
        pause = _PAUSE_S * 2 ** (self.in_a_row - 1) * random.uniform(0.5, 1.5)  # noqa: S311  (a pause)
        return now + pause if self.in_a_row > 1 else _FIRST_DUE


def _after(claimed: Claimed, cuts: _Cuts | None, now: float) -> tuple[list[Post], list[Write]]:
    """Return the event that starts an interrupted turn again, or the failure for the agent that asked."""
    if cuts is None:
        return [], _owed_answer(claimed, AnswerAsk("", "The turn was ended by the user.", "failed"))
    if cuts.are_too_many:
        return [], _owed_answer(
            claimed, AnswerAsk("", f"`{claimed.agent}` was {cuts.said}.", "failed")
        )
    event = claimed.event
    kept: dict[str, object] = {
        "thread": event.thread,
        "owes": event.owes,
        "hops": event.hops,
        "from": event.from_,
        "trace": event.trace,
        ONLY: event.only,
    }
    # What its sender chose counts for the turn that goes on with it, whoever runs that.
    chosen = {
        POLICY: event.policy,
        EXPECTS: event.expects,
        MODEL: event.model,
        MAX_STEPS: event.max_steps,
    }
    kept |= {key: value for key, value in chosen.items() if value}
    if event.kind == "message" or event.text:
        kept["text"] = one_line(event.text, _SAID_CHARS)
    counted = {"tries": cuts.in_a_row, "cuts": cuts.total, CONTINUES: claimed.id}
    again = Post(
        claimed.line, "again", {**kept, **counted}, key=f"again:{claimed.id}", due=cuts.due(now)
    )
    return [again], []


def _owed_answer(claimed: Claimed, answer: AnswerAsk) -> list[Write]:
    """Return the answer to the question that a turn was for, if any."""
    owes = claimed.event.owes
    return [replace(answer, ask=owes)] if owes else []
