"""Answers of a shape: the agent works as usual, then its reply is a value of a type, corrected with what was wrong."""

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel, field_validator

import agent_core
from agent_core import TurnError, Workspace, events
from agent_core.base.errors import UsageError
from agent_core.registry.answer_shapes import AnswerShape
from tests.agents.groups import group_file
from tests.kit import Ask, Expect, Fail, Repeat, Say, Seen, Step, Wanted, scripted


@dataclass
class City:
    """A city."""

    name: str
    people: int = 0


class Point(NamedTuple):
    """A place on a map."""

    x: float
    y: float


class Row(TypedDict, total=False):
    """A row of a table."""

    label: str
    tags: list[str]


class Size(enum.Enum):
    """How large it is."""

    SMALL = "small"
    LARGE = "large"


class Person(BaseModel):
    """A person."""

    name: str
    age: int

    @field_validator("age")
    @classmethod
    def _grown(cls, age: int) -> int:
        if age < 18:
            raise ValueError("only adults")
        return age


@dataclass
class Tree:
    """A tree of names."""

    name: str
    parts: "list[Tree]"


BONN: dict[str, Any] = {"name": "Bonn", "people": 330_000}
CITY = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}
VALUES = [
    pytest.param(int, {"answer": 3}, 3, id="int"),
    pytest.param(bool, {"answer": True}, True, id="bool"),
    pytest.param(str, {"answer": "so"}, "so", id="str"),
    pytest.param(list[str], {"answer": ["a"]}, ["a"], id="list"),
    pytest.param(dict[str, int], {"a": 1}, {"a": 1}, id="dict"),
    pytest.param(int | None, {"answer": None}, None, id="optional"),
    pytest.param(date, {"answer": "2026-11-30"}, date(2026, 11, 30), id="date"),
    pytest.param(set[int], {"answer": [1, 2]}, {1, 2}, id="set"),
    pytest.param(Literal["a", "b"], {"answer": "b"}, "b", id="literal"),
    pytest.param(Size, {"answer": "large"}, Size.LARGE, id="enum"),
    pytest.param(City, BONN, City(**BONN), id="dataclass"),
    pytest.param(City, {"name": "Bonn"}, City("Bonn"), id="default"),
    pytest.param(list[City], {"answer": [BONN]}, [City(**BONN)], id="list-of-dataclasses"),
    pytest.param(Point, {"x": 1.5, "y": 2}, Point(1.5, 2.0), id="named-tuple"),
    pytest.param(Row, {"tags": ["x"]}, {"tags": ["x"]}, id="typed-dict"),
    pytest.param(
        Person, {"name": "Ada", "age": 36}, Person(name="Ada", age=36), id="pydantic-model"
    ),
    pytest.param(
        Tree,
        {"answer": {"name": "a", "parts": [{"name": "b", "parts": []}]}},
        Tree("a", [Tree("b", [])]),
        id="recursive",
    ),
    pytest.param(CITY, BONN, BONN, id="schema"),
    pytest.param({"type": "integer"}, {"answer": 3}, 3, id="schema-of-a-number"),
    pytest.param(json.dumps(CITY), BONN, BONN, id="schema-as-text"),
    pytest.param("name, people int", BONN, BONN, id="fields"),
    pytest.param("name: as it is\npeople int", BONN, BONN, id="fields-on-lines"),
    pytest.param("[name, people int]", {"answer": [BONN]}, [BONN], id="list-of-fields"),
    pytest.param("tags dict[str, int] = None", {}, {}, id="field-with-a-default"),
]


def alone(seen: Seen) -> str | None:
    """Expect a request for the shape alone."""
    is_alone = "tools" not in seen.body and "response_format" in seen.body
    return None if is_alone else f"it was sent {sorted(seen.body)}"


def usual(seen: Seen) -> str | None:
    """Expect a request as usual, whose model is told of the shape in words."""
    is_usual = bool(seen.functions) and "response_format" not in seen.body
    return None if is_usual and "A program reads your reply" in seen.text else "it is another one"


def said(value: object) -> Say:
    """Return the reply with this value."""
    return Say(json.dumps(value))


@pytest.mark.parametrize(("result", "reply", "value"), VALUES)
async def test_a_reply_is_a_value_of_its_type(
    tmp_path: Path, result: Any, reply: dict[str, Any], value: object
) -> None:
    with scripted([Expect(said(reply), usual)]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Which?", result=result) == value
            assert "response_format" not in model.requests[0].body


async def test_calls_come_first_and_then_the_shape_is_asked_for_alone(tmp_path: Path) -> None:
    script = [
        Expect(Ask(Wanted("list_functions")), usual),
        Expect(Say("There is Bonn, with 330,000 people."), usual),
        Expect(said(BONN), alone),
    ]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Which?", result=City) == City(**BONN)


async def test_a_wrong_answer_is_corrected_once_with_what_was_wrong(tmp_path: Path) -> None:
    def told(seen: Seen) -> str | None:
        return None if "people" in seen.text and "expected integer" in seen.text else seen.text

    wrong = said({"name": "Bonn", "people": "many"})
    with scripted([Say("Bonn."), Expect(wrong, alone), Expect(said(BONN), alone, told)]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Which?", result=City) == City(**BONN)


async def test_what_the_type_itself_refuses_is_corrected(tmp_path: Path) -> None:
    child = {"name": "Ada", "age": 7}
    grown = {"name": "Ada", "age": 36}
    script = [said(child), said(grown), said({"answer": "soon"}), said({"answer": "2026-11-30"})]
    with scripted(script) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert (await agent.ask("Who?", result=Person)).age == 36
            assert "only adults" in model.requests[1].text
            assert await agent.ask("When?", result=date) == date(2026, 11, 30)
            assert "expected a date" in model.requests[3].text


async def test_no_answer_of_the_shape_is_an_error_with_what_came(tmp_path: Path) -> None:
    wrong = said({"name": "Bonn"})
    script = [Say("It is Bonn."), wrong, wrong]
    with scripted(script * 2) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            for opened in (workspace.agent(), agent_core.connect(workspace)):
                async with await opened as asked:
                    with pytest.raises(TurnError, match="does not have the shape") as failed:
                        await asked.ask("Which?", result=CITY)
                    assert 'What came: {"name": "Bonn"}' in failed.value.message
                    assert "people: expected integer" in failed.value.message


async def test_a_client_gets_values_too(tmp_path: Path) -> None:
    with scripted([said(BONN), said({"answer": [1]}), said(BONN)]) as model:
        async with (
            Workspace.open(tmp_path, environment=model.environment) as workspace,
            await agent_core.connect(workspace) as client,
        ):
            assert await client.ask("Which?", result=City) == City(**BONN)
            assert await client.ask("Which?", result=list[int]) == [1]
            ended = [event async for event in client.turn("And?", result="name, people int")][-1]
    assert isinstance(ended, events.TurnEnded)
    assert json.loads(ended.reply) == BONN


async def test_a_message_that_came_before_is_answered_first(tmp_path: Path) -> None:
    def step(seen: Seen) -> Step:
        last = [row["content"] for row in seen.messages if row["role"] == "user"][-1]
        return said(BONN) if "Which?" in last else Say("Hello.")

    with scripted([step, step]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            await agent.say_during_turn("Hello?")
            assert await agent.ask("Which?", result=City) == City(**BONN)


async def test_an_agent_that_speaks_by_function_gives_values_too(tmp_path: Path) -> None:
    def send(value: object) -> Ask:
        sent = value if isinstance(value, str) else json.dumps(value)
        return Ask(Wanted("send_message", {"message": sent}), text="I think.")

    with scripted([send("Bonn."), send(BONN)]) as model:
        flags = {"memory.preset": "memgpt"}
        async with Workspace.open(
            tmp_path, environment=model.environment, flags=flags
        ) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Which?", result=City) == City(**BONN)
    assert "send_message" in model.requests[1].functions


async def test_an_endpoint_that_refuses_a_shape_is_asked_in_words(tmp_path: Path) -> None:
    def step(seen: Seen) -> Step:
        if "response_format" in seen.body:
            return Fail(400, "response_format is not supported by this model")
        return said(BONN) if "Your reply does not have the shape" in seen.text else Say("Bonn.")

    with scripted([Repeat(step)]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            assert await agent.ask("Which?", result=City) == City(**BONN)


IMPOSSIBLE = [
    pytest.param(Callable[[int], int], "No answer can have the type", id="callable"),
    pytest.param("", "has no fields", id="no-fields"),
    pytest.param("name, name", "twice", id="a-field-twice"),
    pytest.param("name Unheard", "Unheard", id="an-unknown-type"),
    pytest.param("2nd", "`2nd`", id="no-name"),
    pytest.param("{", "not JSON", id="half-a-schema"),
    pytest.param({"type": "strange"}, "cannot be kept", id="no-such-type"),
    pytest.param(
        {"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}},
        "`pattern`",
        id="pattern",
    ),
]


@pytest.mark.parametrize(("result", "says"), IMPOSSIBLE)
async def test_a_shape_that_no_answer_can_have_is_refused_before_anything_is_sent(
    tmp_path: Path, result: Any, says: str
) -> None:
    with scripted([]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            with pytest.raises(UsageError) as refused:
                await agent.ask("Which?", result=result)
            assert says in str(refused.value)
            assert await agent.waiting() == []


async def test_a_group_gives_no_answer_of_a_shape(tmp_path: Path) -> None:
    group_file(tmp_path)
    with scripted([]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            with pytest.raises(UsageError, match="A group"):
                await (await workspace.agent("team")).ask("Which?", result=City)
            async with await agent_core.connect(workspace) as client:
                with pytest.raises(Exception, match="A group"):
                    await client.ask("Which?", "team", result=City)


def test_fields_are_typed_and_described_as_parameters_are() -> None:
    schema = AnswerShape.of(
        "name: in full, age int, size Literal['s', 'm'], m dict[str, int]"
    ).schema
    assert schema["properties"] == {
        "name": {"type": "string", "description": "in full"},
        "age": {"type": "integer"},
        "size": {"type": "string", "enum": ["s", "m"]},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    assert schema["required"] == ["name", "age", "size", "m"]


async def test_of_sixty_answers_all_have_their_shape_though_three_came_wrong(
    tmp_path: Path,
) -> None:
    def script(model_number: int) -> list[Step]:
        wrong: list[Step] = [said({"name": 1})] if model_number % 20 == 7 else []
        calls: list[Step] = [Ask(Wanted("list_functions"))] if model_number % 6 == 0 else []
        return [*calls, *wrong, said({"name": "Bonn", "people": model_number})]

    with scripted([step for number in range(60) for step in script(number)]) as model:
        async with Workspace.open(tmp_path, environment=model.environment) as workspace:
            agent = await workspace.agent()
            came = [await agent.ask(f"Number {number}?", result=City) for number in range(60)]
    assert [city.people for city in came] == [*range(60)]
    both = [seen for seen in model.requests if {"tools", "response_format"} <= seen.body.keys()]
    assert both == []
