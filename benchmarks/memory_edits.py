"""Edits of memory and chains of lookups, on cases that others wrote, through the real loop.

Cases of `core_memory_read` and `core_memory_update` begin with ten facts; right is a block that contains the new fact,
none of those that it makes untrue, and is in the prompt when the question arrives. A chain of `nested_kv` is followed
by searches. Without `--model`, a script makes the right edits; with one, the facts are there from the start and the
share is as measured: a fact counts as present when three quarters of its words are.

Without a PATH, the cases are the contradictions of `benchmarks.nearest`, in their blocks; `--unshown` leaves out the
nearest lines that the result of an edit shows. With `--kept FILE`, a long run resumes where it ended.

    python -m benchmarks.memory_edits [PATH] [--model local] [--limit 40] [--unshown] [--kept FILE] [--trace] [--json]
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_core import Agent, Settings, Workspace
from agent_core.base.events import CallAnswered, TurnEnded
from agent_core.base.settings import ModelSettings, TurnSettings
from agent_core.memory import words
from agent_core.memory.blocks import BlockDifference, Blocks
from agent_core.memory.classes import ChatMemory
from agent_core.memory.edits import normalized
from agent_core.storage import SavePassages
from knapper_ext.local.server import open_local
from tests.kit import scripted
from tests.kit.steps import Repeat

from .local_requests import MODEL
from .measure import ran_with
from .memory_edits_script import Player, corrected, followed, pair, said, told
from .nearest import blocks_of, rows

_ENOUGH: Final = 0.75
_LIMIT: Final = 10_000
_LOOK: Final = (
    "Your archival memory holds pairs, each as `key = value`. Search there for the key {key}. If its value is itself "
    "a key, search for that, and so on. Answer with the last value, which is no key."
)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a file; its task decides which fields are filled."""

    id: str
    task: str
    question: str
    answer: str
    facts: tuple[str, ...] = ()
    update: str = ""
    superseded: tuple[str, ...] = ()
    records: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Came:
    """The result of one case: each condition, and whether it held."""

    id: str
    task: str
    held: dict[str, bool] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether all conditions held."""
        return all(self.held.values())


def cases(path: Path | None, limit: int | None) -> list[Case]:
    """Return the cases of a file, up to a limit for each task, evenly spread."""
    by_task: dict[str, list[Case]] = defaultdict(list)
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    for case in map(_case, map(json.loads, lines)) if path else _contradictions():
        by_task[case.task].append(case)
    return [case for found in by_task.values() for case in _spread(found, limit)]


def _spread(found: list[Case], limit: int | None) -> list[Case]:
    return found[:: max(1, len(found) // limit)][:limit] if limit else found


def _contradictions() -> Iterator[Case]:
    for number, (row, block) in enumerate(blocks_of(rows())):
        id = f"{row['language']}/{number}"
        yield Case(id, "contradiction", "", "Noted.", tuple(block), row["fact"], (row["line"],))


def _case(row: dict[str, Any]) -> Case:  # Any: one line of the file
    if "records" in row:
        records = tuple((key, value) for key, value in row["records"])
        return Case(
            row["id"], f"nested_kv, {row['hops']} hops", row["ask"], row["answer"], records=records
        )
    facts = tuple(row["facts"])
    superseded = tuple(
        facts[n] for n in row.get("superseded_facts", ()) if facts[n] != row.get("update")
    )
    return Case(
        row["id"],
        row["task"],
        row["question"],
        row["answer"],
        facts,
        row.get("update", ""),
        superseded,
    )


class Scripted:
    """Plays each case by the script: right means that the block contains the exact text."""

    def __init__(self, workspace: Workspace, player: Player) -> None:
        self._workspace = workspace
        self._player = player

    async def play(self, case: Case) -> Came:
        """Play one case with a fresh agent."""
        memory = ChatMemory()
        memory["human"].limit = _LIMIT
        agent = await self._workspace.agent(case.id.replace("/", "-"), memory=memory)
        try:
            return await (self._chain(agent, case) if case.records else self._edits(agent, case))
        finally:
            await agent.aclose()

    async def _edits(self, agent: Agent, case: Case) -> Came:
        self._player.perform(told(case.facts))
        await _turn(agent, "\n".join(["Please remember:", *case.facts]))
        if case.update:
            self._player.perform(corrected(case.update, case.superseded))
            await _turn(agent, case.update)
        self._player.perform(said(case.answer))
        await _turn(agent, case.question or "What do you know?")
        lines = agent.memory.blocks.memory["human"].lines
        assert self._player.seen is not None
        before = str(self._player.seen.messages[0]["content"])
        kept = {fact for fact in case.facts if fact not in case.superseded} | (
            {case.update} if case.update else set()
        )
        return Came(
            case.id,
            case.task,
            {
                "all facts are in the block": kept <= {*lines},
                "nothing superseded is": not {*case.superseded} & {*lines},
                "no line is there twice": len({*lines}) == len(lines),
                "the model has it before it": all(line in before for line in lines),
            },
        )

    async def _chain(self, agent: Agent, case: Case) -> Came:
        await _put_aside(agent, case)
        self._player.perform(followed(case.question))
        reply = await _turn(agent, _LOOK.format(key=case.question))
        return Came(case.id, case.task, {"the end is reached": reply == case.answer})


class Real:
    """Asks a real model: the facts are in its block, and it hears the new one as a user would say it."""

    def __init__(self, workspace: Workspace, *, trace: bool) -> None:
        self._workspace = workspace
        self._trace = trace

    async def play(self, case: Case) -> Came:
        """Play one case with a fresh agent."""
        memory = ChatMemory()
        memory["human"].limit = _LIMIT
        memory["human"].value = "\n".join(case.facts)
        agent = await self._workspace.agent(case.id.replace("/", "-"), memory=memory)
        try:
            return await (self._chain(agent, case) if case.records else self._edits(agent, case))
        finally:
            await agent.aclose()

    async def _edits(self, agent: Agent, case: Case) -> Came:
        held = {}
        if not case.question:
            return Came(case.id, case.task, await self._told(agent, case))
        if case.update:
            await _turn(
                agent, f"Correction, please update your memory: {case.update}", trace=self._trace
            )
            lines = agent.memory.blocks.memory["human"].lines
            held["the new fact is in the block"] = _holds(lines, case.update)
            held["nothing superseded is"] = not any(_says(lines, fact) for fact in case.superseded)
        reply = await _turn(agent, case.question, trace=self._trace)
        return Came(case.id, case.task, {**held, "the reply says it": _holds([reply], case.answer)})

    async def _told(self, agent: Agent, case: Case) -> dict[str, bool]:
        """State a fact without mentioning what it replaces."""
        await _turn(agent, f"Please remember: {case.update}", trace=self._trace)
        now = {*agent.memory.blocks.memory["human"].lines}
        return {
            "something is written": not now <= {*case.facts},
            "the untrue line stands no more as it was": not now & {*case.superseded},
            "every other line stands": {*case.facts} - {*case.superseded} <= now,
        }

    async def _chain(self, agent: Agent, case: Case) -> Came:
        await _put_aside(agent, case)
        reply = await _turn(agent, _LOOK.format(key=case.question), trace=self._trace)
        return Came(case.id, case.task, {"the end is reached": case.answer in reply})


async def _nothing_near(_: Blocks, _change: BlockDifference) -> str:
    return ""


async def _put_aside(agent: Agent, case: Case) -> None:
    passages = [
        agent.memory.archival.passage(pair(key, value), "pairs") for key, value in case.records
    ]
    await agent.memory.store.apply([SavePassages(tuple(passages))])


async def _turn(agent: Agent, message: str, *, trace: bool = False) -> str:
    reply = ""
    async with aclosing(agent.turn(message)) as events:
        async for event in events:
            if isinstance(event, CallAnswered) and trace:
                print(f"  {event.name}: {event.text}", file=sys.stderr)
            if isinstance(event, TurnEnded):
                reply = event.reply
    if trace:
        print(f"> {message}\n< {reply}", file=sys.stderr)
    return reply


def _holds(lines: Iterable[str], fact: str) -> bool:
    """Check whether the lines contain most of a fact's words."""
    wanted = {*words.stems(words.content(fact))}
    there = {word for line in lines for word in words.stems(words.content(line))}
    return len(wanted & there) >= _ENOUGH * len(wanted)


def _says(lines: Iterable[str], fact: str) -> bool:
    return any(normalized(line) == normalized(fact) for line in lines)


@asynccontextmanager
async def _opened(arguments: argparse.Namespace) -> AsyncIterator[Scripted | Real]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="knapper-memory-"))
        turn = TurnSettings(max_steps=10)
        if arguments.model is None:
            player = Player()
            server = stack.enter_context(scripted([Repeat(player.choose)]))
            model = ModelSettings(base_url=server.base_url, name="scripted", stream=False)
            workspace = await stack.enter_async_context(
                Workspace.open(folder, settings=Settings(model=model, turn=turn))
            )
            yield Scripted(workspace, player)
            return
        name = MODEL if arguments.model == "local" else arguments.model
        model = ModelSettings(name=name, threads=arguments.threads)
        if name.startswith("local/"):
            keeper = await open_local(name, model)  # keeps the engine loaded
            stack.push_async_callback(keeper.aclose)
        workspace = await stack.enter_async_context(
            Workspace.open(folder, settings=Settings(model=model, turn=turn))
        )
        yield Real(workspace, trace=arguments.trace)


def played(kept: Path | None) -> list[Came]:
    """Return the results that an earlier run left in its file."""
    lines = kept.read_text("utf-8").splitlines() if kept and kept.exists() else []
    return [Came(**json.loads(line)) for line in lines]


def keep(kept: Path | None, one: Came) -> None:
    """Append a result to the file for a later run."""
    if kept:
        with kept.open("a", encoding="utf-8") as file:
            print(json.dumps(asdict(one)), file=file)


async def run(arguments: argparse.Namespace) -> list[Came]:
    """Run every case, one after another."""
    came = played(arguments.kept)
    done = {one.id for one in came}
    async with _opened(arguments) as one:
        for number, case in enumerate(cases(arguments.path, arguments.limit), 1):
            if case.id in done:
                continue
            came.append(await one.play(case))
            keep(arguments.kept, came[-1])
            if arguments.model or not came[-1].is_right:
                print(number, came[-1], file=sys.stderr, flush=True)
    return came


def total(came: Sequence[Came]) -> dict[str, Any]:  # Any: JSON
    """Return the figures as one JSON document, by task."""
    tasks: dict[str, Any] = {}
    for task in dict.fromkeys(one.task for one in came):
        of_it = [one for one in came if one.task == task]
        held = {name: sum(one.held[name] for one in of_it) for name in of_it[0].held}
        tasks[task] = {"cases": len(of_it), "right": sum(one.is_right for one in of_it), **held}
    return tasks


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the selected cases; return 1 if a scripted case was not right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "path", type=Path, nargs="?", help="a file like memory_dev.jsonl or nested_kv_dev.jsonl"
    )
    parser.add_argument("--model", help="a real model, such as `local`; without it, a script")
    parser.add_argument("--limit", type=int, help="so many cases of each task, evenly spread")
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--unshown", action="store_true", help="no answer of an edit shows the nearest lines"
    )
    parser.add_argument(
        "--kept", type=Path, help="a file for each result, from which a later run goes on"
    )
    parser.add_argument("--trace", action="store_true", help="show what is said on standard error")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.model is None and (
        given.threads is not None or given.trace or given.unshown or given.kept
    ):
        parser.error(
            "--threads, --trace, --unshown and --kept are for a real model: name one with --model"
        )
    if given.unshown:
        Blocks._near = _nothing_near  # type: ignore[method-assign,assignment] # the product has no setting for it
    figures = total(ran_with(given.model or "The script", run(given)))
    if not figures:
        parser.error(f"{given.path} holds no case")
    if given.json:
        print(json.dumps(figures, indent=1))
    else:
        for task, one in figures.items():
            print(f"{task}: " + ", ".join(f"{name} {value}" for name, value in one.items()))
    if given.model is None and any(one["right"] < one["cases"] for one in figures.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
