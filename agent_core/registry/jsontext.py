"""A model's JSON text → a Python object, mending what is unambiguous: fences, trailing commas, double encoding."""

import json
import math
import re
from typing import Any, NoReturn

LIMIT_CHARS = 1_000_000
DEEPEST = 64
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
# Strings first, so that a comma inside one is never touched.
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|,(?=\s*+[}\]])', re.DOTALL)

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


class NotJson(Exception):
    """The text is not the JSON of an object; the message says why. Never leaves the room."""


def read_object(raw: str, limit_chars: int = LIMIT_CHARS) -> dict[str, Any]:  # Any: JSON
    """The object that a text holds; nothing and `null` stand for the empty one.

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
    """The object or list that a string holds, if it holds one of this kind; else the string as it is."""
    stripped = text.strip()
    if len(stripped) > LIMIT_CHARS or not stripped.startswith("{" if kind is dict else "["):
        return text
    try:
        value = _load(stripped)
    except NotJson:
        return text
    return value if isinstance(value, kind) else text


def shown(value: Any) -> str:  # Any: JSON
    """A value as a message shows it: short, and with its JSON type."""
    text = json.dumps(value, ensure_ascii=False, default=str) if _is_small(value) else "…"
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return "null" if value is None else f"{text} ({_NAMES.get(type(value), 'object')})"


def _is_small(value: Any) -> bool:
    if isinstance(value, int):
        return -(10**40) < value < 10**40
    if isinstance(value, list | dict):
        return len(value) <= 10 and all(
            _is_small(one) for one in (value.values() if isinstance(value, dict) else value)
        )
    return True


def _unfenced(raw: str) -> str:
    text = raw.strip().removeprefix("\ufeff")
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


def _load(text: str) -> Any:  # Any: JSON
    try:
        return _strict(text)
    except json.JSONDecodeError as error:
        mended = _TRAILING_COMMA.sub(lambda match: match[1] or "", text)
        if mended == text:
            raise _unreadable(text, error) from error
    try:
        return _strict(mended)
    except json.JSONDecodeError as error:
        raise _unreadable(mended, error) from error


def _strict(text: str) -> Any:  # Any: JSON
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise NotJson(f"expected at most {DEEPEST} levels, got more") from error
    except ValueError as error:
        raise NotJson("expected an integer of at most 4300 digits, got a longer one") from error
    _check_depth(value)
    _check_characters(text, value)
    return value


def _unreadable(text: str, error: json.JSONDecodeError) -> NotJson:
    around = text[max(error.pos - 20, 0) : error.pos + 20].replace("\n", " ")
    ends = " (the text ends too early)" if error.pos >= len(text.rstrip()) else ""
    return NotJson(
        f"expected JSON, got a mistake at line {error.lineno} column {error.colno}: {error.msg}{ends}, near `{around}`"
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value] # `add` gives None
        raise NotJson(f"expected each key once, got `{double}` twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"expected a finite number, got {name}")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotJson(f"expected a finite number, got {text[:40]}")
    return value


def _check_characters(text: str, value: Any) -> None:  # Any: JSON
    if text.isascii() and "\\ud" not in text.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NotJson("expected whole characters, got half of a surrogate pair such as \\ud800") from error


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise NotJson(f"expected at most {DEEPEST} levels, got more")
