"""Generated calls: valid under the schema, and of every declared type."""

import itertools
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.functions.gate.call_arguments import (
    Arguments,
    edge_calls,
    read_calls,
    recombine,
    unseen,
    write_call,
)
from agent_core.registry.function import Function
from tests.kit.drawing import drawn
from tests.kit.schemas import described

HINTS = (
    *("int", "float", "str", "bool", "None", "bytes", "object", "list", "dict", "tuple", "set"),
    *(
        "list[int]",
        "list[list[float]]",
        "dict[str, int]",
        "dict[int, str]",
        "set[str]",
        "frozenset[int]",
    ),
    *(
        "tuple[int, str]",
        "tuple[float, ...]",
        "int | None",
        "Optional[str]",
        "Literal['a', 'b', 3]",
        "list[str | None]",
    ),
    *(
        "datetime.date",
        "datetime.datetime",
        "datetime.time",
        "datetime.timedelta",
        "Decimal",
        "uuid.UUID",
        "Path",
    ),
    *(
        "Annotated[int, Field(ge=3, le=5)]",
        "Annotated[str, Field(min_length=2)]",
        "Annotated[float, Field(gt=0)]",
    ),
    *(
        "Annotated[list[int], Field(min_length=1, max_length=2)]",
        "Annotated[int, Field(multiple_of=4)]",
    ),
    *("Point", "Tree", "Colour", "list[Point]", "dict[str, list[Point]]"),
)
WORLD = """
import datetime, uuid, enum
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Optional
from pydantic import Field
@dataclass
class Point:
    x: int
    y: float = 0.5
@dataclass
class Tree:
    value: int
    below: "list[Tree]"
class Colour(enum.Enum):
    RED = "red"
    BLUE = 2
"""


def function_of(*parameters: str, default: str = "") -> Function:
    signature = ", ".join(f"p{at}: {hint}{default}" for at, hint in enumerate(parameters))
    return described(f"{WORLD}\ndef f({signature}):\n    return 1\n")


def schema_of(*parameters: str, default: str = "") -> dict[str, Any]:
    return function_of(*parameters, default=default).parameters


def as_json(value: Any) -> Any:
    match value:
        case list() | tuple() | set() | frozenset():
            return [as_json(one) for one in value]
        case dict():
            return {
                key if isinstance(key, str) else str(key): as_json(one)
                for key, one in value.items()
            }
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def calls(schema: dict[str, Any], *examples: Arguments) -> list[Arguments]:
    return [*recombine(examples, schema), *edge_calls(schema, examples)]


@settings(max_examples=drawn(40))
@given(st.lists(st.sampled_from(HINTS), min_size=1, max_size=3), st.booleans())
def test_only_what_is_valid_under_the_schema_is_made(hints: list[str], optional: bool) -> None:
    schema = schema_of(*hints, default=" = None" if optional else "")
    validator = jsonschema.Draft202012Validator(schema)
    bare = list(itertools.islice(calls(schema), 60))
    for call in bare + list(itertools.islice(calls(schema, *bare[:2]), 60)):
        assert not [error.message for error in validator.iter_errors(as_json(call))], call


def test_every_declared_type_has_values_without_any_example() -> None:
    for hint in [one for one in HINTS if one not in ("object", "list", "dict", "tuple", "set")]:
        assert calls(schema_of(hint)), hint


def test_nothing_is_made_up_where_the_type_says_nothing_of_what_is_inside() -> None:
    for hint in ("object", "list", "dict", "tuple", "set"):
        assert calls(schema_of(hint)) == [], hint


def test_a_call_reads_as_it_is_written() -> None:
    cases: list[tuple[str, ...]] = [
        ("int", "str"),
        ("list[int]", "dict[str, int]"),
        ("tuple[int, str]", "float"),
    ]
    for hints in cases:
        function = function_of(*hints)
        for call in calls(function.parameters):
            assert read_calls([write_call(function, call)], function) == [call], hints


def test_a_value_like_those_of_the_examples_is_in_their_range() -> None:
    cases: list[tuple[Arguments, list[str]]] = [
        ({"p0": 4}, []),
        ({"p0": 9}, ["p0"]),
        ({"p0": 2, "p1": [2]}, []),
        ({"p0": 2, "p1": [], "p2": "x"}, ["p1", "p2"]),
    ]
    for call, found in cases:
        assert unseen(call, [{"p0": 1, "p1": [1, 3]}, {"p0": 5, "p1": [2, 2, 2]}]) == found, call
