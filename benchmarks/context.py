"""`python -m benchmarks.context`: the cost of a long conversation, and how much of a request is unchanged.

Compares the first turns of a conversation with turns after 10,000 messages, of which the window holds the last 200, and
the start that resumes such a conversation. Also reports the unchanged prefix, in bytes sent, of 50 steps that edit
memory, and how much of all requests of a session was in the previous one, in a workspace with more functions than are
shown.
"""

import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from agent_core.base.clock import Clock
from agent_core.base.events import TurnEnded
from agent_core.runtime.agent import Agent
from agent_core.storage import Entry, Post, Store, open_store
from agent_core.workspace.workspace import Workspace
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Step, Wanted, scripted

from .measure import Act, Row, in_turn, median_ms, options, ratio, show, timed

MESSAGES = 10_000
IN_TURN = 20  # messages of a past turn
IN_SIGHT = 200  # messages of the past still in the window
WINDOW = 16_000
TURNS = 40
STEPS = 50
OVERHEAD_AIM = 1.5
CHANGED_AIM = 0.05
SHARE = "of its length"
SESSION = (10, 4)  # turns, each with a different subject, and the steps of each
VERBS = ["translate", "rename", "count", "sort", "merge", "encrypt"]
VERBS += ["print", "archive", "compress", "review", "share", "convert"]
NOUNS = [
    "songs",
    "invoices",
    "photos",
    "recipes",
    "letters",
    "maps",
    "tickets",
    "contracts",
    "poems",
    "budgets",
]
WORDS = "Some words on wind and clouds, and on what the day was like. "


def main() -> None:
    given = options(__doc__, rounds=TURNS)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(turns: int, messages: int = MESSAGES, steps: int = STEPS) -> list[Row]:
    """Return the milliseconds of early and late turns and starts, and the share of a request that is new."""
    base, late = "turn: the first of a conversation", f"turn: after {messages:,} messages"
    taken, starts = await _turns(turns, {base: 0, late: messages})
    shares = await changed(steps)
    return [
        Row(base, median_ms(taken[base])),
        Row(late, median_ms(taken[late]), base, ratio(taken, late, base), OVERHEAD_AIM),
        Row("start: an agent that is new", starts[base] * 1000),
        Row(f"start: an agent with {messages:,} messages", starts[late] * 1000),
        Row(
            f"changed of a request, {steps} steps with edits: the usual",
            shares[0],
            aim=CHANGED_AIM,
            unit=SHARE,
        ),
        Row("changed of a request: the most", shares[1], aim=CHANGED_AIM, unit=SHARE),
        Row(
            f"unchanged of all requests, {len(VERBS) * len(NOUNS)} functions",
            await unchanged(*SESSION),
            unit=SHARE,
        ),
        Row(
            "unchanged from the second request on, 20 steps that grow", await growing(5), unit=SHARE
        ),
    ]


async def _turns(
    turns: int, pasts: Mapping[str, int]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the seconds of turns, alternating between the pasts, and of the starts before them."""
    acts: dict[str, Act] = {}
    starts: dict[str, float] = {}
    async with AsyncExitStack() as stack:
        for name, messages in pasts.items():
            root = Path(stack.enter_context(_folder()))
            await _fill(root, messages)
            model = stack.enter_context(scripted([Repeat(Say(WORDS))]))
            workspace = await stack.enter_async_context(_opened(root, model))
            agents: list[Agent] = []
            starts[name] = await timed(_start(workspace, agents))
            acts[name] = partial(_timed_turn, agents[0])
        return await in_turn(acts, turns, warm_up=2), starts


async def _timed_turn(agent: Agent) -> float:
    return await timed(_say(agent, WORDS))


async def _fill(root: Path, messages: int) -> None:
    """Write a past of this many messages as an earlier process leaves it: with a summary of all but the last ones."""
    (root / ".knapper").mkdir(mode=0o700)
    store = open_store(root / ".knapper" / "state.db", clock=Clock())
    try:
        ends = [await _past_turn(store, number) for number in range(0, messages, IN_TURN)]
        if ends:
            covers = messages - IN_SIGHT
            last = ends[covers // IN_TURN - 1]
            summary = {
                "text": "What happened: a long talk.",
                "covers": covers,
                "upto": last,
                "style": "summary",
            }
            await _turn_of(store, [Entry("user", {"text": "Hello."}), Entry("summary", summary)])
    finally:
        await store.close()


async def _past_turn(store: Store, number: int) -> int:
    said = [
        entry
        for n in range(number, number + IN_TURN, 2)
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
    """Return the share of each request not kept by the next one's prefix: the median and the maximum."""
    numbers = count()

    def edit(_: Seen) -> Step:
        number = next(numbers)
        if number >= steps:
            return Say("Done.")
        if number % 5:
            return Ask(Wanted("list_functions", {"pattern": f"a{number}"}))
        return Ask(
            Wanted(
                "core_memory_append",
                {"name": "human", "content": f"Has {number} books by author {number}."},
            )
        )

    with _folder() as folder, scripted([Repeat(edit)]) as model:
        async with _opened(Path(folder), model, **{"turn.max_steps": steps + 10}) as workspace:
            await _say(await workspace.agent(), "Note all of it.")
        bodies = [_sent(seen) for seen in model.requests]
    shares = [1 - _common(before, after) / len(before) for before, after in pairwise(bodies)]
    return statistics.median(shares), max(shares)


async def unchanged(turns: int, steps: int) -> float:
    """Return the share of a session's requests that repeats the prefix of the previous request."""
    texts = (f"{verb} my {noun}" for noun in NOUNS for verb in VERBS)
    messages = [text for number, text in enumerate(texts) if number % 17 == 0][:turns]
    asked = [
        Ask(Wanted("list_functions", {"pattern": f"*{number}"})) for number in range(steps - 1)
    ]
    with _folder() as folder, scripted([*asked, Say(WORDS)] * len(messages)) as model:
        (Path(folder) / "functions").mkdir()
        for noun in NOUNS:
            (Path(folder) / "functions" / f"{noun}.py").write_text("\n\n".join(_library_of(noun)))
        async with _opened(Path(folder), model) as workspace:
            agent = await workspace.agent()
            for message in messages:
                await _say(agent, message)
        bodies = [_sent(seen) for seen in model.requests]
    return sum(_common(before, after) for before, after in pairwise(bodies)) / sum(map(len, bodies))


async def growing(functions: int) -> float:
    """Return the share of requests, from the second on, that repeats the prefix of the previous one.

    The steps create, call, search for and edit functions.
    """
    script: list[Step] = []
    for letter in "abcdefgh"[:functions]:
        name = f"count_of_{letter}"
        code = f'def {name}(text: str) -> int:\n    """Count the letter {letter} in a text.\n\n'
        code += "    Args:\n        text: It.\n\n"
        code += f'    >>> {name}("{letter}b{letter}b")\n    {4 if letter == "b" else 2}\n    >>> {name}("xyz")\n    0\n'
        code += f'    """\n    return text.count("{letter}")\n'
        made = {"function_name": name, "function_code_with_docstring": code}
        script += [Ask(Wanted("create_function", made)), Ask(Wanted(name, {"text": "queue"}))]
        edit = {"function_name": name, "changes": [{"old_text": "Count", "new_text": "Tell"}]}
        script += [
            Ask(Wanted("list_functions", {"pattern": "letters"})),
            Ask(Wanted("edit_function", edit)),
        ]
    with _folder() as folder, scripted([*script, Repeat(Say("Done."))]) as model:
        (Path(folder) / "functions").mkdir()
        async with _opened(Path(folder), model, **{"model.context_tokens": 128_000}) as workspace:
            await _say(await workspace.agent(), "Grow.")
        bodies = [_sent(seen) for seen in model.requests]
    return sum(_common(before, after) for before, after in pairwise(bodies)) / sum(
        map(len, bodies[1:])
    )


def _library_of(noun: str) -> list[str]:
    return [
        f"def {verb}_{noun}(name: str, place: str = 'here') -> str:\n"
        f'    """{verb.capitalize()} the {noun} of a person.\n\n'
        f"    Args:\n        name: Whose {noun} they are.\n        place: Where the {noun} are kept.\n"
        f'    """\n    return f"{verb} {noun} {{name}} {{place}}"\n'
        for verb in VERBS
    ]


def _sent(seen: Seen) -> str:
    """Return what a server reads and caches: the functions, then the messages in order."""
    tools = json.dumps(seen.body.get("tools"), ensure_ascii=False)
    return tools + "".join(json.dumps(message, ensure_ascii=False) for message in seen.messages)


def _common(before: str, after: str) -> int:
    length = min(len(before), len(after))
    return next((place for place in range(length) if before[place] != after[place]), length)


def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd())  # a disk, not a memory disk


@asynccontextmanager
async def _opened(
    root: Path, model: ScriptedModel, **more: Any
) -> AsyncIterator[Workspace]:  # Any: settings
    flags = {"model.base_url": model.base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(
        root, flags={**flags, "model.context_tokens": WINDOW, **more}
    ) as workspace:
        yield workspace


async def _start(workspace: Workspace, agents: list[Agent]) -> None:
    agents.append(await workspace.agent())


async def _say(agent: Agent, message: str) -> None:
    last = [event async for event in agent.turn(message)][-1]
    assert isinstance(last, TurnEnded)
    assert last.reason == "replied", last


if __name__ == "__main__":
    main()
