"""`python -m benchmarks.exponents [NAME …] [--sizes N] [--json]`: how each operation grows with what it goes over.

Each row of `OPERATIONS` is tried at 10, 100, 1,000 and 10,000, or at parts of its own limit, each size in a process of
its own that first runs it at 10, so that everything is loaded. Shown are the processor time of that process and of
all below it, its longest silence (of the event loop, as `benchmarks.costly` measures it), and the exponent between the
two largest sizes that take 50 ms or more. A size that is not done in 30 s ends its row.
"""

import argparse
import asyncio
import atexit
import gc
import json
import math
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_core.access.grants import Grants
from agent_core.access.grants.approval import Question
from agent_core.access.grants.book import GrantEntry, text_of
from agent_core.client.client import Client, connect
from agent_core.functions.debug.stop import Breakpoint
from agent_core.registry.source import hash_of
from agent_core.storage import (
    DocumentRow,
    Entry,
    Post,
    QuestionRow,
    RecordCall,
    SaveBlock,
    SaveDocument,
    SavePassages,
    SavePending,
    SaveRecorded,
    SaveVersion,
    WholeAgent,
    WholeEvent,
    WholeTurn,
    Write,
)
from knapper_ext.mcp.servers import read_tools
from tests.agents.helper_files import FINDER
from tests.kit import Ask, Repeat, Say, Seen, Wanted, scripted
from tests.kit.desk import VOWELS, Desk, answers, desk

from .costly import Silence

MOST: Final = 10_000
MOST_EXPONENT: Final = 1.2
MOST_SILENT_S: Final = 0.5
_IN_A_FILE: Final = 1_500  # functions, by the limit on the names, numbers and signs of a text
_WORTH_S: Final = 0.05
_PATIENCE_S: Final = 30
_PREPARING_S: Final = 240
_FEW: Final = 10
_QUIET_S: Final = 0.5
_IDLE: Final = 0.1  # of a processor
_HANGING: Final = 10
_FORKING: Final = multiprocessing.get_context("fork")
_CLOCK_TICK: Final = os.sysconf("SC_CLK_TCK")

Act: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Bench:
    """An open workspace with a client of it in this process."""

    desk: Desk
    client: Client
    programs: list[str]
    """What the model runs next."""

    @property
    def root(self) -> Path:
        """The folder of the workspace."""
        return self.desk.workspace.root

    async def apply(self, writes: Iterable[Write]) -> None:
        """Store rows as the program would have written them, in one transaction."""
        await self.desk.workspace.store.apply([*writes])

    async def load(self, files: Mapping[str, str]) -> None:
        """Save files in the functions folder and have them loaded, each of which must be accepted."""
        await _load(self.desk, files)

    async def talk(self, agent: str, entries: list[Entry]) -> None:
        """Store a whole turn with these entries."""
        store = self.desk.workspace.store
        await store.post(Post(agent, "bench", {"text": "Hello."}))  # of a kind that no runner takes
        turn = await store.next(agent, "bench")
        assert turn is not None
        await store.append(turn.id, turn.attempt, turn.n, entries)
        await store.finish(turn.id, turn.attempt)

    async def turns(self, n: int, agent: str = "main") -> None:
        """Store so many turns of an agent."""
        for _ in range(n):
            await self.talk(agent, _said(2))

    async def agents(self, n: int, inbox: tuple[WholeEvent, ...] = ()) -> None:
        """Store a turn of each of so many agents, and what waits for each."""
        turn = WholeEvent("bench", {"text": "Hello."}, 0.0)
        for at in range(n):
            talk = WholeTurn(f"turn_{at}", "done", 0.0, 1.0, (turn,), _said(2))
            await self.desk.workspace.store.write_agent(
                WholeAgent(f"agent_{at}", turns=(talk,), inbox=inbox)
            )

    def command(self, *words: str) -> Act:
        """Return the act of a command as a server runs it."""
        return partial(self.client.command, words)

    def shell(self, *words: str) -> Act:
        """Return the act of a command in a process of its own, and close what it may not share."""

        async def act() -> None:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "knapper", *words),
                cwd=self.root,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            _, error = await child.communicate()
            if child.returncode == -signal.SIGXCPU:
                raise TimeoutError(f"not done in {_PATIENCE_S} s")
            assert child.returncode in (0, 1), error.decode()

        return act


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the program does: `prepare` lays out so many of what it goes over, and returns what to run."""

    prepare: Callable[[Bench, int], Awaitable[Act]]
    most: int = MOST
    is_served: bool = True
    """Whether it runs on the event loop of a server, and not in a process of the user's."""
    is_among: bool = False
    """Whether so many functions are there before, of which it may use any. They are saved once for all such rows."""


OPERATIONS: dict[str, Operation] = {}


def operation(
    name: str, **options: Any
) -> Callable[[Callable[..., Awaitable[Act]]], None]:  # Any: of `Operation`
    """Add an operation to the table."""

    def add(prepare: Callable[..., Awaitable[Act]]) -> None:
        OPERATIONS[name] = Operation(prepare, **options)

    return add


def _put(here: Desk, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        here.put(name, text)


async def _load(here: Desk, files: Mapping[str, str]) -> None:
    await asyncio.to_thread(_put, here, files)  # an editor writes outside of the server
    await here.workspace.functions.reload()
    modules = here.agent.snapshot().modules
    for name, text in files.items():
        source = modules.get(name.removesuffix(".py"))
        assert source is not None, here.workspace.functions.rejected()[:1]
        assert source.text == text, here.workspace.functions.rejected()[:1]


def _function(n: int, body: str = "") -> str:
    return (
        f'def add_{n}(number: int) -> int:\n    """Add {n} to a number."""\n    '
        f"{body or f'return number + {n}'}\n\n\n"
    )


def _chain(n: int, first: str = "") -> str:
    """Return so many functions, each of which calls the one above."""
    calls = (_function(at, f"return add_{at - 1}(number)") for at in range(1, n))
    return "".join([first or _function(0), *calls])


_FETCHING = _function(0, 'return len(self.fetch("https://api.example.org/"))').replace(
    "(number", "(self, number"
)


def _library(n: int, each: int = 100) -> dict[str, str]:
    """Return so many functions, in files of `each`."""
    return {
        f"many_{first}.py": "".join(_function(at) for at in range(first, min(n, first + each)))
        for first in range(0, n, each)
    }


def _said(n: int) -> list[Entry]:
    return [
        entry
        for at in range(0, n, 2)
        for entry in (
            Entry("user", {"text": f"What did we say about the blue house, number {at}?"}),
            Entry("assistant", {"text": f"That it has {at} windows.", "thought": "", "calls": []}),
        )
    ]


# Functions


@operation("save a file of n functions", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.load, {"many.py": "".join(map(_function, range(n)))})


@operation("save again a file of n functions", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"many.py": "".join(map(_function, range(n)))})
    return partial(bench.load, {"many.py": "".join([*map(_function, range(n - 1)), _function(n)])})


@operation("save n files of a function", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.load, _library(n, 1))


@operation("save one file among n functions", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.load, {"one.py": _function(n)})


@operation("save a file of n calls of what is not defined", most=5_000)
async def _(bench: Bench, n: int) -> Act:
    calls = "".join(f"undefined_{at}()\n    " for at in range(n))
    return partial(bench.load, {"many.py": _function(0, f"{calls}return number")})


@operation("save a file of n functions that call what is not defined", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    return partial(
        bench.load,
        {"many.py": "".join(_function(at, f"return undefined_{at}()") for at in range(n))},
    )


@operation("save a file of n lines", most=5_000)
async def _(bench: Bench, n: int) -> Act:
    lines = "".join(f"number += {at}\n    " for at in range(n))
    return partial(bench.load, {"many.py": _function(0, f"{lines}return number")})


@operation("save a file of n constants", most=5_000)
async def _(bench: Bench, n: int) -> Act:
    constants = "".join(f"_C{at} = {at}\n" for at in range(n))
    return partial(bench.load, {"many.py": constants + _function(0, f"return number + _C{n - 1}")})


@operation("save a file of n functions that call the one above", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.load, {"many.py": _chain(n)})


@operation("save a file of n functions that call the one above, the first a host", most=1_200)
async def _(bench: Bench, n: int) -> Act:
    calls = (
        _function(at, f"return add_{at - 1}(self, number)").replace("(number", "(self, number")
        for at in range(1, n)
    )
    return partial(bench.load, {"many.py": "".join([_FETCHING, *calls])})


@operation("save again a file of n functions that call the one above", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"many.py": _chain(n)})
    return partial(bench.load, {"many.py": _chain(n, _function(0, "return number + 7"))})


@operation("functions check FILE, n that call the one above", most=150, is_served=False)
async def _(bench: Bench, n: int) -> Act:
    (bench.root / "new.py").write_text(_chain(n), "utf-8")
    return bench.shell("functions", "check", "new.py")


@operation("save a function that n others use", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    uses = "from functions.base import add_0\n\n\n"
    users = {
        f"user_{at}.py": uses + _function(at, "return add_0(number)") for at in range(1, n + 1)
    }
    await bench.load({"base.py": _function(0), **users})
    return partial(bench.load, {"base.py": _function(0, "return number + 7")})


@operation("start with n functions", is_served=False, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.shell("functions", "show", "add_0")


@operation("functions list", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.command("functions", "list")


@operation("functions search", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.command("functions", "search", "add a number to another one")


@operation("functions show", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.command("functions", "show", "add_0")


@operation("functions check FILE", most=200, is_served=False)
async def _(bench: Bench, n: int) -> Act:
    (bench.root / "new.py").write_text("".join(map(_function, range(n))), "utf-8")
    return bench.shell("functions", "check", "new.py")


@operation("functions check FOLDER", is_served=False, most=400, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.shell("functions", "check", "functions")


@operation("functions create", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.desk.workspace.functions.create, "count_vowels", VOWELS, "grown")


@operation("functions create, n in its file", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"grown.py": "".join(map(_function, range(n)))})
    return partial(bench.desk.workspace.functions.create, "count_vowels", VOWELS, "grown")


@operation("functions delete", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.command("functions", "delete", "add_1")


@operation("functions delete, n in its file", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"many.py": "".join(map(_function, range(n)))})
    return bench.command("functions", "delete", "add_0")


@operation("functions history, n versions")
async def _(bench: Bench, n: int) -> Act:
    await _versions(bench, n)
    return bench.command("functions", "history", "add_0")


@operation("functions diff, n versions")
async def _(bench: Bench, n: int) -> Act:
    await _versions(bench, n)
    return bench.command("functions", "diff", "add_0")


async def _versions(bench: Bench, n: int) -> None:
    texts = (_function(0, f"return number + {at}") for at in range(1, n))
    await bench.apply(SaveVersion("base", hash_of(text), text) for text in texts)
    await bench.load({"base.py": _function(0)})


@operation("audit", is_served=False, most=1_000, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.shell("functions", "audit")


@operation("export", is_served=False, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return bench.shell("functions", "export", "package")


@operation("call one of n functions in a file", most=_IN_A_FILE)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"many.py": "".join(map(_function, range(n)))})
    return partial(bench.client.functions.call, "add_0", {"number": 1})


@operation("functions pending, n candidates", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    judged = await bench.desk.workspace.functions.create("f", "def f(a):\n    return a\n", "grown")
    assert not judged.admitted
    (candidate,) = (await bench.desk.workspace.store.all_pending()).values()
    await bench.apply(SavePending(f"f{at}", candidate) for at in range(n))
    return bench.command("functions", "pending")


# What functions may reach, and what is asked


@operation("functions grants", most=1_000, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    await _granted(bench, n)
    return bench.command("functions", "grants")


@operation("call a function, n grants", most=1_000, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    await _granted(bench, n)
    return partial(bench.client.functions.call, "add_0", {"number": 1})


async def _granted(bench: Bench, n: int) -> None:
    entries = {
        f"add_{at}": GrantEntry(Grants(network=("api.example.org",)), "ada", "2026-01-01")
        for at in range(n)
    }
    (bench.desk.functions / "grants.toml").write_text(text_of(entries), "utf-8")


@operation("questions in the inbox")
async def _(bench: Bench, n: int) -> Act:
    questions = [Question.of_text(f"add_{at}", "a text", "program") for at in range(n)]
    for question in questions:
        await bench.desk.workspace.store.ask_user(
            QuestionRow(question.id, "main", f"turn {question.id}", question.to_json())
        )
    return bench.client.approvals


@operation("breakpoints listed", most=50, is_among=True)
async def _(bench: Bench, n: int) -> Act:
    breakpoints, snapshot = bench.desk.workspace.debugging.breakpoints, bench.desk.agent.snapshot()
    for at in range(n):
        breakpoints.arm(Breakpoint(0, f"add_{at}", "", 0), 0, snapshot)

    async def act() -> None:
        breakpoints.placed(snapshot)

    return act


@operation("read a list of n MCP tools")
async def _(bench: Bench, n: int) -> Act:
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    rows = [
        {"name": f"tool_{at}", "description": f"Tool {at}.", "inputSchema": schema}
        for at in range(n)
    ]

    async def act() -> None:
        read_tools(rows)

    return act


# Calls and programs


@operation("calls list")
async def _(bench: Bench, n: int) -> Act:
    await _recorded(bench, n)
    return bench.command("calls", "list")


@operation("functions show, n calls")
async def _(bench: Bench, n: int) -> Act:
    await _recorded(bench, n)
    return bench.command("functions", "show", "add_0")


@operation("call a function, n calls before")
async def _(bench: Bench, n: int) -> Act:
    await _recorded(bench, n)
    return partial(bench.client.functions.call, "add_0", {"number": 1})


async def _recorded(bench: Bench, n: int) -> None:
    await bench.load({"base.py": _function(0)})
    await bench.client.functions.call("add_0", {"number": 1})
    store, snapshot = bench.desk.workspace.store, bench.desk.agent.snapshot()
    (row,) = await store.recorded_calls()
    version = snapshot.functions["add_0"].body_hash
    await bench.apply(SaveRecorded("add_0", row.outcome, f"turn {at}", row.data) for at in range(n))
    await bench.apply(
        RecordCall("add_0", version, "returned", 0.01, f"turn {at}") for at in range(n)
    )


@operation("a program with n calls", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    await bench.load(_library(1))
    return partial(_program, bench, f"for at in range({n}):\n    add_0(at)\n")


@operation("a program of n lines", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    return partial(_program, bench, "".join(f"x = {at}\n" for at in range(n)))


@operation("a program that keeps a list of n")
async def _(bench: Bench, n: int) -> Act:
    return partial(_program, bench, f"kept = [str(at) for at in range({n})]")


@operation("a program that reads a kept list of n")
async def _(bench: Bench, n: int) -> Act:
    await _program(bench, f"kept = [str(at) for at in range({n})]")
    return partial(_program, bench, "len(kept)")


async def _program(bench: Bench, code: str) -> None:
    bench.programs.append(code)
    told = answers(await bench.desk.say("Go on."))
    assert told, "nothing was run"
    assert "not run" not in told[0], told[0][:200]


# Conversations


@operation("a turn among n functions", is_among=True)
async def _(bench: Bench, n: int) -> Act:
    return partial(bench.desk.say, "Add two numbers.")


@operation("a turn after n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    return partial(bench.desk.say, "Go on.")


@operation("a turn after n turns")
async def _(bench: Bench, n: int) -> Act:
    await bench.turns(n)
    return partial(bench.desk.say, "Go on.")


@operation("the conversation, n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    return bench.client.messages


@operation("log, n turns", is_served=False)
async def _(bench: Bench, n: int) -> Act:
    await bench.turns(n)
    return bench.shell("log")


@operation("begin anew after n turns")
async def _(bench: Bench, n: int) -> Act:
    await bench.turns(n, "other")
    return partial(bench.client.new, "other")


@operation("export an agent, n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    return bench.client.export_agent


@operation("import an agent, n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    document = await bench.client.export_agent()
    return partial(bench.client.import_agent, document, "other")


@operation("delete an agent, n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("other", _said(n))
    return partial(bench.client.delete_agent, "other")


@operation("storage check, n turns", is_served=False)
async def _(bench: Bench, n: int) -> Act:
    await bench.turns(n)
    return bench.shell("storage", "check")


# Memory


@operation("recall search, n new messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    return bench.command("memory", "search", "blue house")


@operation("recall search, n messages")
async def _(bench: Bench, n: int) -> Act:
    await bench.talk("main", _said(n))
    recall = bench.desk.agent.memory.recall
    await recall.catch_up()
    await recall.vectors.embed_all()
    return bench.command("memory", "search", "blue house")


@operation("archival search, n new passages")
async def _(bench: Bench, n: int) -> Act:
    await _passages(bench, n)
    return bench.command("memory", "search", "blue house")


@operation("archival search, n passages")
async def _(bench: Bench, n: int) -> Act:
    await _passages(bench, n)
    await bench.desk.agent.memory.archival.vectors.embed_all()
    return bench.command("memory", "search", "blue house")


@operation("archival insert, n passages")
async def _(bench: Bench, n: int) -> Act:
    await _passages(bench, n)
    archival = bench.desk.agent.memory.archival
    await archival.vectors.embed_all()
    return partial(archival.insert, "The red house has a door.")


async def _passages(bench: Bench, n: int) -> None:
    archival = bench.desk.agent.memory.archival
    await bench.apply(
        [
            SavePassages(
                tuple(
                    archival.passage(f"The blue house has {at} windows.", "bench")
                    for at in range(n)
                )
            )
        ]
    )


@operation("load a source of n paragraphs")
async def _(bench: Bench, n: int) -> Act:
    file = bench.root / "long.txt"
    file.write_text(
        "\n\n".join(f"The blue house number {at} has {at} windows. " * 8 for at in range(n)),
        "utf-8",
    )
    return bench.shell("sources", "load", "long.txt", "--name", "long")


@operation("sources list")
async def _(bench: Bench, n: int) -> Act:
    rows = (
        DocumentRow(f"{at:064}", "main", f"text {at}", "text", 0.0, 1, 1, complete=True)
        for at in range(n)
    )
    await bench.apply(map(SaveDocument, rows))
    return bench.command("sources", "list")


@operation("memory history, n changes")
async def _(bench: Bench, n: int) -> Act:
    await bench.client.make_agent("other")
    memory = await bench.client.memory("other")
    await memory.show()  # makes the blocks of an agent that has said nothing
    store = bench.desk.workspace.store
    (block,) = [row for row in await store.blocks("other") if row.label == "human"]
    versions = (
        replace(block, value=f"Number {at}.", version=block.version + at) for at in range(1, n)
    )
    await bench.apply(SaveBlock(version, "other", "edit", by="user") for version in versions)
    return partial(memory.history, "human")


# Agents


@operation("agents list")
async def _(bench: Bench, n: int) -> Act:
    await bench.agents(n)
    return bench.command("agents", "list")


@operation("agents tree")
async def _(bench: Bench, n: int) -> Act:
    await bench.agents(n)
    return bench.command("agents", "tree")


@operation("make one of n agents")
async def _(bench: Bench, n: int) -> Act:
    await bench.agents(n)
    return partial(bench.client.make_agent, "other")


@operation("n timers, every other one due")
async def _(bench: Bench, n: int) -> Act:
    store = bench.desk.workspace.store
    now = await store.now()
    for at in range(n):
        timer = Post(f"agent_{at}", "timer", {"text": "Wake up."}, due=now + at % 2 * 3_600)
        await store.post(timer)
    return store.work


@operation("n messages in the inbox", most=900)  # 1,000 events are refused
async def _(bench: Bench, n: int) -> Act:
    for at in range(n):
        await bench.desk.workspace.store.post(Post("main", "message", {"text": f"Hello {at}."}))
    return partial(bench.desk.say, "Go on.")


@operation("helpers list, n new files", most=1_000)
async def _(bench: Bench, n: int) -> Act:
    await bench.load({"letters.py": VOWELS})
    folder = bench.root / "new"
    folder.mkdir()
    for at in range(n):
        text = FINDER.replace("vowel_finder", f"finder_{at}")
        (folder / f"finder_{at}.toml").write_text(text, "utf-8")

    async def act() -> None:
        folder.rename(bench.root / "helpers")
        await bench.client.command(("helpers", "list"))

    return act


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exponents", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only operations whose name has one of these texts"
    )
    parser.add_argument(
        "--sizes", type=int, default=4, help="how many sizes of each, the largest ones"
    )
    parser.add_argument("--json", action="store_true", help="one JSON line per row")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    for name in OPERATIONS:
        if not given.names or any(part in name for part in given.names):
            row = grown(name, given.sizes)
            print(
                json.dumps({**asdict(row), "exponent": row.exponent}) if given.json else row,
                flush=True,
            )


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operation over so many took."""

    size: int
    seconds: float
    silent_s: float


@dataclass(frozen=True, slots=True)
class Growth:
    """The costs of an operation, the smallest size first, and why there are no more."""

    name: str
    costs: tuple[Cost, ...]
    end: str = ""

    @property
    def exponent(self) -> float | None:
        """The exponent between the two largest sizes that are long enough to be measured; None if there are none."""
        long_enough = [cost for cost in self.costs if cost.seconds >= _WORTH_S][-2:]
        if len(long_enough) < 2:
            return None
        few, many = long_enough
        return round(math.log(many.seconds / few.seconds, many.size / few.size), 2)

    def __str__(self) -> str:
        seconds = "".join(f"{cost.size:>8,}: {cost.seconds:6.2f}" for cost in self.costs)
        silent = (
            max([cost.silent_s for cost in self.costs], default=0.0)
            if OPERATIONS[self.name].is_served
            else 0.0
        )
        marks = f"{'!' if (self.exponent or 0) > MOST_EXPONENT else ' '}{'!' if silent > MOST_SILENT_S else ' '}"
        return f"{self.name:56} {self.exponent or '-':>5} {silent:6.2f} s silent {marks} {seconds} {self.end}".rstrip()


def grown(name: str, sizes: int) -> Growth:
    """Return the growth of an operation over so many sizes."""
    costs = list[Cost]()
    for size in sorted(
        size for place in range(sizes) if (size := OPERATIONS[name].most // 10**place)
    ):
        if OPERATIONS[name].is_among:
            _lay_out(_FEW)
            _lay_out(size)
        told, exit_code = _told_apart(_measure, name, size)
        match told:
            case [*_, Cost() as cost]:
                costs.append(cost)
            case [*_, str(error)]:
                return Growth(name, tuple(costs), f"{size:,}: {error}")
            case [_, *_]:
                return Growth(name, tuple(costs), f"{size:,}: not done in {_PATIENCE_S} s")
            case _:
                return Growth(name, tuple(costs), f"{size:,}: not prepared ({exit_code})")
    return Growth(name, tuple(costs))


def _told_apart(work: Callable[..., None], *given: object) -> tuple[list[object], int | None]:
    """Return what work tells that runs in a process of its own, and how that ended."""
    ours, theirs = _FORKING.Pipe(duplex=False)
    process = _FORKING.Process(target=work, args=(*given, theirs))
    process.start()
    theirs.close()
    told: list[object] = []
    with suppress(EOFError):
        while True:
            told.append(ours.recv())
    process.join()
    return told, process.exitcode


_LAID_OUT: dict[int, Path] = {}


def _lay_out(size: int) -> None:
    """Save so many functions in a workspace, which is copied for each row that is about them."""
    if size in _LAID_OUT:
        return
    folder = tempfile.mkdtemp(prefix="bench-", dir=Path.cwd())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    told, exit_code = _told_apart(_save_library, size, folder)
    assert not told, told
    assert not exit_code, f"{size:,} functions could not be saved ({exit_code})"
    _LAID_OUT[size] = Path(folder)


def _save_library(size: int, folder: str, told: Connection) -> None:
    async def save() -> None:
        with scripted([Repeat(partial(_reply, []))]) as model:
            async with desk(Path(folder), model) as here:
                await _load(here, _library(size))

    _end_after(_PREPARING_S)
    try:
        asyncio.run(save())
    except Exception as error:  # noqa: BLE001 - the parent says it
        told.send(f"{type(error).__name__}: {error}"[:200])


def _measure(name: str, size: int, told: Connection) -> None:
    """Measure in a process of its own: say when it is prepared, then the cost, or what went wrong."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        told.send(asyncio.run(measured(name, size, partial(told.send, None))))
    except Exception as error:  # noqa: BLE001 - a row of the table says it
        told.send(f"{type(error).__name__}: {error}"[:200])


async def measured(name: str, size: int, is_prepared: Callable[[], object]) -> Cost:
    """Return the cost at a size. A smaller one goes first, so that everything is loaded."""
    cost = Cost(0, 0.0, 0.0)
    for n in (_FEW, size):
        async with AsyncExitStack() as stack:
            _end_after(_PREPARING_S)
            root = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()))
            )
            if OPERATIONS[name].is_among:
                shutil.copytree(_LAID_OUT[n], root, dirs_exist_ok=True)
            programs = list[str]()
            model = stack.enter_context(scripted([Repeat(partial(_reply, programs))]))
            here = await stack.enter_async_context(desk(root, model))
            client = await stack.enter_async_context(await connect(here.workspace))
            act = await OPERATIONS[name].prepare(Bench(here, client, programs), n)
            await _quiet()
            gc.collect()
            if n == size:
                is_prepared()
            _end_after(_PATIENCE_S)
            began, silence = processor_s(), Silence()
            async with silence:
                await act()
            cost = Cost(size, round(processor_s() - began, 3), round(silence.longest_s, 3))
            _end_after(_PREPARING_S)
    return cost


def _reply(programs: list[str], _seen: Seen) -> Ask | Say:
    return Ask(Wanted("run_program", {"code": programs.pop()})) if programs else Say("Done.")


async def _quiet() -> None:
    """Wait until what the preparation left to do in the background is done."""
    before, now = 0.0, processor_s()
    while now - before > _IDLE * _QUIET_S:
        await asyncio.sleep(_QUIET_S)
        before, now = now, processor_s()


def _end_after(seconds: int) -> None:
    """End this process after so much processor time from now on, and what it starts after so much, or if both hang."""
    signal.alarm(_HANGING * seconds)
    most = int(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def processor_s() -> float:
    """Return the processor time of this process and of all that it started, directly or not."""
    ticks, children = dict[int, int](), dict[int, list[int]]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                ticks[int(folder.name)] = sum(map(int, fields[11:15]))
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += ticks.get(process, 0)
        waiting += children.get(process, ())
    return total / _CLOCK_TICK


if __name__ == "__main__":
    main()
