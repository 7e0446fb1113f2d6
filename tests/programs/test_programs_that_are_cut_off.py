"""A killed program resumes in the next turn: earlier calls get their results from its journal."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from agent_core import Decision, Question
from agent_core.base.clock import Clock
from agent_core.runtime.agent import Origin
from agent_core.runtime.session import GO_ON
from agent_core.storage import Entry, open_store
from agent_core.workspace.workspace import Workspace
from sandbox.wire.values import read
from tests.kit import Ask, Expect, Repeat, Say, Script, ScriptedModel, Wanted, contains, scripted
from tests.kit.crash import Worker, kill_after
from tests.kit.drawing import sampled
from tests.kit.waiting import until_it_is

from .support import lay_out, lines

TEXTS = [f"t{number}" for number in range(6)]
CODE = f"""
import random, time
seen = []
for text in {TEXTS}:
    line = f"{{text}} {{random.random()}} {{time.time()}}"
    seen.append([note(line), each(count_vowels, [text, 'a' + text]), key_of(text)])
seen
"""
CALLS = 4 * len(TEXTS)
KILLS = range(200)


def take_turn(argument: str, reports: Connection) -> None:
    """Take one turn in a subprocess whose user approves everything."""
    root, base_url, message, window = json.loads(argument)
    asyncio.run(_take_turn(Path(root), base_url, message, Origin(window), reports))


async def _take_turn(
    root: Path, base_url: str, message: str, origin: Origin, reports: Connection
) -> None:
    async def yes(question: Question) -> Decision:
        reports.send("asked")
        return Decision("yes")

    flags = {"model.base_url": base_url, "model.name": "scripted", "model.stream": False}
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent(origin=origin)
        reports.send("ready")
        async for event in agent.turn(message, approver=yes):
            reports.send(json.dumps(event.to_json()))


def turn(root: Path, model: ScriptedModel, message: str, window: str = "prompt") -> Worker:
    """Return a process that takes a turn; one that is cut off in a prompt waits for its user."""
    return Worker(take_turn, json.dumps([str(root), model.base_url, message, window]))


def ended(worker: Worker) -> list[str]:
    """Wait for a turn to end; return what it told the model about its calls."""
    rows = [json.loads(row) for row in worker.reports() if row.startswith("{")]
    return [row["text"] for row in rows if row["type"] == "answer"]


def program() -> Script:
    """Return a script with one program, and only talk after it."""
    return [Ask(Wanted("run_program", {"code": CODE})), Repeat(Say("Done."))]


async def journal(root: Path) -> list[Entry]:
    """Return the journal entries of the agent's programs."""
    async with open_store(str(root / ".knapper" / "state.db"), clock=Clock()) as store:
        return await store.history(
            "main", kinds=("inner_call", "inner_result", "result"), with_removed=True
        )


def of_calls(entries: Sequence[Entry], kind: str) -> dict[int, dict[str, Any]]:
    """Return the entries of one kind by the number of their call; each occurs once, or its function only computes."""
    rows: dict[int, dict[str, Any]] = {}
    for entry in entries:
        if entry.kind == kind:
            number = entry.payload["ordinal"]
            assert number not in rows or entry.payload["name"] != "note", entry.payload
            rows[number] = entry.payload
    return rows


@pytest.mark.sampled
@pytest.mark.parametrize("seed", sampled(KILLS, 67))
async def test_each_inner_call_is_made_once_and_each_that_was_answered_is_used(
    tmp_path: Path, seed: int
) -> None:
    """Killed within 15 ms of the start of the program, or of the result of one of its calls."""
    lay_out(tmp_path)
    chance, after = random.Random(seed), seed % (CALLS + 1)
    with scripted(program()) as model:
        first = turn(tmp_path, model, "Go.")
        while '"type": "call"' not in first.next_report():
            pass
        for _ in range(after):
            while '"type": "progress"' not in first.next_report():
                pass
        kill_after(first, chance.uniform(0.0, 0.015))
        before = await journal(tmp_path)
        told = ended(turn(tmp_path, model, GO_ON))
        entries = await journal(tmp_path)
    begun, answered = of_calls(before, "inner_call"), of_calls(before, "inner_result")
    lost = [number for number, call in begun.items() if number not in answered and call["reaches"]]
    results = of_calls(entries, "inner_result")
    assert {number: results[number] for number in answered} == answered
    made = Counter(entry.payload["ordinal"] for entry in entries if entry.kind == "inner_call")
    assert [number for number in answered if made[number] != 1] == []
    written = lines(tmp_path)
    notes = [
        call["arguments"]
        for call in of_calls(entries, "inner_call").values()
        if call["name"] == "note"
    ]
    assert written == [json.loads(text)["text"] for text in notes][: len(written)]
    assert len(notes) - len(written) <= len(lost)
    if any(entry.kind == "result" for entry in before):  # the program had ended
        assert told == []
    elif lost:
        assert "whether it took effect is unknown" in told[0], told
    else:
        assert [len(written), len(results)] == [len(TEXTS), CALLS], told
        keys = [results[number]["detail"]["value"] for number in range(4, CALLS + 1, 4)]
        assert [key for key in keys if json.dumps(read(key)) not in told[0]] == []


async def test_what_takes_another_way_than_before_is_ended_and_says_where(tmp_path: Path) -> None:
    lay_out(tmp_path)
    code = "import threading\nnote(str(threading.get_native_id()))\nnote('z')\nwhile True: pass"
    with scripted([Ask(Wanted("run_program", {"code": code})), Repeat(Say("Done."))]) as model:
        first = turn(tmp_path, model, "Go.")
        await until_it_is(lambda: lines(tmp_path), lambda found: len(found) >= 2)
        kill_after(first, 0.1)
        (told,) = ended(turn(tmp_path, model, GO_ON))
    assert told.startswith(
        "The program took another way than before it was cut off: its call 1 was note(text='"
    )
    assert len(lines(tmp_path)) == 2


async def test_a_new_message_begins_the_same_program_anew_and_the_model_knows_what_it_had_called(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path)
    asks = Ask(
        Wanted(
            "run_program",
            {"code": "import time\nlines = note('z')\ntime.sleep(8 * (lines == 1))\nlines"},
        )
    )
    known = contains('It had made 1 call:\n1. note({"text": "z"}) → returned: 1')
    with scripted([asks, Expect(asks, known), Say("Done.")]) as model:
        first = turn(tmp_path, model, "Go.")
        while '"type": "progress"' not in first.next_report():
            pass
        await until_it_is(lambda: lines(tmp_path))
        kill_after(first, 0.2)
        told = ended(turn(tmp_path, model, "How many lines are there? Look again."))
    assert (told, lines(tmp_path)) == (["2\nKept for your next program: lines."], ["z", "z"])


async def test_a_program_that_begins_again_by_itself_is_not_run_once_more_by_going_on(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path)
    code = "import time\nlines = note('z')\ntime.sleep(5)\nlines"
    script: Script = [Ask(Wanted("run_program", {"code": code})), Say("Done."), Say("It is done.")]
    with scripted(script) as model:
        first = turn(tmp_path, model, "Go.", "library")  # its sender waits for the answer
        await until_it_is(lambda: lines(tmp_path))
        kill_after(first, 0.2)
        assert ended(turn(tmp_path, model, GO_ON, "library")) == []
    assert lines(tmp_path) == ["z"]
    results = [entry for entry in await journal(tmp_path) if entry.kind == "result"]
    assert len(results) == 2  # of the turn that was cut off, and of the one that went on
