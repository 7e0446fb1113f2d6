"""The names of agents and the lines of their conversations: two types, because one must never pass for the other.

A line is what a turn belongs to: an agent's name for its main conversation, AGENT/ID for another. So a name is a line,
and a line is not a name: whatever takes the name of an agent from outside reads it here, and nothing is stored under
another text.
"""

import re
from typing import Final, NewType

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line

Line = NewType("Line", str)
"""The key of a conversation in the store."""
AgentName = NewType("AgentName", Line)
"""The name of an agent, which is also the line of its main conversation."""

AGENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_LIMIT: Final = 64
"""How many characters the name of an agent has at most."""
_ID: Final = re.compile(r"[0-9a-z]{1,64}")
_MAX_SHOWN_CHARS: Final = 80
CONVERSATION: Final = "--"
"""The separator between the name of an agent and the name of a conversation with it."""
LOADED: Final = "@loaded"
"""The owner of the sources that were loaded for all agents; no agent can have this name."""
HISTORY: Final = f"{CONVERSATION}chat-"
"""Follows the agent's name in the name of a history that a program sent: it is no conversation, and is not listed."""


def is_history(name: str) -> bool:
    """Return whether an agent is a history that a program sent with a request."""
    return f"{CONVERSATION}{name.partition(CONVERSATION)[2]}".startswith(HISTORY)


def agent_of(line: str) -> AgentName:
    """Return the agent that has a conversation, by the conversation's line."""
    return AgentName(Line(line.partition("/")[0]))


def paying_line(line: str) -> str:
    """Return the line that spending is counted to: a history that a program sent is its agent's."""
    agent, mark, id = agent_of(line).partition(HISTORY)
    return f"{agent}/{mark}{id}" if mark else line


def is_main(line: str) -> bool:
    """Return whether a line is that of an agent's main conversation."""
    return "/" not in line


def is_agent_name(text: str) -> bool:
    """Return whether an agent can have this name."""
    return AGENT.fullmatch(text) is not None


def is_line(text: str) -> bool:
    """Return whether a conversation can have this line."""
    agent, slash, id = text.partition("/")
    return is_agent_name(agent) and (not slash or _ID.fullmatch(id) is not None)


def agent_named(text: str) -> AgentName:
    """Return a text from outside as the name of an agent.

    Raises:
        UsageError: no agent can have this name.
    """
    if not is_agent_name(text):
        raise UsageError(
            f"`{one_line(text, _MAX_SHOWN_CHARS)}` cannot be an agent's name.",
            fix="Use up to 64 letters, digits, `_` and `-`.",
        )
    return AgentName(Line(text))


def line_named(text: str) -> Line:
    """Return a text as the line of a conversation.

    Raises:
        UsageError: no conversation can have this line.
    """
    if is_line(text):
        return Line(text)
    agent_named(agent_of(text))
    raise UsageError(
        f"`{one_line(text, _MAX_SHOWN_CHARS)}` cannot be the line of a conversation.",
        fix="Use the agent's name, or AGENT/ID.",
    )
