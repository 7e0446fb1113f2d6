"""`self.state`: a small value that one function keeps between its calls, without a grant, visible to people."""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.events import Progress
from agent_core.storage import SaveState, StateConflict
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.crash.turn_work import take_turns
from tests.interfaces.support import prompt
from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted
from tests.kit.crash import Worker, kill_at_work
from tests.kit.desk import answers
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.waiting import until_it_is

COUNT = function_text(
    "count(self, name: str) -> int",
    "Count how often a name was given, and say it.\n\nArgs:\n    name: The name.",
    "seen = self.state.get(name, 0)\nself.progress(1, 2)\nself.state[name] = seen + 1\nreturn self.state[name]",
    'count("ada") → 1',
    '[count("bob"), count("bob")] → [1, 2]',
)
OTHERS = "\n\n".join(
    [
        function_text(
            "spy(self) -> str",
            "Give the state that is seen here.",
            "return str(self.state)",
        ),
        function_text(
            "forged(self) -> list[str]",
            "Ask for the state of another function in each way that there is.",
            "answers = []\n"
            'for arguments in ({"function": "count"}, {"function": "count", "value": {}, "version": 0}, {"value": '
            '1}):\n    try:\n        answers.append(str(self._channel.request("state", arguments)))\n    '
            'except PermissionError as error:\n        answers.append(f"refused: {error}")\nreturn answers',
        ),
        function_text(
            "through(self) -> list[int]",
            "Call the one that counts.",
            'return [self.call("count", name="ada"), self.call("count", name="ada")]',
        ),
        function_text(
            "keep(self, kind: str) -> str",
            "Keep something that cannot be kept, or fail after a change.\n\nArgs:\n    kind: What to keep.",
            'if kind == "raise":\n    self.state["kept"] = True\n    raise ValueError("no")\n'
            'things = {"large": "x" * 70_000, "keys": {1: 2}, "set": {1}, "nan": float("nan"), "none": None}\n'
            'self.state = (things | {"cyrillic": "ж" * 32_000, "lone": "\\ud800" + "ж" * 32_000})[kind]\nreturn "kept"',
        ),
        function_text(
            "note(self, item: int) -> int",
            "Put an item on the list, and say how many there are.\n\nArgs:\n    item: The item.",
            'self.state.setdefault("items", []).append(item)\nreturn len(self.state["items"])',
        ),
        function_text(
            "jot(self, item: int) -> int",
            "Have an item put on the list.\n\nArgs:\n    item: The item.",
            'return self.call("note", item=item)',
        ),
        function_text(
            "again(self, depth: int) -> int",
            "Call itself, and count.\n\nArgs:\n    depth: How often.",
            'seen = self.state.get("n", 0)\nif depth:\n    self.call("again", depth=depth - 1)\n'
            'self.state["n"] = seen + 1\nreturn seen',
        ),
    ]
)
LOG = '''\
from pathlib import Path
from time import sleep


def log(self) -> int:
    """Count in a state and in a file, and wait for another one."""
    self.state["n"] = self.state.get("n", 0) + 1
    Path("out/begun").write_text("yes")
    while not Path("out/ended").exists():
        sleep(0.01)
    return self.state["n"]
'''
EMPTY = "{}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with these functions."""
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "counting.py").write_text(COUNT)
    (tmp_path / "functions" / "others.py").write_text(OTHERS)
    return tmp_path


def call(root: Path, function: str, /, **arguments: Any) -> Any:
    """Return the result or the failure of a call."""
    done = knapper(
        "functions", "call", function, "--args", json.dumps(arguments), "--json", cwd=root
    )
    report = json.loads(done.stdout)
    return report["value"] if report["outcome"] == "returned" else report


def shown(root: Path, name: str = "count") -> Any:
    """Return the state in `functions show`."""
    return json.loads(knapper("functions", "show", name, "--json", cwd=root).stdout)["state"]


def test_a_function_counts_over_its_calls_and_shows_its_state(folder: Path) -> None:
    assert [call(folder, "count", name="ada") for _ in range(2)] == [1, 2]
    told = knapper("functions", "show", "count", cwd=folder).stdout
    assert '{"ada": 2}' in told
    assert "keeps a value between its calls" in told
    with ThreadPoolExecutor(3) as processes:  # at once
        counts = list(processes.map(lambda _: call(folder, "count", name="ada"), range(3)))
    assert sorted(counts) == [3, 4, 5]
    assert shown(folder)["value"] == {"ada": 5}


@asynccontextmanager
async def calling(folder: Path) -> AsyncIterator[tuple[Workspace, Callable[..., Awaitable[Any]]]]:
    """Yield the workspace, and what calls a function: its value, or its outcome and the message of its error."""
    async with Workspace.open(folder) as workspace:

        async def called(name: str, /, **arguments: Any) -> Any:
            found = await workspace.functions.call(name, arguments)
            return f"{found.outcome}: {found.error.message}" if found.error else found.value

        yield workspace, called


async def test_no_function_sees_or_changes_the_state_of_another(folder: Path) -> None:
    async with calling(folder) as (workspace, called):
        await called("count", name="ada")
        assert await called("spy") == EMPTY
        assert (await called("forged"))[0] == "[0, {}]"
        assert (await workspace._store.states("count"))[-1].value == {"ada": 1}
        assert await called("through") == [2, 3]
        assert (await workspace._store.states("count"))[-1].value == {"ada": 3}
        assert await called("spy") == EMPTY


async def test_what_cannot_be_kept_fails_the_call_and_changes_nothing(folder: Path) -> None:
    async with calling(folder) as (workspace, called):
        assert (
            await called("keep", kind="cyrillic") == "kept"
        )  # counted as the bytes that are stored
        kept = await workspace._store.states("keep")
        assert kept[-1].value == "ж" * 32_000
        for kind, says in (
            ("large", "65536 bytes"),
            ("lone", "65536 bytes of JSON, and this is 192008"),
            ("keys", "texts as keys"),
            ("set", "what JSON can hold"),
            ("nan", "what JSON can hold"),
            ("raise", "no"),  # the call failed
        ):
            failed = await called("keep", kind=kind)
            assert failed.startswith("raised: "), failed
            assert says in failed
        assert await workspace._store.states("keep") == kept
        failed = await called("again", depth=1)
        assert failed.startswith("raised: "), failed
        assert "called within its own call" in failed
        assert await workspace._store.states("again") == []


async def test_calls_of_one_reply_and_of_two_agents_count_each_once(
    at_desk: OpenDesk, folder: Path
) -> None:
    three = Ask(*(Wanted("count", {"name": "ada"}) for _ in range(3)))
    desk = await at_desk([three, three, Say("Done."), Say("Done.")])
    other = await desk.workspace.agent("other")

    async def asked() -> list[str]:
        return answers([event async for event in other.turn("Count.")])

    told = await asyncio.gather(desk.say("Count."), asked())
    assert sorted([*answers(told[0]), *told[1]]) == ["1", "2", "3", "4", "5", "6"]


async def test_a_call_that_only_calls_one_with_a_state_is_made_again_outside_of_agents_too(
    folder: Path,
) -> None:
    async with calling(folder) as (workspace, called):
        told = await asyncio.gather(called("through"), called("through"), called("through"))
        assert sorted(told) == [[1, 2], [3, 4], [5, 6]]
        assert len(await workspace._store.recent_calls("through")) == 3


@pytest.mark.parametrize("by_agent", [True, False])
async def test_a_call_that_wrote_a_file_is_not_made_again_and_is_recorded(
    at_desk: OpenDesk, folder: Path, by_agent: bool
) -> None:
    (folder / "functions" / "logs.py").write_text(LOG)
    knapper("functions", "grant", "log", "--write", "out/", "--yes", cwd=folder)
    desk = await at_desk([Ask(Wanted("log")), Say("Done.")] if by_agent else [])
    store = desk.workspace._store

    async def asked() -> object:
        if by_agent:
            return answers(await desk.say("Log."))[0]
        with pytest.raises(StateConflict) as conflict:
            await desk.workspace.functions.call("log", {})
        return conflict.value

    asking = asyncio.create_task(asked())
    await until_it_is((folder / "out" / "begun").exists)
    await store.apply([SaveState("log", {"n": 10}, 0)])
    (folder / "out" / "ended").touch()
    assert "changed its state meanwhile" in str(await asking)
    assert (await store.states("log"))[-1].value == {"n": 10}
    assert len(await store.recent_calls("log")) == 1
    assert len(await store.recorded_calls("log")) == 1


@pytest.mark.parametrize(("name", "is_program"), [("note", True), ("jot", False)])
async def test_calls_that_change_a_state_are_made_in_order(
    at_desk: OpenDesk, folder: Path, name: str, is_program: bool
) -> None:
    many = Wanted(
        "run_program", {"code": f"each({name}, [{{'item': item}} for item in range(16)])"}
    )
    asked = [many] if is_program else [Wanted(name, {"item": item}) for item in range(16)]
    desk = await at_desk([Ask(*asked), Say("Done.")])
    await desk.say("Note them.")
    assert (await desk.workspace._store.states("note"))[-1].value == {"items": [*range(16)]}


async def test_a_turn_that_lost_its_place_leaves_no_state_behind(
    at_desk: OpenDesk, folder: Path
) -> None:
    desk = await at_desk([Ask(Wanted("count", {"name": "ada"})), Say("Here again.")])
    store = desk.workspace._store

    async def lose() -> None:
        async for event in desk.agent.turn("Count."):
            if isinstance(event, Progress):  # between the function's read and its write
                await store.next(desk.agent.name, "somebody else")

    await lose()  # and goes on with it, because the other one does not
    assert await store.states("count") == []


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_the_state_agrees_with_what_was_answered_after_kills_at_any_instant(
    folder: Path,
) -> None:
    chance = random.Random(os.getpid())
    counting = Repeat(Ask(Wanted("count", {"name": "ada"})))
    with scripted([counting]) as model:
        for _ in range(6):
            kill_at_work(Worker(take_turns, f"{folder}|{model.base_url}|"), chance.uniform(1, 2))
    async with Workspace.open(
        folder, flags={"model.base_url": "http://127.0.0.1:9/v1"}
    ) as workspace:
        agent = await workspace.agent()
        returned = [each.text for each in await agent.history() if type(each).__name__ == "Answer"]
        rows = await workspace._store.states("count")
    counts = [int(text) for text in returned if text.isdecimal()]
    assert counts, "nothing was counted before a kill"
    assert counts == [*range(1, len(counts) + 1)]
    assert rows[-1].value["ada"] == len(counts)


def test_each_undo_takes_the_state_back_that_a_turn_left(folder: Path) -> None:
    one: Script = [Ask(Wanted("count", {"name": "ada"})), Say("Counted.")]
    with prompt([*one, *one], folder) as (screen, _model):
        for number in (1, 2):
            screen.line("count")
            screen.wait_count("∙ 2 steps", number)
        screen.line("/changes")
        screen.wait_for("changed the state of count")
        screen.line("/undo")
        screen.wait_for("take the state of count back")
        screen.answer("y")
        screen.wait_for("restored the state of count")
        assert shown(folder)["value"] == {"ada": 1}
        screen.line("/undo")
        screen.wait_count("take the state of count back", 2)
        screen.answer("y")
        screen.wait_count("restored the state of count", 2)
    assert shown(folder)["value"] == {}


@pytest.mark.slow
def test_a_state_goes_back_call_by_call_and_as_far_as_it_is_kept(folder: Path) -> None:
    async def count() -> None:
        async with calling(folder) as (_, called):
            for _ in range(20):
                await called("count", name="ada")

    call(folder, "count", name="ada")
    with prompt([], folder) as (screen, _model):
        asyncio.run(count())
        for number in range(1, 19):
            screen.line("/changes count")
            screen.wait_count("take the state of count back", number)
            screen.answer("y")
            screen.wait_count("restored the state of count", number)
        screen.do("/changes count", "count was not changed in this session.")
    assert shown(folder)["value"] == {"ada": 3}


def test_a_recorded_call_gets_its_state_again_and_one_that_leaves_another_is_told(
    folder: Path,
) -> None:
    call(folder, "count", name="ada")
    call(folder, "count", name="ada")
    replayed = json.loads(knapper("calls", "replay", "2", "--json", cwd=folder).stdout)
    assert replayed["same"], replayed
    assert replayed["outcome"]["value"] == 2
    assert shown(folder)["value"] == {"ada": 2}
    changed = COUNT.replace("    self.progress(1, 2)\n", '    self.state["x"] = 1\n')
    (folder / "functions" / "counting.py").write_text(changed)
    told = json.loads(
        knapper("calls", "replay", "2", "--version", "now", "--json", cwd=folder).stdout
    )
    assert not told["same"]
    assert "leaves another value in `self.state`" in told["difference"]


def test_what_is_forgotten_is_in_no_state_of_a_function(folder: Path) -> None:
    call(folder, "count", name="Zoltan")
    call(folder, "count", name="Ada")
    done = knapper("memory", "forget", "Zoltan", "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Zoltan" not in json.dumps(shown(folder))
    assert shown(folder)["value"]["Ada"] == 1
    assert b"Zoltan" not in (folder / ".knapper" / "state.db").read_bytes()


async def test_a_new_function_of_an_old_name_begins_empty_and_one_that_comes_back_does_not(
    at_desk: OpenDesk, folder: Path
) -> None:
    desk = await at_desk([Ask(Wanted("count", {"name": "ada"})), Repeat(Say("Done."))])
    await desk.say("Count.")
    workshop = desk.workspace.functions
    await workshop.delete("through")
    await workshop.delete("count")
    assert (await workshop.rollback("count")).admitted
    assert (await workshop.introspect("count")).to_json()["state"]["value"] == {"ada": 1}
    await workshop.delete("count")
    made = await workshop.create("count", COUNT, module="counting")
    assert made.admitted, made
    assert (await workshop.introspect("count")).to_json()["state"]["value"] == {}


async def test_a_saved_file_with_another_function_of_a_deleted_name_begins_empty_and_a_moved_one_does_not(
    folder: Path,
) -> None:
    async with calling(folder) as (workspace, called):
        functions, old, new = (
            workspace.functions,
            folder / "functions" / "counting.py",
            folder / "functions" / "tally.py",
        )
        await called("count", name="ada")
        old.unlink()
        await functions.saved([old])
        new.write_text(COUNT)  # the same text in another file
        await functions.saved([new])
        assert await called("count", name="ada") == 2
        new.write_text(COUNT.replace("self.progress(1, 2)", "name = name.title()"))
        await functions.saved([new])
        assert (await functions.introspect("count")).to_json()["state"]["value"] == {"ada": 2}
        new.unlink()
        await functions.saved([new])
        old.write_text(COUNT.replace("a name was given", "a ship passed"))
        await functions.saved([old])
        assert (await functions.introspect("count")).to_json()["state"]["value"] == {}
        assert await called("count", name="ada") == 1
