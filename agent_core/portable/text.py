"""The text of an agent's file ↔ plain data: strict JSON, bounded in size and depth, the same text for the same data."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ..untrusted import in_json, one_line
from .errors import AgentFileError

LARGEST = 256 << 20
"""Bytes of a file."""
DEEPEST = 100


def read_file(path: Path) -> str:
    """The text of a file that is not too large.

    Raises:
        AgentFileError: it cannot be read, or is too large, or is no text.
    """
    name = one_line(str(path))
    try:
        with path.expanduser().open("rb") as file:
            found = file.read(LARGEST + 1)
        text = found.decode("utf-8-sig")
    except OSError as error:
        raise AgentFileError(name, f"it cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise AgentFileError(name, f"expected UTF-8, got something else at byte {error.start}") from error
    if len(found) > LARGEST:
        raise AgentFileError(name, f"expected at most {LARGEST >> 20} MiB, got more")
    return text


def parse(text: str) -> dict[str, Any]:  # Any: JSON
    """The object that a text holds.

    Raises:
        AgentFileError: it holds none; or is too large or deep; or has a key twice, or a number that JSON does not know.
    """
    if len(text) > LARGEST:
        raise AgentFileError("", f"expected at most {LARGEST >> 20} Mi characters, got more")
    try:
        value = json.loads(text, object_pairs_hook=_unlike, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise AgentFileError(f"line {error.lineno}, column {error.colno}", f"expected JSON ({error.msg})") from error
    except RecursionError as error:
        raise AgentFileError("", f"expected at most {DEEPEST} levels, got more") from error
    except ValueError as error:  # an integer of more than 4300 digits
        raise AgentFileError("", "expected an integer of at most 4300 digits, got a longer one") from error
    if not isinstance(value, dict):
        raise AgentFileError("", "expected an object")
    _check_depth(value)
    return value


def write(document: dict[str, Any]) -> str:  # Any: JSON
    """The text of a document, in lines, keys in order; nothing in it acts on a terminal."""
    return in_json(json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1)) + "\n"


def once(where: str, what: str, names: Iterable[str]) -> None:
    """Raise `AgentFileError` for the first of the names that is there a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AgentFileError(where, f"expected each {what} once, got `{one_line(name, 60)}` twice")
        seen.add(name)


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        once("", "key", (key for key, _ in pairs))
    return found


def _no_constant(name: str) -> NoReturn:
    raise AgentFileError("", f"expected a finite number, got {name}")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise AgentFileError("", f"expected a finite number, got {text[:40]}")
    return value


def _check_depth(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise AgentFileError("", f"expected at most {DEEPEST} levels, got more")
