"""Texts that are cheap to write and expensive to read: each is read quickly, or costs only itself."""

import pytest

from agent_core.base import syntax
from agent_core.base.problem import Problem
from agent_core.functions.gate.uses import uses
from agent_core.registry.approved import ApprovedModule
from agent_core.registry.examples import Example, read
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from agent_core.registry.validation import IdentityCache

DOUBLING = "A0 = dict[str, int]\n" + "".join(
    f"A{n} = tuple[A{n - 1}, A{n - 1}]\n" for n in range(1, 7)
)


def test_types_of_one_module_share_a_budget() -> None:
    many = "".join(f"def f{number}(a: A6, b: int) -> int: return 1\n" for number in range(600))
    found = read_module(ModuleSource.of("bomb", DOUBLING + many)).functions
    assert len(found) == 600
    assert found[0].unresolved == ()
    assert found[-1].unresolved == ("a", "b")


def test_what_is_made_of_schemas_of_strangers_is_bounded_by_their_size() -> None:
    made = list[dict[str, list[str]]]()
    cache = IdentityCache[dict[str, list[str]], None](made.append)
    schemas = [{"enum": [f"{at} {place}" for place in range(30_000)]} for at in range(4)]
    for schema in (*schemas, *schemas[-3:]):
        cache.get(schema)
    assert len(made) == 4, "the newest three are kept"
    cache.get(schemas[0])
    cache.get({"enum": ["x" * 100_000_000]})
    long_named: dict[str, list[str]] = {"x" * 100_000_000: []}
    for schema in (long_named, long_named, schemas[0]):
        cache.get(schema)
    assert len(made) == 8


def test_a_literal_of_thousands_of_values_is_read_in_one_pass() -> None:
    values = ", ".join(f"{number}, '{number}'" for number in range(6_000))
    text = f"from typing import Literal\ndef f(a: Literal[1, True, {values}, 1]) -> int: return 1\n"
    (function,) = read_module(ModuleSource.of("bomb", text), 1 << 20).functions
    assert function.parameters["properties"]["a"]["enum"][:3] == [1, True, 0]
    assert len(function.parameters["properties"]["a"]["enum"]) == 12_001


def test_a_number_that_cannot_be_shown_rejects_its_module_alone() -> None:
    for prefix in ["0x", "0b", "0o"]:
        reading = read_module(
            ModuleSource.of(
                "bomb", f"def f(a: int = {prefix}{'1' * 60_000}) -> int:\n    return a\n"
            )
        )
        assert [(one.code, one.where.line) for one in reading.problems] == [("huge-number", 1)], (
            prefix
        )


def test_blanks_in_a_result_are_passed_over_once() -> None:
    for want in [
        f"x{' ' * 300_000}y",
        f"Traceback (most recent call last):{' ' * 300_000}y\n    ...\nValueError: x",
    ]:
        found = read(f"Look.\n\n>>> f('a')\n{want}\n", [], 1, "bomb.py")
        assert not isinstance(found, Problem), want
        assert [type(one) for one in found] == [Example], want


def test_statements_on_one_line_are_read_each_by_itself() -> None:
    names = [f"b{number} = {number}" for number in range(2_000)]
    text = "; ".join(names) + "; b = 'é'; last = f\ndef f(): pass\n"
    statements = ApprovedModule.of(text, "lib").statements
    assert [statement.text for statement in statements] == [
        *names,
        "b = 'é'",
        "last = f",
        "def f(): pass",
    ]


@pytest.mark.parametrize("name", ["os", "urllib.request", "lib", "numpy"])
def test_one_import_of_thousands_of_names_is_shown_in_short(name: str) -> None:
    names = ", ".join(f"m{number}" for number in range(4_000))
    tree = syntax.parse(f"from {name} import {names}\n")
    found = uses(tree, (), own=frozenset({"lib"}))
    assert max((len(use.finding.message) for use in found), default=0) < 400
