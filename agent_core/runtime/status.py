"""The figures about an agent that a bottom bar shows."""

from dataclasses import dataclass

from .model_session import ModelSession


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The figures about an agent in a bottom bar."""

    agent: str
    model: str
    context_tokens: int
    context_limit: int
    functions_shown: int
    functions_known: int


def status_of(agent: str, asker: ModelSession, functions: int) -> AgentStatus:
    """Return the status of an agent with so many functions in its workspace."""
    total = functions + asker.shown.pinned_count
    shown = min(len(asker.functions()), total)
    return AgentStatus(agent, asker.model_name, asker.context_tokens, asker.context_limit, shown, total)
