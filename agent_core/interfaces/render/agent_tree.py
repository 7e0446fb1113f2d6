"""Agents that work together as lines: the tree of who waits for whom, and a line for each turn behind."""

from collections.abc import Mapping, Sequence

from agent_core.base import events
from agent_core.base.clock import shown_time
from agent_core.base.events import Event
from agent_core.base.untrusted import one_line
from agent_core.workspace.supervision import AgentState

from ..columns import columns
from ..spans import Line, Role, line
from ..spending import money

_CHARS = 100
_ROLES: Mapping[str, Role] = {"running": "ok", "stuck": "bad", "stopped": "bad", "paused": "warn", "waiting": "warn"}


def tree_lines(states: Sequence[AgentState]) -> list[Line]:
    """Return a row for each agent, those that are waited for below those that wait."""
    rows = [_row(state) for state in states]
    return columns(rows, ("name", "", "dim", "dim", "dim"))


def _row(state: AgentState) -> list[str]:
    since = f"since {shown_time(state.since, '%m-%d %H:%M:%S')}" if state.since else ""
    waits = f"{state.state} → {state.waits_on}" if state.waits_on else state.state
    spent = ", ".join(_amount(name, amount) for name, amount in state.spent.items())
    return [state.name, waits, since, spent, one_line(state.why, 60)]


def _amount(name: str, amount: float) -> str:
    if name == "cost":
        return money(amount)
    return f"{amount:,.0f} {name.removesuffix('s') if amount == 1 else name}"


class BehindLines:
    """A line for each turn of an agent that works behind."""

    def of(self, event: Event) -> list[Line]:
        """Return what of an event is shown, mostly nothing."""
        who = event.agent
        match event:
            case events.TurnEnded(reason="replied"):
                return [line(("name", f"  {who}"), ("dim", f" {one_line(event.reply, _CHARS)}"))]
            case events.TurnEnded(reason="parked"):
                return [line(("name", f"  {who}"), ("dim", " waits for an answer"))]
            case events.TurnEnded(reason="handed_off"):
                return [line(("name", f"  {who}"), ("dim", " handed it over"))]
            case events.Warned():
                return [line(("name", f"  {who}"), ("warn", f" {one_line(event.text, _CHARS)}"))]
            case _:
                return []
