"""A program that uses the library passes in an approver; a turn's events report each question and answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core import Approver, Decision, Question, Workspace
from agent_core.base.events import CallAnswered, GrantAnswered, GrantAsked
from agent_core.base.records import to_json
from agent_core.runtime.agent import Agent
from sandbox import Sandbox
from tests.grants.support import human
from tests.grants.test_files_asked_for_at_a_call import SALES, SUMS
from tests.interfaces.asking import CALL, DONE, home, made
from tests.interfaces.support import create
from tests.kit import Ask, Expect, Script, Wanted, contains, scripted
from tests.kit.desk import of


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home(tmp_path).items():
        monkeypatch.setenv(name, value)


@asynccontextmanager
async def agent_with(
    script: Script, root: Path, sandbox: Sandbox, approver: Approver
) -> AsyncIterator[Agent]:
    with scripted(script) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(
            root, flags=flags, approver=approver, sandbox=sandbox
        ) as workspace:
            yield await workspace.agent()


@pytest.mark.slow
async def test_the_time_of_a_call_leaves_out_how_long_a_human_thought_about_a_question(
    one_sandbox: Sandbox, tmp_path: Path
) -> None:
    thought_s = 3.0

    async def slow(question: Question) -> Decision:
        await asyncio.sleep(thought_s if question.moment == "run" else 0)
        return Decision("once")

    (tmp_path / "sales.csv").write_text(SALES)
    script: Script = [
        Ask(create(SUMS, "csv_sum")),
        Ask(Wanted("csv_sum", {"path": "sales.csv"})),
        DONE,
    ]
    async with agent_with(script, tmp_path, one_sandbox, slow) as agent:
        events = [event async for event in agent.turn("what is the weather?")]
    [question] = of(GrantAsked, events)
    _, called = of(CallAnswered, events)
    assert (question.moment, called.outcome) == ("run", "returned")
    assert called.seconds < thought_s


async def test_a_client_is_shown_the_question_and_asked_again_only_for_other_code(
    one_sandbox: Sandbox, tmp_path: Path, place: str
) -> None:
    asked = human("no: not now", "no", "no: in capitals", "yes")
    again = made(place.replace("localhost", "LOCALHOST"))
    script: Script = [
        made(place),
        DONE,
        DONE,
        made(place),
        made(place),
        DONE,
        DONE,
        made(place),
        again,
        Ask(CALL),
    ]
    script = [*script, Expect(DONE, contains("rain in Oslo"))]
    async with agent_with(script, tmp_path, one_sandbox, asked) as agent:
        first, second, third = [[event async for event in agent.turn("weather?")] for _ in range(3)]
    shape, answer = to_json(of(GrantAsked, first)[0]), to_json(of(GrantAnswered, first)[0])
    assert (shape["missing"], shape["says"]) == ({"network": [place]}, [f"fetch from {place}"])
    assert (shape["moment"], shape["why"], shape["is_again"]) == ("join", "asked", False)
    assert shape["command"] == f"knapper functions grant weather --network {place}"
    assert [number for number, _ in shape["lines"]] == [10]
    assert (answer["answer"], answer["word"], answer["by"]) == ("no", "not now", "human")
    assert [each.by for each in of(GrantAnswered, second)] == [
        "human",
        "earlier",
    ]  # the same code in one turn
    assert [(each.answer, each.by) for each in of(GrantAnswered, third)] == [
        ("no", "human"),
        ("yes", "human"),
    ]
    assert len(asked.asked) == 4
    question, last = of(GrantAsked, third)[-1], of(GrantAnswered, third)[-1]
    assert question.question == last.question == asked.asked[-1].id
    assert third.index(question) < third.index(last)
    assert (last.word, last.command) == ("", "")


async def test_an_interrupted_turn_leaves_no_question_open(
    one_sandbox: Sandbox, tmp_path: Path, place: str
) -> None:
    left: list[str] = []
    async with agent_with([made(place)], tmp_path, one_sandbox, waiting(left)) as agent:
        async for event in agent.turn("go"):
            if isinstance(event, GrantAsked):
                await agent.interrupt()
    assert left == ["left"]


def waiting(left: list[str]) -> Approver:
    async def approver(question: object) -> Decision:
        try:
            await asyncio.Event().wait()
        finally:
            left.append("left")
        raise AssertionError

    return approver
