"""A program that uses the library passes in an approver; a turn's events report each question and answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core import Approver, Decision, Question, Workspace
from agent_core.base.events import CallAnswered, Event, GrantAnswered, GrantAsked
from agent_core.base.json_form import to_json
from tests.grants.support import human
from tests.grants.test_files_asked_for_at_a_call import SALES, SUMS
from tests.interfaces.asking import CALL, DONE, home, made, service
from tests.interfaces.support import create
from tests.kit import Ask, Expect, Script, Wanted, contains, scripted
from tests.kit.desk import of


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home(tmp_path).items():
        monkeypatch.setenv(name, value)


@asynccontextmanager
async def turn(script: Script, root: Path, approver: Approver | None) -> AsyncIterator[list[Event]]:
    with scripted(script) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(root, flags=flags, approver=approver) as workspace:
            agent = await workspace.agent()
            yield [event async for event in agent.turn("what is the weather?")]


async def test_each_question_is_told_with_its_answer_under_one_name(tmp_path: Path) -> None:
    asked = human("yes")
    with service() as place:
        script: Script = [made(place), Ask(CALL), Expect(DONE, contains("rain in Oslo"))]
        async with turn(script, tmp_path, asked) as events:
            [question], [answer] = of(GrantAsked, events), of(GrantAnswered, events)
    assert question.question == answer.question == asked.asked[0].id
    assert events.index(question) < events.index(answer)
    assert (answer.answer, answer.by, answer.word, answer.command) == ("yes", "human", "", "")


async def test_the_time_of_a_call_leaves_out_how_long_a_human_thought_about_a_question(tmp_path: Path) -> None:
    thought_s = 4.0

    async def slow(question: Question) -> Decision:
        await asyncio.sleep(thought_s if question.moment == "run" else 0)
        return Decision("once")

    (tmp_path / "sales.csv").write_text(SALES)
    script: Script = [Ask(create(SUMS, "csv_sum")), Ask(Wanted("csv_sum", {"path": "sales.csv"})), DONE]
    async with turn(script, tmp_path, slow) as events:
        [question] = of(GrantAsked, events)
        _, called = of(CallAnswered, events)
    assert (question.moment, called.outcome) == ("run", "returned")
    assert called.seconds < thought_s


async def test_the_published_shape_of_a_question_holds_what_a_client_shows(tmp_path: Path) -> None:
    with service() as place:
        async with turn([made(place), DONE, DONE], tmp_path, human("no: not now")) as events:
            shape, answer = to_json(of(GrantAsked, events)[0]), to_json(of(GrantAnswered, events)[0])
    assert shape["missing"] == {"network": [place]}
    assert shape["says"] == [f"fetch from {place}"]
    assert (shape["moment"], shape["why"], shape["is_again"]) == ("join", "asked", False)
    assert shape["command"] == f"knapper functions grant weather --network {place}"
    assert [number for number, _ in shape["lines"]] == [10]
    assert (answer["answer"], answer["word"], answer["by"]) == ("no", "not now", "human")


@pytest.mark.parametrize("word", ["", ": smaller"], ids=["plain", "word"])
async def test_the_same_code_is_not_asked_for_twice_in_a_turn(tmp_path: Path, word: str) -> None:
    asked = human(f"no{word}", "yes")
    with service() as place:
        async with turn([made(place), made(place), DONE, DONE], tmp_path, asked) as events:
            answers = of(GrantAnswered, events)
    assert [each.by for each in answers] == ["human", "earlier"]
    assert len(asked.asked) == 1


async def test_other_code_after_a_word_is_asked_for_again(tmp_path: Path) -> None:
    asked = human("no: in capitals", "yes")
    with service() as place:
        again = made(place.replace("localhost", "LOCALHOST"))
        async with turn([made(place), again, DONE], tmp_path, asked) as events:
            answers = [(each.answer, each.by) for each in of(GrantAnswered, events)]
    assert answers == [("no", "human"), ("yes", "human")]


async def test_an_interrupted_turn_leaves_no_question_open(tmp_path: Path) -> None:
    left: list[str] = []
    with service() as place, scripted([made(place)]) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(tmp_path, flags=flags, approver=waiting(left)) as workspace:
            agent = await workspace.agent()
            async for event in agent.turn("go"):
                if isinstance(event, GrantAsked):
                    await agent.interrupt()
    assert left == ["left"]


def waiting(left: list[str]) -> Approver:
    async def approver(question: object) -> Decision:
        import asyncio

        try:
            await asyncio.Event().wait()
        finally:
            left.append("left")
        raise AssertionError

    return approver
