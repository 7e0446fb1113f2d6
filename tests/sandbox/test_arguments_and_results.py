"""The worker converts arguments to the annotated types, and checks and serializes results."""

from typing import Any

from sandbox import FunctionCall, Job, Raised, Refused, Returned, Sandbox, SchemaRequest
from tests.sandbox.support import modules

_KINDS = """
from __future__ import annotations
import collections, dataclasses, datetime, decimal, enum, pathlib, typing, uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, Required, TypedDict, Union

class Colour(enum.Enum):
    RED = "red"
    DARK = 7

class Odd(enum.Enum):
    ANY = b"x"

@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    when: datetime.date | None = None

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5

class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()

class Pair(NamedTuple):
    left: int
    right: str = "r"

class Row(TypedDict):
    name: str
    size: NotRequired[int]

class Part(TypedDict, total=False):
    name: str
    size: Required[int]

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


BUILT: list[tuple[str, Any, Any]] = [
    ("int", 3, "3"),
    ("int", 3.0, "3"),
    ("int", 2**60 + 1, str(2**60 + 1)),
    ("float", 3, "3.0"),
    ("float", 2**60 + 1, str(2**60 + 1)),
    ("int | float", 3, "3"),
    ("complex", "1+2j", "(1+2j)"),
    ("bytes", "aGk=", "b'hi'"),
    ("datetime.date", "2024-05-01", "datetime.date(2024, 5, 1)"),
    ("datetime.datetime", "2024-05-01T10:00", "datetime.datetime(2024, 5, 1, 10, 0)"),
    ("datetime.time", "10:30", "datetime.time(10, 30)"),
    ("datetime.timedelta", "P1DT2H", "datetime.timedelta(days=1, seconds=7200)"),
    ("datetime.timedelta", 90, "datetime.timedelta(seconds=90)"),
    ("decimal.Decimal", "1.50", "Decimal('1.50')"),
    ("decimal.Decimal", 1.1, "Decimal('1.1')"),
    ("uuid.UUID", "0" * 32, f"UUID('{'0' * 8}-0000-0000-0000-{'0' * 12}')"),
    ("pathlib.Path", "a/b", "PosixPath('a/b')"),
    ("Colour", "red", "<Colour.RED: 'red'>"),
    ("Colour", "DARK", "<Colour.DARK: 7>"),
    ("Literal['a', 2]", 2, "2"),
    ("Optional[int]", None, "None"),
    ("int | str", "3", "'3'"),
    ("Union[datetime.date, str]", "2024-05-01", "'2024-05-01'"),
    ("list[datetime.date]", ["2024-05-01"], "[datetime.date(2024, 5, 1)]"),
    ("set[int]", [1, 1], "{1}"),
    ("frozenset", [1], "frozenset({1})"),
    ("tuple[int, str]", [1, "a"], "(1, 'a')"),
    ("tuple[int, ...]", [1, 2, 3], "(1, 2, 3)"),
    ("dict[int, decimal.Decimal]", {"1": "2"}, "{1: Decimal('2')}"),
    ("dict[Level, str]", {"1": "a", "HIGH": "b"}, "{<Level.LOW: 1>: 'a', <Level.HIGH: 5>: 'b'}"),
    ("dict[Literal[1, None], str]", {"1": "a", "None": "b"}, "{1: 'a', None: 'b'}"),
    ("dict[Access, str]", {"1": "a", "-1": "b"}, "{<Access.READ: 1>: 'a', <Access.READ|WRITE: 3>: 'b'}"),
    ("collections.Counter[Level]", {"1": 2}, "Counter({<Level.LOW: 1>: 2})"),
    ("Access", 0, "<Access: 0>"),
    ("Literal[Odd.ANY]", "ANY", "<Odd.ANY: b'x'>"),
    ("Mapping[str, Sequence[int]]", {"a": [1]}, "{'a': [1]}"),
    ("collections.deque[int]", [1], "deque([1])"),
    ("Point", {"x": 1, "when": "2024-05-01"}, "Point(x=1, y=0.5, when=datetime.date(2024, 5, 1))"),
    (
        "Tree",
        {"value": 1, "children": [{"value": 2}]},
        "Tree(value=1, children=[Tree(value=2, children=[])])",
    ),
    ("Pair", {"left": 1}, "Pair(left=1, right='r')"),
    ("Pair", [1, "x"], "Pair(left=1, right='x')"),
    ("Row", {"name": "n"}, "{'name': 'n'}"),
    ("Annotated[Names, 'some names']", ["a"], "['a']"),
    ("Id", 4, "4"),
    ("Any", {"a": [1]}, "{'a': [1]}"),
]


async def test_an_argument_becomes_what_its_annotation_says(sandbox: Sandbox) -> None:
    for hint, given, shown in BUILT:
        outcome = await sandbox.run(Job(_taking(hint), "kinds", FunctionCall("show", {"value": given})))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == shown, hint


REFUSED: list[tuple[str, Any, Any]] = [
    ("int", "three", "value: expected a whole number, got 'three'"),
    ("int", True, "value: expected a whole number, got True"),
    ("int", 1.5, "value: expected a whole number, got 1.5"),
    ("datetime.date", "1 May", "value: expected a date like 2024-05-01, got '1 May'"),
    ("datetime.timedelta", "P", "value: expected seconds, or a duration"),
    ("bytes", "not base64!", "value: expected base64 text"),
    ("list[int]", [1, "x"], "value[1]: expected a whole number, got 'x'"),
    ("dict[int, str]", {"x": "y"}, "value: expected a key that is a whole number, got 'x'"),
    ("Colour", "blue", "value: expected one of 'red', 7, got 'blue'"),
    ("dict[Level, str]", {"2": "a"}, "value (key): expected one of 1, 5, got '2'"),
    ("Access", 4, "value: expected a sum of any of 1, 2, got 4"),
    ("Part", {"name": "n"}, "value.size: is missing"),
    ("Point", {"y": 1}, "value.x: is missing"),
    ("Point", {"x": 1, "z": 1}, "value.z: there is no such field; the fields are x, y, when"),
    ("tuple[int, str]", [1], "value: expected a list of 2 items, got [1]"),
    ("int | None", "x", "value: expected int | None, got 'x'"),
    ("Unknown", 1, "value: its type cannot be resolved: name 'Unknown' is not defined"),
]


async def test_an_argument_that_cannot_be_built_is_refused_with_its_path(sandbox: Sandbox) -> None:
    for hint, given, says in REFUSED:
        outcome = await sandbox.run(Job(_taking(hint), "kinds", FunctionCall("show", {"value": given})))
        assert isinstance(outcome, Refused), outcome
        assert says in outcome.reason, hint


WRONG: list[tuple[str, Any, Any]] = [
    ("int", "'x'", "the result: expected int, got 'x' (str)"),
    ("list[int]", "[1, 'x']", "the result[1]: expected int, got 'x'"),
    ("dict[str, int]", "{'a': 'x'}", "the result['a']: expected int"),
    ("tuple[int, str]", "(1,)", "the result: expected 2 items, got 1"),
    ("Row", "{}", "the result: the key 'name' is missing"),
    ("int | None", "'x'", "the result: expected"),
    ("None", "1", "the result: expected None, got 1 (int)"),
]


async def test_a_result_of_another_type_is_an_error_that_names_the_place(sandbox: Sandbox) -> None:
    for hint, expression, says in WRONG:
        world = modules(kinds=_KINDS.replace("HINT", "int") + f"\ndef give() -> {hint}:\n    return {expression}\n")
        outcome = await sandbox.run(Job(world, "kinds", FunctionCall("give", {})))
        assert isinstance(outcome, Raised), outcome
        assert (outcome.failure.type, says in outcome.failure.message) == ("ReturnTypeError", True), hint


FITTING: list[tuple[str, Any, Any]] = [
    ("float", "1", 1),
    ("Any", "{1: 2}", {1: 2}),
    ("Point", "Point(1)", {"x": 1, "y": 0.5, "when": None}),
    ("Pair", "Pair(1)", {"left": 1, "right": "r"}),
    ("Colour", "Colour.RED", "red"),
    ("Sequence[int]", "range(3)", [0, 1, 2]),
    ("list[Point] | None", "[Point(1)]", [{"x": 1, "y": 0.5, "when": None}]),
    ("set[int]", "{1, 2}", {1, 2}),
    ("'Mapping[str, int]'", "collections.Counter('aab')", {"a": 2, "b": 1}),
]


async def test_a_fitting_result_arrives_as_a_plain_value(sandbox: Sandbox) -> None:
    for hint, expression, value in FITTING:
        world = modules(kinds=_KINDS.replace("HINT", "int") + f"\ndef give() -> {hint}:\n    return {expression}\n")
        outcome = await sandbox.run(Job(world, "kinds", FunctionCall("give", {})))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == value, hint


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
    refused = await sandbox.run(Job(_MODELS, "models", FunctionCall("total", {"items": [{"name": "a", "price": -1}]})))
    assert isinstance(refused, Refused), refused
    assert "items[0]" in refused.reason
    assert "greater than 0" in refused.reason


async def test_describe_gives_json_schema_of_what_syntax_cannot_decide(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_MODELS, "models", SchemaRequest(["total", "odd"])))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value["total"]["items"]["items"]["properties"]["price"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "what it costs",
    }
    assert set(outcome.value["total"]) == {"items", "share"}
    assert "name 'Missing'" in next(iter(outcome.value["odd"].values()))


async def test_a_module_without_pydantic_takes_a_type_that_only_pydantic_knows(sandbox: Sandbox) -> None:
    world = modules(
        shares="from ipaddress import IPv4Address\ndef share(part: IPv4Address) -> int:\n    return part.packed[0]\n"
    )
    outcome = await sandbox.run(Job(world, "shares", SchemaRequest(["share"])))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value["share"]["part"] == {"type": "string", "format": "ipv4"}
    called = await sandbox.run(Job(world, "shares", FunctionCall("share", {"part": "10.0.0.1"})))
    assert isinstance(called, Returned), called
    assert called.value == 10


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


async def test_defaults_that_a_field_declares_are_filled_in_and_what_it_requires_is_missed(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"x": 2})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == [2, 5.0, [], 7, 3]
    refused = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"factor": 2})))
    assert isinstance(refused, Refused), refused
    assert "x: scaled needs this argument" in refused.reason


async def test_nested_models_are_instances_with_their_aliases_and_come_back_as_json(sandbox: Sandbox) -> None:
    arguments = {"box": {"boxName": "a", "parts": [{}, {"size": 3}]}}
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("first", arguments)))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == {"size": 2}
