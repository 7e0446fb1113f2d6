"""Peculiarities of endpoints and models: the data of `quirks.toml`, read once."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, TypeAdapter

from sandbox.wire.foreign import read_toml

T = TypeVar("T")


def _compiled(text: str | list[str]) -> re.Pattern[str]:
    """Return a pattern, in any case, that may stand over several lines or be a list of alternatives."""
    lines = text.split("\n") if isinstance(text, str) else ["|".join(text)]
    return re.compile("".join(lines), re.IGNORECASE | re.DOTALL)


Pattern: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A pattern in a file of this package."""


def parsed_toml(name: str) -> dict[str, Any]:
    """Return a file of this package."""
    return read_toml(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


def as_kind(data: object, kind: type[T]) -> T:
    """Return data of this package as a dataclass, or a collection of one."""
    return TypeAdapter(kind).validate_python(data)


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server to look for on this machine."""

    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Instead:
    """The replacement for a refused parameter: the same value under another name, a fixed value, or nothing."""

    name: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """A path next to an endpoint where some servers report the window of their model, and its names there."""

    path: str
    names: tuple[str, ...]
    entries: str = ""
    model: str = "id"
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quirks:
    """All data of `quirks.toml`."""

    servers: tuple[ServerKind, ...]
    mute: Pattern
    openai_url: str
    openai_model: str
    overflow: Pattern
    no_credit: Pattern
    filtered: Pattern
    no_model: Pattern
    fixes: dict[str, str]
    refused: dict[str, Instead]
    known: tuple[tuple[Pattern, int], ...]
    assumed_window: int
    silent_hosts: frozenset[str]
    told_names: tuple[str, ...]
    own_names: tuple[str, ...]
    beside: tuple[WindowPlace, ...]


@cache
def quirks() -> Quirks:
    """Return the quirks that this version knows."""
    data = parsed_toml("quirks.toml")
    tables = ("listed", "openai", "wordings", "windows")
    return as_kind({**data, **{key: value for table in tables for key, value in data[table].items()}}, Quirks)
