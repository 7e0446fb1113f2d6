"""Which functions a module offers, which it does not, and why."""

import json
from typing import Any

from agent_core.registry.function import ModuleReading
from agent_core.registry.source import ModuleSource
from tests.registry.support import codes, only, read


def offered(text: str, module: str = "probe") -> list[str]:
    return [function.name for function in read(text, module).functions]


def test_a_module_offers_its_public_top_level_functions() -> None:
    rows: list[tuple[str, str, list[str]]] = [
        ("both-kinds", "def a(): ...\nasync def b(): ...", ["a", "b"]),
        ("underscore", "def _a(): ...\ndef b(): ...", ["b"]),
        ("all", "__all__ = ['b']\ndef a(): ...\ndef b(): ...", ["b"]),
        ("all-grows", "__all__ = ('a',)\n__all__ += ['b']\ndef a(): ...\ndef b(): ...", ["a", "b"]),
        ("empty-all", "__all__: list[str] = []\ndef a(): ...", []),
        ("computed-all", "__all__ = [n for n in ()]\ndef a(): ...", ["a"]),
        ("methods", "class A:\n    def a(self): ...", []),
        ("nested", "def a():\n    def b(): ...", ["a"]),
        ("condition", "if X:\n    def a(): ...\nelse:\n    def a(x): ...", ["a"]),
        ("fallback", "try:\n    import x\nexcept ImportError:\n    def a(): ...", ["a"]),
        ("main", "if __name__ == '__main__':\n    def a(): ...", []),
        (
            "overload",
            "from typing import overload\n@overload\ndef a(x: int): ...\ndef a(x): ...",
            ["a"],
        ),
        ("decorated", "import functools\n@functools.cache\ndef a(x: int): ...", ["a"]),
        ("lambda", "a = lambda: 1", []),
        ("nothing", "", []),
    ]
    for case, text, names in rows:
        assert offered(text) == names, case


def test_of_definitions_under_conditions_the_first_counts() -> None:
    reading = read("if X:\n    def a(first): ...\nelse:\n    def a(second): ...\n")
    assert list(reading.functions[0].parameters["properties"]) == ["first"]


def test_overloads_are_neither_offered_nor_counted_as_losses() -> None:
    reading = read(
        "from typing import overload\n@overload\ndef a(x: int): ...\n@overload\ndef a(x: str): ...\ndef a(x): ..."
    )
    assert "redefined" not in codes(reading.problems)


def test_a_module_with_an_underscore_offers_nothing_but_can_be_imported() -> None:
    for module in ["_helpers", "web._shared", "_internal.pages"]:
        reading = read("def a(): ...", module)
        assert (reading.functions, reading.problems, reading.parsed) == ((), (), True), module


def test_what_is_not_passed_by_name_is_offered_under_its_name() -> None:
    rows: list[tuple[str, str, dict[str, Any], list[str]]] = [
        ("star", "*rest", {"rest": {"type": "array", "items": {}}}, []),
        ("typed", "*rest: int", {"rest": {"type": "array", "items": {"type": "integer"}}}, []),
        ("two-stars", "**rest", {"rest": {"type": "object", "additionalProperties": {}}}, []),
        ("positional-only", "a, /", {"a": {}}, ["a"]),
        (
            "all",
            "a, /, b=1, *c, d, **e",
            {
                "a": {},
                "b": {"default": 1},
                "c": {"type": "array", "items": {}},
                "d": {},
                "e": {"type": "object", "additionalProperties": {}},
            },
            ["a", "d"],
        ),
    ]
    for case, signature, properties, required in rows:
        (function,) = read(f"def probe({signature}): ...").functions
        offered = function.parameters["properties"]
        plain = {
            name: {key: offered[name][key] for key in offered[name] if key != "description"}
            for name in offered
        }
        assert (plain, [*plain], function.parameters["required"]) == (
            properties,
            [*properties],
            required,
        ), case
        assert all("description" in offered[name] for name in offered if "type" in offered[name]), (
            case
        )


def test_a_name_that_the_wire_cannot_carry_is_left_out() -> None:
    for name in ["größe", "a" * 65]:
        assert codes(read(f"def {name}(): ...").problems) == ["function-name"], name


def test_every_reason_against_a_function_is_told_at_once() -> None:
    text = "import typing\n\ndef probe(a: typing.IO, b: typing.Callable): ..."
    assert codes(read(text).problems)[::2] == ["inexpressible-type", "inexpressible-type"]


def test_the_last_definition_wins_and_the_loss_is_told() -> None:
    reading = read("def a(): ...\n\ndef a(): 'Second.'\n")
    assert (reading.functions[0].line, reading.functions[0].description) == (3, "Second.")
    assert [(one.code, one.severity, one.where.line) for one in reading.problems] == [
        ("redefined", "warns", 3)
    ]


def test_the_context_parameter_is_no_part_of_the_schema() -> None:
    function = only("def probe(self, *, a: int): ...")
    assert (function.takes_self, list(function.parameters["properties"])) == (True, ["a"])
    assert only("def probe(a: int, self: int): ...").takes_self is False


def test_keyword_only_parameters_are_required_unless_they_have_a_default() -> None:
    parameters = only("def probe(a: int, b: int = 1, *, c: int, d: int = 2): ...").parameters
    assert parameters["required"] == ["a", "c"]
    assert parameters["additionalProperties"] is False


def test_a_parameter_without_type_is_offered_with_a_warning() -> None:
    reading = read('def probe(a):\n    """Probe.\n\n    :param a: It.\n    """')
    assert [(one.code, one.severity) for one in reading.problems] == [("no-type", "warns")]
    assert reading.functions[0].parameters["properties"]["a"] == {"description": "It."}


def test_a_function_knows_its_lines_and_its_own_hash() -> None:
    text = "import functools\n\n@functools.cache\ndef a():\n    return 1\n\n\ndef b(): ...\n"
    a, b = read(text).functions
    assert (a.line, a.end_line, b.line) == (3, 5, 8)
    again, changed = read(f"# moved\n{text.replace('...', 'pass')}").functions
    assert (again.body_hash, again.version) != (changed.body_hash, a.version)
    assert (again.body_hash == a.body_hash, changed.body_hash == b.body_hash) == (True, False)


def test_imports_within_the_workspace_are_listed() -> None:
    rows: list[tuple[str, str, str, set[str]]] = [
        ("plain", "import functions.web.pages", "a", {"web.pages"}),
        ("from", "from functions.web import pages", "a", {"web", "web.pages"}),
        ("from-the-root", "from functions import text", "a", {"text"}),
        ("relative", "from . import b", "a", {"b"}),
        ("relative-in-a-package", "from .b import c", "web.a", {"web.b", "web.b.c"}),
        ("relative-up", "from ..b import c", "web.a", {"b", "b.c"}),
        ("inside-a-function", "def f():\n    from .b import *", "a", {"b"}),
        ("others", "import os, functionsx", "a", set()),
        ("too-far-up", "from .... import b", "a", set()),
    ]
    for case, text, module, imports in rows:
        assert set(read(text, module).imports) == imports, case


def test_a_package_imports_relative_to_itself() -> None:
    source = ModuleSource.of("web", "from .pages import read", "functions/web/__init__.py")
    from agent_core.registry.schema import read_module

    assert set(read_module(source).imports) == {"web.pages", "web.pages.read"}


def test_a_reading_comes_back_whole_from_the_cache() -> None:
    text = "def probe(a: int | None = None, *b): ...\n"
    text += 'def other(self, a: "list[int]"):\n    """O.\n\n    >>> other([])\n    1\n    """\n'
    reading = read(text)
    stored = json.loads(json.dumps(reading.to_json()))
    assert ModuleReading.from_json(stored, reading.source) == reading


def test_a_cached_reading_of_something_else_is_not_used() -> None:
    rows: list[tuple[str, str | None]] = [("format", "0"), ("version", "0"), ("format", None)]
    for key, value in rows:
        reading = read("def probe(): ...")
        assert ModuleReading.from_json({**reading.to_json(), key: value}, reading.source) is None, (
            key
        )


def test_a_function_is_published_in_the_documented_shape() -> None:
    shape = only("async def probe(): 'Probe.'").to_json()
    assert shape == {
        "name": "probe",
        "description": "Probe.",
        "parameters": {
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        },
        "module": "probe",
        "path": "functions/probe.py",
        "line": 1,
        "async": True,
    }
