"""Messages to the user, heartbeats and questions of an agent that wakes for events."""

from agent_core import Agent


async def send_message(self: Agent, message: str) -> str:
    """Send a message to the user. They see nothing else from you.

    Args:
        message: The text, as the user is to read it.
    """
    return self.send(message)


async def pause_heartbeats(self: Agent, minutes: float) -> str:
    """Pause timed heartbeats for a while. A message from the user still wakes you.

    Args:
        minutes: How long, in minutes.
    """
    return await self.session.pause(minutes)


async def message_llm(self: Agent, message: str) -> str:
    """Ask a language model that has no persona, no memory and no functions, and knows nothing of this conversation.

    Args:
        message: All that it has to know, and the question.
    """
    return await self.model_session.ask_alone(message, self.turn_now)
