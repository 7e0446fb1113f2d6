"""The JSON Schema of each annotation, derived from syntax alone."""

from typing import Any

import jsonschema
import pytest

from tests.registry.support import only, read, schema_of

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        pytest.param("str", STRING, id="str"),
        pytest.param("int", INTEGER, id="int"),
        pytest.param("float", NUMBER, id="float"),
        pytest.param("bool", {"type": "boolean"}, id="bool"),
        pytest.param("None", NULL, id="none"),
        pytest.param("'int'", INTEGER, id="forward-reference"),
        pytest.param("'list[\"int\"]'", {"type": "array", "items": INTEGER}, id="forward-reference-within-one"),
        pytest.param("list", {"type": "array"}, id="bare-list"),
        pytest.param("dict", {"type": "object"}, id="bare-dict"),
        pytest.param("set", {"type": "array", "uniqueItems": True}, id="bare-set"),
        pytest.param("list[int]", {"type": "array", "items": INTEGER}, id="list"),
        pytest.param("frozenset[str]", {"type": "array", "items": STRING, "uniqueItems": True}, id="frozenset"),
        pytest.param("tuple[int, ...]", {"type": "array", "items": INTEGER}, id="tuple-of-any-length"),
        pytest.param(
            "tuple[int, str]",
            {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
            id="tuple-of-two",
        ),
        pytest.param("tuple[()]", {"type": "array", "minItems": 0, "maxItems": 0}, id="tuple-of-none"),
        pytest.param("dict[str, float]", {"type": "object", "additionalProperties": NUMBER}, id="dict"),
        pytest.param(
            "dict[int, str]",
            {"type": "object", "propertyNames": {"pattern": "^-?[0-9]+$"}, "additionalProperties": STRING},
            id="dict-with-integers-for-keys",
        ),
        pytest.param("int | None", {"anyOf": [INTEGER, NULL]}, id="optional"),
        pytest.param("int | str | int | None", {"anyOf": [INTEGER, STRING, NULL]}, id="union-said-twice"),
        pytest.param("int | object", {}, id="union-with-anything"),
        pytest.param("bytes", {"type": "string", "contentEncoding": "base64"}, id="bytes"),
    ],
)
def test_a_builtin_annotation_becomes_this_schema(annotation: str, schema: dict[str, Any]) -> None:
    assert schema_of(annotation) == schema


@pytest.mark.parametrize(
    ("prelude", "annotation", "schema"),
    [
        pytest.param("from typing import List", "List[int]", {"type": "array", "items": INTEGER}, id="typing-name"),
        pytest.param("import typing as t", "t.Optional[int]", {"anyOf": [INTEGER, NULL]}, id="module-alias"),
        pytest.param("from typing import *", "Union[int, str]", {"anyOf": [INTEGER, STRING]}, id="star-import"),
        pytest.param("from typing import Any", "Any", {}, id="any"),
        pytest.param(
            "import collections.abc", "collections.abc.Sequence[int]", {"type": "array", "items": INTEGER}, id="dotted"
        ),
        pytest.param(
            "from collections.abc import Mapping as M",
            "M[str, int]",
            {"type": "object", "additionalProperties": INTEGER},
            id="abc-alias",
        ),
        pytest.param(
            "from collections.abc import Iterable", "Iterable[str]", {"type": "array", "items": STRING}, id="iterable"
        ),
        pytest.param("from datetime import date as D", "D", {"type": "string", "format": "date"}, id="date"),
        pytest.param("import datetime", "datetime.datetime", {"type": "string", "format": "date-time"}, id="datetime"),
        pytest.param("import datetime as dt", "dt.timedelta", {"type": "string", "format": "duration"}, id="timedelta"),
        pytest.param(
            "from decimal import Decimal", "Decimal", {"type": ["string", "number"], "format": "decimal"}, id="decimal"
        ),
        pytest.param("from uuid import UUID", "UUID", {"type": "string", "format": "uuid"}, id="uuid"),
        pytest.param("import pathlib", "pathlib.Path", {"type": "string", "format": "path"}, id="path"),
        pytest.param("Ids = list[int]", "Ids", {"type": "array", "items": INTEGER}, id="alias"),
        pytest.param(
            "from typing import TypeAlias\nIds: TypeAlias = 'list[int]'",
            "Ids",
            {"type": "array", "items": INTEGER},
            id="declared-alias",
        ),
        pytest.param("from typing import NewType\nId = NewType('Id', int)", "Id", INTEGER, id="new-type"),
        pytest.param(
            "from typing import TypeVar\nT = TypeVar('T')",
            "list[T]",
            {"type": "array", "items": {}},
            id="type-variable",
        ),
        pytest.param("from typing import TypeVar\nT = TypeVar('T', bound=int)", "T", INTEGER, id="bound-type-variable"),
        pytest.param(
            "from __future__ import annotations\nfrom typing import Optional",
            "Optional[int]",
            {"anyOf": [INTEGER, NULL]},
            id="postponed",
        ),
        pytest.param(
            "try:\n    from typing import List\nexcept ImportError:\n    pass",
            "List[int]",
            {"type": "array", "items": INTEGER},
            id="import-under-try",
        ),
    ],
)
def test_names_are_followed_to_what_they_stand_for(prelude: str, annotation: str, schema: dict[str, Any]) -> None:
    assert schema_of(annotation, prelude) == schema


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        pytest.param('Literal["a"]', {"type": "string", "const": "a"}, id="one"),
        pytest.param('Literal["a", "b"]', {"type": "string", "enum": ["a", "b"]}, id="texts"),
        pytest.param("Literal[1, -2]", {"type": "integer", "enum": [1, -2]}, id="integers"),
        pytest.param("Literal[True, 1]", {"enum": [True, 1]}, id="true-is-not-one"),
        pytest.param('Literal["a", None]', {"enum": ["a", None]}, id="with-none"),
        pytest.param("Literal[Mode, 'c']", {"type": "string", "enum": ["a", "b", "c"]}, id="nested-alias"),
        pytest.param("Literal[Shade.DARK]", {"type": "integer", "const": 1}, id="enum-member"),
    ],
)
def test_a_literal_lists_its_values(annotation: str, schema: dict[str, Any]) -> None:
    prelude = "from enum import Enum\nfrom typing import Literal\nMode = Literal['a', 'b']\n"
    prelude += "class Shade(Enum):\n    DARK = 1\n"
    assert schema_of(annotation, prelude) == schema


@pytest.mark.parametrize(
    ("annotation", "added"),
    [
        pytest.param("Annotated[int, Field(ge=1, lt=9)]", {"minimum": 1, "exclusiveMaximum": 9}, id="bounds"),
        pytest.param('Annotated[str, Field(min_length=2, pattern="^a")]', {"minLength": 2, "pattern": "^a"}, id="text"),
        pytest.param("Annotated[list[int], Field(max_length=2)]", {"maxItems": 2}, id="list"),
        pytest.param("Annotated[int, Ge(3)]", {"minimum": 3}, id="annotated-types"),
        pytest.param("Annotated[int, Field(ge=LIMIT)]", {}, id="computed"),
        pytest.param('Annotated[int, Field(ge="a", description=3)]', {}, id="nonsense"),
    ],
)
def test_constraints_that_are_written_out_join_the_schema(annotation: str, added: dict[str, Any]) -> None:
    prelude = "from typing import Annotated\nfrom pydantic import Field\nfrom annotated_types import Ge\n"
    schema = schema_of(annotation, prelude)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {key: schema[key] for key in schema.keys() - {"type", "items"}} == added


@pytest.mark.parametrize("text", ['"How many."', 'Field(description="How many.")', 'Doc("How many.")'])
def test_annotated_text_describes_a_parameter(text: str) -> None:
    prelude = "from typing import Annotated\nfrom typing_extensions import Doc\nfrom pydantic import Field\n"
    reading = read(f'{prelude}def probe(count: Annotated[int, {text}]):\n    """Probe."""\n')
    assert reading.problems == ()
    assert reading.functions[0].parameters["properties"]["count"]["description"] == "How many."


ENUMS = {
    "plain": ("class Kind(Enum):\n    A = 'a'\n    B = 'b'\n", {"type": "string", "enum": ["a", "b"]}),
    "numbers": ("class Kind(IntEnum):\n    A = 1\n    B = auto()\n", {"type": "integer", "enum": [1, 2]}),
    "named": (
        "class Kind(StrEnum):\n    RED = auto()\n    BLUE = auto()\n",
        {"type": "string", "enum": ["red", "blue"]},
    ),
    "mixed-in": ("class Kind(str, Enum):\n    A = 'a'\n    def shout(self): ...\n", {"type": "string", "const": "a"}),
    "alias-member": ("class Kind(Enum):\n    A = 1\n    B = 1\n    _ignore_ = []\n", {"type": "integer", "const": 1}),
}


@pytest.mark.parametrize(("text", "schema"), ENUMS.values(), ids=ENUMS)
def test_an_enumeration_lists_its_members_values(text: str, schema: dict[str, Any]) -> None:
    assert schema_of("Kind", f"from enum import *\nfrom enum import Enum, IntEnum, StrEnum, auto\n{text}") == schema


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


@pytest.mark.parametrize("text", OBJECTS.values(), ids=OBJECTS)
def test_a_class_with_fields_becomes_a_nested_object(text: str) -> None:
    assert schema_of("Point", IMPORTS + text) == {
        "type": "object",
        "properties": {"x": INTEGER, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("text", "required"),
    [
        pytest.param("class Film(TypedDict):\n    name: str\n    year: int\n", ["name", "year"], id="total"),
        pytest.param(
            "class Film(TypedDict, total=False):\n    name: str\n    year: Required[int]\n", ["year"], id="partial"
        ),
        pytest.param(
            "class Film(TypedDict):\n    name: str\n    year: NotRequired[int]\n", ["name"], id="not-required"
        ),
        pytest.param(
            "class A(TypedDict, total=False):\n    name: str\nclass Film(A):\n    year: int\n", ["year"], id="mixed"
        ),
    ],
)
def test_a_typed_dictionary_requires_what_it_says(text: str, required: list[str]) -> None:
    schema = schema_of("Film", IMPORTS + text)
    assert (schema["required"], schema["properties"]["year"]) == (required, INTEGER)


def test_fields_are_described_by_their_class() -> None:
    text = (
        '@dataclass\nclass Point:\n    """A point.\n\n    Attributes:\n        x: How far right.\n    """\n    x: int\n'
    )
    schema = schema_of("Point | None", IMPORTS + text)["anyOf"][0]
    assert (schema["description"], schema["properties"]["x"]["description"]) == ("A point.", "How far right.")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("@dataclass\nclass Node:\n    next: 'Node | None' = None\n", id="class"),
        pytest.param("Node = dict[str, 'Node'] | int\n", id="alias"),
        pytest.param("@dataclass\nclass Leaf:\n    up: 'Node'\n@dataclass\nclass Node:\n    down: Leaf\n", id="mutual"),
    ],
)
def test_a_recursive_type_is_a_local_definition(text: str) -> None:
    schema = schema_of("Node", IMPORTS + text)
    assert schema["$ref"] == "#/$defs/Node"
    assert "#/$defs/Node" in str(schema["$defs"]["Node"])
    jsonschema.Draft202012Validator.check_schema(schema)


UNRESOLVED = {
    "model with computed names": "from pydantic import BaseModel, ConfigDict\nfrom names import to_camel\n"
    "class T(BaseModel):\n    model_config = ConfigDict(alias_generator=to_camel)\n    x: int\n",
    "model with a computed limit": "from pydantic import BaseModel, Field\n"
    "class T(BaseModel):\n    x: int = Field(ge=LIMIT)\n",
    "model with a computed default": "from pydantic import BaseModel\nclass T(BaseModel):\n    x: int = LIMIT\n",
    "model that makes its schema": "from pydantic import BaseModel\nclass T(BaseModel):\n    x: int\n"
    "    def __get_pydantic_json_schema__(self, *rest): ...\n",
    "model with a foreign base": "from pydantic import BaseModel\nfrom elsewhere import Mixin\n"
    "class T(Mixin, BaseModel):\n    x: int\n",
    "foreign": "from elsewhere import T\n",
    "unknown": "",
    "plain class": "class T:\n    pass\n",
    "computed members": "from enum import Enum\nclass T(Enum):\n    A = object()\n",
    "functional enumeration": "from enum import Enum\nT = Enum('T', 'A B')\n",
    "metaclass": "from enum import EnumMeta\nclass T(metaclass=EnumMeta):\n    A = 1\n",
    "bomb of aliases": "".join(f"A{n} = tuple[A{n - 1}, A{n - 1}]\n" for n in range(1, 18)) + "A0 = int\nT = A17\n",
}


@pytest.mark.parametrize("prelude", UNRESOLVED.values(), ids=UNRESOLVED)
def test_what_syntax_cannot_decide_is_left_to_a_worker(prelude: str) -> None:
    function = only(f"{prelude}def probe(value: T, list_of: list[T], count: int = 1): ...\n")
    assert function.unresolved == ("value", "list_of")
    assert function.parameters["required"] == ["value", "list_of"]


@pytest.mark.parametrize("annotation", ["Callable[[int], int]", "type[int]", "TextIO", "list[Callable]"])
def test_what_json_cannot_express_keeps_only_its_function_out(annotation: str) -> None:
    prelude = "from typing import Callable, TextIO\n"
    reading = read(f"{prelude}def probe(value: {annotation}): ...\ndef other(): ...\n")
    assert [function.name for function in reading.functions] == ["other"]
    assert "inexpressible-type" in {problem.code for problem in reading.problems}


CONSTANTS = """
from datetime import date
from enum import StrEnum, auto
from pathlib import Path
COUNT = 2
TWICE = 1
TWICE = 2
GROWING = [1]
GROWING += [2]
class Size(StrEnum):
    SMALL = auto()
"""


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        pytest.param("3", {"default": 3}, id="number"),
        pytest.param("None", {"default": None}, id="none"),
        pytest.param("(1, -2)", {"default": [1, -2]}, id="tuple"),
        pytest.param('{"a": [True]}', {"default": {"a": [True]}}, id="nested"),
        pytest.param("60 * 60", {"default": 3600}, id="product"),
        pytest.param("COUNT", {"default": 2}, id="constant"),
        pytest.param("[Size.SMALL, COUNT * 1024]", {"default": ["small", 2048]}, id="of constants"),
        pytest.param("Path('a/b')", {"default": "a/b"}, id="path"),
        pytest.param("date(2026, 1, 2)", {"default": "2026-01-02"}, id="date"),
        pytest.param("frozenset({'a'})", {"default": ["a"]}, id="set"),
        pytest.param("os.getcwd()", {}, id="expression"),
        pytest.param("LIMIT", {}, id="name"),
        pytest.param("TWICE", {}, id="assigned twice"),
        pytest.param("GROWING", {}, id="extended"),
        pytest.param("1 / 0", {}, id="no result"),
        pytest.param("9 ** 9 ** 9", {}, id="large"),
        pytest.param("date(2026, 13, 2)", {}, id="no date"),
        pytest.param("1e999", {}, id="infinite"),
        pytest.param("b'a'", {}, id="bytes"),
        pytest.param(f"'{'a' * 5000}'", {}, id="long"),
    ],
)
def test_a_default_is_shown_only_where_the_text_decides_it(default: str, shown: dict[str, Any]) -> None:
    parameters = only(f"{CONSTANTS}def probe(value: int = {default}): ...").parameters
    assert parameters["properties"]["value"] == {"type": "integer", **shown}
    assert parameters["required"] == []
