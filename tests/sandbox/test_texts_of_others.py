"""Foreign JSON and TOML are parsed in one place, within limits, and every defect is one error."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.wire.strict_json import (
    DEEPEST,
    LOOSE,
    MESSAGE,
    Malformed,
    read_json,
    read_next,
    read_toml,
)
from tests.kit.pace import least_s, time_of

ROOT = Path(__file__).parents[2]
READER = "sandbox/wire/strict_json.py"
OWN = {
    "sandbox/processes/zygote.py": "orders of the host to its own process, which reads nobody else's",
    "knapper_ext/portable/runner.py": "orders of the host to its own process, which reads nobody else's",
    "knapper_ext/portable/guest.py": "the runner's plan for an instance",
    "sandbox/inside/programs.py": "names that earlier programs kept: it runs in the worker, for the program",
    "sandbox/inside/channel.py": "large values of other workers: it runs in the worker, for the function",
    "sandbox/inside/context.py": "`.json()` in a function's source: it runs in the worker, for the function",
    "knapper_ext/local/engine.py": "orders of the host; it imports nothing of this program, to start fast",
    "agent_core/base/programs.py": "orders of the host, as it starts and bounds this process",
}
PARSERS = {"loads", "load", "JSONDecoder"}
MODULES = {"tomllib", "tomli", "orjson", "plistlib"}
ELSEWHERE = {
    "model_validate_json",
    "validate_json",
    "raw_decode",
    "TomlConfigSettingsSource",
    "JsonConfigSettingsSource",
}


def parsers_in(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where something parses JSON or TOML by itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if {one.name for one in names} & MODULES:
                yield node.lineno
            case ast.ImportFrom(module=module, names=names) if module in MODULES or (
                module in ("json", "json.decoder") and {one.name for one in names} & PARSERS
            ):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="json"), attr=attribute) if attribute in PARSERS:
                yield node.lineno
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in ELSEWHERE:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="json"), args=[], keywords=[]):
                yield node.lineno


def may_parse(text: str) -> bool:
    """Check whether it names anything that parses JSON or TOML; other texts are skipped."""
    return any(word in text.lower() for word in ("json", "toml", "plistlib", "raw_decode"))


def test_no_other_place_parses_json_or_toml() -> None:
    files = [
        file
        for room in ("agent_core", "knapper_ext", "meta_functions", "sandbox")
        for file in (ROOT / room).rglob("*.py")
    ]
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    named = {
        name: [*parsers_in(ast.parse(text))] for name, text in texts.items() if may_parse(text)
    }
    others = {name: lines for name, lines in named.items() if lines and name != READER}
    assert others.keys() == OWN.keys(), (
        "read what others wrote with `sandbox.wire.strict_json`, or say here why not"
    )


MALFORMED = [
    pytest.param(
        "[" * 65 + "]" * 65, "depth", "at most 64 levels, got more at line 1 column 65", id="lists"
    ),
    pytest.param('{"a":\n' * 3000 + "1" + "}" * 3000, "depth", "at line 65 column 1", id="objects"),
    pytest.param('["[[", ' + "[" * 10**6, "depth", "at line 1 column 71", id="bomb"),
    pytest.param(
        '["]",' * 99 + "1" + ',"["]' * 99, "depth", "at most 64 levels", id="brackets-in-strings"
    ),
    pytest.param(
        '["\\\\","\\"]",' * 99 + "1" + ',"["]' * 99, "depth", "at most 64 levels", id="escapes"
    ),
    pytest.param("9" * 4301, "digits", "at most 4300 digits", id="digits"),
    pytest.param("[1e400]", "number", "expected a finite number, got 1e400", id="exponent"),
    pytest.param("[-Infinity]", "number", "expected a finite number, got -Infinity", id="infinity"),
    pytest.param('{"a": {"b": 1, "b": 2}}', "key", "each key once, got `b` twice", id="twice"),
    pytest.param('["\\ud83d"]', "character", "half of a surrogate pair", id="half"),
    pytest.param('["\ud83d"]', "character", "half of a surrogate pair", id="bare-half"),
    pytest.param(
        b'["\xff"]', "character", "expected UTF-8, got something else at byte 2", id="bytes"
    ),
    pytest.param("[1,\n]", "syntax", "at line 2 column 1", id="syntax"),
    pytest.param("", "syntax", "line 1 column 1", id="nothing"),
    pytest.param("[1] 2", "syntax", "Extra data at line 1 column 5", id="more"),
    pytest.param(
        "[" + "1," * 10**6 + "1]", "size", "at most 1000000 characters, got 2000003", id="size"
    ),
]


@pytest.mark.parametrize(("text", "code", "says"), MALFORMED)
def test_what_is_malformed_is_said_with_its_place(text: str | bytes, code: str, says: str) -> None:
    most = 1_000_000 if code == "size" else 1 << 24
    with pytest.raises(Malformed) as refused:
        read_json(text, most=most)
    assert (refused.value.code, says in str(refused.value)) == (code, True), str(refused.value)


LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda one: st.lists(one) | st.dictionaries(st.text(), one))


@given(VALUES)
def test_what_json_writes_is_read_again(value: Any) -> None:
    text = json.dumps(value)
    for strictness in (MESSAGE, LOOSE):
        assert read_json(text, strictness) == value
    assert read_next(f"{text} {text}", 0, LOOSE)[0] == value


def test_the_bound_of_depth_is_exact() -> None:
    for begin, end in (("[", "]"), ('{"a":', "}")):
        for depth in (DEEPEST - 1, DEEPEST):
            read_json(begin * depth + "1" + end * depth)
        with pytest.raises(Malformed, match="levels"):
            read_json(begin * (DEEPEST + 1) + "1" + end * (DEEPEST + 1))


TABLES = [
    pytest.param("a = " + "[" * 3000 + "]" * 3000, "depth", id="lists"),
    pytest.param("a = " + "{a = " * 3000 + "1" + "}" * 3000, "depth", id="tables"),
    pytest.param("a = " + "[" * 100 + "]" * 100, "depth", id="lists-that-the-parser-takes"),
    pytest.param(".".join("a" * 10_000) + " = 1", "depth", id="a-key-of-very-many-parts"),
    pytest.param(
        ".".join("a" * 100_000) + " = 1", "size", id="a-key-of-more-parts-than-are-counted"
    ),
    pytest.param("[" + ".".join("a" * 70) + "]", "depth", id="a-header-of-many-parts"),
    pytest.param("a = " + "9" * 5000, "digits", id="digits"),
    pytest.param("a = 1\na = 2", "syntax", id="twice"),
    pytest.param("a = '" + "x" * 300_000 + "'", "size", id="size"),
    pytest.param(b"a = '\xff'", "character", id="bytes"),
]


@pytest.mark.parametrize(("text", "code"), TABLES)
def test_a_table_out_of_bounds_is_malformed_at_once(text: str | bytes, code: str) -> None:
    def read() -> None:
        with pytest.raises(Malformed) as refused:
            read_toml(text)
        assert refused.value.code == code

    assert least_s(1, lambda: time_of(read)) <= 1


def test_an_ordinary_table_is_read_with_its_byte_order_mark() -> None:
    assert read_toml("\ufeffa.b = ['x.y.z']\n[c]\nd = 1\n".encode()) == {
        "a": {"b": ["x.y.z"]},
        "c": {"d": 1},
    }
