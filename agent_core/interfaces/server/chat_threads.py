"""Conversations of clients that send their whole history each time: a known one goes on, another begins a new one.

Each is an agent of its own, `AGENT--chat-…`, which shares the blocks of the agent that was named.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent_core.base import events
from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError
from agent_core.base.messages import Assistant
from agent_core.runtime.turn import assistant, user
from agent_core.storage import AGENT, AttachBlock, Entry, SaveAgent, WholeAgent, WholeEvent, WholeTurn
from agent_core.workspace.group_file import is_group

from ..manual_edits import HUMAN, done
from .identity import CONVERSATION
from .rooms import Rooms

_MARK: Final = f"{CONVERSATION}chat-"
_KEPT: Final = 100  # conversations of one agent that have no name; the oldest go
_SECTION: Final = "client"
_WAIT_S: Final = 15.0  # without an event, after which a client is told that it still goes on


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of a client's history, as plain text."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Thread:
    """The agent that holds a conversation, and what of the client's messages is new to it."""

    name: str
    text: str


class ChatThreads:
    """The conversations of clients."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def take_up(self, agent: str, conversation: str, messages: Sequence[ClientMessage]) -> Thread:
        """Return the conversation that the messages go on with, or a new one that begins with them.

        Raises:
            UsageError: the last message is not the user's, or the conversation cannot have this name.
        """
        system = "\n\n".join(message.text for message in messages if message.role in ("system", "developer"))
        said = [message for message in messages if message.role in ("user", "assistant")]
        if not said or said[-1].role != "user":
            raise UsageError("The last message must be the user's.", fix="Send it as {'role': 'user', 'content': …}.")
        begin = max((place + 1 for place, message in enumerate(said) if message.role == "assistant"), default=0)
        before, text = said[:begin], "\n\n".join(message.text for message in said[begin:])
        if conversation or self._is_group(agent):
            name = await self.named(agent, conversation, before)
        else:
            name = await self._known(agent, before) or await self._new(agent, before)
        await self._tell_system(name, system)
        return Thread(name, text)

    async def named(self, agent: str, conversation: str, before: Sequence[ClientMessage] = ()) -> str:
        """Return the agent that holds a conversation with a name, which begins now if there is none of that name.

        A group has one conversation, whatever it is called: its members remember what they said.

        Raises:
            UsageError: the conversation cannot have this name.
        """
        name = self.name_of(agent, conversation)
        if name == agent:
            return agent
        if not AGENT.fullmatch(name):
            most = 64 - len(agent) - len(CONVERSATION)
            fix = f"Use up to {most} letters, digits, dashes and underscores."
            raise UsageError(f"A conversation cannot be called `{conversation[:80]}`.", fix=fix)
        if await self._rooms.state.store.agent_settings(name) is None:
            await self._begin(agent, name, before)
        return name

    def name_of(self, agent: str, conversation: str) -> str:
        """Return the agent that holds a conversation, whether it has begun or not; of a group, the group."""
        return agent if self._is_group(agent) else f"{agent}{CONVERSATION}{conversation}"

    async def turn(self, thread: Thread) -> AsyncIterator[events.Event | None]:
        """Post what is new, and yield the events of its turn; None while nothing comes."""
        host = self._rooms.host
        with host.listen(thread.name) as listening:
            await host.post(thread.name, thread.text)
            while not listening.is_over:
                event = await listening.next(_WAIT_S)
                yield event
                if isinstance(event, events.TurnEnded):
                    return

    async def remember(self, thread: Thread, agent: str, messages: Sequence[ClientMessage], reply: str) -> None:
        """Note how a client will send this conversation next time."""
        said = [message for message in messages if message.role in ("user", "assistant")]
        store = self._rooms.state.store
        settings = await store.agent_settings(thread.name) or {}
        sent = _digest([*said, ClientMessage("assistant", reply)])
        await store.apply([SaveAgent(thread.name, {**settings, "chat_of": agent, "chat_sent": sent})])

    async def of_response(self, id: str, agent: str) -> str:
        """Return the conversation whose last response has this id.

        Raises:
            UsageError: there is none of this agent.
        """
        for name in await self._rooms.state.store.agent_names():
            settings = await self._rooms.state.store.agent_settings(name) if CONVERSATION in name else None
            if settings and settings.get("chat_of") == agent and settings.get("chat_response") == id:
                return name
        fix = "Only the last response of a conversation can be continued; or send its messages as `input`."
        raise UsageError(f"There is no response `{id[:80]}` to go on from.", fix=fix)

    async def note_response(self, thread: Thread, agent: str, id: str) -> None:
        """Note the id by which the conversation goes on."""
        store = self._rooms.state.store
        settings = await store.agent_settings(thread.name) or {}
        await store.apply([SaveAgent(thread.name, {**settings, "chat_of": agent, "chat_response": id})])

    def _is_group(self, agent: str) -> bool:
        return is_group(self._rooms.workspace.root, agent)

    async def _known(self, agent: str, before: Sequence[ClientMessage]) -> str:
        if not before:
            return ""
        sent, store = _digest(before), self._rooms.state.store
        for name in await self._names(agent):
            settings = await store.agent_settings(name) or {}
            if settings.get("chat_sent") == sent and not self._rooms.host.is_running(name):
                return name
        return ""

    async def _names(self, agent: str) -> list[str]:
        """Return the conversations without a name, the newest first: their names sort by time."""
        names = await self._rooms.state.store.agent_names()
        return sorted((name for name in names if name.startswith(f"{agent}{_MARK}")), reverse=True)

    async def _new(self, agent: str, before: Sequence[ClientMessage]) -> str:
        host, moves = self._rooms.host, self._rooms.state.moves
        for old in (await self._names(agent))[_KEPT - 1 :]:
            if not host.is_running(old):
                if opened := host.release(old):
                    await opened.aclose()
                await moves.delete(old)
        name = f"{agent}{_MARK}{Clock().new_id().replace('-', '')[:20]}"
        await self._begin(agent, name, before)
        return name

    async def _begin(self, agent: str, name: str, before: Sequence[ClientMessage]) -> None:
        """Make the agent of a new conversation, with what was said before, and the memory of the one it belongs to."""
        store, owner = self._rooms.state.store, await self._rooms.host.agent(agent)
        settings = await store.agent_settings(agent) or {}
        blocks = owner.memory.blocks
        for row in [row for row in blocks.rows if not row.shared]:
            await done(blocks, blocks.share(row.label, HUMAN))
        await store.write_agent(WholeAgent(name, {**settings, "chat_of": agent}, turns=_turns(before)))
        await store.apply([AttachBlock(name, row.id, row.position) for row in blocks.rows])

    async def _tell_system(self, name: str, system: str) -> None:
        sections = (await self._rooms.host.agent(name)).memory.sections
        has = {row.name: row.text for row in await sections.list()}
        if system and has.get(_SECTION) != system:
            await sections.set(_SECTION, 0, system)
        elif not system and _SECTION in has:
            await sections.drop(_SECTION)


def _turns(before: Sequence[ClientMessage]) -> list[WholeTurn]:
    """Return what was said before as finished turns, one for each message of the user."""
    turns: list[tuple[str, list[Entry]]] = []
    for message in before:
        if message.role == "user" or not turns:
            turns.append((message.text, []))
        is_user = message.role == "user"
        entry = user(message.text) if is_user else assistant(Assistant(message.text, ()))
        turns[-1][1].append(entry)
    return [
        WholeTurn(f"before-{place}", "done", 0.0, 0.0, [WholeEvent("message", {"text": text}, 0.0)], entries)
        for place, (text, entries) in enumerate(turns)
    ]


def _digest(messages: Sequence[ClientMessage]) -> str:
    text = json.dumps([[message.role, message.text.strip()] for message in messages])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
