"""The JSON Schema of each annotation, derived from syntax alone."""

from typing import Any

import jsonschema

from tests.registry.support import only, read, schema_of

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
NULL = {"type": "null"}


def test_a_builtin_annotation_becomes_this_schema() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("str", "str", STRING),
        ("int", "int", INTEGER),
        ("float", "float", NUMBER),
        ("bool", "bool", {"type": "boolean"}),
        ("none", "None", NULL),
        ("forward-reference", "'int'", INTEGER),
        ("forward-reference-within-one", "'list[\"int\"]'", {"type": "array", "items": INTEGER}),
        ("bare-list", "list", {"type": "array"}),
        ("bare-dict", "dict", {"type": "object"}),
        ("bare-set", "set", {"type": "array", "uniqueItems": True}),
        ("list", "list[int]", {"type": "array", "items": INTEGER}),
        ("frozenset", "frozenset[str]", {"type": "array", "items": STRING, "uniqueItems": True}),
        ("tuple-of-any-length", "tuple[int, ...]", {"type": "array", "items": INTEGER}),
        (
            "tuple-of-two",
            "tuple[int, str]",
            {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
        ),
        ("tuple-of-none", "tuple[()]", {"type": "array", "minItems": 0, "maxItems": 0}),
        ("dict", "dict[str, float]", {"type": "object", "additionalProperties": NUMBER}),
        (
            "dict-with-integers-for-keys",
            "dict[int, str]",
            {
                "type": "object",
                "propertyNames": {"pattern": "^-?[0-9]+$"},
                "additionalProperties": STRING,
            },
        ),
        ("optional", "int | None", {"anyOf": [INTEGER, NULL]}),
        ("union-said-twice", "int | str | int | None", {"anyOf": [INTEGER, STRING, NULL]}),
        ("union-with-anything", "int | object", {}),
        ("bytes", "bytes", {"type": "string", "contentEncoding": "base64"}),
    ]
    for case, annotation, schema in rows:
        assert schema_of(annotation) == schema, case


def test_names_are_followed_to_what_they_stand_for() -> None:
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        (
            "typing-name",
            "from typing import List",
            "List[int]",
            {"type": "array", "items": INTEGER},
        ),
        ("module-alias", "import typing as t", "t.Optional[int]", {"anyOf": [INTEGER, NULL]}),
        ("star-import", "from typing import *", "Union[int, str]", {"anyOf": [INTEGER, STRING]}),
        ("any", "from typing import Any", "Any", {}),
        (
            "dotted",
            "import collections.abc",
            "collections.abc.Sequence[int]",
            {"type": "array", "items": INTEGER},
        ),
        (
            "abc-alias",
            "from collections.abc import Mapping as M",
            "M[str, int]",
            {"type": "object", "additionalProperties": INTEGER},
        ),
        (
            "iterable",
            "from collections.abc import Iterable",
            "Iterable[str]",
            {"type": "array", "items": STRING},
        ),
        ("date", "from datetime import date as D", "D", {"type": "string", "format": "date"}),
        (
            "datetime",
            "import datetime",
            "datetime.datetime",
            {"type": "string", "format": "date-time"},
        ),
        (
            "timedelta",
            "import datetime as dt",
            "dt.timedelta",
            {"type": "string", "format": "duration"},
        ),
        (
            "decimal",
            "from decimal import Decimal",
            "Decimal",
            {"type": ["string", "number"], "format": "decimal"},
        ),
        ("uuid", "from uuid import UUID", "UUID", {"type": "string", "format": "uuid"}),
        ("path", "import pathlib", "pathlib.Path", {"type": "string", "format": "path"}),
        ("alias", "Ids = list[int]", "Ids", {"type": "array", "items": INTEGER}),
        (
            "declared-alias",
            "from typing import TypeAlias\nIds: TypeAlias = 'list[int]'",
            "Ids",
            {"type": "array", "items": INTEGER},
        ),
        (
            "postponed",
            "from __future__ import annotations\nfrom typing import Optional",
            "Optional[int]",
            {"anyOf": [INTEGER, NULL]},
        ),
        (
            "import-under-try",
            "try:\n    from typing import List\nexcept ImportError:\n    pass",
            "List[int]",
            {"type": "array", "items": INTEGER},
        ),
    ]
    for case, prelude, annotation, schema in rows:
        assert schema_of(annotation, prelude) == schema, case


def test_a_literal_lists_its_values() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("one", 'Literal["a"]', {"type": "string", "const": "a"}),
        ("texts", 'Literal["a", "b"]', {"type": "string", "enum": ["a", "b"]}),
        ("integers", "Literal[1, -2]", {"type": "integer", "enum": [1, -2]}),
        ("true-is-not-one", "Literal[True, 1]", {"enum": [True, 1]}),
        ("with-none", 'Literal["a", None]', {"enum": ["a", None]}),
        ("nested-alias", "Literal[Mode, 'c']", {"type": "string", "enum": ["a", "b", "c"]}),
        ("enum-member", "Literal[Shade.DARK]", {"type": "integer", "const": 1}),
    ]
    for case, annotation, schema in rows:
        prelude = "from enum import Enum\nfrom typing import Literal\nMode = Literal['a', 'b']\n"
        prelude += "class Shade(Enum):\n    DARK = 1\n"
        assert schema_of(annotation, prelude) == schema, case


def test_constraints_that_are_written_out_join_the_schema() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("bounds", "Annotated[int, Field(ge=1, lt=9)]", {"minimum": 1, "exclusiveMaximum": 9}),
        (
            "text",
            'Annotated[str, Field(min_length=2, pattern="^a")]',
            {"minLength": 2, "pattern": "^a"},
        ),
        ("list", "Annotated[list[int], Field(max_length=2)]", {"maxItems": 2}),
        ("annotated-types", "Annotated[int, Ge(3)]", {"minimum": 3}),
        ("nonsense", 'Annotated[int, Field(ge="a", description=3)]', {}),
    ]
    for case, annotation, added in rows:
        prelude = "from typing import Annotated\nfrom pydantic import Field\nfrom annotated_types import Ge\n"
        schema = schema_of(annotation, prelude)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert {key: schema[key] for key in schema.keys() - {"type", "items"}} == added, case


def test_annotated_text_describes_a_parameter() -> None:
    for text in ['"How many."', 'Field(description="How many.")', 'Doc("How many.")']:
        prelude = "from typing import Annotated\nfrom typing_extensions import Doc\nfrom pydantic import Field\n"
        reading = read(f'{prelude}def probe(count: Annotated[int, {text}]):\n    """Probe."""\n')
        assert reading.problems == (), text
        assert (
            reading.functions[0].parameters["properties"]["count"]["description"] == "How many."
        ), text


ENUMS = {
    "plain": (
        "class Kind(Enum):\n    A = 'a'\n    B = 'b'\n",
        {"type": "string", "enum": ["a", "b"]},
    ),
    "numbers": (
        "class Kind(IntEnum):\n    A = 1\n    B = auto()\n",
        {"type": "integer", "enum": [1, 2]},
    ),
    "named": (
        "class Kind(StrEnum):\n    RED = auto()\n    BLUE = auto()\n",
        {"type": "string", "enum": ["red", "blue"]},
    ),
    "mixed-in": (
        "class Kind(str, Enum):\n    A = 'a'\n    def shout(self): ...\n",
        {"type": "string", "const": "a"},
    ),
    "alias-member": (
        "class Kind(Enum):\n    A = 1\n    B = 1\n    _ignore_ = []\n",
        {"type": "integer", "const": 1},
    ),
}


def test_an_enumeration_lists_its_members_values() -> None:
    for case, (text, schema) in ENUMS.items():
        assert (
            schema_of(
                "Kind", f"from enum import *\nfrom enum import Enum, IntEnum, StrEnum, auto\n{text}"
            )
            == schema
        ), case


def test_a_recursive_alias_is_a_local_definition() -> None:
    schema = schema_of("Node", "Node = dict[str, 'Node'] | int\n")
    assert schema["$ref"] == "#/$defs/Node"
    assert "#/$defs/Node" in str(schema["$defs"]["Node"])
    jsonschema.Draft202012Validator.check_schema(schema)


UNRESOLVED = {
    "model": "from pydantic import BaseModel\nclass T(BaseModel):\n    x: int\n",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass T:\n    x: int\n",
    "enumeration of another module": "from functions.shapes import Color\nT = Color\n",
    "computed limit": "from typing import Annotated\nfrom pydantic import Field\nT = Annotated[int, Field(ge=LIMIT)]\n",
    "metadata of pydantic": "from typing import Annotated\nfrom pydantic import StringConstraints\n"
    "T = Annotated[str, StringConstraints(min_length=2)]\n",
    "new type": "from typing import NewType\nT = NewType('T', int)\n",
    "foreign": "from elsewhere import T\n",
    "unknown": "",
    "plain class": "class T:\n    pass\n",
    "computed members": "from enum import Enum\nclass T(Enum):\n    A = object()\n",
    "functional enumeration": "from enum import Enum\nT = Enum('T', 'A B')\n",
    "metaclass": "from enum import EnumMeta\nclass T(metaclass=EnumMeta):\n    A = 1\n",
    "bomb of aliases": "".join(f"A{n} = tuple[A{n - 1}, A{n - 1}]\n" for n in range(1, 18))
    + "A0 = int\nT = A17\n",
}


def test_what_syntax_cannot_decide_is_left_to_a_worker() -> None:
    for case, prelude in UNRESOLVED.items():
        function = only(f"{prelude}def probe(value: T, list_of: list[T], count: int = 1): ...\n")
        assert function.unresolved == ("value", "list_of"), case
        assert function.parameters["required"] == ["value", "list_of"], case


def test_a_parameter_whose_type_is_left_to_a_worker_keeps_what_its_text_says_of_it() -> None:
    prelude = "from typing import Annotated\nfrom pydantic import Field\nfrom elsewhere import T\n"
    prelude += 'from functions.limits import MOST\nclass Own:\n    """An own one."""\n'
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("a: Annotated[T, 'A text. ']", "A text.", {}),
        ("a: Annotated[T, Field(description='A text.', ge=LIMIT)]", "A text.", {}),
        ("a: T = Field(3, description='A text.', min_length=2)", "A text.", {"default": 3}),
        ("a: Own", "An own one.", {}),
        ("a: Annotated[Own, 'A text.']", "A text.", {}),
        (
            "*a: T",
            "Further values, each of which becomes an argument of its own.",
            {"type": "array"},
        ),
        ("a: int = MOST", "", {}),
    ]
    for parameter, description, more in rows:
        reading = read(f"{prelude}def probe({parameter}): ...\n")
        (function,) = reading.functions
        said = {"description": description} if description else {}
        assert (function.unresolved, function.parameters["properties"]["a"]) == (
            ("a",),
            said | more,
        ), parameter
        assert ("undescribed-parameter" in {problem.code for problem in reading.problems}) == (
            not said
        ), parameter


def test_a_module_leans_on_others_only_if_its_open_types_may_come_from_them() -> None:
    own = "from dataclasses import dataclass\n@dataclass\nclass Own:\n    x: {kind}\n"
    rows = [
        ("from functions.shapes import Order\n", "Order", True),
        ("from functions.shapes import Order\n", "'list[Order]'", True),
        ("from . import shapes\n", "shapes.Order", True),
        ("import functions.shapes\n", "functions.shapes.Order", True),
        (f"from functions.shapes import Order\n{own.format(kind='Order')}", "Own", True),
        (f"from functions.shapes import Order\n{own.format(kind='int')}", "Own", False),
        ("from functions.shapes import Order\n", "int", False),
    ]
    for prelude, kind, leans in rows:
        assert bool(read(f"{prelude}def probe(value: {kind}): ...\n").leans) is leans, (
            prelude,
            kind,
        )


def test_what_json_cannot_express_keeps_only_its_function_out() -> None:
    for annotation in ["Callable[[int], int]", "type[int]", "TextIO", "list[Callable]"]:
        prelude = "from typing import Callable, TextIO\n"
        reading = read(f"{prelude}def probe(value: {annotation}): ...\ndef other(): ...\n")
        assert [function.name for function in reading.functions] == ["other"], annotation
        assert "inexpressible-type" in {problem.code for problem in reading.problems}, annotation


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


def test_a_default_is_shown_only_where_the_text_decides_it() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("number", "3", {"default": 3}),
        ("none", "None", {"default": None}),
        ("tuple", "(1, -2)", {"default": [1, -2]}),
        ("nested", '{"a": [True]}', {"default": {"a": [True]}}),
        ("product", "60 * 60", {"default": 3600}),
        ("constant", "COUNT", {"default": 2}),
        ("of constants", "[Size.SMALL, COUNT * 1024]", {"default": ["small", 2048]}),
        ("path", "Path('a/b')", {"default": "a/b"}),
        ("date", "date(2026, 1, 2)", {"default": "2026-01-02"}),
        ("set", "frozenset({'a'})", {"default": ["a"]}),
        ("expression", "os.getcwd()", {}),
        ("name", "LIMIT", {}),
        ("assigned twice", "TWICE", {}),
        ("extended", "GROWING", {}),
        ("no result", "1 / 0", {}),
        ("large", "9 ** 9 ** 9", {}),
        ("no date", "date(2026, 13, 2)", {}),
        ("infinite", "1e999", {}),
        ("bytes", "b'a'", {}),
        ("long", f"'{'a' * 5000}'", {}),
    ]
    for case, default, shown in rows:
        parameters = only(f"{CONSTANTS}def probe(value: int = {default}): ...").parameters
        assert parameters["properties"]["value"] == {"type": "integer", **shown}, case
        assert parameters["required"] == [], case
