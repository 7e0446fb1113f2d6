"""The functions that a small model is shown, and their short descriptions. Pure values.

Every function shown costs a small model time and attention. So the fixed text lists a handful; a function
of the workspace is shown when it may help: its words are in the user's message, or it is new.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from sandbox.wire.foreign import read_toml

from .request import FunctionShown

_WORD = re.compile(r"[^\W\d_]{2,}")
_NAME_WEIGHT: Final = 2


@dataclass(frozen=True, slots=True)
class ConstrainedModels:
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
    on_request: Mapping[str, frozenset[str]]

    @property
    def about_functions(self) -> frozenset[str]:
        """The known functions about functions; their answers say what to do next."""
        return frozenset({*self.always, *self.hidden, *self.on_request}) - self.finds

    def after(self, function: str) -> str:
        """Return the text to add to the answer of a function."""
        if function in self.remembers:
            return self.remembers[function]
        return self.after_change if function in self.about_functions else self.after_result


@cache
def choice() -> ConstrainedModels:
    """Return the data on what is always listed, what is found, and what is left out."""
    data = read_toml(resources.files(__package__).joinpath("constrained.toml").read_text(encoding="utf-8"))
    return ConstrainedModels(
        always=tuple(data["always"]),
        finds=frozenset(data["finds"]),
        most_found=data["most_found"],
        enough=data["enough"],
        making=re.compile(data["making"], re.IGNORECASE | re.DOTALL),
        after_result=data["after_result"],
        remembers=data["remembers"],
        after_change=data["after_change"],
        common=frozenset(data["common"].split()),
        hidden={name: frozenset(names) for name, names in data["hidden"].items()},
        on_request={name: frozenset(words) for name, words in data["asked"].items()},
    )


def trim(function: FunctionShown) -> FunctionShown:
    """Return the function as a small model sees it: without some optional parameters, with `…_name` parameters last.

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
    """Return all that the model needs for a call: the signature, the description, and each described parameter."""
    described = _described(function.parameters)
    return "\n".join([line(function), *(f"  {name}: {text}" for name, text in described)])


def line(function: FunctionShown) -> str:
    """Return the signature and the first sentence of the description, in one line."""
    first = function.description.strip().partition("\n")[0]
    return f"{_signature(function)} - {first}" if first else _signature(function)


def find(message: str, functions: Iterable[FunctionShown]) -> list[FunctionShown]:
    """Return the functions that match the words of a message, best first; none if it asks for a new function."""
    if choice().making.search(message):
        return []
    words = frozenset(_WORD.findall(message.lower()))
    scored = [(_score(words, function), function) for function in functions]
    best = sorted((pair for pair in scored if pair[0] >= choice().enough), key=lambda pair: -pair[0])
    return [function for _, function in best[: choice().most_found]]


def _score(request_words: frozenset[str], function: FunctionShown) -> int:
    if words := choice().on_request.get(function.name):
        return choice().enough if request_words & words else 0
    meant = _telling(request_words)
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
    """Return a type in a few characters: `string`, `integer[]`, `"a" | "b"`."""
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
