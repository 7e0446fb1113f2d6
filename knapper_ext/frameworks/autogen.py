"""An agent or group of a workspace in AutoGen teams (AgentChat 0.7). Requires the extra `autogen`; never imports `mcp`.

AutoGen is in maintenance mode, so this module supports its last version.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias
from uuid import uuid4

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import FunctionExecutionResult, RequestUsage

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.client.client import Client

from .turn_adapter import DESCRIPTION, TeamMessage, TurnAdapter, note

Heard: TypeAlias = BaseAgentEvent | BaseChatMessage


class AutoGenAgent(BaseChatAgent):  # type: ignore[misc]  # AutoGen is not installed where this is checked
    """A team participant backed by a Knapper agent or group, with its own memory and functions."""

    component_provider_override = f"{__name__}.AutoGenAgent"

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        agent: str = "",
        conversation: str = "",
        description: str = DESCRIPTION,
    ) -> None:
        """Create the participant. `name` is its identifier in the team; `agent` is the Knapper agent or the default.

        With a `conversation`, the team has a separate conversation with the agent. The caller closes the client.
        """
        super().__init__(name, description)
        self._adapter = TurnAdapter(client, agent, conversation)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The message types that it answers with."""
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Return the reply to the messages since its last turn."""
        async with aclosing(self.on_messages_stream(messages, cancellation_token)) as stream:
            async for message in stream:
                if isinstance(message, Response):
                    return message
        raise RuntimeError("the stream ended without a response")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Heard | Response, None]:
        """Yield the events of the turn, then its response. Cancellation also cancels the turn."""
        inner: list[Heard] = []
        reply_id = str(uuid4())  # pieces of text carry the id of their message
        said = []
        for chat_message in messages:
            before = chat_message.context if isinstance(chat_message, HandoffMessage) else ()
            text = "\n".join(
                [chat_message.to_model_text(), *(f"{part.type}: {part.content}" for part in before)]
            )
            said.append(TeamMessage(chat_message.source, text, chat_message.id))
        async with aclosing(self._adapter.turn(said)) as turn:
            while True:
                step = asyncio.ensure_future(anext(turn))
                cancellation_token.link_future(step)
                event = await step
                if isinstance(event, events.TurnEnded):
                    usage = RequestUsage(
                        event.usage.get("prompt_tokens", 0), event.usage.get("completion_tokens", 0)
                    )
                    about = {**_about(event), "knapper_reason": event.reason}
                    about |= {
                        f"knapper_{fact}": ", ".join(names) for fact, names in event.made.items()
                    }
                    about |= {"knapper_receipt": event.receipt} if event.receipt else {}
                    reply = TextMessage(
                        id=reply_id,
                        source=self.name,
                        content=event.reply,
                        models_usage=usage,
                        metadata=about,
                    )
                    yield Response(chat_message=reply, inner_messages=inner)
                    return
                for message in self._messages(event, reply_id):
                    if not isinstance(message, ModelClientStreamingChunkEvent):
                        inner.append(message)
                    yield message

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Begin a new conversation; the agent keeps its memory and functions."""
        await self._adapter.begin_anew()

    async def save_state(self) -> Mapping[str, Any]:
        """Return a reference to the conversation; its content stays in the workspace."""
        return await self._adapter.reference()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue the conversation of a saved state.

        Raises:
            UsageError: the state belongs to another agent.
        """
        await self._adapter.restore(state)

    def _messages(self, event: Event, reply_id: str) -> list[Heard]:
        match event:
            case events.Text():
                piece = ModelClientStreamingChunkEvent(
                    source=self.name, content=event.text, full_message_id=reply_id
                )
                return [piece]
            case events.Thought():
                return [ThoughtEvent(source=self.name, content=event.text)]
            case events.CallStarted():
                call = FunctionCall(id=event.call_id, name=event.name, arguments=event.arguments)
                return [
                    ToolCallRequestEvent(source=self.name, content=[call], metadata=_about(event))
                ]
            case events.CallAnswered():
                is_error = event.outcome != "returned"
                result = FunctionExecutionResult(
                    content=event.text, name=event.name, call_id=event.call_id, is_error=is_error
                )
                return [
                    ToolCallExecutionEvent(
                        source=self.name, content=[result], metadata=_about(event)
                    )
                ]
            case _ if text := note(event):
                return [ThoughtEvent(source=self.name, content=text, metadata=_about(event))]
            case _:
                return []


def _about(event: Event) -> dict[str, str]:
    """Return metadata that identifies an event to programs: its type, the group member, and the admitted function."""
    about = {"knapper": event.type, "knapper_agent": event.agent}
    if isinstance(event, events.CallAnswered) and event.detail.get("admitted"):
        about["knapper_admitted"] = str(event.detail.get("name", ""))
    return {key: value for key, value in about.items() if value}
