"""Supervision of agents that work together: their states, and the actions of a person, all through the store."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.storage import (
    AnswerAsk,
    MessageRow,
    OpenWork,
    ResumeAgent,
    RouteAsk,
    SetThread,
    Store,
    ThreadRow,
    is_history,
)
from agent_core.storage.agent_store import HELPER_RUN

_WHY_CHARS: Final = 120
BY_A_PERSON: Final = "(A person answers in place of this agent.)"


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of an agent: idle, queued, running, waiting, paused, stuck or stopped.

    `kind` is "agent", "group" or "helper"; the latter is one run of a helper.
    """

    name: str
    kind: str = "agent"
    state: str = "idle"
    waits_on: str | None = None
    thread: str | None = None
    since: float | None = None
    spent: Mapping[str, int | float] = field(default_factory=dict)
    left: Mapping[str, int | float] = field(default_factory=dict)
    why: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the published document."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Supervision:
    """A view of a workspace's agents for a person, with actions to control them."""

    def __init__(
        self,
        store: Store,
        names: Iterable[str],
        groups: Collection[str] = (),
        must_hold: Callable[[str], object] | None = None,
    ) -> None:
        """Create the view; `names` are all agents, and `groups` those among them that are groups.

        `must_hold` raises an error about a name that is not among them, if its file is not valid.
        """
        self._store = store
        self._must_hold = must_hold
        self._names = [*names]
        self._groups = groups

    def check(self, name: str) -> None:
        """Check that an agent exists.

        Raises:
            UsageError: it does not exist.
            ConfigError: it does not exist, and its file is not valid.
        """
        if name not in self._names:
            if self._must_hold is not None:
                self._must_hold(name)
            names = [each for each in self._names if not _is_passing(each)]
            known = (
                f"There are: {', '.join(names)}." if names else "No agent yet. Next: knapper run"
            )
            hint = did_you_mean(name, names, known)
            raise UsageError(f"There is no agent `{one_line(name, 64)}`.", fix=hint)

    async def tree(self) -> list[AgentState]:
        """Return the state of each agent: those that no one waits for first, each before the one that it waits for.

        Idle runs of helpers are left out, and so are idle histories that programs sent.
        """
        asks, paused = await self._store.asks(), await self._store.paused()
        work, threads = (
            await self._store.open_work(),
            {row.id: row for row in await self._store.threads()},
        )
        last = await self._store.spent_last()
        known = [name for row in threads.values() for name in (row.agent, *row.spent)]
        names = dict.fromkeys([*self._names, *known, *paused, *(item.agent for item in work)])
        states = [_state(name, self._kind_of(name), asks, paused, work, threads) for name in names]
        states = [
            state if state.thread else replace(state, spent=last.get(state.name, {}))
            for state in states
        ]
        states = [state for state in states if state.state != "idle" or not _is_passing(state.name)]
        return sorted(states, key=lambda state: _depth(state.name, asks))

    def _kind_of(self, name: str) -> str:
        if name.startswith(HELPER_RUN):
            return "helper"
        return "group" if name in self._groups else "agent"

    async def asked(self, name: str) -> list[MessageRow]:
        """Return the open requests (asks) to this agent, or the one with this id.

        Raises:
            UsageError: there is none.
        """
        asks = await self._store.asks()
        if waiting := [ask for ask in asks if name in (ask.recipient, ask.id)]:
            return waiting
        self.check(name)
        hint = did_you_mean(name, [ask.recipient for ask in asks], "Type: knapper agents tree")
        raise UsageError(f"Nobody waits for an answer of `{one_line(name, 64)}`.", fix=hint)

    async def answer(self, name: str, text: str) -> int:
        """Answer the open asks to an agent in its place, and return their number."""
        asks = await self.asked(name)
        await self._store.apply([AnswerAsk(ask.id, f"{BY_A_PERSON} {text}") for ask in asks])
        await self._reopen({ask.thread for ask in asks})
        return len(asks)

    async def route(self, name: str, to: str) -> int:
        """Redirect the open asks to an agent to another one, and return their number.

        Raises:
            UsageError: there is no such agent, or an agent would wait for itself.
        """
        self.check(to)
        asks = await self.asked(name)
        await self._store.apply([RouteAsk(ask.id, to) for ask in asks])
        await self._reopen({ask.thread for ask in asks})
        return len(asks)

    async def stop(self, name: str, why: str) -> list[str]:
        """Stop the threads in which an agent is working, or the thread with this id; return their ids.

        Raises:
            UsageError: the agent is working in no thread.
        """
        asks, work = await self._store.asks(), await self._store.open_work()
        busy = {ask.thread for ask in asks if name in (ask.sender, ask.recipient, ask.thread)}
        busy |= {item.thread for item in work if name in (item.agent, item.thread)}
        stopped = [
            row.id
            for row in await self._store.threads()
            if row.state != "stopped"
            and (row.id in busy or (row.state == "stuck" and name in (row.id, *row.spent)))
        ]
        if not stopped:
            self.check(name)
            fix = "Type: knapper agents tree"
            raise UsageError(f"`{one_line(name, 64)}` is not at work in any thread.", fix=fix)
        await self._store.apply([SetThread(id, "stopped", why) for id in stopped])
        return stopped

    async def resume(self, name: str) -> list[str]:
        """Resume a paused agent, and reopen the threads in which it is stuck; return the ids of these threads.

        Raises:
            UsageError: there is no such agent or thread.
        """
        stuck = [
            row.id
            for row in await self._store.threads()
            if row.state == "stuck" and name in (row.id, *row.spent)
        ]
        if not stuck and name not in await self._store.paused():
            self.check(name)
        await self._store.apply([ResumeAgent(name), *(SetThread(id, "open") for id in stuck)])
        return stuck

    async def _reopen(self, threads: Iterable[str]) -> None:
        rows = [await self._store.thread(id) for id in threads]
        await self._store.apply(
            [SetThread(row.id, "open") for row in rows if row and row.state == "stuck"]
        )


def _is_passing(name: str) -> bool:
    """Return whether an agent is the run of a helper, or a history that a program sent."""
    return name.startswith(HELPER_RUN) or is_history(name)


def _state(
    name: str,
    kind: str,
    asks: list[MessageRow],
    paused: Mapping[str, str],
    work: list[OpenWork],
    threads: Mapping[str, ThreadRow],
) -> AgentState:
    """Return the state of one agent; a reason why it is blocked takes precedence over its work."""
    mine = [ask for ask in asks if ask.sender == name]
    items = sorted(
        (item for item in work if item.agent == name), key=lambda item: not item.is_running
    )
    last = next((row.id for row in reversed([*threads.values()]) if name in row.spent), None)
    thread = mine[0].thread if mine else items[0].thread if items else last
    row, waits_on = (
        threads.get(thread or ""),
        ", ".join(dict.fromkeys(ask.recipient for ask in mine)) or None,
    )
    spent = (
        {key: amount for key, amount in row.spent.get(name, {}).items() if amount} if row else {}
    )
    left = row.allowance().left().amounts() if row else {}
    state, since, why = "idle", None, ""
    if items:
        state, since = "running" if items[0].is_running else "queued", items[0].since
        event = items[0].kind
        why = (
            f"{event} waits"
            if state == "queued"
            else f"works on {'an' if event[:1] in 'aeiou' else 'a'} {event}"
        )
    if mine and not (items and items[0].is_running):
        state, since, why = "waiting", mine[0].at, one_line(mine[0].text, _WHY_CHARS)
    if row is not None and row.state != "open":
        state, why = row.state, row.why
    if name in paused:
        state, why = "paused", paused[name]
    return AgentState(name, kind, state, waits_on, thread or None, since, spent, left, why)


def _depth(name: str, asks: list[MessageRow]) -> int:
    """Return the length of the longest chain of agents that wait for this one; there are no cycles."""
    depth, names = 0, {name}
    while names := {ask.sender for ask in asks if ask.recipient in names}:
        depth += 1
        if depth > len(asks):
            break
    return depth
