"""Single items of a grant: how each kind is written, and when one item covers another.

`UNSAID` stands for what a text does not name: it is asked for when it is known. What hides something (a character that
cannot be seen, a blank that is no space, a climbing path, an odd spelling of an address) is no item.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ..characters import named, odd_in_name

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
    """A host name, perhaps with a port, or `*.` and a domain of at least two parts; None if it is none of these."""
    if text == UNSAID or not text.isascii():
        return text if text == UNSAID else None
    text = text.lower()
    bare, port = (found[1], found[2]) if (found := _PORT.fullmatch(text)) else (text, "")
    if (port and int(port) > 0xFFFF) or not (_is_address(bare) or _is_name(bare)):
        return None
    return text


def _is_address(bare: str) -> bool:
    try:
        if bare.startswith("["):
            return bare == f"[{ipaddress.IPv6Address(bare[1:-1])}]" and "%" not in bare
        return bare == str(ipaddress.IPv4Address(bare))
    except ValueError:
        return False


def _is_name(bare: str) -> bool:
    last = bare.rpartition(".")[2]
    looks_like_number = last.isdecimal() or re.fullmatch(r"0x[0-9a-f]*", last) is not None
    is_wide = bare.startswith("*.") and bare.count(".") < 2
    return len(bare) <= 253 and _HOST.fullmatch(bare) is not None and not looks_like_number and not is_wide


def path(text: str) -> str | None:
    """A path without a climb, a home or a doubled slash; a folder keeps its slash at the end."""
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
    """A Python name: a secret's or a function's."""
    return text if text == UNSAID or _NAME.fullmatch(text) else None


def label(text: str) -> str | None:
    """The label of a memory block."""
    return text if text == UNSAID or _LABEL.fullmatch(text) else None


def requirement(text: str) -> str | None:
    """A package by its name, with versions perhaps: never an address, a path or an option."""
    found = _REQUIREMENT.fullmatch(text.replace(" ", ""))
    return found[0] if found else None


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
    """An item in the one form in which it is kept; None if it cannot be an item of that kind."""
    if not isinstance(text, str) or len(text) > _LONGEST or odd_in_name(text):
        return None
    return KINDS[kind](text.strip())


def oddity(kind: str, text: object) -> str:
    """Return which character of a text keeps it from being an item, and where it stands; "" where none does."""
    if not isinstance(text, str):
        return ""
    if odd := odd_in_name(text):
        return odd
    at = next((at for at, char in enumerate(text) if char > "\x7f"), None) if kind not in ("read", "write") else None
    return "" if at is None else f"{named(text[at])} at column {at + 1}"


def spelled(item: str) -> str:
    """Return an item as a human reads it: in quotes where it holds a space, and spelled out where it is not ASCII."""
    if item.isascii():
        return f"'{item}'" if " " in item else item
    return f"'{item}' (spelled {item!a})"


def covered(kind: str, wanted: str, granted: Iterable[str]) -> bool:
    """Whether one of the granted items gives what is wanted; what is not named is met by anything of its kind."""
    held = tuple(granted)
    return bool(held) if wanted == UNSAID else any(_covers(kind, one, wanted) for one in held)


def _covers(kind: str, one: str, wanted: str) -> bool:
    match kind:
        case "network":
            return one == wanted or (one.startswith("*.") and wanted.removeprefix("*").endswith(one[1:]))
        case "read" | "write":
            return wanted.rstrip("/") == one.rstrip("/") or wanted.startswith(f"{one.rstrip('/')}/")
        case "packages":
            return one == wanted or (wanted == project(wanted) and project(one) == project(wanted))
        case _:
            return one == wanted


def sign_of(kind: str, item: str) -> str:
    """Return what all items that it covers show in `signs_over`."""
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
    """Return the signs of all items that can cover it."""
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
    """The normalised name of the project that a requirement asks for."""
    found = _REQUIREMENT.fullmatch(text)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else text
