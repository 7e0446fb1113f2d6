"""What MemGPT packs into a message's text: JSON with a type, a time, and what is said."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.foreign import LOOSE, Malformed, read_json

_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M)(?: [A-Za-z]{1,5})?([+-]\d{4})?")
_SAYS = ("message", "reason")


@dataclass(frozen=True, slots=True)
class Packed:
    """A message unpacked: what kind of event it is, what it says, and when it was; 0 for a time that is not told."""

    kind: str
    text: str
    at: float = 0.0


def unpacked(text: str) -> Packed:
    """What a text of the user's role says; one that is not packed is the user's own."""
    found = _object(text)
    kind = found.get("type")
    if not isinstance(kind, str):
        return Packed("user_message", text)
    said = next((found[key] for key in _SAYS if isinstance(found.get(key), str)), None)
    return Packed(kind[:40], text if said is None else said, clock_time(found.get("time")))


def is_packed(text: str) -> bool:
    """Whether a text is the JSON of an object."""
    return bool(_object(text))


def failed(text: str) -> bool:
    """Whether the answer of a call says that it failed."""
    return str(_object(text).get("status", "")).lower() in ("failed", "error")


def clock_time(said: object) -> float:
    """A time as MemGPT writes it (`2023-10-30 08:47:27 PM PDT-0700`), in seconds since 1970; 0 if it is none."""
    found = _TIME.match(said) if isinstance(said, str) else None
    return _seconds(f"{found[1]} {found[2] or '+0000'}") if found else 0.0


def stamp_time(said: object) -> float:
    """A time as ISO 8601 has it; one without a zone is UTC; 0 if it is none."""
    try:
        when = datetime.fromisoformat(said) if isinstance(said, str) else None
        return 0.0 if when is None else max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return 0.0


def _seconds(text: str) -> float:
    try:
        return max(datetime.strptime(text, "%Y-%m-%d %I:%M:%S %p %z").timestamp(), 0.0)
    except (ValueError, OverflowError):
        return 0.0


def _object(text: str) -> dict[str, Any]:  # Any: JSON
    if not text.lstrip().startswith("{"):
        return {}
    try:
        found = read_json(text, LOOSE)
    except Malformed:
        return {}
    return found if isinstance(found, dict) else {}
