"""Turns a tool of an MCP server into a function with a safe name, a fenced text, and the approved schema.

A stranger wrote all of this, possibly for the model to read. Anything that is not a schema, is too large or hides
characters is left out, with the reason. Text that reads like an instruction is shown to the user for approval.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from agent_core.base.untrusted import CONTROLS, UNSEEN, fence, one_line, shorten, visible
from agent_core.registry.function import Function, type_of
from agent_core.registry.validation import leads_astray
from sandbox.wire.strict_json import LOOSE, read_json, read_toml

MOST_TOOLS: Final = 200
_MOST_SCHEMA: Final = 20_000  # of a schema or a description
_DEEPEST: Final = 24
_DESCRIBED: Final = 600
_SAID: Final = 200  # of a description inside a schema
_MOST_RESULT: Final = 100_000
_MOST_RETURNS: Final = 160  # of a type, which is part of every request
RESULT: Final = "outputSchema"
_LONGEST: Final = 64
_HIDDEN: Final = re.compile(f"[{CONTROLS}{UNSEEN}]")


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool as listed by its server: its original text and schema, and what is suspicious about them."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)  # Any: JSON Schema
    returns: str = ""  # the declared type of its results, if any

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the parts that an approval covers."""
        returns = {"returns": self.returns} if self.returns else {}
        return {"description": self.description, "parameters": dict(self.parameters), **returns}

    @property
    def suspicions(self) -> list[str]:
        """The passages that seem to address a model rather than a reader of the description."""
        text = f"{self.name} {self.description} {self.returns} {json.dumps(self.parameters, ensure_ascii=False)}"
        return [why for pattern, why in _patterns() if pattern.search(text)]


@dataclass(frozen=True, slots=True)
class ForeignListing:
    """The tools of a server that can be functions, by name, and the reasons why others cannot."""

    tools: Mapping[str, ForeignTool] = field(hash=False)
    problems: tuple[str, ...] = ()


def read_tools(rows: Iterable[tuple[str, str, object] | tuple[str, str, object, object]]) -> ForeignListing:
    """Return the tools of a server, from rows of name, description, schema, and possibly the schema of results."""
    rows = list(rows)
    counts = Counter(row[0] for row in rows)
    tools, problems = dict[str, ForeignTool](), list[str]()
    for name, description, schema, *result in rows:
        if len(tools) >= MOST_TOOLS:
            problems.append(f"it lists {len(rows):,} tools or more, of which the first {MOST_TOOLS} are read")
            break
        if why := "two tools have this name" if counts[name] > 1 else _unfit(name, description, schema):
            problems.append(f"{fence(name, 80)}: {why}")
        elif isinstance(schema, dict):
            returns = type_of(result[0], with_keys=True) if result and isinstance(result[0], dict) else ""
            tools[name] = ForeignTool(name, description, schema, returns if len(returns) <= _MOST_RETURNS else "")
    return ForeignListing(tools, tuple(dict.fromkeys(problems))[:50])


def _unfit(name: str, description: str, schema: object) -> str:
    if not name.strip() or len(name) > 200 or len(description) > _MOST_SCHEMA:
        return "its name is empty or too long" if len(description) <= _MOST_SCHEMA else "its description is too long"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its schema describes no object"
    try:
        text = json.dumps(schema, ensure_ascii=False)
        is_schema = len(text) > _MOST_SCHEMA or _is_schema(text)
    except (ValueError, RecursionError, TypeError):
        is_schema = False
    if not is_schema:
        return "its schema is no schema"
    if len(text) > _MOST_SCHEMA or _depth(schema) > _DEEPEST:
        return "its schema is too large"
    if any(not reference.startswith("#") for reference in _references(schema)) or leads_astray(schema):
        return "its schema refers to another document, to nothing, or to itself without end"
    return "its name or schema holds hidden letters" if _HIDDEN.search(name + text) else ""


@lru_cache(maxsize=1024)
def _is_schema(text: str) -> bool:
    try:
        Draft202012Validator.check_schema(read_json(text, LOOSE))
    except SchemaError:
        return False
    return True


def _depth(value: object, level: int = 0) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return level if level > _DEEPEST else max((_depth(part, level + 1) for part in inner), default=level)


def _references(value: object) -> list[str]:
    if isinstance(value, list):
        return [reference for part in value for reference in _references(part)]
    if not isinstance(value, dict):
        return []
    own = [str(value[key]) for key in ("$ref", "$dynamicRef", "$schema") if isinstance(value.get(key), str)]
    own = [reference for reference in own if not reference.startswith("http://json-schema.org/")]
    own = [reference for reference in own if not reference.startswith("https://json-schema.org/")]
    return own + [reference for part in value.values() for reference in _references(part)]


def functions_of(server: str, tools: Mapping[str, ForeignTool]) -> dict[str, tuple[Function, str]]:
    """Return the functions for approved tools, by name, each with the tool's name on the server."""
    functions: dict[str, tuple[Function, str]] = {}
    for tool in tools.values():
        name = function_name(server, tool.name)
        if name in functions:
            name = f"{name[:57]}_{_short(tool.name)}"
        version = hashlib.sha256(json.dumps(tool.to_json(), sort_keys=True).encode("utf-8", "replace")).hexdigest()
        says = fence(tool.description, _DESCRIBED)
        function = Function(
            name=name,
            module=f"mcp.{server}",
            path="mcp.toml",
            line=1,
            end_line=1,
            description=f"Foreign: a tool of the MCP server `{server}`, not made here. It says: {says}",
            parameters={"properties": {}, **_shorten_schema(tool.parameters)},
            is_async=False,
            takes_self=False,
            returns=tool.returns,
            unresolved=(),
            version=version,
            body_hash=version,
            examples=(),
        )
        functions[name] = function, tool.name
    return functions


def function_name(server: str, tool: str) -> str:
    """Return `server__tool`, restricted to the characters of a function's name."""
    name = f"{server}__{re.sub(r'[^A-Za-z0-9_]', '_', tool)}"
    is_whole = len(name) <= _LONGEST and name == f"{server}__{tool}"
    return name if is_whole else f"{name[:57]}_{_short(tool)}"


def _shorten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with short, visible descriptions; the parts that validate are not changed."""
    told: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("description", "title", "$comment") and isinstance(value, str):
            told[key] = one_line(value, _SAID)
        elif isinstance(value, dict):
            told[key] = _shorten_schema(value)
        elif isinstance(value, list):
            told[key] = [_shorten_schema(part) if isinstance(part, dict) else part for part in value]
        else:
            told[key] = value
    return told


def capped(text: str) -> str:
    """Return a result's text, made visible and shortened."""
    return shorten(visible(text), _MOST_RESULT)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    data = read_toml(Path(__file__).with_name("suspicions.toml").read_bytes())
    return [(re.compile(row["pattern"], re.IGNORECASE), row["why"]) for row in data["suspicion"]]
