"""Mistakes that models make in call arguments: each kind turns a good call and its schema into wrong texts."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Call = dict[str, Any]  # Any: JSON
Make = Callable[[Call, Call], Iterator[str]]
Change = Callable[[Any, Call], Iterator[Any]]  # a value and its schema → the value with a mistake

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _inside(value: Any, schema: Call, change: Change) -> Iterator[Any]:
    yield from change(value, schema)
    if isinstance(value, dict):
        for name, part in value.items():
            for changed in _inside(part, schema.get("properties", {}).get(name, {}), change):
                yield {**value, name: changed}
    elif isinstance(value, list):
        for at, part in enumerate(value):
            for changed in _inside(part, schema.get("items", {}), change):
                yield [*value[:at], changed, *value[at + 1 :]]


def _values(change: Change) -> Make:
    """Return a maker that changes one value of the call at a time, also within objects and lists."""

    def make(call: Call, schema: Call) -> Iterator[str]:
        for name, part in call.items():
            for changed in _inside(part, schema.get("properties", {}).get(name, {}), change):
                yield json.dumps({**call, name: changed})

    return make


def _number_text(value: Any, schema: Call) -> Iterator[Any]:
    if type(value) in (int, float):
        yield str(value)


def _trailing_zero(value: Any, schema: Call) -> Iterator[Any]:
    if type(value) is int and schema.get("type") == "integer":
        yield float(value)


def _case(value: Any, schema: Call) -> Iterator[Any]:
    if isinstance(value, str) and "enum" in schema:
        yield from {
            value.upper(),
            value.title(),
            value.replace("_", " "),
            value.replace(" ", "-"),
        } - {value}


def _synonym(value: Any, schema: Call) -> Iterator[Any]:
    if isinstance(value, str) and "enum" in schema:
        yield from (f"the {value}", value[:1], f"{value}s")


def _bare(value: Any, schema: Call) -> Iterator[Any]:
    if isinstance(value, list) and len(value) == 1:
        yield value[0]


def _words(*words: tuple[Any, Any]) -> Change:
    def change(value: Any, schema: Call) -> Iterator[Any]:
        if isinstance(value, bool):
            yield from (pair[not value] for pair in words)

    return change


def _separated(mark: str) -> Change:
    def change(value: Any, schema: Call) -> Iterator[Any]:
        if (
            isinstance(value, list)
            and value
            and not any(isinstance(part, list | dict) for part in value)
        ):
            yield mark.join(str(part) for part in value)

    return change


def _encoded(value: Any, schema: Call) -> Iterator[Any]:
    if isinstance(value, list | dict):
        yield json.dumps(value)


def _python(value: Any, schema: Call) -> Iterator[Any]:
    if isinstance(value, list | dict) and value:
        yield repr(value)


def _absent(*words: Any) -> Make:
    def make(call: Call, schema: Call) -> Iterator[str]:
        for name in schema.get("properties", {}):
            if name not in call and name not in schema.get("required", ()):
                yield from (json.dumps({**call, name: word}) for word in words)

    return make


def _flattened(key: Callable[[str, str], str], *, whole: bool) -> Make:
    """Return a maker that moves the properties of a nested object (or one of them) up into its parent."""

    def make(call: Call, schema: Call) -> Iterator[str]:
        own = schema.get("properties", {})
        for name, part in call.items():
            if isinstance(part, dict) and part and own.get(name, {}).get("properties"):
                lifted = {key(name, inner): item for inner, item in part.items()}
                rest = {other: item for other, item in call.items() if other != name}
                if whole and not lifted.keys() & rest.keys():
                    yield json.dumps({**rest, **lifted})
                first, *others = part
                if not whole and others and key(name, first) not in call:
                    yield json.dumps(
                        {**call, name: {k: part[k] for k in others}, key(name, first): part[first]}
                    )

    return make


def _keys(rename: Callable[[str], str]) -> Make:
    """Return a maker that renames all declared keys, also within objects."""

    def renamed(value: Any, schema: Any) -> Any:
        if isinstance(value, list):
            return [renamed(part, schema.get("items", {})) for part in value]
        if not isinstance(value, dict):
            return value
        own = schema.get("properties", {})
        return {
            rename(n) if n in own else n: renamed(part, own.get(n, {})) for n, part in value.items()
        }

    def make(call: Call, schema: Call) -> Iterator[str]:
        changed = renamed(call, schema)
        if changed != call:
            yield json.dumps(changed)

    return make


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _WORD.findall(name)] or [name]


def _camel(name: str) -> str:
    first, *rest = _parts(name)
    return first + "".join(part.title() for part in rest)


def _text(*forms: str) -> Make:
    def make(call: Call, schema: Call) -> Iterator[str]:
        yield from (form.replace("%", json.dumps(call)) for form in forms)

    return make


def _wrapped(call: Call, schema: Call) -> Iterator[str]:
    yield from (
        json.dumps({key: call}) for key in ("arguments", "parameters", "args", "input", "kwargs")
    )
    yield json.dumps({"arguments": json.dumps(call)})


def _with_name(call: Call, schema: Call) -> Iterator[str]:
    yield json.dumps({"name": "the_function", "arguments": call})


MISTAKES: Final[dict[str, Make]] = {
    "number as text": _values(_number_text),
    "`.0` for an integer": _values(_trailing_zero),
    "boolean as `true`, `yes`, `on`": _values(
        _words(("True", "False"), ("yes", "no"), ("On", "Off"))
    ),
    "boolean as 1, `y`": _values(_words((1, 0), ("1", "0"), ("y", "n"))),
    "choice in other letters": _values(_case),
    "choice by another word": _values(_synonym),
    "one value for a list": _values(_bare),
    "list as text with commas": _values(_separated(", ")),
    "list as text, no spaces": _values(_separated(",")),
    "list as text with other signs": _values(_separated("; ")),
    "object or list as JSON text": _values(_encoded),
    "object or list as Python text": _values(_python),
    "null for absent": _absent(None),
    "`None`, `null` as text for absent": _absent("None", "null"),
    "nested object flattened": _flattened(lambda outer, inner: inner, whole=True),
    "nested object in part flattened": _flattened(lambda outer, inner: inner, whole=False),
    "flattened with its name before": _flattened(
        lambda outer, inner: f"{outer}_{inner}", whole=True
    ),
    "dotted keys": _flattened(lambda outer, inner: f"{outer}.{inner}", whole=True),
    "keys in camelCase": _keys(_camel),
    "keys in PascalCase": _keys(lambda name: "".join(part.title() for part in _parts(name))),
    "keys in snake_case": _keys(lambda name: "_".join(_parts(name))),
    "keys in kebab-case": _keys(lambda name: "-".join(_parts(name))),
    "keys in capitals": _keys(str.upper),
    "keys by another name": _keys(lambda name: f"the_{name}"),
    "prose around the JSON": _text(
        "Sure, here is the call:\n%",
        "%\nThis should work.",
        "Here you go:\n```json\n%\n```\nDone.",
        "Arguments: %",
    ),
    "wrapped in `arguments` and the like": _wrapped,
    "wrapped, with the function's name": _with_name,
    "fence, trailing comma, encoded twice": lambda call, schema: iter(
        [
            f"```json\n{json.dumps(call)}\n```",
            json.dumps(json.dumps(call)),
            *([f"{json.dumps(call)[:-1]},}}"] if call else []),
        ]
    ),
    "Python instead of JSON": lambda call, schema: iter(
        [repr(call)] if repr(call) != json.dumps(call) else []
    ),
}
