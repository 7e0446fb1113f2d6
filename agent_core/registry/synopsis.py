"""A function as one line of Python: its signature, made from its schema, and its purpose."""

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_core.base.untrusted import one_line, visible
from sandbox.wire.lines import bare_lines

if TYPE_CHECKING:
    from .function import Function

_NAMES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_MOST_VALUES: Final = 8
"""The maximum number of values that are listed of an enumeration."""
_MOST_DEPTH: Final = 3
_SIGNATURE_CHARS: Final = 400
_LINE_CHARS: Final = 36
_KEY: Final = re.compile(r"[A-Za-z_]\w{0,29}", re.ASCII)
_MOST_KEYS: Final = 8
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n")


def signature(function: "Function", seen: str = "") -> str:
    """Return the Python signature; a parameter without a type is a `str`. `seen` is the observed type of a result."""
    required = frozenset(function.parameters.get("required", ()))
    parts = function.parameters.get("properties", {}).items()
    gives = f" -> {function.returns or 'Any'}" if function.returns or seen else ""
    gives += f" (seen: {seen})" if seen else ""
    line = f"{function.name}({', '.join(_parameter(name, part, required) for name, part in parts)}){gives}"
    return one_line(line, _SIGNATURE_CHARS)


def first_sentence(description: str) -> str:
    """Return the first sentence of a description."""
    return " ".join(_SENTENCE.split(description.strip(), 1)[0].split())


def line_of(function: "Function", seen: str = "") -> str:
    """Return the signature, with the observed type of a result, and the beginning of the description."""
    about = next(iter(bare_lines(function.description)), "")
    first = about.split(". ", 1)[0].split("; ", 1)[0].rstrip(". ")
    if len(first) > _LINE_CHARS:
        first = f"{first[:_LINE_CHARS].rsplit(' ', 1)[0]}…"
    return f"{signature(function, seen)}{': ' if first else ''}{visible(first)}"


def _parameter(name: str, schema: object, required: Collection[str]) -> str:
    kind = type_of(schema)
    if name in required:
        return name if kind == "str" else f"{name}: {kind}"
    default = schema.get("default") if isinstance(schema, Mapping) else None
    if default is None:
        kind = kind.removesuffix(" | None")
    return f"{name}={default!r}" if kind == "str" else f"{name}: {kind} = {default!r}"


def are_keys(names: Collection[object]) -> bool:
    """Check whether a type can list these keys of an object: they are few, short, and identifiers."""
    return len(names) <= _MOST_KEYS and all(isinstance(name, str) and _KEY.fullmatch(name) for name in names)


def type_of(schema: object, depth: int = 0, *, with_keys: bool = False) -> str:
    """Return a JSON Schema as a Python type, `Any` if it has none. With `with_keys`, objects list their keys."""
    inner = partial(type_of, depth=depth + 1, with_keys=with_keys)
    match schema if depth <= _MOST_DEPTH else None:
        case {"enum": [*values]}:
            more = ", …" if len(values) > _MOST_VALUES else ""
            text = f"Literal[{', '.join(repr(value) for value in values[:_MOST_VALUES])}{more}]"
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            text = " | ".join(dict.fromkeys(inner(option) for option in options[:_MOST_VALUES]))
        case {"type": [*kinds]}:
            text = " | ".join(_NAMES.get(str(kind), "Any") for kind in kinds[:_MOST_VALUES])
        case {"type": "array", "items": {} as items} if items:
            text = f"list[{inner(items)}]"
        case {"properties": {} as parts} if with_keys and parts and are_keys(parts):
            text = f"{{{', '.join(f'{key}: {inner(part)}' for key, part in parts.items())}}}"
        case {"type": "object", "additionalProperties": {} as values} if values:
            text = f"dict[str, {inner(values)}]"
        case {"type": kind}:
            text = _NAMES.get(str(kind), "Any")
        case _:
            text = "Any"
    return text
