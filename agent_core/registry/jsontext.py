"""Conversion of a model's JSON text to a Python object, with unambiguous fixes: fences, trailing commas, double
encoding.
"""

import json
import re
from typing import Any

from sandbox.wire.foreign import Malformed, read_json, with_plain_escapes

LIMIT_CHARS = 1_000_000
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
# Strings first, so that a comma inside one is never touched; one that is never closed is read once, to its end.
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|,(?=\s*+[}\]])', re.DOTALL)

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


class NotJson(Exception):
    """Error raised when the text is not the JSON of an object; the message says why. Internal to the package."""


def read_object(raw: str, limit_chars: int = LIMIT_CHARS) -> dict[str, Any]:  # Any: JSON
    """Return the object in a text; an empty text and `null` mean the empty object.

    Raises:
        NotJson: it holds none, holds a key twice, a number that JSON does not know, or is too large or too deep.
    """
    if len(raw) > limit_chars:
        raise NotJson(f"expected at most {limit_chars} characters of JSON, got {len(raw)}")
    text = _unfenced(raw)
    value = _load(text) if text else None
    if isinstance(value, str):
        value = _load(_unfenced(value)) if value.strip() else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotJson(f"expected a JSON object, got {shown(value)}")
    return value


def read_nested(text: str, kind: type) -> Any:  # Any: JSON
    """Return the object or list in a string, if it holds one of this kind; else the string unchanged."""
    stripped = text.strip()
    if len(stripped) > LIMIT_CHARS or not stripped.startswith("{" if kind is dict else "["):
        return text
    try:
        value = _load(stripped)
    except NotJson:
        return text
    return value if isinstance(value, kind) else text


def shown(value: Any) -> str:  # Any: JSON
    """Return a value as a message shows it: short, and with its JSON type."""
    text = json.dumps(value, ensure_ascii=False, default=str) if _is_small(value) else "…"
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return "null" if value is None else f"{text} ({_NAMES.get(type(value), 'object')})"


def _is_small(value: Any) -> bool:
    if isinstance(value, int):
        return -(10**40) < value < 10**40
    if isinstance(value, list | dict):
        return len(value) <= 10 and all(
            _is_small(item) for item in (value.values() if isinstance(value, dict) else value)
        )
    return True


def _unfenced(raw: str) -> str:
    text = raw.strip().removeprefix("\ufeff")
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _load(text: str) -> Any:  # Any: JSON
    try:
        return read_json(text)
    except Malformed as error:
        fixed = _fixed(text) if error.code == "syntax" else text
        if fixed == text:
            raise _unreadable(text, error) from error
    try:
        return read_json(fixed)
    except Malformed as error:
        raise _unreadable(fixed, error) from error


def _fixed(text: str) -> str:
    return with_plain_escapes(_TRAILING_COMMA.sub(lambda match: match[1] or "", text))


def _unreadable(text: str, error: Malformed) -> NotJson:
    if error.code != "syntax":
        return NotJson(str(error))
    around = text[max(error.position - 20, 0) : error.position + 20].replace("\n", " ")
    ends = " (the text ends too early)" if error.position >= len(text.rstrip()) else ""
    return NotJson(f"expected JSON, got a mistake: {error}{ends}, near `{around}`")
