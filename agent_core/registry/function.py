"""One function as the registry knows it, its signature and description in short, and the result of reading a module.

Plain values without syntax trees: everything that the model is shown, that a call needs and that messages name.
`ModuleReading.to_json` and `from_json` are for the parse cache; `Function.to_json` is the published shape.
"""

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.matching import Wildcard
from agent_core.base.problem import Problem
from agent_core.base.records import dataclass, field, fields_to_json, published_as
from agent_core.base.untrusted import one_line, visible
from sandbox.wire.lines import bare_lines

from .examples import Example

if TYPE_CHECKING:
    from .source import ModuleSource


# Increase this whenever reading changes, so that caches of older readers are dropped. The Python version is part of it,
# because a text may parse on one version but not on another.
CACHE_FORMAT = f"8/{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Function:
    """One callable function with its JSON Schema; `line` is that of the first decorator or of the `def`.

    `rest` and `extra` are the names of its `*args` and `**kwargs`, which calls pass as a list and as an object.
    """

    name: str
    module: str
    path: str
    line: int
    end_line: int
    description: str
    parameters: dict[str, Any] = field(hash=False)  # JSON Schema of an object, draft 2020-12
    is_async: bool = field(metadata=published_as("async"))
    takes_self: bool
    returns: str
    unresolved: tuple[str, ...]
    version: str
    body_hash: str
    examples: tuple[Example, ...]
    rest: str = ""
    extra: str = ""

    def to_json(self) -> dict[str, Any]:  # Any: the published shape
        """Return the published shape of the schema."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "module": self.module,
            "path": self.path,
            "line": self.line,
            "async": self.is_async,
        }


def reach_words(reach: Iterable[str]) -> str:
    """Return one phrase for what a function accesses apart from its arguments."""
    return "; ".join(reach) or "computes only"


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_OF_THE_SOURCE = (
    "module",
    "path",
    "version",
)  # fields of a function that its cached form leaves out


def attempt_mark(module: str, folders: Iterable[str]) -> tuple[str, str]:
    """Return what `leans` begins with if no worker could describe the module with the packages in these folders."""
    return module, " ".join(folders)


@dataclass(frozen=True)
class ModuleReading:
    """The functions that a module offers, every problem found, and the workspace modules that it may import.

    `parsed` is false if the whole module is rejected; its last good version must then stay in force. `leans` are the
    other modules that determined a schema when a worker imported the module, with their versions, or without one if no
    worker has. If a worker failed, the module itself is the first, with the folders of the packages that it had.
    """

    source: "ModuleSource"
    functions: tuple[Function, ...]
    problems: tuple[Problem, ...]
    imports: tuple[str, ...]
    parsed: bool = True
    leans: tuple[tuple[str, str], ...] = ()

    def function(self, name: str) -> Function | None:
        """Return the function with this name if the module offers it, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Function]:
        return {function.name: function for function in reversed(self.functions)}

    def is_outdated(self, modules: Mapping[str, "ModuleSource"]) -> bool:
        """Check whether a module that determines a schema has another text among these modules."""
        return any(
            module in modules and modules[module].version != version
            for module, version in self.leans
        )

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the reading without its source's text, for the parse cache."""
        functions = [
            {
                name: value
                for name, value in fields_to_json(function).items()
                if name not in _OF_THE_SOURCE
            }
            for function in self.functions
        ]
        return {
            "format": CACHE_FORMAT,
            "version": self.source.version,
            "functions": functions,
            "problems": [problem.to_json() for problem in self.problems],
            "imports": list(self.imports),
            "parsed": self.parsed,
            "leans": self.leans,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: "ModuleSource") -> "ModuleReading | None":
        """Return the cached reading of this source; None if it is of another text or from another reader version."""
        if data.get("format") != CACHE_FORMAT or data.get("version") != source.version:
            return None
        own = {"module": source.module, "path": source.path, "version": source.version}
        functions = list[Function]()
        for row in data["functions"]:
            # A cache may come with someone else's folder: reject anything that would break every request.
            parameters, is_described = row["parameters"], isinstance(row["description"], str)
            if not (
                _NAME.fullmatch(row["name"]) and is_described and parameters.get("type") == "object"
            ):
                raise ValueError("not what a reading holds")
            examples = tuple(
                Example(
                    **{
                        **each,
                        "setup": tuple(each["setup"]),
                        "options": tuple(map(tuple, each["options"])),
                    }
                )
                for each in row["examples"]
            )
            functions.append(
                Function(
                    **{**row, **own, "unresolved": tuple(row["unresolved"]), "examples": examples}
                )
            )
        return cls(
            source,
            tuple(functions),
            tuple(map(Problem.from_json, data["problems"])),
            tuple(data["imports"]),
            data["parsed"],
            tuple((module, version) for module, version in data["leans"]),
        )


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
_LINE_CHARS: Final = 30
_KEY: Final = re.compile(r"[A-Za-z_]\w{0,29}", re.ASCII)
_MOST_KEYS: Final = 8
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n\s*\n")


def signature(function: "Function", seen: str = "") -> str:
    """Return the Python signature; a parameter without a type is a `str`. `seen` is the observed type of a result."""
    required = frozenset(function.parameters.get("required", ()))
    shown = list[str]()
    for name, schema in function.parameters.get("properties", {}).items():
        kind = type_of(schema)
        if name in required:
            shown.append(name if kind == "str" else f"{name}: {kind}")
            continue
        default = schema.get("default") if isinstance(schema, Mapping) else None
        if default is None:
            kind = kind.removesuffix(" | None")
        shown.append(f"{name}={default!r}" if kind == "str" else f"{name}: {kind} = {default!r}")
    gives = f" -> {function.returns or 'Any'}" if function.returns or seen else ""
    gives += f" (seen: {seen})" if seen else ""
    return one_line(f"{function.name}({', '.join(shown)}){gives}", _SIGNATURE_CHARS)


def first_sentence(description: str) -> str:
    """Return the first sentence of a description."""
    return " ".join(_SENTENCE.split(description.strip(), 1)[0].split())


def fits(patterns: Iterable[str], function: "Function") -> bool:
    """Check whether one of the patterns names a function: `slug`, `text.slug`, `text.*`, `count_*`."""
    names = (function.name, f"{function.module}.{function.name}")
    return any(_wildcard(pattern).fits(name) for pattern in patterns for name in names)


_wildcard: Final = lru_cache(maxsize=256)(Wildcard)


def line_of(function: "Function", seen: str = "") -> str:
    """Return the signature, with the observed type of a result, and the beginning of the description."""
    about = next(iter(bare_lines(function.description)), "")
    first = about.split(". ", 1)[0].split("; ", 1)[0].rstrip(". ")
    if len(first) > _LINE_CHARS:
        first = f"{first[:_LINE_CHARS].rsplit(' ', 1)[0]}…"
    return f"{signature(function, seen)}{': ' if first else ''}{visible(first)}"


def are_keys(names: Collection[object]) -> bool:
    """Check whether a type can list these keys of an object: they are few, short, and identifiers."""
    return len(names) <= _MOST_KEYS and all(
        isinstance(name, str) and _KEY.fullmatch(name) for name in names
    )


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
