"""The session of an agent with its user: the boot, logins, timed heartbeats and their pauses, and its own set.

A turn that was cut off, here or in another process, is settled: each call without an answer gets one, and none is run
again.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.messages import SEND, Assistant, Call
from agent_core.base.settings import HeartbeatSettings
from agent_core.functions.answers import Skipped, Unknown, answer, word
from agent_core.storage import ClaimedTurn as Claimed
from agent_core.storage import Entry, Inbound, PinFunction, Post, SaveAgent, Store, UnpinFunction

from .message_protocol import DIRECT, MessageProtocol
from .turn import Turn, assistant, entry_of, login, notice, result, unanswered
from .turn_policy import Ended

Kind: TypeAlias = Literal["login", "heartbeat", "system"]


@dataclass(frozen=True, slots=True)
class Older:
    """Former names of a function, as the dispatcher understands them."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


OLD_NAMES: Final[Mapping[str, Older]] = {"message_chatgpt": Older("message_llm")}
TIMED: Final = "the time for it has come, and nobody has said anything. You need not answer."
_BOOTED: Final = "I am awake, and the persona is mine. I try out whether a message reaches the user."
SENT: Final = "The user was shown it."
_FIRST: Final = "Hello! I am here."


class OwnSet:
    """The functions that one agent is always shown."""

    def __init__(self, agent: str, store: Store) -> None:
        self.names: frozenset[str] = frozenset()
        self._agent = agent
        self._store = store

    async def load(self) -> None:
        """Read the set from the store."""
        self.names = frozenset(await self._store.pins(self._agent))

    async def add(self, function: str) -> None:
        """Add a function."""
        await self._store.apply([PinFunction(self._agent, function)])
        await self.load()

    async def remove(self, function: str) -> None:
        """Remove a function; the file stays."""
        await self._store.apply([UnpinFunction(self._agent, function)])
        await self.load()


class AgentSession:
    """The session of one agent with its user, in the agent's style.

    With `verify`, a first reply must have a thought and a message where the style wants that.
    """

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        agent: str,
        store: Store,
        style: MessageProtocol = DIRECT,
        heartbeat: HeartbeatSettings | None = None,
        clock: Clock | None = None,
        *,
        verify: bool = True,
    ) -> None:
        self.style = style
        self.clock = clock or Clock()
        self.verify = verify
        self.own_set = OwnSet(agent, store)
        self._agent = agent
        self._store = store
        self._settings = heartbeat or HeartbeatSettings()
        self._is_here = False
        self._woken = self.clock.now()
        self._paused_until = 0.0

    async def opening(self, event: Inbound, *, is_first: bool) -> list[Entry]:
        """Return the first entries of a turn: the boot of a new agent, the login of a new session, and the event."""
        began = entry_of(event, self.style, self.clock.now())
        if not self.style.packs or (self._is_here and not is_first):
            return [began]
        self._is_here = True
        login_entry = login(await self._last_said(), self.style, self.clock.now())
        if event.kind == "login":
            return [login_entry]
        # The login first: there are endpoints that want a user's message before an assistant's.
        return [login_entry, *(_boot(self.clock.new_id()) if is_first else ()), began]

    async def post(self, kind: Kind, text: str = "") -> None:
        """Queue an event for the next turn, or for the next step of the running one.

        `login`: the user is there and has not spoken, so that the agent speaks first; `heartbeat`: `text` is why;
        `system`: `text` is what the program tells the agent.
        """
        payload = {"reason": text} if kind == "heartbeat" else {"text": text}
        await self._store.post(Post(self._agent, kind, payload, due=self.clock.now()))

    async def heartbeats(self, is_busy: Callable[[], bool]) -> AsyncIterator[None]:
        """Yield each time that a heartbeat is due, after queuing it in the inbox. Without heartbeats, yield nothing."""
        every = self._settings.every_minutes * 60
        if not (every and self.style.packs):
            return
        self._paused_until = float((await self._kept()).get("paused_until", 0))
        self.touch()
        while True:
            wait = max(self._woken + every, self._paused_until) - self.clock.now()
            if wait > 0:
                await asyncio.sleep(wait)
                continue  # somebody spoke meanwhile, or it paused itself
            self.touch()
            if not is_busy():
                await self.post("heartbeat", TIMED)
                yield

    async def pause(self, minutes: float) -> str:
        """Pause timed heartbeats for this long, capped by the settings. Return a sentence that says the result."""
        most = self._settings.pause_max_minutes
        for_minutes = max(min(minutes, most), 0)
        self._paused_until = self.clock.now() + for_minutes * 60
        settings = {**await self._kept(), "paused_until": self._paused_until}
        await self._store.apply([SaveAgent(self._agent, settings)])
        capped = f", which is the longest that may be ({minutes:g} were asked for)" if minutes > most else ""
        return f"No timed heartbeat for {for_minutes:g} minutes{capped}."

    def touch(self) -> None:
        """Restart the heartbeat interval, because something happened."""
        self._woken = self.clock.now()

    async def _kept(self) -> dict[str, Any]:  # Any: JSON
        return await self._store.agent_settings(self._agent) or {}

    async def _last_said(self) -> float | None:
        messages = await self._store.history(self._agent, kinds=("user",))
        return messages[-1].at if messages else None


def _boot(call_id: str) -> list[Entry]:
    """Return an example conversation for a small model, which the user is not shown."""
    call = Call(f"boot-{call_id[-8:]}", SEND, json.dumps({"message": _FIRST}))
    return [assistant(Assistant(_BOOTED, (call,))), result(call, SENT, "returned", 0.0, {})]


def closing_answers(entries: Sequence[Entry]) -> list[Entry]:
    """Return an answer for each unanswered call of a turn's last reply; one that was started may have taken effect."""
    return [_unsettled(call.id, call.name, started=started) for call, started in unanswered(entries)]


async def settle(store: Store, claimed: Claimed, session: AgentSession) -> str:
    """Close a turn that another process left open: every call gets its one answer."""
    entries = await store.load(claimed.id)
    closing = closing_answers(entries)
    closing.append(notice("The program was stopped here. The user may ask you to go on."))
    n = claimed.n
    if not any(entry.kind in ("user", "notice") for entry in entries):
        closing.insert(0, entry_of(claimed.event, session.style, session.clock.now()))
    await store.append(claimed.id, claimed.attempt, n, closing)
    await store.settle_questions(claimed.id)
    await store.finish(claimed.id, claimed.attempt, "interrupted")
    unknown = [entry.payload["name"] for entry in closing if entry.payload.get("outcome") == "unknown"]
    calls = f" Whether these calls took effect is unknown: {', '.join(unknown)}." if unknown else ""
    return f"The last turn was cut off when the program was stopped.{calls} /retry sends its message again."


def _unsettled(call_id: str, name: str, *, started: bool) -> Entry:
    outcome = Unknown() if started else Skipped("the turn ended before it was started.")
    payload = {"call_id": call_id, "name": name, "text": answer(outcome, 1000)}
    return Entry("result", {**payload, "outcome": word(outcome), "seconds": 0.0, "detail": {}})


def last_event(turn: Turn, ended: Ended) -> events.TurnEnded:
    """Return the event at the end of a turn."""
    return events.TurnEnded(
        turn=turn.id,
        step=turn.step,
        reason=ended.reason,
        reply=ended.reply,
        steps=turn.step,
        usage=turn.tokens,
        made=turn.completed_changes,
    )
