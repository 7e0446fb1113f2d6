"""The mode of the next messages: what they may reach without a question, and whether functions grow."""

from collections.abc import Mapping
from typing import Final

from agent_core.base.errors import UsageError
from agent_core.base.policy import GROWTHS, MODES, Mode, Policy
from agent_core.base.records import replace
from agent_core.base.untrusted import one_line
from agent_core.runtime.agent import Agent
from agent_core.views.styled_lines import Line, line

from .conversation import Conversation, RunCommand

GO_AHEAD: Final = "Do what you proposed."
_MODES: Final[Mapping[Mode, str]] = {
    "plan": "it only reads, and ends with a proposal",
    "ask": "each new reach is asked",
    "task": "its first question offers all that the model expects to need",
}
_CACHE: Final = (
    "The tools that the model is offered change with it, so the endpoint's cache is lost once."
)


def next_mode(agent: Agent) -> Mode:
    """Choose the mode after the current one for the next messages, and return it."""
    before = agent.policy_now
    mode = MODES[(MODES.index(before.mode) + 1) % len(MODES)]
    agent.policy = replace(before, mode=mode)
    return mode


def _chosen(policy: Policy, words: str) -> Policy:
    """Return a policy with what is typed.

    Raises:
        UsageError: there is no such mode or growth.
    """
    typed_mode, _, typed_growth = words.partition(" ")
    mode = next((mode for mode in MODES if mode == typed_mode), policy.mode)
    growth = next((growth for growth in GROWTHS if growth == typed_growth.strip()), policy.growth)
    if typed_mode not in ("", mode):
        fix = f"It is one of: {', '.join(MODES)}."
        raise UsageError(f"`{one_line(typed_mode, 40)}` is no mode.", fix=fix)
    if typed_growth.strip() not in ("", growth):
        fix = f"It is one of: {', '.join(GROWTHS)}."
        raise UsageError(f"Growth cannot be `{one_line(typed_growth, 40)}`.", fix=fix)
    return replace(policy, mode=mode, growth=growth)


async def _mode(conversation: Conversation, words: str) -> None:
    agent = conversation.agent
    before = agent.policy_now
    policy = _chosen(before, words)
    if words:
        agent.policy = policy
    lines: list[Line] = [
        line(("strong", policy.mode), f": {_MODES[policy.mode]}; growth: {policy.growth}")
    ]
    if policy.grows != before.grows:
        lines.append(line(("dim", _CACHE)))
    await conversation.voice.result(conversation.commanded, lines)


async def _go(conversation: Conversation, _: str) -> None:
    conversation.agent.take_up_proposal()
    await conversation.say(GO_AHEAD)


RUNS: Final[Mapping[str, RunCommand]] = {"mode": _mode, "go": _go}
