"""Single items of a grant: how each kind is written, and when one item covers another.

`UNSAID` represents an item that a text does not name: it is requested once it is known. A text that hides something (an
invisible character, a blank that is not a space, a path with `..`, an odd spelling of an address) is no item.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from agent_core.base.characters import named, odd_in_name

UNSAID = "?"
_LONGEST = 300
_HOST = re.compile(r"(\*\.)?(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_PORT = re.compile(r"(.+):([1-9][0-9]{0,4})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(\[[A-Za-z0-9._,-]+\])?"
    r"((?:===|[=!~]=|[<>]=?)[A-Za-z0-9.*+!_-]+(?:,(?:===|[=!~]=|[<>]=?)[A-Za-z0-9.*+!_-]+)*)?"
)


def host(text: str) -> str | None:
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
    return text if len(bare) <= 253 and _HOST.fullmatch(bare) and not looks_like_number and not is_wide else None


def _is_address(bare: str) -> bool:
    try:
        if bare.startswith("["):
            return bare == f"[{ipaddress.IPv6Address(bare[1:-1])}]" and "%" not in bare
        return bare == str(ipaddress.IPv4Address(bare))
    except ValueError:
        return False


def path(text: str) -> str | None:
    """Return a path without `..`, a home directory or a doubled slash; a folder keeps its trailing slash."""
    if text == UNSAID:
        return text
    if not text or "\\" in text or text.startswith("~") or unicodedata.normalize("NFC", text) != text:
        return None
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        return None
    is_folder = text.endswith(("/", "/.")) or not parts or text == "."
    whole = ("/" if text.startswith("/") else "") + "/".join(parts)
    return f"{whole or '.'}/".replace("//", "/") if is_folder else whole


def name(text: str) -> str | None:
    """Return a Python name: that of a secret or a function."""
    return text if text == UNSAID or _NAME.fullmatch(text) else None


def label(text: str) -> str | None:
    """Return the label of a memory block."""
    return text if text == UNSAID or _LABEL.fullmatch(text) else None


def requirement(text: str) -> str | None:
    """Return a package name with optional version constraints; never an address, a path or an option."""
    match = _REQUIREMENT.fullmatch(text.replace(" ", ""))
    return match[0] if match else None


KINDS: Mapping[str, Callable[[str], str | None]] = MappingProxyType(
    {
        "network": host,
        "read": path,
        "write": path,
        "secrets": name,
        "packages": requirement,
        "memory": label,
        "functions": name,
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
    at = next((at for at, char in enumerate(text) if char > "\x7f"), None) if kind not in ("read", "write") else None
    return "" if at is None else f"{named(text[at])} at column {at + 1}"


def spelled(item: str) -> str:
    """Return an item for the user to read: quoted if it contains a space, spelled out if it is not ASCII."""
    if item.isascii():
        return f"'{item}'" if " " in item else item
    return f"'{item}' (spelled {item!a})"


def covered(kind: str, item: str, granted: Iterable[str]) -> bool:
    """Check whether one of the granted items covers this item. Any item of its kind covers an unnamed item."""
    granted_items = tuple(granted)
    return bool(granted_items) if item == UNSAID else any(_covers(kind, grant, item) for grant in granted_items)


def _covers(kind: str, grant: str, item: str) -> bool:
    match kind:
        case "network":
            return grant == item or (grant.startswith("*.") and item.removeprefix("*").endswith(grant[1:]))
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
