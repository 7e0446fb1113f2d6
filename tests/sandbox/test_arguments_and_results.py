"""The worker converts arguments to the annotated types, and checks and serializes results."""

from typing import Any

from sandbox import Evaluation, FunctionCall, Job, Raised, Refused, Returned, Sandbox, SchemaRequest
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
    (
        "dict[Access, str]",
        {"1": "a", "-1": "b"},
        "{<Access.READ: 1>: 'a', <Access.READ|WRITE: 3>: 'b'}",
    ),
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
        outcome = await sandbox.run(
            Job(_taking(hint), "kinds", FunctionCall("show", {"value": given}))
        )
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
        outcome = await sandbox.run(
            Job(_taking(hint), "kinds", FunctionCall("show", {"value": given}))
        )
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
        world = modules(
            kinds=_KINDS.replace("HINT", "int")
            + f"\ndef give() -> {hint}:\n    return {expression}\n"
        )
        outcome = await sandbox.run(Job(world, "kinds", FunctionCall("give", {})))
        assert isinstance(outcome, Raised), outcome
        assert (outcome.failure.type, says in outcome.failure.message) == (
            "ReturnTypeError",
            True,
        ), hint


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
        world = modules(
            kinds=_KINDS.replace("HINT", "int")
            + f"\ndef give() -> {hint}:\n    return {expression}\n"
        )
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
    outcome = await sandbox.run(
        Job(_MODELS, "models", FunctionCall("total", {"items": [{"name": "a", "price": 2}]}))
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == {"name": "all", "price": 2.0}
    refused = await sandbox.run(
        Job(_MODELS, "models", FunctionCall("total", {"items": [{"name": "a", "price": -1}]}))
    )
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


async def test_a_module_without_pydantic_takes_a_type_that_only_pydantic_knows(
    sandbox: Sandbox,
) -> None:
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


async def test_defaults_that_a_field_declares_are_filled_in_and_what_it_requires_is_missed(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"x": 2})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == [2, 5.0, [], 7, 3]
    refused = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("scaled", {"factor": 2})))
    assert isinstance(refused, Refused), refused
    assert "x: scaled needs this argument" in refused.reason


async def test_nested_models_are_instances_with_their_aliases_and_come_back_as_json(
    sandbox: Sandbox,
) -> None:
    arguments = {"box": {"boxName": "a", "parts": [{}, {"size": 3}]}}
    outcome = await sandbox.run(Job(_FIELDS, "fields", FunctionCall("first", arguments)))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == {"size": 2}


_DECORATED = modules(
    decorated="""
    import datetime, functools
    from functools import lru_cache, partial, singledispatch

    def by_position(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)
        return inner

    def renamed(function):
        @functools.wraps(function)
        def inner(value, **more):
            return function(value, **more)
        return inner

    def hidden(function):
        return lambda *args: function(*args)

    def waits(function):
        @functools.wraps(function)
        async def inner(*args):
            return await function(*args)
        return inner

    def by_name(function):
        @functools.wraps(function)
        def inner(*args, **named):
            return function(n=named["n"])
        return inner

    class Logged:
        def __init__(self, function):
            self.function = function

        def __call__(self, *args):
            return self.function(*args)

    @by_position
    def three(a: int, b: int = 5, c: int = 7) -> list[int]:
        return [a, b, c]

    @renamed
    def one(n: int, *, m: int = 2) -> int:
        return n + m

    @hidden
    def year(day: datetime.date, more: int = 0) -> int:
        return day.year + more

    @Logged
    def month(day: datetime.date) -> int:
        return day.month

    @waits
    async def later(n: int) -> int:
        return n + 1

    @by_name
    def named(n: int) -> int:
        return n + 1

    def first_of(function):
        def inner(*args, **named):
            return function(*args, **named) if args[0] else None
        return inner

    @first_of
    @hidden
    def looked_at(n: int, *, m: int = 2) -> int:
        return n + 1

    @lru_cache
    @by_position
    def total(n: int, *more: int) -> int:
        return n + sum(more)

    @by_position
    def scratched(self, n: int) -> int:
        return n if self.scratch.is_dir() else 0

    @hidden
    def hidden_scratched(self, n: int) -> int:
        return n if self.scratch.is_dir() else 0

    @singledispatch
    def kind_of(n: int | str, mark: str = "") -> str:
        return "other" + mark

    @kind_of.register
    def _(n: int, mark: str = "") -> str:
        return "number" + mark

    def gapped(a: int, b: int = 5, c: int = 7, /) -> list[int]:
        return [a, b, c]
"""
)
DECORATED: list[tuple[str, dict[str, Any], Any]] = [
    ("three", {"a": 1}, [1, 5, 7]),
    ("three", {"c": 3, "a": 1}, [1, 5, 3]),
    ("one", {"n": 1}, 3),
    ("one", {"n": 1, "m": 5}, 6),
    ("year", {"day": "2024-05-01"}, 2024),
    ("year", {"more": 1, "day": "2024-05-01"}, 2025),
    ("month", {"day": "2024-05-01"}, 5),
    ("later", {"n": 1}, 2),
    ("named", {"n": 1}, 2),
    ("looked_at", {"n": 1}, 2),
    ("total", {"n": 1, "more": [2, 3]}, 6),
    ("scratched", {"n": 1}, 1),
    ("hidden_scratched", {"n": 1}, 1),
    ("kind_of", {"n": 1}, "number"),
    ("kind_of", {"n": "a", "mark": "!"}, "other!"),
    ("gapped", {"a": 1, "c": 3}, [1, 5, 3]),
]


async def test_a_function_gets_its_arguments_in_the_way_that_its_decorators_take_them(
    sandbox: Sandbox,
) -> None:
    for name, given, value in DECORATED:
        outcome = await sandbox.run(Job(_DECORATED, "decorated", FunctionCall(name, given)))
        assert isinstance(outcome, Returned), (name, outcome)
        assert outcome.value == value, name


async def test_what_a_decorator_keeps_is_described_and_called_in_examples_as_it_was_written(
    sandbox: Sandbox,
) -> None:
    described = await sandbox.run(
        Job(_DECORATED, "decorated", SchemaRequest(["year", "month", "total"]))
    )
    assert isinstance(described, Returned), described
    date = {"type": "string", "format": "date"}
    assert (described.value["year"]["day"], described.value["month"]["day"]) == (date, date)
    assert described.value["total"]["n"] == {"type": "integer"}
    example = await sandbox.run(Job(_DECORATED, "decorated", Evaluation((), "scratched(4)")))
    assert isinstance(example, Returned), example
    assert example.value == 4


_UNPACKED = modules(
    rests="""
    import datetime, typing_extensions
    from typing import NotRequired, TypedDict, TypeVarTuple, Unpack

    class Frame(TypedDict):
        day: datetime.date
        fill: NotRequired[str]

    class Loose(typing_extensions.TypedDict, total=False):
        width: int

    Frames = Unpack[Frame]
    Ts = TypeVarTuple("Ts")

    def direct(n: int, **frame: Unpack[Frame]) -> list:
        return [n, frame["day"].year, frame.get("fill")]

    def named(n: int, **frame: Frames) -> list:
        return [n, frame["day"].year, frame.get("fill")]

    def quoted(n: int, **frame: "Unpack[Frame]") -> list:
        return [n, frame["day"].year, frame.get("fill")]

    def loose(n: int, **frame: typing_extensions.Unpack[Loose]) -> list:
        return [n, frame.get("width")]

    def fixed(*parts: *tuple[int, str]) -> list:
        return [*parts]

    def longer(*parts: *tuple[int, *tuple[datetime.date, ...], str]) -> list:
        return [len(parts), parts[1].year, parts[-1]]

    def marked(*parts: Unpack[tuple[str, ...]]) -> list:
        return [*parts]

    def anything(*parts: *Ts) -> list:
        return [*parts]

    def one(parts: tuple[int, *tuple[str, ...]]) -> tuple[int, *tuple[str, ...]]:
        return parts
"""
)
DAY = "2024-05-01"
UNPACKED: list[tuple[str, dict[str, Any], Any]] = [
    *(
        (name, {"n": 1, "frame": {"day": DAY, "fill": "*"}}, [1, 2024, "*"])
        for name in ("direct", "named", "quoted")
    ),
    ("loose", {"n": 1}, [1, None]),
    ("loose", {"n": 1, "frame": {"width": 3}}, [1, 3]),
    ("fixed", {"parts": [1, "a"]}, [1, "a"]),
    ("longer", {"parts": [1, DAY, DAY, "a"]}, [4, 2024, "a"]),
    ("marked", {"parts": ["a", "b"]}, ["a", "b"]),
    ("anything", {"parts": [1, "a"]}, [1, "a"]),
    ("one", {"parts": [1, "a", "b"]}, (1, "a", "b")),
]
UNFIT_PARTS: list[tuple[str, dict[str, Any], str]] = [
    ("direct", {"n": 1}, "frame.day: is missing"),
    ("direct", {"n": 1, "frame": {"day": DAY, "size": 1}}, "frame.size: there is no such field"),
    ("fixed", {}, "parts: expected a list of 2 items, got []"),
    ("longer", {"parts": [1]}, "parts: expected a list of at least 2 items, got [1]"),
    ("longer", {"parts": [1, "x", "a"]}, "parts[1]: expected a date like 2024-05-01, got 'x'"),
]


async def test_further_arguments_have_the_types_that_are_unpacked_for_them(
    sandbox: Sandbox,
) -> None:
    for name, given, value in UNPACKED:
        outcome = await sandbox.run(Job(_UNPACKED, "rests", FunctionCall(name, given)))
        assert isinstance(outcome, Returned), (name, outcome)
        assert outcome.value == value, name
    for name, given, says in UNFIT_PARTS:
        refused = await sandbox.run(Job(_UNPACKED, "rests", FunctionCall(name, given)))
        assert isinstance(refused, Refused), (name, refused)
        assert says in refused.reason, name
