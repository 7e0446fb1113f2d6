"""The figures about an agent that a bottom bar shows."""

from dataclasses import dataclass

from .asking import Asker


@dataclass(frozen=True, slots=True)
class Status:
    """What a bottom bar shows about an agent."""

    agent: str
    model: str
    context_tokens: int
    context_limit: int
    functions_shown: int
    functions_known: int


def status_of(agent: str, asker: Asker, functions: int) -> Status:
    """How an agent stands that has so many functions in its workspace."""
    known = functions + asker.shown.pinned_count
    shown = min(len(asker.functions()), known)
    return Status(agent, asker.model_name, asker.context_tokens, asker.context_limit, shown, known)
