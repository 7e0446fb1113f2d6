"""Over the Responses API each step of a turn gets the reasoning of the earlier steps, whichever worker continues it."""

import os
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.agents.workers import cluster
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted
from tests.kit.responses import reasoning
from tests.kit.waiting import until

NOTE = '''\
def note(self, text: str) -> str:
    """Give a text back.

    Args:
        text: The text.
    """
    return text
'''
OVER_RESPONSES = {"KNAPPER_MODEL_API": "responses"}
STEPS = 8


class Reasoner:
    """A model that reasons before each call and records reasoning that did not come back unchanged."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._given: dict[str, dict[str, Any]] = {}
        self.lost: list[object] = []

    def __call__(self, seen: Seen) -> Step:
        number = next(self._numbers)
        items = seen.raw["input"]
        asked = [item["call_id"] for item in items if item.get("type") == "function_call"]
        returned = [item for item in items if item.get("type") == "reasoning"]
        if returned != (due := [self._given[call_id] for call_id in asked]):
            self.lost.append((returned, due))
        if len(asked) >= STEPS:
            return Say("done")
        self._given[f"n{number}"] = reasoning(number, f"thought {number}")
        return Ask(Wanted("note", {"text": f"{number}"}, f"n{number}"), thought=f"thought {number}")


@pytest.mark.slow
async def test_reasoning_comes_back_at_each_step_also_after_a_kill(
    database: str, tmp_path: Path
) -> None:
    reasoner = Reasoner()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "notes.py").write_text(NOTE)
    with scripted([Repeat(reasoner)]) as model:
        async with cluster(database, model) as made:
            for _ in range(2):
                made.start(tmp_path, environment=OVER_RESPONSES)
            await made.at_work(2)
            await made.say("a0", "note it all")
            worker = await made.who_has("a0")
            await until(
                lambda: made.store.history("a0", kinds=("result",)),
                lambda found: len(found) >= STEPS // 2,
            )
            os.kill(worker.pid, signal.SIGKILL)
            await made.replied("a0", "done")
            results = await made.store.history("a0", kinds=("result",))
    assert reasoner.lost == []
    assert len(results) == STEPS
    assert len(model.requests[-1].raw["input"]) > 3 * STEPS
