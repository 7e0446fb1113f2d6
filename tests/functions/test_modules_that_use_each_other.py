"""Modules that import each other arrive in any order, and the schema of a type follows the module that defines it."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import Workspace
from tests.kit.sources import function_text

pytestmark = pytest.mark.usefixtures("lent")
DOUBLE = 'def double(n: int) -> int:\n    """Double a number.\n\n    >>> double(2)\n    4\n    """\n    return 2 * n\n'
USER = (
    "from functions.parts import double\n\n\ndef quadruple(n: int) -> int:\n"
    '    """Take a number four times.\n\n    >>> quadruple(2)\n    8\n    """\n    return double(double(n))\n'
)
CHAIN = "from functions.a_user import quadruple\n\n\n" + USER.split("\n\n\n")[1].replace(
    "double(double(n))", "quadruple(n)"
).replace("def quadruple", "def once_more").replace(">>> quadruple", ">>> once_more")


async def test_a_folder_taken_over_whole_offers_what_imports_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, a_chain=CHAIN, a_user=USER, parts=DOUBLE)
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.functions.names() == ["double", "once_more", "quadruple"]
        assert workspace.functions.rejected() == ()


async def test_a_file_is_taken_when_what_it_imports_comes_and_both_change_together(
    tmp_path: Path,
) -> None:
    async with Workspace.open(tmp_path) as workspace:
        await workspace.functions.saved(write(tmp_path, user=USER))
        assert workspace.functions.names() == []
        await workspace.functions.saved(write(tmp_path, parts=DOUBLE))
        assert workspace.functions.names() == ["double", "quadruple"]
        renamed = write(
            tmp_path, parts=DOUBLE.replace("double", "twice"), user=USER.replace("double", "twice")
        )
        await workspace.functions.saved(renamed)
        assert workspace.functions.names() == ["quadruple", "twice"]
        assert workspace.functions.rejected() == ()


async def test_a_neighbor_of_the_same_save_is_no_package_and_how_to_import_it_is_told(
    tmp_path: Path,
) -> None:
    async with Workspace.open(tmp_path) as workspace:
        user = USER.replace("from functions.parts import", "from parts import")
        await workspace.functions.saved(write(tmp_path, a_user=user, parts=DOUBLE))
        assert workspace.functions.names() == ["double"]
        await workspace.functions.saved(
            write(tmp_path, b_user=USER.replace("parts", "nowhere").replace("quadr", "o"))
        )
        assert workspace.functions.names() == ["double"]
        problem = next(
            each for each in workspace.functions.rejected() if "a_user" in each.where.path
        )
        assert {each.code for each in workspace.functions.rejected()} == {"import-fails"}
        assert "`from functions" in (problem.fix or "")


async def test_of_a_file_that_cannot_be_imported_only_what_keeps_it_out_is_told(
    tmp_path: Path,
) -> None:
    bare = "import json\n\n\ndef shout(text):\n    return text.upper()\n"
    async with Workspace.open(tmp_path) as workspace:
        await workspace.functions.saved(write(tmp_path, mine=bare))
        assert workspace.functions.names() == ["shout"]
        await workspace.functions.saved(write(tmp_path, mine=bare.replace("json", "json.nowhere")))
        assert {problem.code for problem in workspace.functions.rejected()} == {"import-fails"}


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
SEND = "from functions.shapes import Order\n\n\n" + function_text(
    "send(order: Order) -> int",
    "Send an order.\n\nArgs:\n    order: What to send.",
    "return order.count",
    "send(Order(3)) → 3",
)
ALL = "from functions import shapes\n\n\n" + function_text(
    "send_all(orders: list[shapes.Order]) -> int",
    "Send several orders.\n\nArgs:\n    orders: What to send.",
    "return sum(order.count for order in orders)",
    "send_all([shapes.Order(3), shapes.Order(2)]) → 5",
)


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


async def test_a_field_that_is_added_there_is_shown_at_once(tmp_path: Path) -> None:
    write(tmp_path, shapes=MADE, send=SEND, all=ALL)
    async with Workspace.open(tmp_path) as workspace:
        assert (fields(workspace, "send", "order"), fields(workspace, "send_all", "orders")) == (
            ["count"],
            ["count"],
        )
        await workspace.functions.saved(write(tmp_path, shapes=SHAPES + '    note: str = ""\n'))
        assert fields(workspace, "send", "order") == ["count", "note"]
        assert fields(workspace, "send_all", "orders") == ["count", "note"]


async def test_a_field_that_is_added_is_shown_at_the_next_start_and_a_type_that_is_gone_leaves_the_function(
    tmp_path: Path,
) -> None:
    write(tmp_path, shapes=SHAPES, send=SEND)
    async with Workspace.open(tmp_path) as workspace:
        assert fields(workspace, "send", "order") == ["count"]
        await workspace.functions.saved(write(tmp_path, shapes=SHAPES.replace("Order", "Ordered")))
        assert fields(workspace, "send", "order") == ["count"]
    write(tmp_path, shapes=SHAPES + '    note: str = ""\n')
    for _ in range(2):
        async with Workspace.open(tmp_path) as workspace:
            assert fields(workspace, "send", "order") == ["count", "note"]


async def test_values_of_another_module_are_shown_as_defaults_and_follow_it(tmp_path: Path) -> None:
    shop = "from enum import Enum\n\nMOST = 3\n\n\nclass Color(Enum):\n    RED = 'red'\n    BLUE = 'blue'\n"
    paint = "from functions.shop import MOST, Color\n\n\n" + function_text(
        "paint(color: Color = Color.BLUE, times: int = MOST) -> str",
        "Paint.\n\nArgs:\n    color: Which.\n    times: How often.",
        "return color.value * times",
        "paint(Color.RED, 1) → 'red'",
    )
    write(tmp_path, shop=shop, paint=paint)
    async with Workspace.open(tmp_path) as workspace:
        for most in (3, 4):
            await workspace.functions.saved(write(tmp_path, shop=shop.replace("3", str(most))))
            assert workspace.functions.registry.snapshot().functions["paint"].parameters[
                "properties"
            ] == {
                "color": {
                    "type": "string",
                    "enum": ["red", "blue"],
                    "default": "blue",
                    "description": "Which.",
                },
                "times": {"type": "integer", "default": most, "description": "How often."},
            }


OWN = SHAPES + "\n\n" + SEND.partition("\n\n\n")[2]


@pytest.mark.parametrize(
    ("now", "modules"),
    [(OWN, {"shapes": SHAPES, "own": SEND}), ("def (", {"own": OWN})],
    ids=["unchanged", "rejected"],
)
async def test_a_reading_of_an_older_program_is_described_again_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: dict[str, str], now: str
) -> None:
    write(tmp_path, **modules)
    with monkeypatch.context() as older:
        older.setattr("agent_core.registry.function.CACHE_FORMAT", "older")
        async with Workspace.open(tmp_path) as workspace:
            assert fields(workspace, "send", "order") == ["count"]
    write(tmp_path, own=modules["own"] if now == OWN else now)
    for _ in range(2):
        async with Workspace.open(tmp_path) as workspace:
            assert fields(workspace, "send", "order") == ["count"]
            assert bool(workspace.functions.rejected()) == (now != OWN)


DATA = """\
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from functools import reduce


"""
NODE = DATA + "@dataclass\nclass Node:\n    next: 'Node | None' = None\n    value: {} = {}\n"
TAKE = function_text(
    "{name}({first}) -> int",
    "Take what is given.\n\nArgs:\n    first: The first.\n    second: The second.",
    "return 1",
)


def take(name: str, parameters: str, top: str = DATA) -> str:
    return top + TAKE.replace("{name}", name).replace("{first}", parameters)


async def test_recursive_classes_of_one_name_stay_two(tmp_path: Path) -> None:
    imports = "from functions.one import Node\nfrom functions import two\n\n\n"
    both = take("both", "first: Node, second: two.Node", imports)
    write(tmp_path, one=NODE.format("int", 1), two=NODE.format("str", "''"), both=both)
    async with Workspace.open(tmp_path) as workspace:
        whole: Any = workspace.functions.registry.snapshot().functions["both"].parameters
        for parameter, kind in (("first", "integer"), ("second", "string")):
            reference = whole["properties"][parameter]["$ref"]
            node = whole["$defs"][reference.rpartition("/")[2]]["properties"]
            assert (node["value"]["type"], node["next"]["anyOf"][0]) == (kind, {"$ref": reference})
        arguments = {"first": {"next": {"value": 2}}, "second": {"next": {"value": "b"}}}
        assert (await workspace.functions.call("both", arguments)).value == 1


async def test_a_recursive_alias_of_another_module_takes_all_of_its_values(tmp_path: Path) -> None:
    shapes = 'Json = dict[str, "Json"] | list["Json"] | str | int\nTree = dict[str, "Tree"]\n'
    fit = take("fit", "first: Json, second: Tree", "from functions.shapes import Json, Tree\n\n\n")
    write(tmp_path, shapes=shapes, fit=fit)
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.functions.rejected() == ()
        for value in ({"a": {"b": [1, "c"]}}, ["a"], "a", 1):
            assert (
                await workspace.functions.call("fit", {"first": value, "second": {"a": {}}})
            ).value == 1


async def test_a_type_that_cannot_be_written_is_named_with_its_parameter(tmp_path: Path) -> None:
    deep = f"{DATA}Deep = reduce(lambda kind, _: list[kind], range(900), int)\n\n\n"
    async with Workspace.open(tmp_path) as workspace:
        for kind in ("dict[str]", "Mapping[str]", "list[Deep]"):
            await workspace.functions.saved(
                write(tmp_path, mine=take("bad", f"first: {kind}, second: int", deep))
            )
            (problem,) = workspace.functions.rejected()
            assert (problem.code, "`first` of `bad`" in problem.message) == (
                "inexpressible-type",
                True,
            ), problem


UNFIT = {  # what stands at the top, and the type of a parameter that no worker can describe
    "an undefined name": ("", "'AgentState'"),
    "a name for type checkers in a field": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from app.models import State\n\n\n@dataclass\nclass Box:\n    state: State\n",
        "Box",
    ),
    "a protocol": ("from typing import Protocol\n\n\nclass Sized(Protocol): ...\n", "Sized"),
    "a plain class": ("class Thing: ...\n", "list[Thing]"),
    "a class that raises when it is read": (
        "class Meta(type):\n    def __getattr__(cls, name):\n        raise RuntimeError(name)\n\n\n"
        "class Thing(metaclass=Meta): ...\n",
        "Thing",
    ),
    "an expression that raises": ("", "'1 / 0'"),
    "a function that is deleted": ("class Thing: ...\n", "Thing"),
}


@pytest.mark.parametrize("case", UNFIT)
async def test_a_type_that_a_worker_cannot_describe_costs_its_function_and_no_neighbor(
    tmp_path: Path, case: str
) -> None:
    top, kind = UNFIT[case]
    unfit = take("unfit", f"first: {kind}, second: int = 1", f"{top}\n\n")
    unfit += "\n\ndel unfit\n" if "deleted" in case else ""
    text = f"{unfit}\n\n{take('fit', 'first: int, second: int = 1', '')}"
    for _ in range(2):  # as read, and as stored
        async with Workspace.open(tmp_path) as workspace:
            await workspace.functions.saved(write(tmp_path, mine=text))
            assert workspace.functions.names() == ["fit"]
            (problem,) = workspace.functions.rejected()
            assert (problem.code, "`first` of `unfit`" in problem.message) == (
                "inexpressible-type",
                True,
            ), problem
            assert (await workspace.functions.call("fit", {"first": 1})).value == 1


async def test_what_does_not_resolve_is_left_out_where_a_default_or_a_result_allows_it(
    tmp_path: Path,
) -> None:
    text = take("fit", "first: int, second: 'Missing' = None", "").replace("-> int", "-> 'Absent'")
    async with Workspace.open(tmp_path) as workspace:
        await workspace.functions.saved(write(tmp_path, mine=text))
        assert [
            *workspace.functions.registry.snapshot().functions["fit"].parameters["properties"]
        ] == ["first"]
        assert (await workspace.functions.call("fit", {"first": 1})).value == 1


async def test_a_type_that_is_gone_from_another_module_leaves_the_neighbors_what_they_have(
    tmp_path: Path,
) -> None:
    both = f"{SEND}\n\n{ALL.partition(chr(10) * 3)[2]}".replace("shapes.Order", "Sent")
    user = both.replace("import Order", "import Order, Sent").replace("Order(2)", "Sent(2)")
    shapes = f"{SHAPES}\n\n@dataclass\nclass Sent:\n    count: int\n"
    write(tmp_path, shapes=shapes, user=user)
    async with Workspace.open(tmp_path) as workspace:
        assert fields(workspace, "send_all", "orders") == ["count"]
        await workspace.functions.saved(
            write(
                tmp_path,
                shapes=shapes.replace("class Sent:", "class Sent:\n    day: object")
                + "\n\ndel Order\nOrder = object()\n",
            )
        )
        assert fields(workspace, "send", "order") == ["count"]
        assert fields(workspace, "send_all", "orders") == ["day", "count"]


async def test_a_value_that_a_dataclass_does_not_keep_is_an_argument_of_it(tmp_path: Path) -> None:
    point = (
        "@dataclass\nclass Point:\n    start: InitVar[int]\n    step: int = 1\n    sum: int = 0\n\n"
    )
    point += "    def __post_init__(self, start: int) -> None:\n        self.sum = start + self.step\n\n\n"
    text = take("add", "first: Point, second: int = 0", DATA + point).replace(
        "return 1", "return first.sum"
    )
    write(tmp_path, mine=text)
    async with Workspace.open(tmp_path) as workspace:
        assert fields(workspace, "add", "first") == ["start", "step", "sum"]
        assert (await workspace.functions.call("add", {"first": {"start": 3}})).value == 4


def in_circle(name: str, imports: str, call: str, extra: str = "") -> str:
    """Return a file with a function that counts down through a function of another file."""
    body = f"return {call}(n - 1) + 1 if n else 0"
    text = function_text(f"{name}(n: int) -> int", "Count.\n\nArgs:\n    n: From where.", body)
    return f"{imports}\n\n\n{text}{extra}"


SPELLINGS = {
    "a module of the package": ("from functions import {}", "{}.{}"),
    "a relative module": ("from . import {}", "{}.{}"),
    "a module under its name": ("import functions.{0} as {0}", "{}.{}"),
    "the whole path": ("import functions.{}", "functions.{}.{}"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_files_that_import_each_other_are_taken_as_python_takes_them(
    tmp_path: Path, spelling: str
) -> None:
    imports, call = SPELLINGS[spelling]
    ring = {"ping": "pong", "pong": "pang", "pang": "ping"}
    texts = {
        name: in_circle(f"{name}_it", imports.format(other), call.format(other, f"{other}_it"))
        for name, other in ring.items()
    }
    user = in_circle("through", "from functions.ping import ping_it", "ping_it")
    write(tmp_path, a_user=user, **texts)
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.functions.rejected() == ()
        names = ("ping_it", "pong_it", "pang_it", "through")
        assert [(await workspace.functions.call(name, {"n": 4})).value for name in names] == [4] * 4


async def test_names_below_a_circle_and_a_package_that_imports_its_part_are_found(
    tmp_path: Path,
) -> None:
    late = {  # each imports a name of the other after it has its own
        name: in_circle(
            f"{name}_it", "", f"{other}_it", f"\n\nfrom functions.{other} import {other}_it\n"
        )
        for name, other in (("ping", "pong"), ("pong", "ping"))
    }
    write(tmp_path, **late)
    (tmp_path / "functions" / "web").mkdir()
    (tmp_path / "functions/web/__init__.py").write_text(
        "RATE = 2\n\nfrom functions.web.pages import paged\n"
    )
    text = function_text(
        "paged(n: int) -> int", "Page.\n\nArgs:\n    n: How many.", "return n * RATE"
    )
    (tmp_path / "functions/web/pages.py").write_text(f"from functions.web import RATE\n\n\n{text}")
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.functions.rejected() == ()
        assert (await workspace.functions.call("pong_it", {"n": 3})).value == 3
        assert (await workspace.functions.call("paged", {"n": 3})).value == 6


async def test_a_circle_closes_when_its_last_file_comes_and_a_fault_leaves_the_good_versions(
    tmp_path: Path,
) -> None:
    ping = in_circle("ping_it", "from functions import pong", "pong.pong_it")
    pong = in_circle("pong_it", "from functions import ping", "ping.ping_it")
    async with Workspace.open(tmp_path) as workspace:
        await workspace.functions.saved(write(tmp_path, ping=ping))
        assert workspace.functions.names() == []
        await workspace.functions.saved(write(tmp_path, pong=pong))
        assert (workspace.functions.names(), workspace.functions.rejected()) == (
            ["ping_it", "pong_it"],
            (),
        )
        faulty = write(
            tmp_path, ping=ping.replace("+ 1", "+ 2"), pong=pong + "\nraise ValueError\n"
        )
        await workspace.functions.saved(faulty)
        assert {problem.where.path for problem in workspace.functions.rejected()} == {
            "functions/pong.py"
        }
        assert (await workspace.functions.call("ping_it", {"n": 4})).value == 6


async def test_a_circle_that_python_cannot_import_is_rejected_and_called_a_circle(
    tmp_path: Path,
) -> None:
    ping = in_circle("ping_it", "from functions.pong import pong_it", "pong_it")
    write(
        tmp_path,
        ping=ping,
        pong=ping.replace("ping", "pang").replace("pong", "ping").replace("pang", "pong"),
    )
    async with Workspace.open(tmp_path) as workspace:
        assert workspace.functions.names() == []
        assert all(
            "circular import" in problem.message for problem in workspace.functions.rejected()
        )
