"""The JSON Schema of each type that the text leaves open, as a worker derives it from the imported class."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.kit.program import knapper
from tests.kit.schemas import described
from tests.kit.sources import function_text
from tests.registry.support import schema_of

INTEGER = {"type": "integer"}
OBJECTS = {
    "dataclass": "@dataclass\nclass Point:\n    x: int\n    y: int = 0\n",
    "frozen dataclass": "@dataclasses.dataclass(frozen=True, slots=True)\nclass Point:\n"
    "    x: int\n    y: int = field(default=0)\n",
    "named tuple": "class Point(NamedTuple):\n    x: int\n    y: int = 0\n",
    "inheritance": "@dataclass\nclass Base:\n    x: int\n@dataclass\nclass Point(Base):\n    y: int = 0\n",
    "class variables": "@dataclass\nclass Point:\n    count: ClassVar[int] = 3\n"
    "    x: int\n    _: KW_ONLY\n    y: int = 0\n    z: int = field(init=False)\n",
}
IMPORTS = (
    "import dataclasses\nfrom dataclasses import KW_ONLY, dataclass, field\n"
    "from typing import ClassVar, NamedTuple, NotRequired, Required, TypedDict\n"
)


def test_a_class_with_fields_becomes_a_nested_object() -> None:
    for case, text in OBJECTS.items():
        assert schema_of("Point", IMPORTS + text, is_open=True) == {
            "type": "object",
            "properties": {"x": INTEGER, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
            "additionalProperties": False,
        }, case


def test_a_typed_dictionary_requires_what_it_says() -> None:
    rows: list[tuple[str, str, list[str]]] = [
        ("total", "class Film(TypedDict):\n    name: str\n    year: int\n", ["name", "year"]),
        (
            "partial",
            "class Film(TypedDict, total=False):\n    name: str\n    year: Required[int]\n",
            ["year"],
        ),
        (
            "not-required",
            "class Film(TypedDict):\n    name: str\n    year: NotRequired[int]\n",
            ["name"],
        ),
        (
            "in-quotes",
            "class Film(TypedDict, total=False):\n    name: str\n    year: 'Required[int]'\n",
            ["year"],
        ),
        (
            "mixed",
            "class A(TypedDict, total=False):\n    name: str\nclass Film(A):\n    year: int\n",
            ["year"],
        ),
    ]
    for case, text, required in rows:
        schema = schema_of("Film", IMPORTS + text, is_open=True)
        assert (schema["required"], schema["properties"]["year"]) == (required, INTEGER), case


def test_fields_are_described_by_their_class_or_by_texts_of_their_own() -> None:
    text = '@dataclass\nclass Point:\n    """A point.\n\n    More.\n\n    Attributes:\n        x: How far right.\n'
    text += '        y: Where.\n    """\n    x: int\n    y: Annotated[int, "How far up."]\n'
    schema = schema_of(
        "Point | None", f"from typing import Annotated\n{IMPORTS}{text}", is_open=True
    )["anyOf"][0]
    described = [schema["properties"][name]["description"] for name in ("x", "y")]
    assert (schema["description"], described) == ("A point.", ["How far right.", "How far up."])


FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("bytes", {"type": "string", "contentEncoding": "base64"}),
    ("Decimal", {"type": ["string", "number"], "format": "decimal"}),
    (
        "dict[int, str]",
        {
            "type": "object",
            "propertyNames": {"pattern": "^-?[0-9]+$"},
            "additionalProperties": {"type": "string"},
        },
    ),
    (
        "dict[Color, int]",
        {
            "type": "object",
            "propertyNames": {"enum": ["red", "7"]},
            "additionalProperties": INTEGER,
        },
    ),
    ("Color", {"enum": ["red", 7]}),
    ("Odd", {"type": "string", "const": "ANY"}),
    ("Access", {"type": "integer", "description": "The sum of any of 1 (READ), 2 (WRITE)."}),
    (
        "dict[Access, int]",
        {
            "type": "object",
            "propertyNames": {"pattern": "^-?[0-9]+$"},
            "additionalProperties": INTEGER,
        },
    ),
    ("Annotated[float, Le(float('inf')), Ge(0)]", {"type": "number", "minimum": 0}),
    ("Id", INTEGER),
    ("list[T]", {"type": "array", "items": {}}),
    ("Number", {"anyOf": [INTEGER, {"type": "number"}]}),
    ("Annotated[int, Ge(3), 'Some.']", {"description": "Some.", "type": "integer", "minimum": 3}),
    (
        "Annotated[list[int], Len(1, 2)]",
        {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2},
    ),
    ("int | Callable[[], int]", INTEGER),
]
TYPES = """
from annotated_types import Ge, Le, Len
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, Flag, auto
from typing import Annotated, NewType, TypeVar

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Id = NewType("Id", int)

class Color(Enum):
    RED = "red"
    SEVEN = 7

class Odd(Enum):
    ANY = object()

class Access(Flag):
    READ = auto()
    WRITE = auto()
"""


@pytest.mark.parametrize(("annotation", "schema"), FIELDS)
def test_a_field_has_the_schema_of_its_type_also_where_pydantic_is_not_there(
    annotation: str, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    whole = schema_of(
        "Box", f"{TYPES}\n@dataclass\nclass Box:\n    field: {annotation}\n", is_open=True
    )
    assert whole["properties"]["field"] == schema


def test_a_type_that_only_pydantic_knows_is_described_by_it_with_the_limits_of_its_parameter() -> (
    None
):
    text = "from pydantic import BaseModel, Field\nclass Part(BaseModel):\n    part_size: int = Field(2, ge=1)\n"
    text += (
        "    high: float = float('inf')\n"  # which JSON has not, so that its default is not shown
    )
    text += "def probe(parts: list[Part] = Field(default_factory=list, min_length=1, description='Some.')): ...\n"
    assert described(text).parameters["properties"]["parts"] == {
        "description": "Some.",
        "type": "array",
        "items": {
            "type": "object",
            "title": "Part",
            "properties": {
                "part_size": {"type": "integer", "default": 2, "minimum": 1},
                "high": {"type": "number"},
            },
        },
        "minItems": 1,
    }


def test_further_arguments_have_the_type_that_each_of_them_has() -> None:
    text = f"{IMPORTS}@dataclass\nclass P:\n    x: int\ndef probe(*points: P, **named: P): ...\n"
    point = {
        "type": "object",
        "properties": {"x": INTEGER},
        "required": ["x"],
        "additionalProperties": False,
    }
    properties = described(text).parameters["properties"]
    assert (properties["points"]["items"], properties["named"]["additionalProperties"]) == (
        point,
        point,
    )


def test_a_default_that_the_text_leaves_open_is_shown_if_it_is_a_short_scalar() -> None:
    prelude = (
        "from enum import Enum\nclass Color(Enum):\n    RED = 'r' + 'ed'\nLONG = 'a' * 5_000\n"
    )
    rows: list[tuple[str, dict[str, Any]]] = [
        ("Color.RED", {"default": "red"}),
        ("None", {"default": None}),
        ("float('inf')", {}),
        ("10 ** 9_000", {}),
        ("LONG", {}),
        ("object()", {}),
    ]
    for default, shown in rows:
        properties = described(f"{prelude}def probe(value: Color = {default}): ...\n").parameters[
            "properties"
        ]
        assert {**properties["value"], "default": 0} == {
            "type": "string",
            "const": "red",
            "default": 0,
        }, default
        assert properties["value"].items() >= shown.items(), default
        assert ("default" in properties["value"]) == bool(shown), default


def test_two_classes_of_one_name_stay_two() -> None:
    text = f"{IMPORTS}def _make(kind):\n    return dataclasses.make_dataclass('P', [('x', kind), ('up', 'object')])\n"
    text += "A, B = _make(int), _make(str)\n"
    schema = schema_of("tuple[A, B]", text, is_open=True)
    assert [part["properties"]["x"] for part in schema["prefixItems"]] == [
        INTEGER,
        {"type": "string"},
    ]


def test_definitions_stay_apart_if_the_schema_would_grow_too_large_without_them() -> None:
    text = f"{IMPORTS}@dataclass\nclass C0:\n    x: int\n"
    text += "".join(
        f"@dataclass\nclass C{n}:\n    a: C{n - 1}\n    b: C{n - 1}\n" for n in range(1, 20)
    )
    schema = schema_of("C19", text, is_open=True)
    assert (schema["$ref"], len(schema["$defs"])) == ("#/$defs/C19", 20)


def test_a_recursive_type_is_a_local_definition() -> None:
    for text in [
        "@dataclass\nclass Node:\n    next: 'Node | None' = None\n",
        "@dataclass\nclass Leaf:\n    up: 'Node'\n@dataclass\nclass Node:\n    down: Leaf\n",
    ]:
        schema = schema_of("Node", IMPORTS + text, is_open=True)
        assert schema["$ref"] == "#/$defs/Node", text
        assert "#/$defs/Node" in str(schema["$defs"]), text
        jsonschema.Draft202012Validator.check_schema(schema)


def test_two_models_of_one_name_stay_two_in_a_union_of_which_pydantic_knows_only_a_part() -> None:
    model = "from pydantic import BaseModel\nclass Node(BaseModel):\n    {}: 'Node | None' = None\n"
    text = "from functions import one, two\nclass Other: ...\ndef probe(value: one.Node | two.Node | Other): ...\n"
    whole = described(text, {"one": model.format("up"), "two": model.format("down")}).parameters
    nodes = [
        whole["$defs"][each["$ref"].rpartition("/")[2]]
        for each in whole["properties"]["value"]["anyOf"]
    ]
    assert [[*node["properties"]] for node in nodes] == [["up"], ["down"]]


def test_a_recursive_alias_with_a_type_of_pydantic_keeps_all_of_its_members() -> None:
    alias = "from pydantic import PositiveInt\nTree = dict[str, 'Tree'] | list[PositiveInt] | str\n"
    function = described(
        "from functions.one import Tree\ndef probe(value: Tree): ...\n", {"one": alias}
    )
    others = [
        {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}},
        {"type": "string"},
    ]
    inner = {"anyOf": [{"type": "object", "additionalProperties": {}}, *others]}
    assert function.parameters["properties"]["value"]["anyOf"] == [
        {"type": "object", "additionalProperties": inner},
        *others,
    ]


REST_TYPES = (
    "from typing import TypedDict, TypeVarTuple, Unpack\n"
    "class Frame(TypedDict):\n    width: int\nclass Loose(TypedDict, total=False):\n    width: int\n"
    "Ts = TypeVarTuple('Ts')\n"
)
FIXED = {"type": "object", "properties": {"width": INTEGER}, "additionalProperties": False}
RESTS: list[tuple[str, dict[str, Any], bool]] = [
    ("**rest: Unpack[Frame]", FIXED | {"required": ["width"]}, True),
    ("**rest: Unpack[Loose]", FIXED | {"required": []}, False),
    (
        "**rest: Frame",
        {"type": "object", "additionalProperties": FIXED | {"required": ["width"]}},
        False,
    ),
    (
        "*rest: *tuple[int, str]",
        {
            "type": "array",
            "prefixItems": [INTEGER, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        True,
    ),
    (
        "*rest: Unpack[tuple[int, *tuple[str, ...]]]",
        {"type": "array", "prefixItems": [INTEGER], "items": {"type": "string"}, "minItems": 1},
        True,
    ),
    ("*rest: *tuple[*tuple[int, ...], str]", {"type": "array", "items": {}, "minItems": 1}, True),
    ("*rest: *Ts", {"type": "array", "items": {}}, False),
]


def test_the_schema_of_further_arguments_is_that_of_what_is_unpacked_for_them() -> None:
    for parameter, schema, is_required in RESTS:
        function = described(f"{REST_TYPES}def probe({parameter}): ...\n")
        shown = {
            name: value
            for name, value in function.parameters["properties"]["rest"].items()
            if name != "description"
        }
        assert (shown, function.parameters["required"]) == (schema, ["rest"] * is_required), (
            parameter
        )


GENERIC = "\n\n".join(
    [
        'from dataclasses import dataclass\nfrom typing import Generic, TypedDict, TypeVar\n\nT = TypeVar("T")\n',
        "@dataclass\nclass Box(Generic[T]):\n    item: T\n",
        "class Pair(TypedDict, Generic[T]):\n    one: T\n",
        function_text(
            "shown(box: Box[int], pair: Pair[str]) -> str",
            "Show both.",
            "return f\"{box.item} {pair['one']}\"",
        ),
    ]
)
OF_BYTES = '''from typing import Literal


def written(mode: Literal[b"r", "w"]) -> str:
    """Show a mode."""
    return repr(mode)
'''


def test_generic_classes_are_built_and_a_type_that_json_cannot_hold_costs_its_own_file_alone(
    tmp_path: Path,
) -> None:
    assert knapper("init", ".", cwd=tmp_path).returncode == 0
    (tmp_path / "functions" / "generic.py").write_text(GENERIC)
    (tmp_path / "functions" / "of_bytes.py").write_text(OF_BYTES)
    given = json.dumps({"box": {"item": 3}, "pair": {"one": "x"}})
    called = knapper("functions", "call", "shown", "--args", given, cwd=tmp_path)
    assert (called.returncode, "3 x" in called.stdout) == (0, True), called.stderr
    listed = knapper("functions", "list", cwd=tmp_path)
    assert (listed.returncode, "of_bytes.py:4 inexpressible-type" in listed.stdout) == (0, True), (
        listed.stderr
    )
