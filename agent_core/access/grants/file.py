"""`functions/grants.toml`: what functions may reach, reviewable, one entry per function. Only the host writes it.

It only proposes. An invalid part grants nothing, is reported as a problem, and is never overwritten.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from agent_core.base import old_name
from agent_core.base.characters import name_shown
from agent_core.base.errors import WorkspaceError
from agent_core.base.plain_files import read_plain, replace_text
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import fence, visible
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import Malformed, lines_of_keys, read_toml

from .items import KINDS, name, oddity, written
from .value import NOTHING, Grants

NAME = "grants.toml"
PATH = f"functions/{NAME}"
_LIMIT = 256 << 10
_MOST_PROBLEMS = 20
_HEAD = """\
# What the functions of this folder may reach. Knapper alone writes it, after a human's yes:
# `knapper functions grant` and `revoke` change it. An entry grants nothing by itself: each user is asked
# once, for exactly the code that is there. Comments above an entry are kept, all else is written anew.
"""
_HEADER = re.compile(r"\s*\[\s*\"?([A-Za-z_][A-Za-z0-9_]*)\"?\s*\]")
_MOST_SECONDS = 86_400
_MEMORY_MIB = range(64, (1 << 20) + 1)
_FIX = "fix it manually, or remove the entry and grant it again"
Stamp: TypeAlias = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class GrantEntry:
    """The access of one function, who approved it, and when (ISO 8601, UTC)."""

    grants: Grants = NOTHING
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The contents of the file: `problems` are its invalid parts, `stamp` identifies this version."""

    entries: Mapping[str, GrantEntry] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    text: str = ""
    stamp: Stamp = None


class GrantsFile:
    """The grants file in the functions folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME

    def stamp(self) -> Stamp:
        """Return an identifier of the current file, or None if there is none."""
        try:
            status = os.stat(self._file, follow_symlinks=False)  # noqa: PTH116 - before every call
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def read(self) -> Listing:
        """Return the current contents of the file."""
        stamp = self.stamp()
        if stamp is None:
            return Listing()
        try:
            text = read_plain(self._file, _LIMIT).decode("utf-8")
        except UnicodeDecodeError:
            return Listing(problems=(_problem("cannot be read (it is not UTF-8)"),), stamp=stamp)
        except OSError as error:
            reason = "it is a link" if error.errno == 40 else error.strerror or str(error)
            return Listing(problems=(_problem(f"cannot be read ({reason})"),), stamp=stamp)
        try:
            data = read_toml(text, most=_LIMIT)
        except Malformed as error:
            message = f"is not valid TOML ({fence(str(error), 120)})"
            return Listing(problems=(_problem(message),), text=text, stamp=stamp)
        return _listing(data, text, stamp)

    def write(self, entries: Mapping[str, GrantEntry], listing: Listing) -> None:
        """Replace the entries that were read with these.

        Raises:
            WorkspaceError: the file changed meanwhile, has invalid parts, or cannot be written.
        """
        if listing.problems:
            raise WorkspaceError(
                f"{listing.problems[0].message}, so nothing is written there.", fix=f"{_FIX}.".capitalize()
            )
        if self.stamp() != listing.stamp:
            raise WorkspaceError(f"`{PATH}` was changed meanwhile, so it was not written.", fix="Do it again.")
        text = text_of(entries, listing.text)
        if text != listing.text:
            try:
                replace_text(self._file, text)
            except OSError as error:
                message = f"`{PATH}` cannot be written: {error.strerror}."
                raise WorkspaceError(message, fix="Check its rights.") from error


def text_of(entries: Mapping[str, GrantEntry], before: str = "") -> str:
    """Return the whole text of the file, sorted, with the user's comments above entries."""
    head, comments = _comments(before)
    blocks = [[*comments.get(function, ()), *_lines(function, entries[function])] for function in sorted(entries)]
    shown = "\n".join([_HEAD, *head, *(f"{line}" for block in blocks for line in [*block, ""])]).rstrip("\n") + "\n"
    meant = {function: entry.grants for function, entry in entries.items()}
    with suppress(Malformed):
        listing = _listing(read_toml(shown, most=_LIMIT), shown, None)
        if not listing.problems and {function: entry.grants for function, entry in listing.entries.items()} == meant:
            return shown
    return "\n".join(
        [_HEAD, *(line for function in sorted(entries) for line in [*_lines(function, entries[function]), ""])]
    )


def _lines(function: str, entry: GrantEntry) -> Iterator[str]:
    yield f"[{function}]"
    for key, value in entry.grants.to_json().items():
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    yield f"by = {json.dumps(visible(entry.by), ensure_ascii=False)}"
    yield f"at = {json.dumps(entry.at)}"


def _comments(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the comments of a text: the user's own at its head, and those of each entry."""
    head, comments = list[str](), dict[str, list[str]]()
    waiting: list[str] = []
    inside, own = "", frozenset(bare_lines(_HEAD + old_name.formerly(_HEAD)))
    for line in bare_lines(text):
        if line.lstrip().startswith("#") and line not in own:
            waiting.append(line.strip())
        elif header := _HEADER.match(line):
            inside = header[1]
            comments[inside], waiting = waiting, []
        elif not line.strip() and not inside:
            head, waiting = [*head, *waiting, *([""] if waiting else [])], []
        elif line.strip() and inside:
            comments[inside], waiting = [*comments[inside], *waiting], []
    return head, comments


def _listing(data: Mapping[str, Any], text: str, stamp: Stamp) -> Listing:  # Any: TOML
    entries, problems = dict[str, GrantEntry](), list[Problem]()
    lines = lines_of_keys(text)
    for function, table in data.items():
        result = _entry(function, table)
        if isinstance(result, GrantEntry):
            entries[function] = result
        else:
            message = f"{result} in the entry {fence(function, 60)}, which therefore grants nothing"
            problems.append(_problem(message, lines.get(function, 1)))
            if len(problems) == _MOST_PROBLEMS:
                problems.append(_problem("may have more problems: the entries that follow grant nothing either"))
                break
    return Listing(entries, tuple(problems), text, stamp)


def _entry(function: str, table: object) -> GrantEntry | str:
    """Return an entry, or a description of its fault."""
    if name(function) != function:
        return f"has an invalid function name{_holding('functions', [function])}"
    if not isinstance(table, dict):
        return "has a value instead of a table"
    data: dict[str, Any] = {}
    for key, value in table.items():
        data[key] = _value(key, value)
        if data[key] is None:
            return f"has something that cannot be granted ({_show_entry(key, value)}{_holding(key, value)})"
    return GrantEntry(Grants.from_json(data), data.get("by", ""), data.get("at", ""))


def _value(key: str, value: object) -> Any:  # Any: the stored form of the key's kind
    if key in KINDS and isinstance(value, list):
        items = [written(key, item) for item in value]
        return None if None in items else items
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    match key:
        case "seconds" if number and 0 < value <= _MOST_SECONDS:  # type: ignore[operator]  # checked to be a number
            return value
        case "memory_mib" if number and isinstance(value, int) and value in _MEMORY_MIB:
            return value
        case "stateful" if isinstance(value, bool):
            return value
        case "by" | "at" if isinstance(value, str):
            return visible(value[:200])
        case _:
            return None


def checked(grants: Mapping[str, object]) -> Grants:
    """Check and return the grants that the user requested.

    Raises:
        WorkspaceError: one of them cannot be granted; the message names it.
    """
    values = {key: _value(key, value) for key, value in grants.items()}
    for key, value in values.items():
        if value is None:
            message = f"{_show_entry(key, grants[key])} cannot be granted{_holding(key, grants[key])}."
            raise WorkspaceError(message, fix=_HOW.get(key, "Write it in letters, digits and underscores."))
    return Grants.from_json(values)


def _show_entry(key: str, value: object) -> str:
    return fence(name_shown(f"{key} = {value}"), 120)


def _holding(key: str, value: object) -> str:
    """Return the character that makes an item invalid, and its position in the item."""
    odd = next((odd for item in value if (odd := oddity(key, item))), "") if isinstance(value, list | tuple) else ""
    return f": it holds {odd}" if odd else ""


_HOW = {
    "network": "A host is written as api.example.org, localhost:8000 or *.example.org, and beyond ASCII in punycode.",
    "read": "A path is written as data/ or data/file.csv, without `..`.",
    "write": "A path is written as data/ or data/file.csv, without `..`.",
    "packages": "A package is written as requests or requests>=2.31.",
    "seconds": f"Give seconds above 0, up to {_MOST_SECONDS}.",
    "memory_mib": "Give whole MiB from 64 on.",
}


def _problem(message: str, line: int = 0) -> Problem:
    return Problem("grants-file", f"`{PATH}` {message}", Place(PATH, line), _FIX)
