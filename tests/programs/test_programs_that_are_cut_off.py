"""A program that is killed goes on in the next turn: what it had called is answered from its journal."""

import asyncio
import json
import random
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from agent_core import Decision, Question
from agent_core.runtime.session import GO_ON
from agent_core.workspace.workspace import Workspace
from tests.kit import Ask, Repeat, Say, Script, ScriptedModel, Wanted, scripted
from tests.kit.crash import Worker, kill_after

from .support import lay_out, lines

TEXTS = [f"t{number}" for number in range(12)]
CODE = f"seen = [(note(text), count_vowels(text)) for text in {TEXTS}]\nseen[-1][0]"


def take_turn(argument: str, reports: Connection) -> None:
    """One turn in a process of its own, with a person who says yes to all that is asked."""
    root, base_url, message = json.loads(argument)
    asyncio.run(_take_turn(Path(root), base_url, message, reports))


async def _take_turn(root: Path, base_url: str, message: str, reports: Connection) -> None:
    async def yes(question: Question) -> Decision:
        reports.send("asked")
        return Decision("yes")

    flags = {"model.base_url": base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent()
        reports.send("ready")
        async for event in agent.turn(message, approver=yes):
            reports.send(json.dumps(event.to_json()))


def turn(root: Path, model: ScriptedModel, message: str) -> Worker:
    """A process that takes a turn."""
    return Worker(take_turn, json.dumps([str(root), model.base_url, message]))


def ended(worker: Worker) -> list[str]:
    """What a turn that came to its end told the model about its calls."""
    rows = [json.loads(row) for row in worker.reports() if row.startswith("{")]
    return [row["text"] for row in rows if row["type"] == "answer"]


def program() -> Script:
    """A model that asks for one program, and then only talks."""
    return [Ask(Wanted("run_program", {"code": CODE})), Repeat(Say("Done."))]


@pytest.mark.parametrize("seed", range(6))
def test_every_inner_call_is_made_once_and_every_answer_is_used(tmp_path: Path, seed: int) -> None:
    lay_out(tmp_path)
    chance = random.Random(seed)
    with scripted(program()) as model:
        first = turn(tmp_path, model, "Go.")
        while '"type": "call"' not in first.next_report():
            pass
        kill_after(first, chance.uniform(0.0, 0.4))
        told = ended(turn(tmp_path, model, GO_ON))
    written = lines(tmp_path)
    assert len(written) == len(set(written))
    assert written == TEXTS[: len(written)]
    assert not told or "12" in told[0] or "whether it took effect is unknown" in told[0], told


async def test_what_takes_another_way_than_before_is_ended_and_says_where(tmp_path: Path) -> None:
    lay_out(tmp_path)
    code = "import threading\nnote(str(threading.get_native_id()))\nnote('z')\nwhile True: pass"
    with scripted([Ask(Wanted("run_program", {"code": code})), Repeat(Say("Done."))]) as model:
        first = turn(tmp_path, model, "Go.")
        while len(lines(tmp_path)) < 2:  # noqa: ASYNC110 - another process writes them
            await asyncio.sleep(0.05)
        kill_after(first, 0.1)
        (told,) = ended(turn(tmp_path, model, GO_ON))
    assert told.startswith("The program took another way than before it was cut off: its call 1 was note(text='")
    assert len(lines(tmp_path)) == 2
