"""The schema of a type from another module follows the text of that module."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import Workspace

SHAPES = '''\
"""Shapes of a shop."""

from dataclasses import dataclass


@dataclass
class Order:
    """An order.

    Attributes:
        count: How many.
    """

    count: int
'''
MADE = """\
from dataclasses import make_dataclass

Order = make_dataclass("Order", [("count", int)])
"""
SEND = '''\
from functions.shapes import Order


def send(order: Order) -> int:
    """Send an order.

    Args:
        order: What to send.

    >>> send(Order(3))
    3
    """
    return order.count
'''
ALL = '''\
from functions import shapes


def send_all(orders: list[shapes.Order]) -> int:
    """Send several orders.

    Args:
        orders: What to send.

    >>> send_all([shapes.Order(3), shapes.Order(2)])
    5
    """
    return sum(order.count for order in orders)
'''


def write(root: Path, **modules: str) -> list[Path]:
    (root / "functions").mkdir(exist_ok=True)
    paths = [root / "functions" / f"{name}.py" for name in modules]
    for path, text in zip(paths, modules.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def fields(workspace: Workspace, name: str, parameter: str) -> list[str]:
    """Return the keys of an object, or of a list of objects, that a function takes."""
    whole: Any = workspace.functions.registry.snapshot().functions[name].parameters
    schema = whole["properties"][parameter]
    schema = schema.get("items", schema)
    target = schema.get("$ref", "").rpartition("/")[2]
    return list((whole["$defs"][target] if target else schema)["properties"])


async def test_a_dataclass_of_another_module_is_an_object_with_its_fields(tmp_path: Path) -> None:
    write(tmp_path, shapes=SHAPES, send=SEND)
    async with Workspace.open(tmp_path) as workspace:
        function = workspace.functions.registry.snapshot().functions["send"]
        assert function.parameters["properties"]["order"] == {
            "type": "object",
            "description": "What to send.",
            "properties": {"count": {"type": "integer", "description": "How many."}},
            "required": ["count"],
            "additionalProperties": False,
        }


@pytest.mark.parametrize("before", [SHAPES, MADE], ids=["written out", "made when imported"])
async def test_a_field_that_is_added_there_is_shown_at_once(tmp_path: Path, before: str) -> None:
    write(tmp_path, shapes=before, send=SEND, all=ALL)
    async with Workspace.open(tmp_path) as workspace:
        assert (fields(workspace, "send", "order"), fields(workspace, "send_all", "orders")) == (["count"], ["count"])
        await workspace.functions.saved(write(tmp_path, shapes=SHAPES + '    note: str = ""\n'))
        assert fields(workspace, "send", "order") == ["count", "note"]
        assert fields(workspace, "send_all", "orders") == ["count", "note"]


async def test_what_is_made_when_imported_is_completed_after_the_change(tmp_path: Path) -> None:
    write(tmp_path, shapes=SHAPES, send=SEND)
    async with Workspace.open(tmp_path) as workspace:
        made = MADE.replace('[("count", int)]', '[("count", int), ("note", str, "")]')
        await workspace.functions.saved(write(tmp_path, shapes=made))
        assert fields(workspace, "send", "order") == ["count", "note"]


async def test_a_field_that_is_added_while_nobody_looks_is_shown_at_the_next_start(tmp_path: Path) -> None:
    write(tmp_path, shapes=SHAPES, send=SEND)
    async with Workspace.open(tmp_path) as workspace:
        assert fields(workspace, "send", "order") == ["count"]
    write(tmp_path, shapes=SHAPES + '    note: str = ""\n')
    for _ in range(2):
        async with Workspace.open(tmp_path) as workspace:
            assert fields(workspace, "send", "order") == ["count", "note"]


async def test_a_type_that_is_gone_leaves_the_function_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, shapes=SHAPES, send=SEND)
    async with Workspace.open(tmp_path) as workspace:
        await workspace.functions.saved(write(tmp_path, shapes=SHAPES.replace("Order", "Ordered")))
        assert fields(workspace, "send", "order") == ["count"]
