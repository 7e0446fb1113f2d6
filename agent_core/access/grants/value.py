"""Grants of one function: a plain value that can be compared, joined, intersected, described and stored; and its items.

Of an item: how each kind is written, and when one covers another. `UNSAID` represents an item that a text does not
name: it is requested once it is known. A text that hides something (an invisible character, a blank that is not a
space, a path with `..`, an odd spelling of an address) is no item.
"""

import ipaddress
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.records import dataclass, fields, replace
from agent_core.base.syntax import named, odd_in_name

if TYPE_CHECKING:
    from agent_core.registry.registry import Snapshot

UNSAID = "?"
WORKSPACE: Final = "./"
"""The workspace's own folder. A function that may read it may list the names in it; it covers nothing else."""
_LONGEST = 300
_HOST = re.compile(r"(\*\.)?(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_PORT = re.compile(r"(.+):([1-9][0-9]{0,4})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9._,-]+\])?"
    r"((?:===|[=!~]=|[<>]=?)[A-Za-z0-9.*+!_-]+(?:,(?:===|[=!~]=|[<>]=?)[A-Za-z0-9.*+!_-]+)*)?"
)


def _host(text: str) -> str | None:
    """Return a host name, with an optional port, or `*.` and a domain of two or more parts; None for anything else."""
    if text == UNSAID or not text.isascii():
        return text if text == UNSAID else None
    text = text.lower()
    bare, port = (match[1], match[2]) if (match := _PORT.fullmatch(text)) else (text, "")
    if port and int(port) > 0xFFFF:
        return None
    if _is_address(bare):
        return text
    last = bare.rpartition(".")[2]
    looks_like_number = last.isdecimal() or re.fullmatch(r"0x[0-9a-f]*", last) is not None
    is_wide = bare.startswith("*.") and bare.count(".") < 2
    return (
        text
        if len(bare) <= 253 and _HOST.fullmatch(bare) and not looks_like_number and not is_wide
        else None
    )


def _is_address(bare: str) -> bool:
    try:
        if bare.startswith("["):
            return bare == f"[{ipaddress.IPv6Address(bare[1:-1])}]" and "%" not in bare
        return bare == str(ipaddress.IPv4Address(bare))
    except ValueError:
        return False


def _path(text: str) -> str | None:
    """Return a path without `..`, a home directory or a doubled slash; a folder keeps its trailing slash."""
    if text == UNSAID:
        return text
    if (
        not text
        or "\\" in text
        or text.startswith("~")
        or unicodedata.normalize("NFC", text) != text
    ):
        return None
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        return None
    is_folder = text.endswith(("/", "/.")) or not parts or text == "."
    whole = ("/" if text.startswith("/") else "") + "/".join(parts)
    return f"{whole or '.'}/".replace("//", "/") if is_folder else whole


def _name(text: str) -> str | None:
    """Return a Python name: that of a secret or a function."""
    return text if text == UNSAID or _NAME.fullmatch(text) else None


def _label(text: str) -> str | None:
    """Return the label of a memory block."""
    return text if text == UNSAID or _LABEL.fullmatch(text) else None


def _requirement(text: str) -> str | None:
    """Return a package name with optional version constraints; never an address, a path or an option."""
    match = _REQUIREMENT.fullmatch(text.replace(" ", ""))
    return match[0] if match else None


KINDS: Mapping[str, Callable[[str], str | None]] = MappingProxyType(
    {
        "network": _host,
        "read": _path,
        "write": _path,
        "secrets": _name,
        "packages": _requirement,
        "memory": _label,
        "functions": _name,
    }
)


def written(kind: str, text: object) -> str | None:
    """Return an item in its canonical form, or None if it is not valid for that kind."""
    if not isinstance(text, str) or len(text) > _LONGEST or odd_in_name(text):
        return None
    return KINDS[kind](text.strip())


def oddity(kind: str, text: object) -> str:
    """Return the character that makes a text invalid as an item, and its position; "" if there is none."""
    if not isinstance(text, str):
        return ""
    if odd := odd_in_name(text):
        return odd
    at = (
        next((at for at, char in enumerate(text) if char > "\x7f"), None)
        if kind not in ("read", "write")
        else None
    )
    return "" if at is None else f"{named(text[at])} at column {at + 1}"


def spelled(item: str) -> str:
    """Return an item for the user to read: quoted if it contains a space, spelled out if it is not ASCII."""
    if item.isascii():
        return f"'{item}'" if " " in item else item
    return f"'{item}' (spelled {item!a})"


def covered(kind: str, item: str, granted: Iterable[str]) -> bool:
    """Check whether one of the granted items covers this item. Any item of its kind covers an unnamed item."""
    granted_items = tuple(granted)
    return (
        bool(granted_items)
        if item == UNSAID
        else any(_covers(kind, grant, item) for grant in granted_items)
    )


def _covers(kind: str, grant: str, item: str) -> bool:
    match kind:
        case "network":
            return grant == item or (
                grant.startswith("*.") and item.removeprefix("*").endswith(grant[1:])
            )
        case "read" | "write":
            return item.rstrip("/") == grant.rstrip("/") or item.startswith(f"{grant.rstrip('/')}/")
        case "packages":
            return grant == item or (item == project(item) and project(grant) == project(item))
        case _:
            return grant == item


def sign_of(kind: str, item: str) -> str:
    """Return the index key that all items covered by this one share; see `signs_over`."""
    match kind:
        case "network":
            return item.removeprefix("*")
        case "read" | "write":
            return item.rstrip("/")
        case "packages":
            return project(item)
        case _:
            return item


def signs_over(kind: str, item: str) -> set[str]:
    """Return the index keys of all items that can cover it."""
    match kind:
        case "network":
            parts = item.split(".")
            return {item, *(f".{'.'.join(parts[at:])}" for at in range(len(parts)))}
        case "read" | "write":
            parts = item.rstrip("/").split("/")
            return {"/".join(parts[:size]) for size in range(len(parts) + 1)}
        case _:
            return {sign_of(kind, item)}


def project(text: str) -> str:
    """Return the normalized project name of a requirement."""
    match = _REQUIREMENT.fullmatch(text)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else text


_SAID: Mapping[str, str] = MappingProxyType(
    {
        "network": "fetch from {}",
        "read": "read {}",
        "write": "read and write {}",
        "secrets": "use the secret {}",
        "packages": "import the package {}",
        "memory": "read and change the memory block {}",
        "functions": "call the function {}, which has grants of its own",
    }
)
_LISTS: Final = "list the names in the workspace's folder (not hidden ones, nor settings)"
_UNSAID_AS: Mapping[str, str] = MappingProxyType(
    {
        "network": "the web; you will be asked for each host",
        "read": "files; you will be asked for each when it is opened",
        "write": "files; you will be asked for each when it is opened",
        "secrets": "that its text does not name",
        "memory": "that its text does not name",
        "functions": "that its text does not name",
    }
)


@dataclass(frozen=True, slots=True)
class Grants:
    """The access of one function. Every tuple is sorted; the empty value grants nothing.

    An item `?` represents what its text does not name. A path ends in `/` for a folder, and is absolute only outside
    the workspace. Write access includes read access.
    """

    network: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    seconds: float | None = None
    memory_mib: int | None = None

    def __post_init__(self) -> None:
        for kind in KINDS:
            items: set[str] = set(getattr(self, kind))
            widest: list[str] = []
            by_sign: defaultdict[str, list[str]] = defaultdict(list)
            for item in items - {UNSAID}:
                by_sign[sign_of(kind, item)].append(item)
            for item in items:
                # An item that another covers is dropped; of two spellings of a folder, the one with a slash stays.
                candidates = {
                    candidate
                    for sign in signs_over(kind, item)
                    for candidate in by_sign.get(sign, ())
                }
                others = [
                    other for other in candidates if other != item and covered(kind, item, (other,))
                ]
                if item == UNSAID or all(
                    covered(kind, other, (item,)) and item > other for other in others
                ):
                    widest.append(item)
            object.__setattr__(self, kind, tuple(sorted(widest)))

    def __bool__(self) -> bool:
        return self != NOTHING

    def __or__(self, other: "Grants") -> "Grants":
        """Return the union of both."""
        return joined((self, other)) if self and other else self or other

    def __and__(self, other: "Grants") -> "Grants":
        """Return the intersection of both."""
        items = {
            kind: tuple(item for item in self.items(kind) if other.gives(kind, item))
            + tuple(item for item in other.items(kind) if self.gives(kind, item))
            for kind in KINDS
        }
        limits = {
            "seconds": min(self.seconds or 0, other.seconds or 0) or None,
            "memory_mib": min(self.memory_mib or 0, other.memory_mib or 0) or None,
        }
        return Grants.from_json({**items, **limits})

    @property
    def is_outward(self) -> bool:
        """True if some of it is outside the worker, which examples never reach."""
        return bool(
            self.network or self.read or self.write or self.secrets or self.memory or self.functions
        )

    def items(self, kind: str) -> tuple[str, ...]:
        """Return the items of one kind."""
        items: tuple[str, ...] = getattr(self, kind)
        return items

    def gives(self, kind: str, item: str) -> bool:
        """Check whether this covers one item of a kind."""
        items = self.items(kind) + (self.write if kind == "read" else ())
        return covered(kind, item, items)

    def covers(self, grants: "Grants") -> bool:
        """Check whether this covers everything in the other."""
        return not grants.without(self)

    def without(self, grants: "Grants") -> "Grants":
        """Return the grants in this that the other does not cover: what is missing there."""
        remaining = {
            kind: tuple(item for item in self.items(kind) if not grants.gives(kind, item))
            for kind in KINDS
        }
        limits = {
            "seconds": self.seconds if (self.seconds or 0) > (grants.seconds or 0) else None,
            "memory_mib": self.memory_mib
            if (self.memory_mib or 0) > (grants.memory_mib or 0)
            else None,
        }
        return Grants.from_json({**remaining, **limits})

    def ahead(self) -> "Grants":
        """Return the grants to request before a call: all but the hosts and files that a text does not name."""
        named = {kind: [item for item in self.items(kind) if item != UNSAID] for kind in LATER}
        return Grants.from_json(self.to_json() | named)

    def for_reading(self) -> "Grants":
        """Return the part of this that changes nothing: what may be written is only read."""
        return replace(self, read=(*self.read, *self.write), write=(), memory=())

    def serving(self, grants: "Grants") -> "Grants":
        """Return the part that these needs, as read from a text, can use. Grants that no text shows are kept."""
        used_items = {}
        for kind in KINDS:
            needs = grants.items(kind) + (
                grants.read if kind == "write" else grants.write if kind == "read" else ()
            )
            used_items[kind] = [
                item
                for item in self.items(kind)
                if UNSAID in needs
                or any(
                    covered(kind, need, (item,)) or covered(kind, item, (need,)) for need in needs
                )
            ]
        return Grants.from_json(self.to_json() | used_items)

    def sentences(self) -> list[str]:
        """Return the grants as sentences for the user, one line each."""
        lines = []
        for kind in KINDS:
            for item in self.items(kind):
                outside = (
                    " (outside the workspace)"
                    if kind in ("read", "write") and item.startswith("/")
                    else ""
                )
                said = (
                    _SAID[kind].format(_UNSAID_AS[kind] if item == UNSAID else spelled(item))
                    + outside
                )
                lines.append(_LISTS if (kind, item) == ("read", WORKSPACE) else said)
        lines += [f"run for up to {self.seconds:g} s"] if self.seconds else []
        lines += [f"use up to {self.memory_mib} MiB of memory"] if self.memory_mib else []
        return lines

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Return only the fields that are set, in the order of the fields."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values
            if value
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Grants":  # Any: the result of `to_json`
        """Build the value from JSON."""
        names = [field.name for field in fields(cls) if field.name in data]
        values: dict[str, Any] = {
            name: tuple(data[name]) if name in KINDS else data[name] for name in names
        }
        return cls(**values)


NOTHING: Final = Grants()
WAYS_OUT: Final = ("network", "secrets", "functions")
"""The kinds by which a function may send out what it has read: an address may hold it, and so may an argument."""
LATER: Final = ("network", "read", "write")
"""The kinds whose unnamed items are requested when a call names them: an earlier approval would allow nothing."""


def joined(grants: Iterable[Grants]) -> Grants:
    """Return all grants joined."""
    every = [*grants]
    items = {kind: tuple(item for grant in every for item in grant.items(kind)) for kind in KINDS}
    limits = {
        "seconds": max((grant.seconds or 0 for grant in every), default=0) or None,
        "memory_mib": max((grant.memory_mib or 0 for grant in every), default=0) or None,
    }
    return Grants.from_json({**items, **limits})


def modules_of_workspace(snapshot: "Snapshot", grants: Grants = NOTHING) -> frozenset[str]:
    """Return the names by which an import without `functions.` means a module of the workspace instead of a package."""
    names = frozenset(module.partition(".")[0] for module in snapshot.modules)
    return names - {*grants.packages} - snapshot.packages - sys.stdlib_module_names
