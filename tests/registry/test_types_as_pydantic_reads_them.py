"""Schemas from source and from a worker match those that pydantic makes of the function, for generated signatures."""

import inspect
import typing
from functools import cache
from typing import Any

import jsonschema
import pydantic
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.drawing import drawn
from tests.kit.schemas import described

LIBRARIES = """
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, Optional, Union
from typing_extensions import NotRequired, TypedDict
from uuid import UUID
from annotated_types import Len
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, HttpUrl, NonNegativeFloat, PastDate, PositiveInt
from pydantic import RootModel, StrictStr, conint, conlist, constr
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as checked
"""
SHAPES = '''
class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Level(IntEnum):
    LOW = 1
    HIGH = 2

@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)

@dataclass(kw_only=True)
class Spot(Point):
    """A point with a color."""

    color: Color = Color.BLUE
    near: Optional[Point] = None

class Row(TypedDict):
    name: str
    size: NotRequired[int]

class Long(Row, total=False):
    points: list[Point]

@checked
class Weight:
    grams: int = Field(gt=0, description="In grams.")
    is_net: bool = Field(True)

MOST = 9
Number = Annotated[int, Field(ge=1, le=99)]
Short = Annotated[str, Len(1, MOST)]
Labels = TypedDict("Labels", {"in": int, "out-of": NotRequired[str]})
'''
PARTS_OF = '''
class Part(BaseModel):
    """A part."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(..., ge=1, alias="partNumber", description="Which one.")
    color: Color = Color.RED
    note: Annotated[str | None, Field(max_length=5)] = None

class Box(Part):
    size: Annotated[float, Field(gt=0, description="How large.")] = 1.5
    parts: list[Part] = Field(default_factory=list, max_length=3)
    where: Optional[Point] = None
    level: Literal["a", "b"] = Field("a", validation_alias="lvl")
    spare: Part | None = Field(default=None, description="Another.")

class Open(BaseModel):
    model_config = {"extra": "allow", "frozen": True}
    row: Row
    at: dict[str, list[int]] = {}

class Named(Open, extra="ignore", title="Named"):
    """A row with a name."""

    code: str = Field(pattern="^[a-z]+$", min_length=2, max_length=8, examples=["ab"])
    count: Number = 1
    price: NonNegativeFloat
    kind: Literal[Color.RED, "plain"] = "plain"
    spots: dict[str, Spot] = Field(default_factory=dict, description="By name.")
    other: int = Field(60 * 60, validation_alias=AliasChoices("another", "more"), deprecated=True)

class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    first_name: str
    last_name: str = Field("x", alias="surname")

class Names(RootModel[list[str]]):
    """Some names."""
'''
TREES = """
@dataclass
class Node:
    {0}: "Node | None" = None
    value: {1} = {2}
"""
LEFT, RIGHT = TREES.format("left", "int", "1"), TREES.format("right", "str", "'a'")
LIBRARIES += "OWN = 9\n"
PRELUDE = LIBRARIES + SHAPES + PARTS_OF
# The same across several workspace modules; one passes on what another defines.
MODULES = {
    "plain": LIBRARIES + SHAPES,
    "shapes": "from functions.plain import *\nfrom functions.plain import Color, Number as Counted, Point, Row\n",
    "parts": f"{LIBRARIES}from functions.shapes import Color, Counted as Number, Point, Row\n"
    f"from functions.plain import Spot\n{PARTS_OF}",
    "left": LIBRARIES + LEFT,
    "right": f"{LIBRARIES}{RIGHT}\nJson = dict[str, 'Json'] | list['Json'] | str | int\n",
}
IMPORTS = f"{LIBRARIES}from functions.parts import Box, Camel, Named, Names, Open, Part\n"
IMPORTS += "from functions.plain import MOST, Color, Labels, Level, Long, Number, Point, Row, Short, Spot, Weight\n"
# An annotation, a fitting default, and fitting limits.
PARTS = [
    ("int", "3", ["ge=1", "lt=9, gt=-1", "multiple_of=3"]),
    ("float", "0.5", ["ge=0", "le=1.5"]),
    ("str", "'abc'", ["min_length=2", "max_length=9, pattern='^a'"]),
    ("bool", "True", []),
    ("list[int]", "[1, 2]", ["min_length=1", "max_length=4"]),
    ("dict[str, float]", "{'a': 1.0}", ["min_length=1"]),
    ("set[str]", "None", []),
    ("tuple[int, str]", "(1, 'a')", []),
    ("Literal['a', 'b']", "'b'", []),
    ("Color", "Color.BLUE", []),
    ("Level", "Level.LOW", []),
    ("date", "None", []),
    ("datetime | None", "None", []),
    ("UUID", "None", []),
    ("Optional[int]", "None", ["ge=1"]),
    ("str | None", "'x'", ["max_length=3"]),
    ("list[str] | None", "None", ["max_length=3"]),
    ("int | str", "'a'", []),
    ("Any", "1", []),
    ("Point", "None", []),
    ("Row", "None", []),
    ("Part", "None", []),
    ("Box | None", "None", []),
    ("list[Box]", "[]", ["min_length=1"]),
    ("Open", "None", []),
    ("Spot", "None", []),
    ("Long | None", "None", []),
    ("Number", "7", []),
    ("dict[str, Named]", "{}", []),
    ("PositiveInt", "1", ["le=7"]),
    ("StrictStr", "'ab'", ["min_length=2"]),
    ("HttpUrl | None", "None", []),
    ("list[PastDate]", "[]", ["max_length=2"]),
    ("int", "MOST - 2", ["le=MOST"]),
    ("conint(ge=1, lt=9)", "3", []),
    ("conlist(constr(min_length=2), max_length=3)", "['ab']", []),
    ("list[Annotated[int, Field(ge=0)]]", "[1, OWN]", ["max_length=3"]),
    ("Short | None", "None", []),
    ("Weight", "None", []),
    ("Labels", "None", []),
    ("Camel", "None", []),
    ("Names | None", "None", []),
    ("date", "date(2026, 1, 2)", []),
]


@st.composite
def parameters(draw: st.DrawFn) -> str:
    """Draw a parameter without its name, with one of the ways to write limits, texts and defaults."""
    annotation, default, limits = draw(st.sampled_from(PARTS))
    described = [f"{limit}, description='It.'" for limit in limits]
    said = draw(st.sampled_from(["", "description='What it is.'", *limits, *described]))
    comma = ", " if said else ""
    return draw(
        st.sampled_from(
            [
                annotation,
                f"{annotation} = {default}",
                f"{annotation} = Field({said})",
                f"{annotation} = Field(...{comma}{said})",
                f"{annotation} = Field({default}{comma}{said})",
                f"{annotation} = Field(default={default}{comma}{said})",
                f"{annotation} = Field(default_factory=lambda: {default}{comma}{said})",
                f"Annotated[{annotation}, Field({said})]",
                f"Annotated[{annotation}, Field({said})] = {default}",
                f"Annotated[{annotation}, Field(default={default}{comma}{said})]",
            ]
        )
    )


@cache
def imported() -> dict[str, Any]:
    """Return the names of the prelude."""
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(PRELUDE, namespace)
    return namespace


def reference(text: str) -> Any:  # Any: JSON Schema
    """Return the schema of a function whose types are those of this test, by importing it."""
    namespace = {**imported()}
    exec(text, namespace)
    function = namespace["probe"]
    hints = typing.get_type_hints(function, include_extras=True)
    absent = inspect.Parameter.empty
    fields = {
        name: (hints[name], ... if parameter.default is absent else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    # A default inside `Annotated` counts only if there is no other.
    fields = {name: pair[0] if pair[1] is ... else pair for name, pair in fields.items()}
    model = pydantic.create_model("Arguments", **fields)  # type: ignore[call-overload] # the names are dynamic
    return model.model_json_schema()


def even(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema without titles, with references inlined; whether it is closed is our own choice."""
    if isinstance(schema, list):
        return [even(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **schema}
    left_out = {"$ref", "$defs"}
    left_out |= {"title"} if isinstance(schema.get("title"), str) else set()
    left_out |= (
        {"additionalProperties"} if isinstance(schema.get("additionalProperties"), bool) else set()
    )
    result = {
        name: even(part, definitions) for name, part in schema.items() if name not in left_out
    }
    if "properties" in result:
        result["required"] = sorted(result.get("required", []))
    return result


@given(st.lists(parameters(), min_size=1, max_size=6), st.sampled_from([PRELUDE, IMPORTS]))
@settings(max_examples=drawn(200), deadline=None)
def test_a_signature_gives_the_schema_that_pydantic_makes_of_it(
    written: list[str], prelude: str
) -> None:
    signature = (
        f"\ndef probe(*, {', '.join(f'p{at}: {part}' for at, part in enumerate(written))}): ...\n"
    )
    function = described(prelude + signature, MODULES)
    expected = reference(signature)
    ours = even(function.parameters, function.parameters.get("$defs", {}))
    assert ours == even(expected, expected.get("$defs", {}))


def test_a_model_is_as_open_as_its_settings_say() -> None:
    parameters = described(
        f"{PRELUDE}\ndef probe(part: Part, box: Box, open: Open): ...\n"
    ).parameters["properties"]
    assert [parameters[name]["additionalProperties"] for name in ("part", "box", "open")] == [
        False,
        False,
        True,
    ]


BORROWED = [
    "left.Node",
    "list[right.Node]",
    "left.Node | right.Node",
    "tuple[left.Node, right.Node]",
    "Json",
    "int",
]


@given(st.lists(st.sampled_from(BORROWED), min_size=1, max_size=5))
@settings(max_examples=drawn(100), deadline=None)
def test_recursive_types_of_other_modules_take_what_pydantic_takes(written: list[str]) -> None:
    signature = (
        f"def probe({', '.join(f'p{at}: {part}' for at, part in enumerate(written))}): ...\n"
    )
    schema = described(
        f"from functions import left, right\nfrom functions.right import Json\n{signature}", MODULES
    )
    checker = jsonschema.Draft202012Validator(schema.parameters)
    left, right = {"left": {"value": 2}}, {"right": {"value": "b"}}
    fitting: dict[str, list[object]] = {
        "left.Node": [left],
        "list[right.Node]": [[right]],
        "left.Node | right.Node": [left, right],
        "tuple[left.Node, right.Node]": [[left, right]],
        "Json": [{"a": [1, {"b": "c"}]}, ["a"], "a", 1],
        "int": [1],
    }
    values = [value for part in BORROWED for value in fitting[part]]
    first = {f"p{at}": fitting[part][0] for at, part in enumerate(written)}
    for at, part in enumerate(written):
        fit = [value for value in values if checker.is_valid({**first, f"p{at}": value})]
        assert fit == [value for value in values if value in fitting[part] or part == "Json"], part
