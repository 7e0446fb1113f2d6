"""What one endpoint does in its own way: the entry of `dialects.toml` whose address fits, over the plain defaults."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from typing import Any, Final
from urllib.parse import urlsplit

from sandbox.foreign import DEEPEST_ROW, LOOSE, read_json, read_toml

from .quirks import Instead

_SCHEMA: Final = '"SCHEMA"'
_EVERY_WAY: Final = ("json_schema", "json_object_schema", "structured_outputs", "guided_json", "json_object")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to hold a reply to a schema: its name, and what it adds to a request for a schema."""

    name: str
    constrain: Callable[[Mapping[str, Any]], dict[str, Any]]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Loading:
    """Where a server tells beside its endpoint how it loads models; the fields are explained in `dialects.toml`."""

    shown: str
    running: str
    load: str
    unset: int
    mend: str
    remote: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an endpoint is spoken to; the fields are explained in `dialects.toml`."""

    name: str = "another endpoint"
    address: str = ""
    system: str = "system"
    one_call: bool = False
    most_functions: int = 128
    strict: bool = False
    simple_schemas: bool = False
    id_pattern: str = "[a-zA-Z0-9_-]{1,40}"
    id_length: int = 32
    constraints: tuple[str, ...] = _EVERY_WAY
    loading: Loading | None = None
    missing_extra: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    instead: Mapping[str, Instead] = field(default_factory=dict)

    def call_id(self, given: str) -> str:
        """The id as this endpoint takes it: as it is, or another that is always the same for it."""
        if re.fullmatch(self.id_pattern, given):
            return given
        return hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[: self.id_length]

    def constrain(self, schema: Mapping[str, Any], form: int = 0) -> dict[str, Any]:  # Any: JSON
        """The part of a request that holds the reply to a schema; `form` counts the ways known for this endpoint."""
        template = _data()["constraints"][self.constraints[form]]
        body: dict[str, Any] = read_json(template.replace(_SCHEMA, json.dumps(schema)), LOOSE, deepest=DEEPEST_ROW)
        return body

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to hold a reply to a schema, in the order in which they are tried."""
        return tuple(Way(name, partial(self.constrain, form=form)) for form, name in enumerate(self.constraints))


@dataclass(frozen=True, slots=True)
class Change:
    """What a server says when it wants another way, and the fields of the dialect that give it."""

    says: re.Pattern[str]
    fields: Mapping[str, Any]  # Any: JSON


def wants_change(said: str) -> bool:
    """Whether a refusal in these words asks for another way of writing."""
    return any(change.says.search(said) for change in _changes())


def refuses(what: str, said: str) -> bool:
    """Whether a server that says this takes no `functions`, or not this `constraint` of the reply."""
    return _refusals()[what].search(said) is not None


def changed(dialect: Dialect, said: str) -> Dialect | None:
    """The dialect that a refusal in these words asks for; None where it asks for nothing, or has it already."""
    for change in _changes():
        if change.says.search(said) and (found := replace(dialect, **change.fields)) != dialect:
            return found
    return None


def dialect_of(url: str) -> Dialect:
    """The dialect of the endpoint at an address, known by its host, or by its port on this machine."""
    address = urlsplit(url).netloc.lower().rpartition("@")[2]
    return next((each for each in dialects() if re.search(each.address, address)), Dialect())


@cache
def dialects() -> tuple[Dialect, ...]:
    """Every endpoint that this version knows."""
    return tuple(_read(dict(entry)) for entry in _data()["endpoints"])


@cache
def _changes() -> tuple[Change, ...]:
    return tuple(
        Change(re.compile(each["says"], re.IGNORECASE | re.DOTALL), each["set"]) for each in _data()["changes"]
    )


@cache
def _refusals() -> dict[str, re.Pattern[str]]:
    lines = {what: "".join(pattern.split("\n")) for what, pattern in _data()["refusals"].items()}
    return {what: re.compile(line, re.IGNORECASE | re.DOTALL) for what, line in lines.items()}


def _read(entry: dict[str, Any]) -> Dialect:
    instead = {
        name: Instead(each.get("as", ""), each.get("value", "")) for name, each in entry.pop("instead", {}).items()
    }
    constraints = tuple(entry.pop("constraints", _EVERY_WAY))
    loading = Loading(**entry.pop("loading")) if "loading" in entry else None
    return Dialect(**entry, instead=instead, constraints=constraints, loading=loading)


@cache
def _data() -> dict[str, Any]:
    return read_toml(resources.files(__package__).joinpath("dialects.toml").read_text(encoding="utf-8"))
