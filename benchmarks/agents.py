"""`python -m benchmarks.agents`: many agents in one process, which is killed every second while they work.

Every agent gets numbered notes and questions. At the end, each message must have been read once by its agent, in order,
and each question answered once. Then, without kills: the duration of a turn, and the memory that an agent still takes
once it is closed. The model is an instant endpoint in a subprocess. Last, three slow agents are asked together, and the
slowest of them alone.
"""

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from agent_core import Workspace
from agent_core.base.events import Event
from agent_core.storage import Amounts, SendMessage, Store
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted

from .fake_endpoint import running
from .measure import Row, in_turn, median_ms, ratio, show

SENDER = "main"
LEAST_PER_S = 100
MOST_BYTES = 100_000
_WARM_UP = 20  # agents opened before memory is measured
_READY = "at work"
_REPLY_S = {"quick": 1.0, "slower": 1.5, "slowest": 2.0}
_PIECES = 10
_LIMITS: Amounts = {"hops": 12, "messages": 1_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0, help="with a kill in each")
    parser.add_argument(
        "--work", nargs=2, metavar=("FOLDER", "URL"), help="run the agents of a folder"
    )
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(Path(given.work[0]), given.work[1], _READY))
    else:
        show(asyncio.run(_all(given.agents, given.messages, given.seconds)), as_json=given.json)


async def _all(agents: int, messages: int, seconds: float) -> list[Row]:
    return [*await bench(agents, messages, seconds), await asked_together()]


async def bench(agents: int, messages: int, seconds: float) -> list[Row]:
    """Return the messages lost or processed twice under kills, and the figures without kills."""
    kills, wrong = await after_kills(agents, messages, seconds)
    with running() as address, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        url, quiet = f"{address}/0/v1", Path(folder)
        names, warm_up = _names(agents), [f"warm-{number}x" for number in range(_WARM_UP)]
        await _fill(quiet, url, warm_up, messages)
        async with _opened(quiet, url) as workspace:
            await _turns(workspace)
            before = _resident()
            await _post(workspace, names, messages)
            wall, cpu = await _turns(workspace)
            memory = _resident() - before
    return [
        Row(
            "messages lost, doubled or out of order after kills",
            float(wrong.total()),
            aim=0,
            unit="messages",
        ),
        Row("kills of processes that were at work", kills, unit="kills"),
        Row("a turn", wall * 1000, aim=1000 / LEAST_PER_S),
        Row("a turn, time of processors", cpu * 1000),
        Row(
            "memory of an agent that was closed",
            round(memory / agents / 1000, 1),
            aim=MOST_BYTES / 1000,
            unit="kB",
        ),
    ]


async def after_kills(agents: int, messages: int, seconds: float) -> tuple[int, Counter[str]]:
    """Return the number of kills, and the wrong outcomes of messages by kind, once all that was left is done."""
    with running() as address, tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        url, root, names = f"{address}/0/v1", Path(folder), _names(agents)
        await _fill(root, url, names, messages)
        kills = await asyncio.to_thread(_kill_each_second, root, url, seconds)
        while (
            left_s := await _left_s(root, url)
        ) is not None:  # a turn that was cut off twice is begun again later
            await asyncio.sleep(left_s)
            await work(root, url)
        return kills, await _wrong(root, url, names, messages)


async def asked_together(rounds: int = 3) -> Row:
    """Compare the time to ask three agents together with the time to ask only the slowest of them."""
    with (
        scripted([Repeat(_slow_reply)]) as model,
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
    ):
        root = Path(folder)
        (root / "agents").mkdir()
        for name in _REPLY_S:
            (root / "agents" / f"{name}.toml").touch()
        async with _opened(root, model.base_url, stream=True) as workspace:
            together = "three agents asked together"
            asking = {"the slowest alone": ["slowest"], together: [*_REPLY_S]}
            taken = await in_turn(
                {what: partial(_answered, workspace, names) for what, names in asking.items()},
                rounds,
            )
    slowest = "the slowest alone"
    return Row(
        together, median_ms(taken[together]), slowest, ratio(taken, together, slowest), aim=1.2
    )


async def _answered(workspace: Workspace, names: list[str]) -> float:
    """Ask agents and return the seconds until all their answers have arrived."""
    async with await workspace.agent(SENDER) as agent:
        async for _ in agent.turn(f"Ask: {json.dumps(names)}"):
            pass
    began, came = time.perf_counter(), 0.0

    def hear(event: Event) -> None:
        nonlocal came
        if event.type == "turn_started" and event.agent == SENDER:
            came = time.perf_counter()

    async with workspace.runner(hear) as runner:
        await runner.run(until_idle=True)
    return came - began


def _slow_reply(seen: Seen) -> Step:
    name, text = (
        re.findall(r"You are the agent `(\w+)`", seen.text)[-1],
        str(seen.messages[-1]["content"]),
    )
    if name in _REPLY_S:
        return Say("word " * _PIECES, pause_s=_REPLY_S[name] / _PIECES)
    if not text.startswith("Ask: "):
        return Say("Done.")
    return Ask(
        Wanted(
            "ask_agents",
            {"agents": json.loads(text.removeprefix("Ask: ")), "question": "Which word?"},
        )
    )


async def work(root: Path, url: str, begun: str = "") -> None:
    """Run all due work; print a line at the start."""
    async with _opened(root, url) as workspace, workspace.runner() as runner:
        if begun:
            print(begun, flush=True)
        await runner.run(until_idle=True)


@asynccontextmanager
async def _opened(
    root: Path, url: str, *, stream: bool = False
) -> Any:  # Any: an iterator of one workspace
    flags = {
        "model.base_url": url,
        "model.name": "scripted",
        "model.stream": stream,
        "model.context_tokens": 16_384,
    }
    async with Workspace.open(
        root, flags={**flags, "memory.embedding": "none", "runner.slots": 8}
    ) as workspace:
        yield workspace


def _names(agents: int) -> list[str]:
    return [f"agent-{chr(97 + number % 26)}{number}x" for number in range(agents)]


async def _fill(root: Path, url: str, names: list[str], messages: int) -> None:
    """Post all messages before any agent runs."""
    async with _opened(root, url) as workspace:
        await _post(workspace, names, messages)


async def _post(workspace: Workspace, names: list[str], messages: int) -> None:
    """Post messages to agents; every second one is a question."""
    for name in names:
        await workspace._store.apply([*_messages(name, messages)])


def _messages(name: str, count: int) -> Iterator[SendMessage]:
    for number in range(count):
        kind = "ask" if number % 2 else "note"
        text = f"{number}: {'abcdefghij'[number % 10] * 9} {number * 7919}"
        yield SendMessage(
            f"{name}-{number}",
            kind,
            SENDER,
            name,
            text,
            f"t-{name}",
            f"{name}-{number}",
            limits=_LIMITS,
        )


def _kill_each_second(root: Path, url: str, seconds: float) -> int:
    """Start the work repeatedly and kill it after one second each time; return the number of kills."""
    end, kills = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        command = [sys.executable, "-m", "benchmarks.agents", "--work", str(root), url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            killing = threading.Timer(1, process.kill)
            killing.start()
            code = process.wait()
            killing.cancel()
        if code == 0:
            break
        kills += 1
    return kills


async def _turns(workspace: Workspace) -> tuple[float, float]:
    """Run all due work; return the wall-clock and CPU seconds per turn."""
    count = 0

    def hear(event: Event) -> None:
        nonlocal count
        count += event.type == "turn_ended"

    began, cpu = time.perf_counter(), time.process_time()
    async with workspace.runner(hear) as runner:
        await runner.run(until_idle=True)
    return (time.perf_counter() - began) / count, (time.process_time() - cpu) / count


def _resident() -> int:
    """Return the bytes of memory that this process now uses."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _left_s(root: Path, url: str) -> float | None:
    """Return the seconds until more is due, or None if nothing is."""
    async with _opened(root, url) as workspace:
        store = workspace._store
        if await store.work():
            return 0.0
        due = await store.next_due()
        return None if due is None else max(due - await store.now(), 0.0)


async def _wrong(root: Path, url: str, names: list[str], messages: int) -> Counter[str]:
    """Count the messages and questions with a wrong outcome, by kind and agent."""
    wrong = Counter[str]()
    async with _opened(root, url) as workspace:
        store = workspace._store
        for name in names:
            wrong.update(await _wrong_of(store, name, messages))
    return wrong


async def _wrong_of(store: Store, name: str, messages: int) -> list[str]:
    read = [
        entry.payload["text"].splitlines()[1]
        for entry in await store.history(name, kinds=("user",))
    ]
    numbers = [int(text.partition(":")[0]) for text in read]
    asks = [letter for letter in await store.letters(f"t-{name}") if letter.kind == "ask"]
    return [
        *(
            f"doubled: {number} of {name}"
            for number, count in Counter(numbers).items()
            for _ in range(count - 1)
        ),
        *(f"lost: {number} of {name}" for number in {*range(messages)} - {*numbers}),
        *([f"out of order: {numbers} of {name}"] if numbers != sorted(numbers) else []),
        *(
            f"unanswered: {ask.text[:9]} of {name} is {ask.state}"
            for ask in asks
            if ask.state != "answered"
        ),
    ]


if __name__ == "__main__":
    main()
