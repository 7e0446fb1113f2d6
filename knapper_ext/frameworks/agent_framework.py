"""An agent or group of a workspace in Microsoft's Agent Framework 1.x, through its protocol `SupportsAgentRun`.

Requires the extra `agent-framework`.
"""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    Message,
    ResponseStream,
    UsageDetails,
)

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.client.client import Client

from .turn_adapter import DESCRIPTION, USER, TeamMessage, TurnAdapter, note

Input: TypeAlias = str | Content | Message | Sequence[str | Content | Message] | None
_MOST_SESSIONS: Final = 500


class FrameworkAgent:
    """A framework agent backed by a Knapper agent or group, with its own memory and functions.

    Each session is a separate conversation; without a session, the agent's own conversation continues.
    """

    def __init__(
        self, name: str, client: Client, *, agent: str = "", description: str = DESCRIPTION
    ) -> None:
        """Create the agent. `name` is its name in the framework; `agent` is the Knapper agent or the default one."""
        self.id = self.name = name
        self.description = description
        self._client = client
        self._agent = agent
        self._adapters: dict[str, TurnAdapter] = {}  # by session

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        """Return a session: a conversation that begins with its first message."""
        return AgentSession(session_id=session_id)

    def get_session(
        self, service_session_id: str, *, session_id: str | None = None
    ) -> AgentSession:
        """Return the session of a named conversation."""
        return AgentSession(session_id=session_id, service_session_id=service_session_id)

    def run(
        self,
        messages: Input = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        **_: object,
    ) -> Awaitable[AgentResponse] | ResponseStream[AgentResponseUpdate, AgentResponse]:
        """Run a turn. Return an awaitable response or, with `stream`, an iterable stream of updates."""
        others = []
        for part in [messages] if isinstance(messages, str | Content | Message) else messages or []:
            message = part if isinstance(part, Message) else Message(USER, [part])
            source = message.author_name or str(message.role)
            if source != self.name:  # not its own messages
                texts = [
                    content.text or "" if content.type == "text" else f"[{content.type}]"
                    for content in message.contents
                ]
                others.append(
                    TeamMessage(source, "\n".join(filter(None, texts)), message.message_id or "")
                )
        updates = self._updates(others, session)
        if stream:
            return ResponseStream(updates, finalizer=AgentResponse.from_updates)
        return self._whole(updates)

    async def _whole(self, updates: AsyncIterator[AgentResponseUpdate]) -> AgentResponse:
        return AgentResponse.from_updates([update async for update in updates])

    async def _updates(
        self, messages: Sequence[TeamMessage], session: AgentSession | None
    ) -> AsyncIterator[AgentResponseUpdate]:
        streamed = ""
        name = "" if session is None else session.service_session_id or session.session_id
        adapter = self._adapters.pop(name, None) or TurnAdapter(self._client, self._agent, name)
        self._adapters[name] = adapter
        while len(self._adapters) > _MOST_SESSIONS:
            del self._adapters[next(iter(self._adapters))]
        async with aclosing(adapter.turn(messages)) as turn:
            async for event in turn:
                if isinstance(event, events.Text):
                    streamed += event.text
                if isinstance(event, events.TurnEnded):
                    text = "" if streamed.strip().endswith(event.reply.strip()) else event.reply
                    read, wrote = (
                        event.usage.get("prompt_tokens", 0),
                        event.usage.get("completion_tokens", 0),
                    )
                    usage = UsageDetails(
                        input_token_count=read,
                        output_token_count=wrote,
                        total_token_count=read + wrote,
                    )
                    yield self._update(event, [*_texts(text), Content.from_usage(usage)])
                elif contents := _contents(event):
                    yield self._update(event, contents)

    def _update(self, event: Event, contents: Sequence[Content]) -> AgentResponseUpdate:
        about = {"knapper": event.type, **({"agent": event.agent} if event.agent else {})}
        if isinstance(event, events.CallAnswered) and event.detail.get("admitted"):
            about["admitted"] = str(event.detail.get("name", ""))
        is_answer = isinstance(event, events.CallAnswered)
        return AgentResponseUpdate(
            contents=[*contents],
            role="tool" if is_answer else "assistant",
            author_name=self.name,
            agent_id=self.id,
            message_id=f"{event.turn}:{event.step}{':answers' * is_answer}",
            response_id=event.turn,
            additional_properties=about,
        )


def _contents(event: Event) -> list[Content]:
    match event:
        case events.Text():
            return _texts(event.text)
        case events.Thought():
            return [Content.from_text_reasoning(text=event.text)]
        case events.CallStarted():
            return [
                Content.from_function_call(
                    event.call_id, event.name, arguments=event.arguments, informational_only=True
                )
            ]
        case events.CallAnswered():
            failure = None if event.outcome == "returned" else event.outcome
            return [
                Content.from_function_result(event.call_id, result=event.text, exception=failure)
            ]
        case _:
            return [Content.from_text_reasoning(text=text)] if (text := note(event)) else []


def _texts(text: str) -> list[Content]:
    return [Content.from_text(text)] if text else []
