"""Which functions a small model is told of, and in what few words. Pure values.

Every function shown costs a small model time and attention. So the fixed text lists a handful; a function
of the workspace is told of where it may help: its words are in the user's message, or it is new.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from sandbox.foreign import read_toml

from .request import FunctionShown

_WORD = re.compile(r"[^\W\d_]{2,}")
_NAME_WEIGHT: Final = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """The data of `constrained.toml`."""

    always: tuple[str, ...]
    finds: frozenset[str]
    most_found: int
    enough: int
    making: re.Pattern[str]
    after_result: str
    remembers: Mapping[str, str]
    after_change: str
    common: frozenset[str]
    hidden: Mapping[str, frozenset[str]]
    asked: Mapping[str, frozenset[str]]

    @property
    def about_functions(self) -> frozenset[str]:
        """The functions about functions that are known here: their answers say what comes next."""
        return frozenset({*self.always, *self.hidden, *self.asked}) - self.finds

    def after(self, function: str) -> str:
        """What is said after the answer of a function."""
        if function in self.remembers:
            return self.remembers[function]
        return self.after_change if function in self.about_functions else self.after_result


@cache
def choice() -> Choice:
    """What is listed always, what is found, and what is left out."""
    data = read_toml(resources.files(__package__).joinpath("constrained.toml").read_text(encoding="utf-8"))
    return Choice(
        always=tuple(data["always"]),
        finds=frozenset(data["finds"]),
        most_found=data["most_found"],
        enough=data["enough"],
        making=re.compile(data["making"], re.IGNORECASE | re.DOTALL),
        after_result=data["after_result"],
        remembers=data["remembers"],
        after_change=data["after_change"],
        common=frozenset(data["common"].split()),
        hidden={name: frozenset(each) for name, each in data["hidden"].items()},
        asked={name: frozenset(each) for name, each in data["asked"].items()},
    )


def trim(function: FunctionShown) -> FunctionShown:
    """The function as a small model is shown it: without some optional parameters, and names after texts.

    A code that ends the object ends it in `"}}}`, and what the code itself ends in, such as `'`, melts into
    one rare token with that: the model then wrote `'}}}` into the code (3 of 10 requests).
    """
    properties: Mapping[str, Any] = function.parameters.get("properties", {})
    hidden = choice().hidden.get(function.name, frozenset()) - {*function.parameters.get("required", ())}
    order = sorted(properties.keys() - hidden, key=lambda name: (name.endswith("_name"), [*properties].index(name)))
    if order == [*properties]:
        return function
    parameters = {**function.parameters, "properties": {name: properties[name] for name in order}}
    return FunctionShown(function.name, function.description, parameters)


def describe(function: FunctionShown) -> str:
    """All that the model needs for a call: the signature, what it does, and each described parameter."""
    described = _described(function.parameters)
    return "\n".join([line(function), *(f"  {name}: {text}" for name, text in described)])


def line(function: FunctionShown) -> str:
    """The signature and the first sentence of the description, in one line."""
    first = function.description.strip().partition("\n")[0]
    return f"{_signature(function)} - {first}" if first else _signature(function)


def find(message: str, functions: Iterable[FunctionShown]) -> list[FunctionShown]:
    """The functions that a message asks for by its words, best first; none where it asks for a new one."""
    if choice().making.search(message):
        return []
    asked = frozenset(_WORD.findall(message.lower()))
    scored = [(_score(asked, function), function) for function in functions]
    best = sorted((each for each in scored if each[0] >= choice().enough), key=lambda each: -each[0])
    return [function for _, function in best[: choice().most_found]]


def _score(asked: frozenset[str], function: FunctionShown) -> int:
    if words := choice().asked.get(function.name):
        return choice().enough if asked & words else 0
    meant = _telling(asked)
    name = _telling(function.name.lower().split("_"))
    first = function.description.partition("\n")[0]
    described = _telling(_WORD.findall(first.lower())) - name
    score = _NAME_WEIGHT * len(meant & name) + len(meant & described)
    return max(score, choice().enough) if name and name <= meant else score


def _telling(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words if word not in choice().common)


def _signature(function: FunctionShown) -> str:
    properties: Mapping[str, Any] = function.parameters.get("properties", {})
    required = function.parameters.get("required", ())
    parameters = [
        f"{name}{'' if name in required else '?'}: {type_text(schema)}" for name, schema in properties.items()
    ]
    return f"{function.name}({', '.join(parameters)})"


def _described(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    properties: Mapping[str, Any] = parameters.get("properties", {})
    return [
        (name, " ".join(schema["description"].split()))
        for name, schema in properties.items()
        if schema.get("description")
    ]


def type_text(schema: Any) -> str:  # Any: JSON Schema
    """A type in a few characters: `string`, `integer[]`, `"a" | "b"`."""
    match schema:
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        case {"anyOf": list(branches)} | {"oneOf": list(branches)}:
            return " | ".join(type_text(branch) for branch in branches)
        case {"type": "array", "items": items}:
            return f"{type_text(items)}[]"
        case {"type": str(name)}:
            return name
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case _:
            return "any"
