"""Undefined names: the quick answer from the syntax tree agrees with Python's symbol table."""

import ast
import sysconfig
from pathlib import Path

import pytest

from agent_core.functions.gate.tree import BUILTINS, IMPLICIT, _globals_read, bound_names, missing_names, parse
from tests.kit.drawing import sampled

FILES = sorted(Path(sysconfig.get_path("stdlib")).glob("[a-h]*.py"))


@pytest.mark.parametrize(
    ("body", "names"),
    [
        pytest.param("return a + b", {"b"}, id="plain"),
        pytest.param("b = 1\n    return a + b", set(), id="local"),
        pytest.param("return [b for b in a]", set(), id="in-a-comprehension"),
        pytest.param("return [b for b in a] + b", {"b"}, id="only-in-a-comprehension"),
        pytest.param("return [b for b in b]", {"b"}, id="its-first-iterable-is-outside"),
        pytest.param("return [[c for c in b] for b in a]", set(), id="comprehension-within"),
        pytest.param("return (lambda b: b + c)(a)", {"c"}, id="lambda"),
        pytest.param("import b.c\n    return b", set(), id="import"),
        pytest.param("try:\n        pass\n    except OSError as b:\n        return b", set(), id="handler"),
        pytest.param("match a:\n        case [b, *c]:\n            return b, c", set(), id="pattern"),
        pytest.param("global b\n    b = 1", set(), id="global"),
        pytest.param("return [b := a, b]", set(), id="walrus"),
    ],
)
def test_a_name_is_missing_where_no_scope_defines_it(body: str, names: set[str]) -> None:
    text = f"def f(a):\n    {body}\n"
    tree = parse(text)
    assert isinstance(tree, ast.Module)
    assert missing_names(text, tree) == names


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
