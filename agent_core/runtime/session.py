"""Events and messages of an agent apart from the conversation: the boot, logins, timed heartbeats and their pauses."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agent_core.base.clock import Clock
from agent_core.base.messages import SEND, Assistant, Call, System, User
from agent_core.base.settings import HeartbeatSettings
from agent_core.model.reply import Model, Reply
from agent_core.model.request import Request
from agent_core.storage import Entry, Inbound, Post, SaveAgent, Store

from .message_protocol import DIRECT, MessageProtocol
from .turn import Turn, assistant, entry_of, login, result

Kind: TypeAlias = Literal["login", "heartbeat", "system"]


@dataclass(frozen=True, slots=True)
class Older:
    """Former names of a function, as the dispatcher understands them."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


OLD_NAMES: Final[Mapping[str, Older]] = {"message_chatgpt": Older("message_llm")}
TIMED: Final = "the time for it has come, and nobody has said anything. You need not answer."
_ALONE: Final = "Answer the question that you are asked, in plain text, and briefly."
_BOOTED: Final = "I am awake, and the persona is mine. I try out whether a message reaches the user."
SENT: Final = "The user was shown it."
_FIRST: Final = "Hello! I am here."


class AgentSession:
    """The session of one agent with its user, in the agent's style."""

    def __init__(
        self,
        agent: str,
        store: Store,
        style: MessageProtocol = DIRECT,
        heartbeat: HeartbeatSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.style = style
        self.clock = clock or Clock()
        self.verify = True
        self.turn: Turn | None = None
        self.model: Callable[[], Awaitable[Model]] | None = None
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

    def send(self, message: str) -> str:
        """Show the user a message of the running turn. Return the answer for the model."""
        if self.turn is not None:
            self.turn.say(message)
        return SENT

    async def ask(self, message: str) -> str:
        """Return the answer of the agent's model to one message alone: no persona, no memory, no functions.

        Raises:
            ModelError: there is no usable answer.
        """
        assert self.model is not None
        model = await self.model()
        pieces = [piece async for piece in model.stream(Request((System(_ALONE), User(message))))]
        reply = pieces[-1]
        assert isinstance(reply, Reply), "a model's stream ends with its reply or an error"
        if self.turn is not None:
            self.turn.count(reply.usage.prompt, reply.usage.completion, reply.usage.cached)
        return reply.text

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
