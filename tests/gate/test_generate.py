"""Generated calls: valid under the schema, the same every time, like the examples or told from them."""

import ast
import datetime
import itertools
import random
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_core.functions.gate.arguments.boundary import boundary
from agent_core.functions.gate.arguments.domain import domain
from agent_core.functions.gate.arguments.generation import Arguments, draw, generate, shown, written
from agent_core.functions.gate.arguments.likeness import likeness
from agent_core.functions.gate.arguments.schema_fit import fits
from agent_core.functions.gate.arguments.variants import variants
from agent_core.registry.annotation import Converter
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.registry.tree import survey
from tests.kit.drawing import drawn

MOST = 200
HINTS = (
    *("int", "float", "str", "bool", "None", "bytes", "object", "list", "dict", "tuple", "set"),
    *("list[int]", "list[list[float]]", "dict[str, int]", "dict[int, str]", "set[str]", "frozenset[int]"),
    *(
        "tuple[int, str]",
        "tuple[float, ...]",
        "int | None",
        "Optional[str]",
        "Literal['a', 'b', 3]",
        "list[str | None]",
    ),
    *("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta", "Decimal", "uuid.UUID", "Path"),
    *("Annotated[int, Field(ge=3, le=5)]", "Annotated[str, Field(min_length=2)]", "Annotated[float, Field(gt=0)]"),
    *("Annotated[list[int], Field(min_length=1, max_length=2)]", "Annotated[int, Field(multiple_of=4)]"),
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
NO_DOMAIN = domain([], {})


def schema_of(*parameters: str, default: str = "") -> dict[str, Any]:
    signature = ", ".join(f"p{at}: {hint}{default}" for at, hint in enumerate(parameters))
    (function,) = read_module(ModuleSource.of("m", f"{WORLD}\ndef f({signature}):\n    return 1\n")).functions
    assert not function.unresolved
    return function.parameters


def as_json(value: Any) -> Any:
    match value:
        case list() | tuple() | set() | frozenset():
            return [as_json(one) for one in value]
        case dict():
            return {key if isinstance(key, str) else str(key): as_json(one) for key, one in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def calls(schema: dict[str, Any], *examples: Arguments, seed: str = "s", most: int = MOST) -> list[Arguments]:
    return list(generate(schema, examples, domain(examples, schema["properties"]), seed, most))


@settings(max_examples=drawn(40))
@given(st.lists(st.sampled_from(HINTS), min_size=1, max_size=3), st.booleans())
def test_only_what_is_valid_under_the_schema_is_generated(hints: list[str], optional: bool) -> None:
    schema = schema_of(*hints, default=" = None" if optional else "")
    validator = jsonschema.Draft202012Validator(schema)
    bare = list(itertools.islice(calls(schema), 60))
    for call in bare + list(itertools.islice(calls(schema, *bare[:2]), 60)):
        assert not [error.message for error in validator.iter_errors(as_json(call))], call


@pytest.mark.parametrize("hint", [one for one in HINTS if one not in ("object", "list", "dict", "tuple", "set")])
def test_every_declared_type_has_values_without_any_example(hint: str) -> None:
    assert calls(schema_of(hint)) or hint in ("list", "dict", "tuple", "set")


@pytest.mark.parametrize("hint", ["object", "list", "dict", "tuple", "set"])
def test_nothing_is_made_up_where_the_type_says_nothing_of_what_is_inside(hint: str) -> None:
    assert calls(schema_of(hint)) == []


def test_a_list_without_items_holds_only_what_examples_hold() -> None:
    found = [call["p0"] for call in calls(schema_of("list"), {"p0": ["a", "b"]}, {"p0": ["c"]})]
    assert found
    assert {type(item) for row in found for item in row} == {str}


def test_the_same_source_gives_the_same_calls_and_another_gives_others() -> None:
    schema, example = schema_of("list[int]", "str"), {"p0": [5, 9, 70], "p1": "abc def"}
    assert calls(schema, example) == calls(schema, example)
    assert calls(schema, example) != calls(schema, example, seed="t")


def test_no_call_comes_twice_nor_the_examples_again_nor_more_than_asked() -> None:
    example = {"p0": [5, 9, 70], "p1": 3}
    found = calls(schema_of("list[int]", "int"), example, {"p0": [], "p1": 300}, most=150)
    assert len(found) == 150
    assert len({repr(call) for call in [example, *found]}) == 151


@pytest.mark.parametrize(
    ("hint", "example", "wanted"),
    [
        ("list[int]", [4, 8], [[8, 4], [4], [], [4, 4, 4], [5, 8]]),
        ("str", "ab", ["abx", "a", "", "AB", "abé"]),
        ("int", 7, [8, 0, -7, 15]),
        ("float", 1.5, [2.5, 0.0, -1.5]),
        ("bool", True, [False]),
        ("dict[str, int]", {"a": 1, "b": 2}, [{"a": 1}, {}, {"a": 2, "b": 2}]),
        ("datetime.date", datetime.date(2024, 5, 2), [datetime.date(2024, 5, 3), datetime.date(2024, 2, 29)]),
        ("Decimal", Decimal("1.5"), [Decimal("2.5"), Decimal(0)]),
        ("int | None", 3, [None]),
        ("Literal['a', 'b']", "a", ["b"]),
    ],
)
def test_what_is_tried_of_each_type_holds_its_boundaries(hint: str, example: Any, wanted: list[Any]) -> None:
    found = [call["p0"] for call in calls(schema_of(hint), {"p0": example})]
    assert [one for one in wanted if one not in found] == []


def test_what_has_a_default_is_also_left_out() -> None:
    schema = schema_of("int", default=" = 3")
    assert {} in calls(schema, {"p0": 5})


def test_values_far_from_any_example_are_not_tried() -> None:
    found = [call["p0"] for call in calls(schema_of("int"), {"p0": 5}, {"p0": 12})]
    assert max(found) <= 130
    assert {0, -1} <= set(found)


def test_what_held_in_all_examples_holds_in_most_of_the_drawn() -> None:
    examples = [{"p0": [1, 2, 3], "p1": 3}, {"p0": [4], "p1": 1}, {"p0": [7, 8, 9, 9, 9], "p1": 5}]
    assert all(call["p1"] == len(call["p0"]) for call in calls(schema_of("list[int]", "int"), *examples))


def test_what_is_drawn_has_the_traits_of_what_was_seen() -> None:
    known = likeness([[1, 2, 3, 9], [4, 5], [2, 6, 7]])
    for seed in range(50):
        row = draw(known, random.Random(seed))
        assert row == sorted(set(row))
        assert all(1 <= one <= 9 for one in row)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("f(1, 'a')", [{"p0": 1, "p1": "a"}]),
        ("f(1, p1='a')", [{"p0": 1, "p1": "a"}]),
        ("sorted(f(2, 'b'))[0] == f(3, 'c')", [{"p0": 2, "p1": "b"}, {"p0": 3, "p1": "c"}]),
        ("f(x, 'a')", []),
        ("f(*[1, 'a'])", []),
        ("f(1)", []),
        ("f(1, 'a', 2)", []),
        ("f('1', 'a')", []),
        ("g(1, 'a')", []),
        ("f(1, 'a'", []),
        ("f(1, **{'p1': 'a'})", []),
    ],
)
def test_the_arguments_of_examples_are_read_where_they_are_literal(call: str, found: list[Arguments]) -> None:
    assert sorted(shown([call], "f", schema_of("int", "str")), key=repr) == found


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("f(date(2024, 5, 1))", datetime.date(2024, 5, 1)),
        ("f(datetime.date(2024, 5, 1))", datetime.date(2024, 5, 1)),
        ("f(date(2024, 13, 1))", None),
        ("f(Decimal('sNaN'))", None),
    ],
)
def test_dates_in_examples_are_read_as_what_they_are(call: str, value: Any) -> None:
    assert [one["p0"] for one in shown([call], "f", schema_of("datetime.date"))] == [value] * (value is not None)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"a": 1, "b": "x"}, "f(1, 'x')"),
        ({"b": "x"}, "f(b='x')"),
        ({"a": datetime.date(2024, 5, 1), "b": (1,)}, "f(date(2024, 5, 1), (1,))"),
        ({"a": [datetime.date(2024, 5, 1)]}, "f([date(2024, 5, 1)])"),
        ({"a": "datetime.date"}, "f('datetime.date')"),
        ({"a": PurePosixPath("a"), "b": Decimal("1.5")}, "f(Path('a'), Decimal('1.5'))"),
    ],
)
def test_a_call_is_written_as_its_author_would(arguments: Arguments, text: str) -> None:
    assert written("f", arguments, ["a", "b"]) == text


DECIMALS = st.decimals().filter(lambda one: not one.is_snan())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | DECIMALS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=drawn(40))
@given(st.lists(st.fixed_dictionaries({"p0": JSON, "p1": JSON}), min_size=1, max_size=3))
@example([{"p0": None, "p1": {"": None}}, {"p0": None, "p1": [[None], [None]]}])
def test_any_arguments_at_all_can_be_varied_compared_and_drawn(examples: list[Arguments]) -> None:
    schema = schema_of("object", "object")
    assert len(calls(schema, *examples)) <= MOST
    known = domain(examples, schema["properties"])
    assert [how for example in examples for how in known.outside(example)] == []


def test_a_set_next_to_a_row_of_rows_is_drawn_without_what_no_set_can_hold() -> None:
    model = likeness([[["a"], ["b"]], {"c", "d"}, {(1, 2): [3]}])
    for seed in range(100):
        assert isinstance(draw(model, random.Random(seed)), list | set | dict)


@settings(max_examples=drawn(100))
@given(JSON, st.randoms(use_true_random=False))
def test_what_is_varied_keeps_its_kind_and_stays_small(value: Any, chance: random.Random) -> None:
    for one in [*itertools.islice(variants(value), 100), draw(likeness([value]), chance)]:
        assert type(one) is type(value) or isinstance(value, datetime.date)
        assert len(repr(one)) < 20 * len(repr(value)) + 200


def test_a_schema_with_an_unknown_keyword_is_never_said_to_fit() -> None:
    assert not fits(3, {"type": "integer", "contains": {}}, {})
    assert list(boundary({"$ref": "#/$defs/absent"}, {})) == []
    assert list(boundary({"type": "integer", "pattern": "x"}, {})) == []


def test_the_schemas_of_these_tests_are_those_of_the_registry() -> None:
    tree = ast.parse("x: dict[int, str]")
    schema = Converter(survey(tree)).convert(tree.body[0].annotation)  # type: ignore[attr-defined] # it is
    assert {type(key) for one in boundary(schema, {}) for key in one} == {int}
