"""Which functions a module offers, which it does not, and why."""

import json
from typing import Any

import pytest

from agent_core.registry.function import ModuleReading
from agent_core.registry.source import ModuleSource
from tests.registry.support import codes, only, read


def offered(text: str, module: str = "probe") -> list[str]:
    return [function.name for function in read(text, module).functions]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("def a(): ...\nasync def b(): ...", ["a", "b"], id="both-kinds"),
        pytest.param("def _a(): ...\ndef b(): ...", ["b"], id="underscore"),
        pytest.param("__all__ = ['b']\ndef a(): ...\ndef b(): ...", ["b"], id="all"),
        pytest.param("__all__ = ('a',)\n__all__ += ['b']\ndef a(): ...\ndef b(): ...", ["a", "b"], id="all-grows"),
        pytest.param("__all__: list[str] = []\ndef a(): ...", [], id="empty-all"),
        pytest.param("__all__ = [n for n in ()]\ndef a(): ...", ["a"], id="computed-all"),
        pytest.param("class A:\n    def a(self): ...", [], id="methods"),
        pytest.param("def a():\n    def b(): ...", ["a"], id="nested"),
        pytest.param("if X:\n    def a(): ...\nelse:\n    def a(x): ...", ["a"], id="condition"),
        pytest.param("try:\n    import x\nexcept ImportError:\n    def a(): ...", ["a"], id="fallback"),
        pytest.param("if __name__ == '__main__':\n    def a(): ...", [], id="main"),
        pytest.param("from typing import overload\n@overload\ndef a(x: int): ...\ndef a(x): ...", ["a"], id="overload"),
        pytest.param("import functools\n@functools.cache\ndef a(x: int): ...", ["a"], id="decorated"),
        pytest.param("a = lambda: 1", [], id="lambda"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_a_module_offers_its_public_top_level_functions(text: str, names: list[str]) -> None:
    assert offered(text) == names


def test_of_definitions_under_conditions_the_first_counts() -> None:
    reading = read("if X:\n    def a(first): ...\nelse:\n    def a(second): ...\n")
    assert list(reading.functions[0].parameters["properties"]) == ["first"]


def test_overloads_are_neither_offered_nor_counted_as_losses() -> None:
    reading = read(
        "from typing import overload\n@overload\ndef a(x: int): ...\n@overload\ndef a(x: str): ...\ndef a(x): ..."
    )
    assert "redefined" not in codes(reading.problems)


@pytest.mark.parametrize("module", ["_helpers", "web._shared", "_internal.pages"])
def test_a_module_with_an_underscore_offers_nothing_but_can_be_imported(module: str) -> None:
    reading = read("def a(): ...", module)
    assert (reading.functions, reading.problems, reading.parsed) == ((), (), True)


@pytest.mark.parametrize(
    ("signature", "properties", "required"),
    [
        pytest.param("*rest", {"rest": {"type": "array", "items": {}}}, [], id="star"),
        pytest.param("*rest: int", {"rest": {"type": "array", "items": {"type": "integer"}}}, [], id="typed"),
        pytest.param("**rest", {"rest": {"type": "object", "additionalProperties": {}}}, [], id="two-stars"),
        pytest.param("a, /", {"a": {}}, ["a"], id="positional-only"),
        pytest.param("a, /, b=1, *c, d, **e", {"a": {}, "b": {"default": 1}, "c": {"type": "array", "items": {}},
                     "d": {}, "e": {"type": "object", "additionalProperties": {}}}, ["a", "d"], id="all"),
    ],
)  # fmt: skip
def test_what_is_not_passed_by_name_is_offered_under_its_name(
    signature: str, properties: dict[str, Any], required: list[str]
) -> None:
    (function,) = read(f"def probe({signature}): ...").functions
    offered = function.parameters["properties"]
    plain = {name: {key: offered[name][key] for key in offered[name] if key != "description"} for name in offered}
    assert (plain, [*plain], function.parameters["required"]) == (properties, [*properties], required)
    assert all("description" in offered[name] for name in offered if "type" in offered[name])


@pytest.mark.parametrize("name", ["größe", "a" * 65])
def test_a_name_that_the_wire_cannot_carry_is_left_out(name: str) -> None:
    assert codes(read(f"def {name}(): ...").problems) == ["function-name"]


def test_every_reason_against_a_function_is_told_at_once() -> None:
    text = "import typing\n\ndef probe(a: typing.IO, b: typing.Callable): ..."
    assert codes(read(text).problems)[::2] == ["inexpressible-type", "inexpressible-type"]


def test_the_last_definition_wins_and_the_loss_is_told() -> None:
    reading = read("def a(): ...\n\ndef a(): 'Second.'\n")
    assert (reading.functions[0].line, reading.functions[0].description) == (3, "Second.")
    assert [(one.code, one.severity, one.where.line) for one in reading.problems] == [("redefined", "warns", 3)]


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


@pytest.mark.parametrize(
    ("text", "module", "imports"),
    [
        pytest.param("import functions.web.pages", "a", {"web.pages"}, id="plain"),
        pytest.param("from functions.web import pages", "a", {"web", "web.pages"}, id="from"),
        pytest.param("from functions import text", "a", {"text"}, id="from-the-root"),
        pytest.param("from . import b", "a", {"b"}, id="relative"),
        pytest.param("from .b import c", "web.a", {"web.b", "web.b.c"}, id="relative-in-a-package"),
        pytest.param("from ..b import c", "web.a", {"b", "b.c"}, id="relative-up"),
        pytest.param("def f():\n    from .b import *", "a", {"b"}, id="inside-a-function"),
        pytest.param("import os, functionsx", "a", set(), id="others"),
        pytest.param("from .... import b", "a", set(), id="too-far-up"),
    ],
)
def test_imports_within_the_workspace_are_listed(text: str, module: str, imports: set[str]) -> None:
    assert set(read(text, module).imports) == imports


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


@pytest.mark.parametrize(("key", "value"), [("format", "0"), ("version", "0"), ("format", None)])
def test_a_cached_reading_of_something_else_is_not_used(key: str, value: str | None) -> None:
    reading = read("def probe(): ...")
    assert ModuleReading.from_json({**reading.to_json(), key: value}, reading.source) is None


def test_a_function_is_published_in_the_documented_shape() -> None:
    shape = only("async def probe(): 'Probe.'").to_json()
    assert shape == {
        "name": "probe",
        "description": "Probe.",
        "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        "module": "probe",
        "path": "functions/probe.py",
        "line": 1,
        "async": True,
    }
