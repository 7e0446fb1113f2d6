"""Promise 5: what was shown as done survives `kill -9` at any moment, and no call runs twice by itself.

Kills at chosen instants of a turn are in `tests/promises/test_what_always_holds.py`; these come at random.
"""

import os
import random
from itertools import count
from pathlib import Path

import pytest

from agent_core.base.messages import Answer, Assistant, Message, User
from agent_core.workspace.workspace import Workspace
from tests.crash.turn_work import take_turns
from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Wanted, scripted
from tests.kit.crash import Worker, kill_at_work
from tests.kit.desk import another
from tests.kit.steps import Step

NOTE = '''\
def note(self, text: str) -> str:
    """Give a text back.

    Args:
        text: The text.
    """
    self.progress(1, 1, text)
    return text
'''


def talker() -> object:
    """Return a model that makes calls with unique names, creates a function now and then, and ends each turn."""
    numbers = count()

    def step(seen: Seen) -> Step:
        number = next(numbers)
        if seen.messages[-1]["role"] == "tool":
            return Say(f"reply {number}")
        name = f"count_vowels{number}"
        code = another(name)
        create = Wanted(
            "create_function",
            {"function_name": name, "function_code_with_docstring": code},
            f"create{number}",
        )
        notes = [
            Wanted("note", {"text": f"n{number}"}, f"note{number}"),
            Wanted("list_functions", {}, f"list{number}"),
        ]
        return Ask(*notes, create) if number % 3 == 0 else Ask(*notes)

    return step


def killed_after(root: Path, model: ScriptedModel, database: str, seconds: float) -> list[str]:
    """Return the reports of a process that was killed some time after it was ready."""
    ready, *told = kill_at_work(Worker(take_turns, f"{root}|{model.base_url}|{database}"), seconds)
    assert ready == "ready"
    return told


async def survivors(root: Path, database: str) -> list[Message]:
    """Return the conversation as the next start finds it."""
    flags = {"model.base_url": "http://127.0.0.1:9/v1", "storage.url": database or None}
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent()
        made = [name for name in workspace.functions.names() if name != "note"]
        listed = {row.name for row in (await workspace.functions.list()).functions}
        assert set(made) <= listed
        return await agent.history()


async def kill_again_and_again(root: Path, times: int, seed: int, database: str = "") -> None:
    (root / "functions").mkdir()
    (root / "functions" / "notes.py").write_text(NOTE)
    chance = random.Random(seed)
    told: list[str] = []
    with scripted([Repeat(talker())]) as model:  # type: ignore[arg-type]  # a chooser
        for _ in range(times):
            told += killed_after(root, model, database, chance.uniform(0, 0.25))
        check(told, await survivors(root, database))


def check(told: list[str], history: list[Message]) -> None:
    """Check that everything reported is there once, and every call has one result."""
    words = [line.split(" ", 1) for line in told]
    replies = [each.text for each in history if isinstance(each, Assistant)]
    answers = [each.call_id for each in history if isinstance(each, Answer)]
    calls = [call.id for each in history if isinstance(each, Assistant) for call in each.calls]
    said = {each.text for each in history if isinstance(each, User)}
    assert {rest for word, rest in words if word == "said"} <= said
    assert {rest for word, rest in words if word == "replied"} <= set(replies)
    assert {rest.split()[0] for word, rest in words if word == "answered"} <= set(answers)
    assert sorted(answers) == sorted(calls)
    assert len(set(calls)) == len(calls)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_nothing_that_was_told_is_lost_in_a_database_either(
    tmp_path: Path, database: str
) -> None:
    await kill_again_and_again(tmp_path, times=40, seed=os.getpid(), database=database)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_nothing_that_was_told_is_lost_at_a_hundred_random_instants(tmp_path: Path) -> None:
    await kill_again_and_again(tmp_path, times=100, seed=7)
