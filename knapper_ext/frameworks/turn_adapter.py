"""An agent or group as a member of a team: takes messages of the team and yields the events of one turn.

It uses a client, so the agent may be in this process or behind a server. It imports no framework.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final
from uuid import uuid4

from agent_core.base import events
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.events import Event
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.client.client import Client
from agent_core.runtime.taken_up import quoted
from agent_core.storage import MAIN

USER: Final = "user"
DESCRIPTION: Final = (
    "An assistant that makes the functions it is missing, tests them in a sandbox, and uses them."
)
_KIND: Final = "knapper"
_MOST_KNOWN: Final = 200  # ids of messages
_NOTHING_NEW: Final = "Nothing new was said. It is your turn."
_ENDING_S: Final = 10.0  # time for a canceled turn to end
_AGAIN_S: Final = 0.05
_BORDERS: Final = (events.TurnStarted, events.CallStarted, events.CallAnswered, events.TurnEnded)


@dataclass(frozen=True, slots=True)
class TeamMessage:
    """A message from a team member: its author, text, and the team's message id, if there is one."""

    source: str
    text: str
    id: str = ""


class TurnAdapter:
    """An agent or group, and its one conversation with a team."""

    def __init__(self, client: Client, agent: str = "", conversation: str = "") -> None:
        """Create the adapter. By default, `agent` is the default agent, and `conversation` is the agent's own."""
        self._client = client
        self._agent = agent
        self._conversation = conversation
        self._place: dict[str, Any] = {}
        self._known: dict[
            str, None
        ] = {}  # ids of messages that the agent already has, oldest first

    async def turn(self, messages: Sequence[TeamMessage]) -> AsyncGenerator[Event, None]:
        """Send the agent the new messages and yield the events of its turn; the last event is the turn's end.

        Stopping the iteration ends the turn. A turn without a reply gets a sentence with the reason as its reply; a
        failure becomes such an end.
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
        if ended is None:
            ended = events.TurnEnded(turn="", reason="failed", reply="", steps=0, usage={})
        if ended.reason != "replied" or not ended.reply:
            reply = " ".join(
                filter(None, (f"I have no reply: my turn ended ({ended.reason}).", warning))
            )
            ended = replace(ended, reply=reply)
        yield ended

    async def begin_anew(self) -> None:
        """Begin a new conversation. Earlier messages leave the context and stay in the record."""
        await self._client.new(**await self._target())
        self._known.clear()

    async def reference(self) -> dict[str, Any]:  # Any: JSON
        """Return a reference to the conversation. It does not contain message text."""
        target = await self._target()
        last = await self._client.messages(
            target["agent"], last=1, conversation=target["conversation"]
        )
        place = {"workspace": (await self._client.status())["workspace"], **target}
        return {
            "kind": _KIND,
            **place,
            "position": last[-1]["seq"] if last else 0,
            "messages": [*self._known],
        }

    async def restore(self, reference: Any) -> None:  # Any: JSON that a team kept
        """Continue the conversation of a reference.

        Raises:
            UsageError: the reference belongs to another agent, or the workspace's conversation ends before it.
        """
        if not isinstance(reference, dict) or reference.get("kind") != _KIND:
            raise UsageError(
                "This is not the state of an agent of Knapper.",
                fix="Give what `save_state` returned.",
            )
        own = await self.reference()
        saved, here = (
            f"{row.get('agent')} ({row.get('conversation', MAIN)}) in {row.get('workspace')}"
            for row in (reference, own)
        )
        if saved != here:
            fix = "Make the agent with the same workspace, `agent` and `conversation`."
            raise UsageError(
                f"This is the state of {one_line(saved, 200)}, not of {here}.", fix=fix
            )
        if reference.get("position", 0) > own["position"]:
            fix = "Use the folder that it was saved with."
            raise UsageError(
                f"The conversation of {here} ends before this state was saved.", fix=fix
            )
        messages = reference.get("messages")
        self._known = dict.fromkeys(map(str, messages if isinstance(messages, list) else ()))

    async def _target(self) -> dict[str, Any]:  # Any: texts
        """Return the agent and the id of its conversation."""
        if not self._place:
            agent = self._agent or str((await self._client.status())["agent"])
            name = self._conversation
            # Names from other frameworks may be long or contain any characters.
            is_fit = (
                len(name) <= 40
                and name.isascii()
                and name.replace("-", "").replace("_", "").isalnum()
            )
            if name and not is_fit:
                name = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:20]
            self._place = {"agent": agent, "conversation": MAIN}
            if name:
                begun = await self._client.begin_conversation(name, agent)
                self._place = {"agent": str(begun["agent"]), "conversation": str(begun["id"])}
        return self._place

    async def _events(self, messages: Sequence[TeamMessage]) -> AsyncGenerator[Event, None]:
        target = await self._target()
        fresh = [message for message in messages if message.id not in self._known]
        said = [message for message in fresh if message.text.strip()]
        text = "\n\n".join(
            f"[from: {one_line(message.source, 64)}]\n{quoted(message.text)}" for message in said
        )
        if [message.source for message in said] == [USER]:
            text = said[0].text  # a single message from the user is sent unchanged
        posted = await self._client.post(
            text or _NOTHING_NEW,
            key=uuid4().hex,
            agent=target["agent"],
            conversation=target["conversation"],
        )
        self._known |= {message.id: None for message in fresh if message.id}
        for id in [*self._known][:-_MOST_KNOWN]:
            del self._known[id]
        is_over = False
        try:
            async with aclosing(self._events_of_turn(posted, target)) as heard:
                async for event in heard:
                    is_over = isinstance(event, events.TurnEnded)
                    yield event
        finally:
            if not is_over:
                await self._end(posted, target)

    async def _events_of_turn(
        self, posted: dict[str, Any], target: dict[str, str]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of the turn that took a message, and of its continuation after waiting for other agents."""
        is_own = False
        async with aclosing(self._client.events(**target, after=posted["after"])) as heard:
            async for numbered in heard:
                event = numbered.event
                if event is None:
                    continue
                if not is_own and isinstance(event, _BORDERS):
                    turn = await self._client.turn_of(posted, **target)
                    # a group's turn includes the turns of its members
                    is_of_member = bool(event.agent) and not isinstance(event, events.TurnStarted)
                    is_own = turn is not None and (is_of_member or event.turn == turn)
                is_parked = isinstance(event, events.TurnEnded) and event.reason == "parked"
                if is_own and not is_parked:
                    yield event
                if is_own and isinstance(event, events.TurnEnded) and not is_parked:
                    return

    async def _end(self, posted: dict[str, Any], target: dict[str, str]) -> None:
        """End the turn that took a message and wait until it has ended, so that the next message begins a new turn."""
        with suppress(KnapperError, TimeoutError):
            async with asyncio.timeout(_ENDING_S):
                while (turn := await self._client.turn_of(posted, **target)) is None:  # noqa: ASYNC110 - another process takes it up
                    await asyncio.sleep(_AGAIN_S)
                await self._client.interrupt(**target)
                async with aclosing(self._client.events(**target, after=posted["after"])) as heard:
                    async for numbered in heard:
                        if (
                            isinstance(numbered.event, events.TurnEnded)
                            and numbered.event.turn == turn
                        ):
                            return


def note(event: Event) -> str:
    """Return a sentence about an event other than text or calls, or "" for events that only a terminal shows."""
    text = ""
    match event:
        case events.FunctionsChanged():
            changes = {"made": event.loaded, "changed": event.changed, "removed": event.removed}
            text = "; ".join(
                f"{change} {', '.join(names)}" for change, names in changes.items() if names
            )
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
