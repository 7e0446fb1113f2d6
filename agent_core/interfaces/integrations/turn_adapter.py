"""What every framework's adapter needs: messages of a team in, events of one turn out.

It works with a client, so the agent may be in this process or behind a server. Imports no framework.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

from agent_core.base import events, old_name
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.events import Event
from agent_core.base.untrusted import one_line
from agent_core.runtime.identity import quoted

from ..client import Client

USER: Final = "user"
_KIND: Final = "knapper"
_MOST_KNOWN: Final = 200  # ids of messages
_NOTHING_NEW: Final = "Nothing new was said. It is your turn."
_ENDING_S: Final = 10.0  # that a canceled turn has to end
_AGAIN_S: Final = 0.05
_BORDERS: Final = (events.TurnStarted, events.CallStarted, events.CallAnswered, events.TurnEnded)
_UNNAMED: Final = ""


@dataclass(frozen=True, slots=True)
class TeamMessage:
    """A message of a member of a team: by whom, the text, and the team's id of it, if there is one."""

    source: str
    text: str
    id: str = ""


class TurnAdapter:
    """One agent or group, and the one conversation of it that a team takes part in."""

    def __init__(self, client: Client, agent: str = "", conversation: str = "") -> None:
        """Create the adapter. Without a name `agent` is the usual one; without a conversation, its own is used."""
        self._client = client
        self._agent = agent
        self._conversation = conversation
        self._name = ""
        self._known: dict[str, None] = {}  # ids of messages that the agent has, oldest first

    async def turn(self, messages: Sequence[TeamMessage]) -> AsyncGenerator[Event, None]:
        """Tell the agent what is new to it, and yield the events of its turn; the last one is its end.

        Whoever stops iterating ends the turn. What fails becomes an end with the reason as its reply.
        """
        ended: events.TurnEnded | None = None
        warning = ""
        try:
            async with aclosing(self._events(messages)) as heard:
                async for event in heard:
                    if isinstance(event, events.TurnEnded):
                        ended = event
                        break
                    warning = event.text if isinstance(event, events.Warned) else warning
                    yield event
        except KnapperError as error:
            warning = f"{error.message} {error.fix}".strip()
        yield _with_reason(ended, warning)

    async def begin_anew(self) -> None:
        """Begin a new conversation: what was said leaves the context, and stays in the record."""
        await self._client.new(await self._target())
        self._known.clear()

    async def reference(self) -> dict[str, Any]:  # Any: JSON
        """Return where the conversation is kept. It holds none of what was said."""
        name = await self._target()
        last = await self._client.messages(name, last=1)
        place = {"workspace": (await self._client.status())["workspace"], "agent": name}
        return {"kind": _KIND, **place, "position": last[-1]["seq"] if last else 0, "messages": [*self._known]}

    async def restore(self, reference: Any) -> None:  # Any: JSON that a team kept
        """Go on with the conversation of a reference.

        Raises:
            UsageError: it is not of this agent, or its workspace has not got as far as the reference.
        """
        if not isinstance(reference, dict) or reference.get("kind") not in (_KIND, old_name.NAME):
            raise UsageError("This is not the state of an agent of Knapper.", fix="Give what `save_state` returned.")
        own = await self.reference()
        saved, here = (f"{row.get('agent')} in {row.get('workspace')}" for row in (reference, own))
        if saved != here:
            fix = "Make the agent with the same workspace, `agent` and `conversation`."
            raise UsageError(f"This is the state of {one_line(saved, 200)}, not of {here}.", fix=fix)
        if reference.get("position", 0) > own["position"]:
            fix = "Use the folder that it was saved with."
            raise UsageError(f"The conversation of {here} ends before this state was saved.", fix=fix)
        messages = reference.get("messages")
        self._known = dict.fromkeys(map(str, messages if isinstance(messages, list) else ()))

    async def _target(self) -> str:
        """Return the agent that holds the conversation."""
        if not self._name:
            agent = self._agent or str((await self._client.status())["agent"])
            name = self._conversation
            self._name = await self._client.converse(_fitting(name), agent) if name else agent
        return self._name

    async def _events(self, messages: Sequence[TeamMessage]) -> AsyncGenerator[Event, None]:
        target = await self._target()
        fresh = [message for message in messages if message.id not in self._known]
        posted = await self._client.post(_text(fresh), target, key=uuid4().hex)
        self._remember(fresh)
        is_over = False
        try:
            async with aclosing(self._events_of_turn(posted, target)) as heard:
                async for event in heard:
                    is_over = isinstance(event, events.TurnEnded)
                    yield event
        finally:
            if not is_over:
                await self._end(posted, target)

    async def _events_of_turn(self, posted: dict[str, Any], target: str) -> AsyncGenerator[Event, None]:
        """Yield the events of the turn that took a message. If it waits for other agents, what it goes on with, too."""
        is_own = False
        async with aclosing(self._client.events(target, after=posted["after"])) as heard:
            async for numbered in heard:
                event = numbered.event
                if event is None:
                    continue
                if not is_own and isinstance(event, _BORDERS):
                    is_own = _is_of(event, await self._client.turn_of(posted, target))
                is_parked = isinstance(event, events.TurnEnded) and event.reason == "parked"
                if is_own and not is_parked:
                    yield event
                if is_own and isinstance(event, events.TurnEnded) and not is_parked:
                    return

    async def _end(self, posted: dict[str, Any], target: str) -> None:
        """End the turn that took a message, and wait until it has ended: the next message is for the next turn."""
        with suppress(KnapperError, TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                while (turn := await self._client.turn_of(posted, target)) is None:  # noqa: ASYNC110 - another process takes it up
                    await asyncio.sleep(_AGAIN_S)
                await self._client.interrupt(target)
                async with aclosing(self._client.events(target, after=posted["after"])) as heard:
                    async for numbered in heard:
                        if isinstance(numbered.event, events.TurnEnded) and numbered.event.turn == turn:
                            return

    def _remember(self, messages: Sequence[TeamMessage]) -> None:
        self._known |= {message.id: None for message in messages if message.id != _UNNAMED}
        for id in [*self._known][:-_MOST_KNOWN]:
            del self._known[id]


def _is_of(event: Event, turn: str | None) -> bool:
    """Return whether an event is of a turn; members of a group have turns of their own in the group's."""
    is_of_member = bool(event.agent) and not isinstance(event, events.TurnStarted)
    return turn is not None and (is_of_member or event.turn == turn)


def _text(messages: Sequence[TeamMessage]) -> str:
    """Return what the agent reads: a user alone as they are, everybody else by name."""
    said = [message for message in messages if message.text.strip()]
    if not said:
        return _NOTHING_NEW
    if [message.source for message in said] == [USER]:
        return said[0].text
    return "\n\n".join(f"[from: {one_line(message.source, 64)}]\n{quoted(message.text)}" for message in said)


def _with_reason(ended: events.TurnEnded | None, warning: str) -> events.TurnEnded:
    """Return the end of a turn; without a reply, with a sentence about why there is none."""
    if ended is not None and ended.reason == "replied" and ended.reply:
        return ended
    reason = ended.reason if ended else "failed"
    reply = " ".join(filter(None, (f"I have no reply: my turn ended ({reason}).", warning)))
    if ended is not None:
        return replace(ended, reason=reason, reply=reply)
    return events.TurnEnded(turn="", reason=reason, reply=reply, steps=0, usage={})


def note(event: Event) -> str:
    """Return a sentence about what happened besides text and calls; nothing for what only a terminal shows."""
    text = ""
    match event:
        case events.FunctionsChanged():
            changes = {"made": event.loaded, "changed": event.changed, "removed": event.removed}
            text = "; ".join(f"{change} {', '.join(names)}" for change, names in changes.items() if names)
        case events.GrantAsked():
            text = f"`{event.function}` waits for a yes of a human. {' '.join(event.says)} {event.command}"
        case events.GrantAnswered():
            text = f"`{event.function}`: {event.answer}. {event.word}"
        case events.Quarantined():
            text = f"`{event.name}` kept failing, and is out of use."
        case events.MemoryChanged():
            text = f"Remembered in {event.block}: {event.what}"
        case events.SpeakerChosen():
            text = f"{event.agent} speaks next: {event.reason}"
        case events.Warned():
            text = event.text
        case _:
            pass
    return text.strip()


def _fitting(conversation: str) -> str:
    """Return a name that a conversation can have: other frameworks' may be long, or have any letters."""
    is_fit = len(conversation) <= 40 and conversation.replace("-", "").replace("_", "").isalnum()
    is_fit = is_fit and conversation.isascii()
    return conversation if is_fit else hashlib.sha256(conversation.encode("utf-8", "replace")).hexdigest()[:20]
