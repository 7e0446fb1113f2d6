"""The library's public names: few, all present, and all typed."""

import ast
from pathlib import Path

import agent_core

STUB = Path(agent_core.__file__).with_suffix(".pyi")


def test_type_checkers_are_told_the_same_names_and_no_more_than_twenty() -> None:
    imported = {
        each.asname or each.name
        for node in ast.parse(STUB.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert imported == {*agent_core.__all__}
    assert len(imported) <= 20
