"""A function is extracted with what it needs of its module, and nothing else; kept text is unchanged."""

import ast

from agent_core.base.problem import Problem
from agent_core.registry.depends import ModuleParts, only

MODULE = '''"""Helpers."""

from __future__ import annotations

import os
import re

MARK = re.compile(r"\\W+")
TABLE = {}
TABLE["a"] = 1
__all__ = ["slug", "look", "shape"]


# What most pages use.
def slug(text):
    return MARK.sub("-", text)


class Point:
    pass


def _lower(text):
    return slug(text).lower()


def look(text):
    return TABLE.get(_lower(text))


def shape(point: "Point"):
    return os.sep


print(look("x"))
'''


def parts(text: str = MODULE) -> ModuleParts:
    found = ModuleParts.of(text)
    assert not isinstance(found, Problem)
    return found


def test_what_a_function_needs_is_found_by_the_names_that_are_read() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("slug", {"slug", "MARK", "re", "*"}),  # constant and import
        ("look", {"look", "_lower", "TABLE", "*"}),  # helper and changed constant
        ("shape", {"shape", "Point", "os", "*"}),  # class in a hint that is a text
    ]
    for name, bound in cases:
        found = parts()
        needed = found.needed([name], frozenset(found.public) - {name})
        assert {one for at in needed for one in found.binds[at]} == bound, name
        code = found.part(needed)
        assert all(
            text == line
            for text, line in zip(code.splitlines(), MODULE.splitlines(), strict=False)
            if text
        ), name
        assert f"def {name}" in code, name


REGISTERED = """from functools import singledispatch

KINDS = {}
FOUND = []
COUNT = 0


def register(name):
    def wrap(function):
        KINDS[name] = function
        return function
    return wrap


@register("square")
def _square(side):
    return side * side


def _add(number):
    FOUND.append(number)


def _fill():
    for number in range(3):
        _add(number)


_fill()


@singledispatch
def shown(value):
    return str(value)


@shown.register
def _(value: int):
    return hex(value)


def area(kind, side):
    return KINDS[kind](side)


def found(at):
    return FOUND[at]
"""


def test_what_is_registered_when_the_module_runs_comes_along() -> None:
    cases: list[tuple[str, str, object]] = [
        ("area", "area('square', 3)", 9),  # a decorator that registers
        ("found", "found(2)", 2),  # a call that fills
        ("shown", "shown(255)", "0xff"),  # a case of a function
    ]
    for name, call, gives in cases:
        names: dict[str, object] = {}
        text = only(REGISTERED, {name, "register"})
        assert isinstance(text, str), name
        exec(text, names)
        assert eval(call, names) == gives, name
        assert ("_fill()" in text) == (name == "found"), name


def test_what_is_left_out_is_not_exported() -> None:
    text = only(MODULE.replace('"shape"]', '"shape", "Point", "TABLE", "MARK"]'), {"slug"})
    assert isinstance(text, str)
    assert '__all__ = ["slug", "MARK"]' in text


def test_a_module_with_some_of_its_functions_keeps_their_text_and_drops_the_rest() -> None:
    text = only(MODULE, {"slug"})
    assert isinstance(text, str)
    head, _, function = MODULE.partition("# What")
    assert text.endswith("# What" + function.partition("\n\n\n")[0] + "\n")
    assert '__all__ = ["slug"]' in text
    gone = {"os", "TABLE", "Point", "_lower", "look", "shape", "print"}
    assert not {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} & gone
    assert head.splitlines()[0] == text.splitlines()[0]


def test_a_part_is_python_also_where_what_is_left_out_shares_a_line_with_it() -> None:
    text = "import os; TABLE = {\n    1: 2,\n}; LIMIT = 3\n\n\ndef near(n):\n    return n < LIMIT\n"
    text += "\n\ndef far(n):\n    return n\n"
    found = parts(text)
    assert found.part(found.needed(["near"])) == text.partition("\n\n\ndef far")[0] + "\n"
    assert only(text, {"far"}) == text[text.index("def far") :]
