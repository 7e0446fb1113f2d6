"""`python -m benchmarks.context`: what a long conversation costs, and how much of a request is the one before.

Turns at the beginning of a conversation beside turns after 10,000 messages, in a window that holds some of them; the
start that takes up such a conversation; and the unchanged prefix of 50 steps that edit memory, in the bytes sent.
"""

import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from agent_core.agent import Agent
from agent_core.assemble import Workspace
from agent_core.clock import Clock
from agent_core.events import TurnEnded
from agent_core.storage import Entry, Post, Store, open_store
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted, scripted

from .measure import Row, median_ms, options, show, timed

MESSAGES = 10_000
WINDOW = 16_000
TURNS = 40
STEPS = 50
OVERHEAD_AIM = 1.5
CHANGED_AIM = 0.05
WORDS = "Some words on wind and clouds, and on what the day was like. "


def main() -> None:
    given = options(__doc__, rounds=TURNS)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(turns: int, messages: int = MESSAGES, steps: int = STEPS) -> list[Row]:
    """Milliseconds of turns and starts, early and late; the share of a request that the one before did not have."""
    first, first_start = await _turns(turns, 0)
    late, late_start = await _turns(turns, messages)
    shares = await changed(steps)
    base = "at the beginning"
    return [
        Row("turn: at the beginning of a conversation", first),
        Row(f"turn: after {messages:,} messages", late, base, late / first, OVERHEAD_AIM),
        Row("start: an agent that is new", first_start),
        Row(f"start: an agent with {messages:,} messages", late_start),
        Row(f"changed of a request, {steps} steps with edits: the usual", 0, "its length", shares[0], CHANGED_AIM),
        Row("changed of a request: the most", 0, "its length", shares[1], CHANGED_AIM),
    ]


async def _turns(turns: int, messages: int) -> tuple[float, float]:
    """The middle of so many turns after so many messages, and the start before them, in milliseconds.

    What is counted is a turn without the summing up that comes now and then: half of the window is filled first.
    """
    with _folder() as folder, scripted([Repeat(Say(WORDS))]) as model:
        root = Path(folder)
        await _fill(root, messages)
        async with _opened(root, model) as workspace:
            agents: list[Agent] = []
            started = await timed(_start(workspace, agents))
            for _ in range(60):  # a window's worth: both are measured with as much in sight
                await _say(agents[0], WORDS)
            taken = [await timed(_say(agents[0], WORDS)) for _ in range(turns)]
    return median_ms(taken), started * 1000


async def _fill(root: Path, messages: int) -> None:
    """A past of so many messages, as a program that was here before left it: with a summary of most of it."""
    (root / ".toolwright").mkdir(mode=0o700)
    store = open_store(root / ".toolwright" / "state.db", clock=Clock())
    try:
        last = 0
        for number in range(0, messages, 20):
            last = await _past_turn(store, number)
        if messages:
            summary = {"text": "What happened: a long talk.", "covers": messages, "upto": last, "style": "summary"}
            await _turn_of(store, [Entry("user", {"text": "Hello."}), Entry("summary", summary)])
    finally:
        await store.close()


async def _past_turn(store: Store, number: int) -> int:
    said = [
        entry
        for n in range(number, number + 20, 2)
        for entry in (
            Entry("user", {"text": f"{WORDS}{n}"}),
            Entry("assistant", {"text": WORDS, "thought": "", "calls": []}),
        )
    ]
    return await _turn_of(store, said)


async def _turn_of(store: Store, entries: list[Entry]) -> int:
    await store.post(Post("main", "message", {"text": "Hello."}))
    turn = await store.next("main", "bench")
    assert turn is not None
    appended = await store.append(turn.id, turn.attempt, turn.n, entries)
    await store.finish(turn.id, turn.attempt)
    return appended.last


async def changed(steps: int) -> tuple[float, float]:
    """Of each step's request, the share of the one before that it does not begin with: the middle, and the most."""
    numbers = count()

    def edit(_: Seen) -> Step:
        number = next(numbers)
        if number >= steps:
            return Say("Done.")
        if number % 5:
            return Ask(Wanted("list_functions", {"pattern": f"a{number}"}))
        return Ask(
            Wanted("core_memory_append", {"name": "human", "content": f"Has {number} books by author {number}."})
        )

    with _folder() as folder, scripted([Repeat(edit)]) as model:
        async with _opened(Path(folder), model, **{"turn.max_steps": steps + 10}) as workspace:
            await _say(await workspace.agent(), "Note all of it.")
        bodies = [_sent(seen) for seen in model.requests]
    shares = [1 - _common(before, after) / len(before) for before, after in pairwise(bodies)]
    return statistics.median(shares), max(shares)


def _sent(seen: Seen) -> str:
    """What a server reads and caches: the functions, then the messages one after another."""
    tools = json.dumps(seen.body.get("tools"), ensure_ascii=False)
    return tools + "".join(json.dumps(message, ensure_ascii=False) for message in seen.messages)


def _common(before: str, after: str) -> int:
    length = min(len(before), len(after))
    return next((place for place in range(length) if before[place] != after[place]), length)


def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd())  # a disk, not a memory disk


@asynccontextmanager
async def _opened(root: Path, model: ScriptedModel, **more: Any) -> AsyncIterator[Workspace]:  # Any: settings
    flags = {"model.base_url": model.base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(root, flags={**flags, "model.context_tokens": WINDOW, **more}) as workspace:
        yield workspace


async def _start(workspace: Workspace, agents: list[Agent]) -> None:
    agents.append(await workspace.agent())


async def _say(agent: Agent, message: str) -> None:
    last = [event async for event in agent.turn(message)][-1]
    assert isinstance(last, TurnEnded)
    assert last.reason == "replied", last


if __name__ == "__main__":
    main()
