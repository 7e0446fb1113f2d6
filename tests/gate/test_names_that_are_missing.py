"""Undefined names: the quick answer from the syntax tree agrees with Python's symbol table."""

import ast
import sysconfig
from pathlib import Path

import pytest

from agent_core.functions.gate.tree import (
    BUILTINS,
    IMPLICIT,
    _globals_read,
    bound_names,
    missing_names,
    parse,
)
from tests.kit.drawing import sampled

FILES = sorted(Path(sysconfig.get_path("stdlib")).glob("[a-h]*.py"))


def test_a_name_is_missing_where_no_scope_defines_it() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("return a + b", {"b"}),  # plain
        ("b = 1\n    return a + b", set()),  # local
        ("return [b for b in a]", set()),  # in a comprehension
        ("return [b for b in a] + b", {"b"}),  # only in a comprehension
        ("return [b for b in b]", {"b"}),  # its first iterable is outside
        ("return [[c for c in b] for b in a]", set()),  # comprehension within
        ("return (lambda b: b + c)(a)", {"c"}),  # lambda
        ("import b.c\n    return b", set()),  # import
        ("try:\n        pass\n    except OSError as b:\n        return b", set()),  # handler
        ("match a:\n        case [b, *c]:\n            return b, c", set()),  # pattern
        ("global b\n    b = 1", set()),  # global
        ("return [b := a, b]", set()),  # walrus
    ]
    for body, names in cases:
        text = f"def f(a):\n    {body}\n"
        tree = parse(text)
        assert isinstance(tree, ast.Module), body
        assert missing_names(text, tree) == names, body


def test_a_hint_is_read_outside_although_a_local_has_its_name() -> None:
    text = "def f(a: b):\n    b = 1\n    return b\n"
    tree = parse(text)
    assert isinstance(tree, ast.Module)
    assert missing_names(text, tree) == {"b"}


@pytest.mark.sampled
@pytest.mark.parametrize("path", sampled(FILES, 6), ids=lambda path: path.stem)
def test_the_quick_answer_is_that_of_the_symbol_table(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = parse(text)
    assert isinstance(tree, ast.Module)
    slow = set(_globals_read(text) - bound_names(tree) - BUILTINS - IMPLICIT)
    assert missing_names(text, tree) == (set() if "*" in bound_names(tree) else slow)
