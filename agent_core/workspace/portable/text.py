"""Conversion of an agent file's text to plain data and back: strict JSON, limited in size and depth, deterministic.

Also the JSON that MemGPT packs into the text of a message: a type, a time, and the content.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from agent_core.base.errors import UsageError
from agent_core.base.plain_files import LARGEST_FILE, read_named_text
from agent_core.base.records import dataclass
from agent_core.base.untrusted import in_json, one_line
from agent_core.base.user_folders import expand_home
from agent_core.registry.folder_access import is_behind_link
from sandbox.wire.strict_json import LOOSE, Malformed, Strictness, read_json

from .report import AgentFileError

DEEPEST = 100
_TOKENS_AT_ONCE: Final = 10_000
_AS_A_FILE = Strictness(
    whole=False
)  # half a surrogate pair is rejected later, with its place in the file


def read_file(path: str | Path) -> str:
    """Return the text of a file; `-` is standard input.

    Raises:
        AgentFileError: the file cannot be read, is too large, or is not UTF-8 text.
    """
    name = one_line(str(path))
    try:
        return read_named_text(path)
    except OSError as error:
        raise AgentFileError(
            name, f"it cannot be read ({error.strerror})", fix="Name an agent's file."
        ) from error
    except UnicodeDecodeError as error:
        raise AgentFileError(
            name, f"expected UTF-8, got something else at byte {error.start}"
        ) from error


def text_of(document: object) -> str:
    """Return the text of a document that is given as text, bytes, or the object from `json.loads`.

    Raises:
        AgentFileError: it is something else, or the object has values that JSON cannot hold.
    """
    try:
        if isinstance(document, Mapping):
            return json.dumps(dict(document), ensure_ascii=False)
        if isinstance(document, bytes):
            return document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AgentFileError(
            "the document", f"expected UTF-8, got something else at byte {error.start}"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentFileError(
            "the document", f"expected an object of JSON: {one_line(str(error), 200)}"
        ) from error
    if not isinstance(document, str):
        problem = f"expected its text, bytes, or the object in it, got {type(document).__name__}"
        raise AgentFileError("the document", problem, fix="For a file: `load(path)`.")
    return document


def write_file(path: str | Path, text: str) -> None:
    """Write a new file that only its owner can read, because an agent's memory is private.

    Raises:
        UsageError: the file exists or cannot be written.
    """
    place = expand_home(path)
    if is_behind_link(place):
        raise UsageError(
            f"{path} is not written: {place.parent} is a link.", fix="Name the target itself."
        )
    try:
        with open(
            place, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as file:
            file.write(text)
    except OSError as error:
        fix = (
            "Name another file, or remove that one first."
            if isinstance(error, FileExistsError)
            else ""
        )
        raise UsageError(f"{path} cannot be written: {error.strerror}.", fix=fix) from error


def parse(text: str) -> dict[str, Any]:  # Any: JSON
    """Parse a text that is a JSON object.

    Raises:
        AgentFileError: it is not one, is too large or deep, or has a duplicate key or an invalid number.
    """
    try:
        value = read_json(text, _AS_A_FILE, most=LARGEST_FILE, deepest=DEEPEST)
    except Malformed as error:
        if error.code == "syntax":
            where = f"line {error.line}, column {error.column}"
            raise AgentFileError(
                where, f"expected JSON ({str(error).partition(' at line ')[0]})"
            ) from error
        raise AgentFileError("", str(error)) from error
    if not isinstance(value, dict):
        raise AgentFileError("", "expected an object")
    return value


def write(document: dict[str, Any]) -> str:  # Any: JSON
    """Return the text of a document, indented, with sorted keys and without terminal control characters."""
    return "".join(_pieces(document))


def _pieces(document: dict[str, Any]) -> Iterator[str]:  # Any: JSON
    """Yield the text in pieces: a list of all its tokens would take several times the memory of the text."""
    tokens = json.JSONEncoder(ensure_ascii=False, sort_keys=True, indent=1).iterencode(document)
    while few := [*islice(tokens, _TOKENS_AT_ONCE)]:
        yield in_json("".join(few))
    yield "\n"


def once(where: str, label: str, names: Iterable[str]) -> None:
    """Raise `AgentFileError` for the first name that occurs a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise AgentFileError(
                where, f"expected each {label} once, got `{one_line(name, 60)}` twice"
            )
        seen.add(name)


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
        return (
            0.0
            if when is None
            else max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), 0.0)
        )
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
