"""Host functions for the model: create, read, test, undo; remember, search, talk; reach other agents.

Each runs in the host with the agent as `self`, calls one thing of `agent_core`, and answers in a short
text: what happened, what it means, what to do next. Their schemas come from the same loader as all.
"""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from agent_core import Agent, presentation
from agent_core.operations.functions import NOUN
from agent_core.operations.operation import Operation, operations_of
from agent_core.operations.words import word_of
from agent_core.storage import Plan

MODULES = ("functions", "programs", "memory", "talk", "agents", "helpers")


def operations() -> Iterator[tuple[str, str, Callable[..., Awaitable[Any]]]]:
    """Yield the operations that are functions of the model: their names, their sources, and what runs them."""
    for operation in operations_of(NOUN).values():
        if operation.tool:
            yield operation.tool, operation.tool_text, partial(_run, operation)


async def _run(operation: Operation, agent: Agent, /, **given: Any) -> object:  # Any: JSON
    """Run an operation in a turn, which carries out a change."""
    for each in operation.parameters:
        named = word_of(each).for_models
        if named in given:
            given[each.name] = given.pop(named)
    made = await operation.body(agent, **given)
    return made if isinstance(made, Plan) else presentation.text_of(made, grows=agent.grows)
