"""The peculiarities of an endpoint: the entry of `dialects.toml` that matches its address, over the defaults."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, TypeAdapter

from agent_core.base.records import dataclass, field, replace
from sandbox.wire.strict_json import DEEPEST_ROW, LOOSE, read_json, read_toml

T = TypeVar("T")


def _compile(text: str | list[str]) -> re.Pattern[str]:
    """Return a case-insensitive pattern from a text, possibly of several lines, or from a list of alternatives."""
    lines = text.split("\n") if isinstance(text, str) else ["|".join(text)]
    return re.compile("".join(lines), re.IGNORECASE | re.DOTALL)


Pattern: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(_compile)]
"""A pattern in a file of this package."""


def parsed_toml(name: str, package: str = __package__) -> dict[str, Any]:
    """Return the parsed TOML of a file of this package, or another one."""
    return read_toml(resources.files(package).joinpath(name).read_text(encoding="utf-8"))


def as_kind(data: object, kind: type[T]) -> T:
    """Return data of this package as a dataclass, or as a collection of them."""
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


_EVERY_WAY: Final = (
    "json_schema",
    "json_object_schema",
    "structured_outputs",
    "guided_json",
    "json_object",
)


AZURE: Final = "Azure"
"""The name of the dialects for Azure."""


@dataclass(frozen=True, slots=True)
class AzureTerms:
    """The settings that Azure's client needs besides an address: the API version, and whether the key is a token."""

    version: str
    is_token: bool = False


@dataclass(frozen=True, slots=True)
class Loading:
    """The paths next to its endpoint where a server reports how it loads models; see `dialects.toml` for the fields."""

    shown: str
    running: str
    load: str
    unset: int
    fix: str
    remote: tuple[str, ...] = ()
    keep_alive: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect of an endpoint; `dialects.toml` explains the fields."""

    name: str = "another endpoint"
    address: str = ""
    path: str = ""
    api: Literal["chat", "responses"] = "chat"
    keeps_reasoning: bool = True
    keeps_ids: bool = True
    system: str = "system"
    one_call: bool = False
    most_functions: int = 128
    strict: bool = False
    simple_schemas: bool = False
    id_pattern: str = "[a-zA-Z0-9_-]{1,40}"
    id_length: int = 32
    constraints: tuple[str, ...] = _EVERY_WAY
    shape_beside_calls: bool = False
    loading: Loading | None = None
    owner: str = ""
    told: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    missing_extra: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    missing_reasoning: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON
    instead: Mapping[str, Instead] = field(default_factory=dict)

    def call_id(self, original_id: str) -> str:
        """Return the id in a form that this endpoint accepts: unchanged, or a replacement that is always the same."""
        if re.fullmatch(self.id_pattern, original_id):
            return original_id
        return hashlib.sha256(original_id.encode("utf-8", "replace")).hexdigest()[: self.id_length]


def constraint(way: str, schema: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the part of a request that constrains the reply to a schema, in one of the known ways."""
    text = quirks().constraints[way].replace('"SCHEMA"', json.dumps(schema))
    body: dict[str, Any] = read_json(text, LOOSE, deepest=DEEPEST_ROW)
    return body


@dataclass(frozen=True, slots=True)
class DialectChange:
    """A server's message that it requires another form of request, and the dialect fields that provide it."""

    says: Pattern
    fields: Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Quirks:
    """All data of `quirks.toml` and `dialects.toml`."""

    endpoints: tuple[Dialect, ...]
    constraints: dict[str, str]
    refusals: dict[str, Pattern]
    changes: tuple[DialectChange, ...]
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
    data = parsed_toml("quirks.toml") | parsed_toml("dialects.toml")
    tables = ("listed", "openai", "wordings", "windows")
    return as_kind(
        {**data, **{key: value for table in tables for key, value in data[table].items()}}, Quirks
    )


def wants_change(refusal: str) -> bool:
    """Check whether the text of a refusal asks for another form of request."""
    return any(change.says.search(refusal) for change in quirks().changes)


def refuses(feature: str, refusal: str) -> bool:
    """Check whether the text of a refusal rejects the feature: `functions`, or this `constraint` of the reply."""
    return quirks().refusals[feature].search(refusal) is not None


def changed(dialect: Dialect, refusal: str) -> Dialect | None:
    """Return the dialect that a refusal asks for; None if it asks for nothing, or nothing new."""
    for change in quirks().changes:
        if (
            change.says.search(refusal)
            and (candidate := replace(dialect, **change.fields)) != dialect
        ):
            return candidate
    return None


def dialect_of(url: str) -> Dialect:
    """Return the dialect of the endpoint at an address, identified by its host, or by its port on this machine."""
    parts = urlsplit(url.rstrip("/"))
    address = parts.netloc.lower().rpartition("@")[2]
    fits = (
        each
        for each in dialects()
        if re.search(each.address, address) and re.search(each.path, parts.path)
    )
    return next(fits, Dialect())


def is_loopback(url: str) -> bool:
    """Check whether the address is on this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def root_of(url: str) -> str:
    """Return the address of the server behind the address of an endpoint."""
    address = urlsplit(url)
    return f"{address.scheme}://{address.netloc}"


def dialects() -> tuple[Dialect, ...]:
    """Return every dialect that this version knows."""
    return quirks().endpoints


_VERSION_PATH: Final = re.compile(r"/v\d\w*(/|$)")


def likely_base(url: str) -> str:
    """Return the base URL that an endpoint at an address has, as most do."""
    base = url.rstrip("/")
    for path in ("/chat/completions", "/completions"):
        base = base.removesuffix(path).rstrip("/")
    return base if _VERSION_PATH.search(urlsplit(base).path) else f"{base}/v1"


def base_url_hint(url: str) -> str:
    """Return the fix for an address that answers, but not like the base URL of an endpoint."""
    better = likely_base(url)
    return (
        f"Try the address {better}."
        if better != url.rstrip("/")
        else "Check that this is the endpoint's base URL."
    )
