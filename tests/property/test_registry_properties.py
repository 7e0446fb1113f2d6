"""Properties of the registry for every text, every annotation, every value and every order of events."""

import ast
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.base.problem import Problem
from agent_core.registry import arguments, docstring
from agent_core.registry.function import ModuleReading
from agent_core.registry.module_edits import place_function, remove_function
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, read_file
from agent_core.registry.validation import check_schema, read_object
from tests.kit.drawing import drawn
from tests.kit.schemas import described

MODULE = '''"""Module."""
from __future__ import annotations
import enum, typing as t
from dataclasses import dataclass, field

__all__ = ["book", "Kind"]


class Kind(enum.Enum):
    A = "a"
    B = enum.auto()


@dataclass
class Room:
    beds: int = field(default=1)
    next: Room | None = None


async def book(self, room: Room, *, kind: t.Literal["x"] | Kind = "x", days: list[int] = [1]) -> str:
    """Book a röom.

    Args:
        room: Which “one”.
        days (list): When.

    >>> book(Room())
    'a'
    """
    return f"{room!r:>{days[0]}}"
'''
FRAGMENTS = st.sampled_from(
    [
        *"])|@*/{}=:\n\t\\\x00\ud800é'",
        "def f(",
        "a: ",
        "list[",
        "    ",
        '"""',
        "class C(Enum):",
        "None",
        "lambda",
        *("import ", "Args:\n", ">>> ", "... ", "__all__ = ["),
    ]
)


def slices_of(text: str) -> st.SearchStrategy[str]:
    """Return the text with one part replaced by another."""
    ends = st.integers(0, len(text))
    parts = st.tuples(ends, ends, st.lists(FRAGMENTS, max_size=6).map("".join))
    return parts.map(lambda cut: text[: min(cut[:2])] + cut[2] + text[max(cut[:2]) :])


TEXTS = st.one_of(st.text(), st.lists(FRAGMENTS, max_size=30).map("".join), slices_of(MODULE))


@given(TEXTS)
@settings(max_examples=drawn(300))
def test_any_text_gives_a_reading_and_its_schemas_are_sound(text: str) -> None:
    reading = read_module(ModuleSource.of("probe", text))
    assert reading.parsed or reading.problems
    for function in reading.functions:
        jsonschema.Draft202012Validator.check_schema(function.parameters)
        assert 0 < function.line <= function.end_line
    stored = json.loads(json.dumps(reading.to_json()))
    assert ModuleReading.from_json(stored, reading.source) == reading


@given(st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_in_a_file_give_a_source_or_a_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "probe.py").write_bytes(content)
    found = read_file(tmp_path, Path("probe.py"))
    assert isinstance(found, Problem) or found.text.encode() == content.removeprefix(
        b"\xef\xbb\xbf"
    )


@given(
    st.text()
    | st.lists(
        FRAGMENTS | st.sampled_from([":param x: ", "@param x: ", "----\n", "x : int\n"])
    ).map("".join)
)
def test_any_docstring_can_be_read(text: str) -> None:
    assert isinstance(docstring.read(text).text, str)


# An annotation with values that fit it.
Typed = tuple[str, st.SearchStrategy[Any]]
INTEGERS = st.integers(-(2**70), 2**70)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS: list[Typed] = [
    ("int", INTEGERS),
    ("float", FLOATS),
    ("bool", st.booleans()),
    ("str", st.text(max_size=8)),
    ("None", st.none()),
    ('Literal["a", "b"]', st.sampled_from(["a", "b"])),
    ("Literal[1, 2]", st.sampled_from([1, 2])),
    ("Kind", st.sampled_from(["x", 2])),
    ("date", st.dates().map(str)),
    ("Decimal", FLOATS | st.text(max_size=4)),
    ("bytes", st.just("YQ==")),
    (
        "Pair",
        st.fixed_dictionaries(
            {"left": INTEGERS}, optional={"right": st.text(max_size=3) | st.none()}
        ),
    ),
    ("Annotated[int, Field(ge=0, le=9), 'Text.']", st.integers(0, 9)),
]
PRELUDE = """from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import *
from pydantic import Field

class Kind(Enum):
    X = "x"
    TWO = 2

@dataclass
class Pair:
    left: int
    right: str | None = None
"""


def names(some: list[Typed]) -> str:
    """Return the annotations, separated by commas."""
    return ", ".join(annotation for annotation, _ in some)


def wrapped(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Return annotations made of others, with values that fit."""
    pairs = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda one: (f"list[{one[0]}]", st.lists(one[1], max_size=3))),
        inner.map(lambda one: (f"Sequence[{one[0]}]", st.lists(one[1], max_size=3))),
        inner.map(lambda one: (f"set[{one[0]}]", st.lists(one[1], max_size=1))),
        inner.map(
            lambda one: (
                f"dict[str, {one[0]}]",
                st.dictionaries(st.text(max_size=3), one[1], max_size=3),
            )
        ),
        inner.map(lambda one: (f"Optional[{one[0]}]", st.none() | one[1])),
        inner.map(lambda one: (f"tuple[{one[0]}, ...]", st.lists(one[1], max_size=3))),
        pairs.map(
            lambda some: (f"tuple[{names(some)}]", st.tuples(*(one[1] for one in some)).map(list))
        ),
        pairs.map(lambda some: (f"Union[{names(some)}]", st.one_of([one[1] for one in some]))),
        inner.map(lambda one: (repr(one[0]), one[1])),
    )


TYPED = st.recursive(st.sampled_from(SCALARS), wrapped, max_leaves=5)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | INTEGERS
    | FLOATS
    | st.text(max_size=5)
    | st.sampled_from(["3", "3.0", "true", "[1]"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def parameters_of(annotation: str) -> dict[str, Any]:
    """Return the schema of one parameter `v` of a type."""
    return described(f"{PRELUDE}\ndef probe(v: {annotation}): ...\n").parameters


def identical(one: Any, other: Any) -> bool:
    """Check for equality, including types at every level."""
    return json.dumps(one) == json.dumps(other)


@given(st.data())
@settings(max_examples=drawn(200))
def test_a_value_that_fits_its_annotation_is_accepted_as_it_is(data: st.DataObject) -> None:
    annotation, values = data.draw(TYPED)
    schema = parameters_of(annotation)
    assert check_schema(schema) is None
    given_arguments = {"v": data.draw(values)}
    jsonschema.Draft202012Validator(schema).validate(given_arguments)
    found = arguments.read(json.dumps(given_arguments), schema)
    assert isinstance(found, dict), found
    assert found == given_arguments


@given(TYPED, JSON)
@settings(max_examples=drawn(300))
def test_coercing_twice_gives_what_coercing_once_gave(typed: Typed, value: Any) -> None:
    schema = parameters_of(typed[0])
    once = arguments.read(json.dumps({"v": value}), schema)
    if isinstance(once, dict):
        assert jsonschema.Draft202012Validator(schema).is_valid(once)
        assert identical(arguments.read(json.dumps(once), schema), once)
    else:
        assert once
        assert all(": expected " in problem.message for problem in once)


@given(
    st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_every_object_of_json_is_read_back_fenced_and_with_commas_too(
    value: dict[str, Any], indent: int | None, is_fenced: bool
) -> None:
    text = json.dumps(value, indent=indent)
    if value:
        text = text.rstrip("}").rstrip() + "," + text[len(text.rstrip("}").rstrip()) :]
    found = read_object(f"```json\n{text}\n```" if is_fenced else text)
    assert identical(found, value)


@given(st.text())
def test_any_text_as_arguments_is_answered(text: str) -> None:
    found = arguments.read(text, parameters_of("int"))
    assert isinstance(found, dict) or all(
        problem.code.startswith("arguments-") for problem in found
    )


STATEMENTS = st.lists(
    st.sampled_from(
        [
            "import os",
            "from a import (\n    b,\n)",
            "x = 'ä'; y = 2",
            "# a comment\n\n# another",
            "@d\nasync def g(a,\n      b): pass\n    # end",
            "class C:\n\tx = '''\nfoo\n'''",
            "if x:\n  pass\nelse:\n  pass",
            "  \nz = 3",
            "def h(): return '\\\n'",
        ]
    ),
    unique=True,
)
GAPS = st.sampled_from(["\n", "\n\n", "\n\n\n", "\n   \n"])
TOPS = st.sampled_from(
    [
        "",
        '"""Döc."""\n',
        "#!/bin/x\n",
        "# -*- coding: utf-8 -*-\n\n",
        '__all__ = [\n    "g",\n]\n',
        "__all__ = ()\n",
    ]
)


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Draw a module's text with an odd but complete layout and a final newline."""
    text = draw(TOPS) + "".join(f"{one}{draw(GAPS)}" for one in draw(STATEMENTS))
    text = text.rstrip() + "\n" if text.strip() else "x = 1\n"
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(
    modules(),
    st.sampled_from(["def f(): pass", "# why\n@d\ndef f(a: 'é'):\n    '''D.'''\n    return 1"]),
)
def test_placing_then_removing_gives_back_the_text(module: str, candidate: str) -> None:
    placed = place_function(module, candidate, "f")
    assert isinstance(placed, str)
    ast.parse(placed)
    assert remove_function(placed, "f") == module
    assert place_function(placed, candidate, "f") == placed


@given(modules(), modules())
def test_replacing_changes_nothing_outside_the_span(before: str, after: str) -> None:
    old = "# old\ndef f(a):\n    return a\n    # tail"
    after = after.removeprefix('"""Döc."""')
    module = f"{before.rstrip()}\n\n{old}\n\n\n{after.lstrip()}"
    found = place_function(module, "def f(): return 2", "f")
    if isinstance(found, Problem):
        pytest.fail(str(found))
    newline = "\r\n" if module.split("\n", 1)[0].endswith("\r") else "\n"
    kept_before, kept_after = module.split(old)
    tail = found.removeprefix(kept_before)
    if "__all__" in module:
        return  # changing the list of public names is another edit, with its own tests
    assert (
        tail
        == f"def f(): return 2{newline if kept_after.startswith(newline) else ''}"
        + kept_after.removeprefix(newline)
    )


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.none() | st.sets(st.sampled_from(["f", "g", "h", "taken"])) | st.just("broken"),
    ),
    max_size=12,
)


@given(EVENTS)
def test_after_any_order_of_events_each_offered_name_is_held_once(
    events: list[tuple[str, Any]],
) -> None:
    snapshot = Snapshot.empty(frozenset({"taken"}))
    offered: dict[str, set[str]] = {}
    for module, names in events:
        if names is None:
            snapshot = snapshot.without_module(module)
            offered.pop(module, None)
        elif names == "broken":
            snapshot = snapshot.with_module(read_module(ModuleSource.of(module, "def f(:")))
        else:
            text = "".join(f"def {name}(): ...\n" for name in sorted(names))
            snapshot = snapshot.with_module(read_module(ModuleSource.of(module, text)))
            offered[module] = names
    assert set(snapshot.functions) == set().union(*offered.values()) - {"taken"}
    assert all(name in offered[one.module] for name, one in snapshot.functions.items())
    assert set(snapshot.modules) == set(offered)
