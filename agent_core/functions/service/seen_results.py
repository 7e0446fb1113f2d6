"""Observed types of results, for functions with a declared return type that says little or nothing.

Only the shape of a value is kept. For functions of the workspace, keys are kept only if they occur in the source,
because any other key may be data. MCP tools have no source here: the shape of their results is only available to the
agent that called them.
"""

import ast
import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.synopsis import are_keys
from agent_core.storage import CallStore, SaveSeen, Write
from sandbox import Returned
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from ..answers import CallOutcome

Shape: TypeAlias = "str | list[Shape] | dict[str, Shape]"
"""The name of a type, a list of item shapes, or a dictionary of shapes by key; `*` means any key.

`*json` has the shape of JSON inside a text, which is how most tools of MCP servers answer.
"""

_SCALARS: Final = {str: "str", int: "int", float: "float", bool: "bool", type(None): "None", bytes: "bytes"}
_CONTAINERS: Final = frozenset({"list", "dict", "tuple", "set", "frozenset", "Sequence", "Mapping", "Iterable"})
_CLEAR: Final = frozenset(_SCALARS.values()) | _CONTAINERS | {"Literal", "Optional", "Union"}
_ANY_KEY: Final = "*"
_IN_TEXT: Final = "*json"
_MOST_TEXT: Final = 20_000
"""The number of characters up to which a text is searched for JSON."""
_MOST_ITEMS: Final = 8
_MOST_DEPTH: Final = 3
_LONGEST: Final = 160
"""The maximum number of characters of a type, which is part of every request."""


def shape_of(value: object, keys: Callable[[str], bool], depth: int = 0) -> Shape:
    """Return the shape of a value. The keys of a dictionary are kept if `keys` allows all of them."""
    if depth >= _MOST_DEPTH:
        return type(value).__name__ if isinstance(value, list | dict) else _SCALARS.get(type(value), "Any")
    match value:
        case list() | tuple():
            items = [shape_of(item, keys, depth + 1) for item in value[:_MOST_ITEMS]]
            return [item for at, item in enumerate(items) if item not in items[:at]]
        case dict():
            if are_keys(value) and all(map(keys, value)):
                return {key: shape_of(item, keys, depth + 1) for key, item in value.items()}
            inner = shape_of([*islice(value.values(), _MOST_ITEMS)], keys, depth)
            return {_ANY_KEY: inner[0] if isinstance(inner, list) and len(inner) == 1 else "Any"}
    return _SCALARS.get(type(value), "Any")


def type_text(shape: object, depth: int = 0) -> str:
    """Return a shape as a Python type; an empty text if it is invalid or too long."""
    match shape:
        case str() if shape in _CLEAR or shape == "Any":
            text = shape
        case [] | {} if not shape:
            text = "list" if isinstance(shape, list) else "dict"
        case [*items] if depth <= _MOST_DEPTH:
            text = _of_parts("list[{}]", " | ", [type_text(item, depth + 1) for item in items])
        case {"*": inner}:
            text = _of_parts("dict[str, {}]", "", [type_text(inner, depth + 1)])
        case {"*json": inner}:
            text = _of_parts("str with the JSON of {}", "", [type_text(inner)])
        case {**values} if depth <= _MOST_DEPTH and are_keys(values):
            types = [(key, type_text(value, depth + 1)) for key, value in values.items()]
            text = _of_parts("{{{}}}", ", ", [f"{key}: {kind}" if kind else "" for key, kind in types])
        case _:
            text = ""
    return text if len(text) <= _LONGEST else ""


def _of_parts(form: str, between: str, parts: Collection[str]) -> str:
    return form.format(between.join(parts)) if all(parts) else ""


def _in_text(value: object) -> object:
    """Return the object or list that a text holds as JSON, or None."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")) or len(value) > _MOST_TEXT:
        return None
    try:
        return read_json(value, LOOSE)
    except Malformed:
        return None


@lru_cache(maxsize=4096)
def says_little(declared: str) -> bool:
    """Check whether a declared type says little about results: it is missing, `Any`, a bare container, or a class."""
    try:
        tree = ast.parse(declared, mode="eval").body if declared else ast.Name("Any")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    inside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    keys = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in keys]
    return any(node.id not in _CLEAR or (node.id in _CONTAINERS and id(node) not in inside) for node in names)


class SeenResults:
    """The observed result types, by agent, function and version."""

    def __init__(self, store: CallStore, snapshot: Callable[[], Snapshot]) -> None:
        self._store = store
        self._snapshot = snapshot
        self._texts: dict[tuple[str, str, str], str] = {}
        self._is_loaded = False

    async def load(self) -> None:
        """Load the stored types once; what other processes observe later is loaded at the next start."""
        if not self._is_loaded:
            self._is_loaded = True
            stored = {(row.agent, row.function, row.version): type_text(row.shape) for row in await self._store.seen()}
            self._texts = stored | self._texts

    def of(self, function: Function, agent: str) -> str:
        """Return the type of a function's newest result that this agent may see; empty if the declared one suffices."""
        if not says_little(function.returns):
            return ""
        name, version = function.name, function.body_hash or function.version
        return self._texts.get(("", name, version)) or self._texts.get((agent, name, version), "")

    def note(self, function: Function, outcome: CallOutcome, agent: str) -> tuple[Write, ...]:
        """Return the write of a result's shape if it is new."""
        if not isinstance(outcome, Returned) or not says_little(function.returns):
            return ()
        source = self._snapshot().modules.get(function.module)
        inside = _in_text(outcome.value)
        shape = shape_of(
            inside or outcome.value, lambda key: source is None or re.search(rf"\b{key}\b", source.text) is not None
        )
        shape = {_IN_TEXT: shape} if inside else shape
        key = "" if source else agent, function.name, function.body_hash or function.version
        text = type_text(shape)
        if self._texts.get(key) == text:
            return ()
        self._texts[key] = text
        return (SaveSeen(*key, shape),)
