"""The JSON that MemGPT packs into a message's text: a type, a time, and the content."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.wire.strict_json import LOOSE, Malformed, read_json

_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M)(?: [A-Za-z]{1,5})?([+-]\d{4})?")
_SAYS = ("message", "reason")


@dataclass(frozen=True, slots=True)
class Packed:
    """An unpacked message: its kind of event, its content, and its time (0 if unknown)."""

    kind: str
    text: str
    at: float = 0.0


def unpacked(text: str) -> Packed:
    """Unpack a text with the user role; one that is not packed is a user's message."""
    data = _object(text)
    kind = data.get("type")
    if not isinstance(kind, str):
        return Packed("user_message", text)
    message = next((data[key] for key in _SAYS if isinstance(data.get(key), str)), None)
    return Packed(kind[:40], text if message is None else message, clock_time(data.get("time")))


def is_packed(text: str) -> bool:
    """Check whether a text is the JSON of an object."""
    return bool(_object(text))


def failed(text: str) -> bool:
    """Check whether the answer to a call reports a failure."""
    return str(_object(text).get("status", "")).lower() in ("failed", "error")


def clock_time(value: object) -> float:
    """Parse MemGPT's time (`2023-10-30 08:47:27 PM PDT-0700`) to seconds since 1970; 0 if it is invalid."""
    match = _TIME.match(value) if isinstance(value, str) else None
    if match is None:
        return 0.0
    try:
        time = datetime.strptime(f"{match[1]} {match[2] or '+0000'}", "%Y-%m-%d %I:%M:%S %p %z")
        return max(time.timestamp(), 0.0)
    except (ValueError, OverflowError):
        return 0.0


def stamp_time(value: object) -> float:
    """Parse an ISO 8601 time to seconds since 1970, as UTC if it has no zone; 0 if it is invalid."""
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else None
        return 0.0 if when is None else max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return 0.0


def _object(text: str) -> dict[str, Any]:  # Any: JSON
    if not text.lstrip().startswith("{"):
        return {}
    try:
        data = read_json(text, LOOSE)
    except Malformed:
        return {}
    return data if isinstance(data, dict) else {}
