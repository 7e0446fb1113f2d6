"""One function as the registry knows it, and the result of reading a module.

Plain values without syntax trees: everything that the model is shown, that a call needs and that messages name.
`ModuleReading.to_json` and `from_json` are for the parse cache; `Function.to_json` is the published shape.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agent_core.base.problem import Place, Problem

from .examples import Example, example_from_json, example_to_json

if TYPE_CHECKING:
    from .source import ModuleSource

# Increase this whenever reading changes, so that caches of older readers are dropped. The Python version is part of it,
# because a text may parse on one version but not on another.
CACHE_FORMAT = f"5/{sys.version_info.major}.{sys.version_info.minor}"


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
    is_async: bool
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
_STORED = (
    "name",
    "line",
    "end_line",
    "description",
    "parameters",
    "is_async",
    "takes_self",
    "returns",
    "unresolved",
    "body_hash",
    "rest",
    "extra",
)
_values_of = attrgetter(*_STORED)


@dataclass(frozen=True, slots=True)
class ModuleReading:
    """The functions that a module offers, every problem found, and the workspace modules that it may import.

    `parsed` is false if the whole module is rejected; its last good version must then stay in force. `leans` are the
    other modules that determined a schema when a worker imported the module, with their versions, or without one if no
    worker has.
    """

    source: "ModuleSource"
    functions: tuple[Function, ...]
    problems: tuple[Problem, ...]
    imports: tuple[str, ...]
    parsed: bool = True
    leans: tuple[tuple[str, str], ...] = ()

    def function(self, name: str) -> Function | None:
        """Return the function with this name if the module offers it, or None."""
        return next((function for function in self.functions if function.name == name), None)

    def is_outdated(self, modules: Mapping[str, "ModuleSource"]) -> bool:
        """Check whether a module that determines a schema has another text among these modules."""
        return any(module in modules and modules[module].version != version for module, version in self.leans)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return the reading without its source's text, for the parse cache."""
        return {
            "format": CACHE_FORMAT,
            "version": self.source.version,
            "functions": [
                [*_values_of(function), [example_to_json(example) for example in function.examples]]
                for function in self.functions
            ],
            "problems": [
                [
                    problem.code,
                    problem.message,
                    problem.where.path,
                    problem.where.line,
                    problem.where.column,
                    problem.fix,
                    problem.severity,
                ]
                for problem in self.problems
            ],
            "imports": list(self.imports),
            "parsed": self.parsed,
            "leans": self.leans,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], source: "ModuleSource") -> "ModuleReading | None":
        """Return the cached reading of this source; None if it is of another text or from another reader version."""
        if data.get("format") != CACHE_FORMAT or data.get("version") != source.version:
            return None
        return cls(
            source,
            tuple(_function(row, source) for row in data["functions"]),
            tuple(
                Problem(code, message, Place(path, line, column), fix, severity)
                for code, message, path, line, column, fix, severity in data["problems"]
            ),
            tuple(data["imports"]),
            data["parsed"],
            tuple((module, version) for module, version in data["leans"]),
        )


def _function(row: list[Any], source: "ModuleSource") -> Function:  # Any: what `to_json` wrote, or a stranger
    name, line, end_line, description, parameters, is_async, takes_self, returns, unresolved, body_hash, *tail = row
    rest, extra, examples = tail
    # A cache may come with someone else's folder: reject anything that would break every request.
    if not (_NAME.fullmatch(name) and isinstance(description, str) and parameters.get("type") == "object"):
        raise ValueError("not what a reading holds")
    return Function(
        name,
        source.module,
        source.path,
        line,
        end_line,
        description,
        parameters,
        is_async,
        takes_self,
        returns,
        tuple(unresolved),
        source.version,
        body_hash,
        tuple(example_from_json(example) for example in examples),
        rest,
        extra,
    )
