"""The worker converts arguments to the annotated types, and checks and serializes results."""

from typing import Any

import pytest

from sandbox import FunctionCall, Job, Raised, Refused, Returned, Sandbox, SchemaRequest
from tests.sandbox.support import modules

_KINDS = """
from __future__ import annotations
import collections, dataclasses, datetime, decimal, enum, pathlib, typing, uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, Union

class Colour(enum.Enum):
    RED = "red"
    DARK = 7

@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    when: datetime.date | None = None

class Pair(NamedTuple):
    left: int
    right: str = "r"

class Row(TypedDict):
    name: str
    size: NotRequired[int]

@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)

Names = list[str]
Id = NewType("Id", int)

def show(value: HINT) -> str:
    return repr(value)
"""


def _taking(hint: str) -> dict[str, Any]:
    return dict(modules(kinds=_KINDS.replace("HINT", hint)))


@pytest.mark.parametrize(
    ("hint", "given", "shown"),
    [
        pytest.param("int", 3, "3", id="int"),
        pytest.param("int", 3.0, "3", id="int-from-whole-float"),
        pytest.param("int", 2**60 + 1, str(2**60 + 1), id="large-int"),
        pytest.param("float", 3, "3.0", id="float"),
        pytest.param("float", 2**60 + 1, str(2**60 + 1), id="whole-number-beyond-a-float"),
        pytest.param("int | float", 3, "3", id="number-of-either-kind"),
        pytest.param("complex", "1+2j", "(1+2j)", id="complex"),
        pytest.param("bytes", "aGk=", "b'hi'", id="bytes"),
        pytest.param("datetime.date", "2024-05-01", "datetime.date(2024, 5, 1)", id="date"),
        pytest.param("datetime.datetime", "2024-05-01T10:00", "datetime.datetime(2024, 5, 1, 10, 0)", id="datetime"),
        pytest.param("datetime.time", "10:30", "datetime.time(10, 30)", id="time"),
        pytest.param("datetime.timedelta", "P1DT2H", "datetime.timedelta(days=1, seconds=7200)", id="duration"),
        pytest.param("datetime.timedelta", 90, "datetime.timedelta(seconds=90)", id="duration-seconds"),
        pytest.param("decimal.Decimal", "1.50", "Decimal('1.50')", id="decimal"),
        pytest.param("decimal.Decimal", 1.1, "Decimal('1.1')", id="decimal-from-number"),
        pytest.param("uuid.UUID", "0" * 32, f"UUID('{'0' * 8}-0000-0000-0000-{'0' * 12}')", id="uuid"),
        pytest.param("pathlib.Path", "a/b", "PosixPath('a/b')", id="path"),
        pytest.param("Colour", "red", "<Colour.RED: 'red'>", id="enum-by-value"),
        pytest.param("Colour", "DARK", "<Colour.DARK: 7>", id="enum-by-name"),
        pytest.param("Literal['a', 2]", 2, "2", id="literal"),
        pytest.param("Optional[int]", None, "None", id="optional"),
        pytest.param("int | str", "3", "'3'", id="union-exact-type-first"),
        pytest.param("Union[datetime.date, str]", "2024-05-01", "'2024-05-01'", id="union-exact-before-built"),
        pytest.param("list[datetime.date]", ["2024-05-01"], "[datetime.date(2024, 5, 1)]", id="list"),
        pytest.param("set[int]", [1, 1], "{1}", id="set"),
        pytest.param("frozenset", [1], "frozenset({1})", id="bare-frozenset"),
        pytest.param("tuple[int, str]", [1, "a"], "(1, 'a')", id="tuple"),
        pytest.param("tuple[int, ...]", [1, 2, 3], "(1, 2, 3)", id="tuple-of-any-length"),
        pytest.param("dict[int, decimal.Decimal]", {"1": "2"}, "{1: Decimal('2')}", id="dict-with-int-keys"),
        pytest.param("Mapping[str, Sequence[int]]", {"a": [1]}, "{'a': [1]}", id="abstract"),
        pytest.param("collections.deque[int]", [1], "deque([1])", id="deque"),
        pytest.param(
            "Point", {"x": 1, "when": "2024-05-01"}, "Point(x=1, y=0.5, when=datetime.date(2024, 5, 1))", id="dc"
        ),
        pytest.param(
            "Tree",
            {"value": 1, "children": [{"value": 2}]},
            "Tree(value=1, children=[Tree(value=2, children=[])])",
            id="recursive",
        ),
        pytest.param("Pair", {"left": 1}, "Pair(left=1, right='r')", id="named-tuple"),
        pytest.param("Pair", [1, "x"], "Pair(left=1, right='x')", id="named-tuple-from-list"),
        pytest.param("Row", {"name": "n"}, "{'name': 'n'}", id="typed-dict"),
        pytest.param("Annotated[Names, 'some names']", ["a"], "['a']", id="annotated-alias"),
        pytest.param("Id", 4, "4", id="new-type"),
        pytest.param("Any", {"a": [1]}, "{'a': [1]}", id="any"),
    ],
)
async def test_an_argument_becomes_what_its_annotation_says(
    sandbox: Sandbox, hint: str, given: Any, shown: str
) -> None:
    outcome = await sandbox.run(Job(_taking(hint), "kinds", FunctionCall("show", {"value": given})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == shown


@pytest.mark.parametrize(
    ("hint", "given", "says"),
    [
        pytest.param("int", "three", "value: expected a whole number, got 'three'", id="int"),
        pytest.param("int", True, "value: expected a whole number, got True", id="bool-is-no-int"),
        pytest.param("int", 1.5, "value: expected a whole number, got 1.5", id="lossy"),
        pytest.param("datetime.date", "1 May", "value: expected a date like 2024-05-01, got '1 May'", id="date"),
        pytest.param("datetime.timedelta", "P", "value: expected seconds, or a duration", id="empty-duration"),
        pytest.param("bytes", "not base64!", "value: expected base64 text", id="bytes"),
        pytest.param("list[int]", [1, "x"], "value[1]: expected a whole number, got 'x'", id="inside-a-list"),
        pytest.param("dict[int, str]", {"x": "y"}, "value: expected a key that is a whole number, got 'x'", id="key"),
        pytest.param("Colour", "blue", "value: expected one of 'red', 7, got 'blue'", id="enum"),
        pytest.param("Point", {"y": 1}, "value.x: is missing", id="missing-field"),
        pytest.param(
            "Point", {"x": 1, "z": 1}, "value.z: there is no such field; the fields are x, y, when", id="field"
        ),
        pytest.param("tuple[int, str]", [1], "value: expected a list of 2 items, got [1]", id="tuple"),
        pytest.param("int | None", "x", "value: expected int | None, got 'x'", id="union"),
        pytest.param("Unknown", 1, "the types in the signature of show cannot be resolved", id="unresolved"),
    ],
)
async def test_an_argument_that_cannot_be_built_is_refused_with_its_path(
    sandbox: Sandbox, hint: str, given: Any, says: str
) -> None:
    outcome = await sandbox.run(Job(_taking(hint), "kinds", FunctionCall("show", {"value": given})))
    assert isinstance(outcome, Refused), outcome
    assert says in outcome.reason


@pytest.mark.parametrize(
    ("hint", "expression", "says"),
    [
        pytest.param("int", "'x'", "the result: expected int, got 'x' (str)", id="scalar"),
        pytest.param("list[int]", "[1, 'x']", "the result[1]: expected int, got 'x'", id="item"),
        pytest.param("dict[str, int]", "{'a': 'x'}", "the result['a']: expected int", id="dict-value"),
        pytest.param("tuple[int, str]", "(1,)", "the result: expected 2 items, got 1", id="tuple"),
        pytest.param("Row", "{}", "the result: the key 'name' is missing", id="typed-dict"),
        pytest.param("int | None", "'x'", "the result: expected", id="union"),
        pytest.param("None", "1", "the result: expected None, got 1 (int)", id="none"),
    ],
)
async def test_a_result_of_another_type_is_an_error_that_names_the_place(
    sandbox: Sandbox, hint: str, expression: str, says: str
) -> None:
    world = modules(kinds=_KINDS.replace("HINT", "int") + f"\ndef give() -> {hint}:\n    return {expression}\n")
    outcome = await sandbox.run(Job(world, "kinds", FunctionCall("give", {})))
    assert isinstance(outcome, Raised), outcome
    assert outcome.failure.type == "ReturnTypeError"
    assert says in outcome.failure.message


@pytest.mark.parametrize(
    ("hint", "expression", "value"),
    [
        pytest.param("float", "1", 1, id="int-for-float"),
        pytest.param("Any", "{1: 2}", {1: 2}, id="any"),
        pytest.param("Point", "Point(1)", {"x": 1, "y": 0.5, "when": None}, id="dataclass"),
        pytest.param("Pair", "Pair(1)", {"left": 1, "right": "r"}, id="named-tuple"),
        pytest.param("Colour", "Colour.RED", "red", id="enum"),
        pytest.param("Sequence[int]", "range(3)", [0, 1, 2], id="range"),
        pytest.param("list[Point] | None", "[Point(1)]", [{"x": 1, "y": 0.5, "when": None}], id="nested"),
        pytest.param("set[int]", "{1, 2}", {1, 2}, id="set"),
        pytest.param("'Mapping[str, int]'", "collections.Counter('aab')", {"a": 2, "b": 1}, id="counter"),
    ],
)
async def test_a_fitting_result_arrives_as_a_plain_value(
    sandbox: Sandbox, hint: str, expression: str, value: Any
) -> None:
    world = modules(kinds=_KINDS.replace("HINT", "int") + f"\ndef give() -> {hint}:\n    return {expression}\n")
    outcome = await sandbox.run(Job(world, "kinds", FunctionCall("give", {})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == value


_MODELS = modules(
    models="""
    import pydantic
    from fractions import Fraction

    class Item(pydantic.BaseModel):
        name: str
        price: float = pydantic.Field(gt=0, description="what it costs")

    def total(items: list[Item], share: Fraction = Fraction(1)) -> Item:
        return Item(name="all", price=sum(item.price for item in items))

    def odd(value: "Missing") -> int:
        return 1
    """
)


async def test_pydantic_models_are_built_and_taken_apart(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_MODELS, "models", FunctionCall("total", {"items": [{"name": "a", "price": 2}]})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == {"name": "all", "price": 2.0}


_FIELDS = modules(
    fields="""
    from typing import Annotated
    from pydantic import BaseModel, Field

    class Part(BaseModel):
        size: int = Field(default=2, ge=1)

    class Box(BaseModel):
        name: str = Field(alias="boxName")
        parts: list[Part] = []

    def scaled(
        x: int = Field(..., ge=1),
        factor: Annotated[float, Field(default=5.0)] = Field(gt=0),
        extra: list[int] = Field(default_factory=list),
        *,
        last: Annotated[int, Field(default=7)],
        plain: Annotated[int, Field(default=1)] = 3,
    ) -> list:
        return [x, factor, extra, last, plain]

    def first(box: Box, spare: Box | None = None) -> Part:
        return (spare or box).parts[0]
"""
)


async def test_defaults_that_a_field_declares_are_filled_in(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"x": 2})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == [2, 5.0, [], 7, 3]


async def test_an_argument_that_a_field_requires_is_missed(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"factor": 2})))
    assert isinstance(outcome, Refused), outcome
    assert "x: scaled needs this argument" in outcome.reason


async def test_nested_models_are_instances_with_their_aliases_and_come_back_as_json(sandbox: Sandbox) -> None:
    arguments = {"box": {"boxName": "a", "parts": [{}, {"size": 3}]}}
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("first", arguments)))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == {"size": 2}


async def test_a_model_that_refuses_its_data_refuses_the_call(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_MODELS, "models", FunctionCall("total", {"items": [{"name": "a", "price": -1}]})))
    assert isinstance(outcome, Refused), outcome
    assert "items[0]" in outcome.reason
    assert "greater than 0" in outcome.reason


async def test_describe_gives_json_schema_of_what_syntax_cannot_decide(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_MODELS, "models", SchemaRequest(["total"])))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value["total"]["items"]["items"] == {"$ref": "#/$defs/Item"}
    assert set(outcome.value["total"]) == {"items", "share", "return"}


async def test_describe_says_which_type_cannot_be_resolved(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_MODELS, "models", SchemaRequest(["odd"])))
    assert isinstance(outcome, Returned), outcome
    assert "odd: its types cannot be resolved: name 'Missing'" in outcome.value["odd"]
