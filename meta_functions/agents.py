"""Messages to other agents: a note, a question that parks the turn, and a handoff."""

from agent_core import Agent
from agent_core.storage import Plan


async def list_agents(self: Agent) -> str:
    """List the agents that you can reach, with what each is for, and who waits for whom."""
    return await self.colleagues.listing()


async def message_agent(
    self: Agent, agent: str, message: str, key: str = "", *, stop: bool = False
) -> Plan:
    """Send another agent a message that needs no answer. It knows nothing of this conversation but these words.

    Args:
        agent: The name of the agent.
        message: All that it has to know.
        key: A name of your own for this message: it is sent once, however often you send it under this name.
        stop: Whether it asks the other one to stop what it does for this task; then say why.
    """
    return self.colleagues.note(self.turn_now, agent, message, key, stop=stop)


async def ask_agent(self: Agent, agent: str, question: str, minutes: float | None = None) -> Plan:
    """Ask another agent and wait: your turn ends, and its answer is your next message.

    Args:
        agent: The name of the agent.
        question: The question, with all that it has to know.
        minutes: How long to wait at most; leave out to wait as long as is usual.
    """
    return self.colleagues.ask(self.turn_now, [agent], question, minutes)


async def ask_agents(
    self: Agent, agents: list[str], question: str, minutes: float | None = None
) -> Plan:
    """Ask several agents the same and wait: your turn ends, and all answers together are your next message.

    Args:
        agents: The names of the agents.
        question: The question, with all that they have to know.
        minutes: How long to wait at most; leave out to wait as long as is usual.
    """
    return self.colleagues.ask(self.turn_now, agents, question, minutes)


async def hand_off(
    self: Agent,
    to: str,
    goal: str,
    facts: list[str] | None = None,
    open_questions: list[str] | None = None,
    references: list[str] | None = None,
) -> Plan:
    """Hand this task over to another agent, which goes on in your place: your turn ends.

    It gets this brief and nothing else of the conversation.

    Args:
        to: The name of the agent.
        goal: What is to be reached.
        facts: What is known, a sentence each.
        open_questions: What is not known yet.
        references: Where things are: names of functions, files, addresses.
    """
    brief = {
        "goal": goal,
        "facts": facts,
        "open_questions": open_questions,
        "references": references,
    }
    return self.colleagues.hand_off(
        self.turn_now, to, {key: part or [] for key, part in brief.items()} | {"goal": goal}
    )
