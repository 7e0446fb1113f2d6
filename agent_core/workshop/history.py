"""The versions of one function, read from the rows of the modules that it lived in.

Pure. A function has a version where its own source changed: what a neighbour does in the same module, or a
move to another, is none. Its end is an entry of its own, and has no source.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sandbox.lines import bare_lines, lines_of

from ..clock import shown_time
from ..errors import UsageError
from ..matching import Allowance, compare, diff_lines
from ..registry.source import Source, parse_accepted
from ..registry.tree import survey
from ..storage import VersionRow

SHORT = 8
_MOST_NAMED = 12
_LONGEST_NUMBER = 6  # digits: more of them are the beginning of a hash


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a function; `hash` and `source` are empty where the function was deleted.

    `row` is the line of history that brought it: who, when, why, and the whole module.
    """

    number: int
    hash: str
    source: str
    row: VersionRow
    what: str = "changed"
    added: int = 0
    removed: int = 0

    @property
    def short(self) -> str:
        """The beginning of its hash, by which it can be named."""
        return self.hash[:SHORT]

    @property
    def who(self) -> str:
        """Who made it: a human, or an agent by its name and its model."""
        named = " ".join(filter(None, [self.row.by, self.row.agent]))
        return f"{named} ({self.row.model})" if self.row.model else named

    @property
    def when(self) -> str:
        """The minute of it, where the reader is."""
        return shown_time(self.row.at)


def versions(rows: Iterable[VersionRow], name: str) -> tuple[Version, ...]:
    """Every version of a function, oldest first, from the histories of its modules in their order."""
    holders: dict[str, str] = {}
    found: list[Version] = []
    allowance = _for_all()
    for row in rows:
        source = own_source(row.text, name)
        if source:
            holders[row.module] = source
        elif holders.pop(row.module, None) is None or holders:
            continue
        if _moved(found, source, row):
            found.pop()
        if source != (found[-1].source if found else ""):
            found.append(_version(source, row, found, allowance))
    return tuple(found)


def _moved(found: Sequence[Version], source: str, row: VersionRow) -> bool:
    """Whether what looks like a deletion was the first half of a move to another module."""
    return (
        len(found) > 1
        and not found[-1].hash
        and (found[-2].source, False) == (source, found[-1].row.module == row.module)
    )


def _version(source: str, row: VersionRow, before: Sequence[Version], allowance: Allowance) -> Version:
    last = before[-1].source if before else ""
    what = "changed" if source and last else "created" if not before else "deleted" if last else "restored"
    added, removed = compare(bare_lines(last), bare_lines(source), allowance).counts
    return Version(len(before) + 1, hash_of(source), source, row, what, added, removed)


def own_source(text: str, name: str) -> str:
    """A function's lines in a module, from its first decorator on; an empty text where it is not defined."""
    if name not in text:
        return ""
    tree = parse_accepted(Source("history", "history", text, ""))
    node = survey(tree).definitions.get(name) if isinstance(tree, ast.Module) else None
    if node is None:
        return ""
    start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return "".join(lines_of(text)[start - 1 : node.end_lineno])


def hash_of(source: str) -> str:
    """The name of a function's version, as the registry gives it; an empty text for none."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest() if source else ""


def current(found: Sequence[Version]) -> Version | None:
    """The version that the function is at; None once it is deleted."""
    return found[-1] if found and found[-1].hash else None


def pick(name: str, found: Sequence[Version], wanted: str) -> Version:
    """The version of that number, or whose hash begins so; by default the one before the current.

    Raises:
        UsageError: there is none, or more than one; the message names what there is.
    """
    if not found:
        raise UsageError(f"There is no function `{name}`, and there never was.", mend="Look at the list of functions.")
    fitting = _before(found) if not wanted else _named(found, wanted)
    if len({one.hash for one in fitting}) != 1:
        problem = f"has no version `{wanted}`" if wanted else "has no version before the current one"
        raise UsageError(
            f"`{name}` {problem if not fitting else f'has more than one version `{wanted}`'}.", mend=known(found)
        )
    chosen = fitting[-1]
    if not chosen.hash:
        raise UsageError(f"Version {chosen.number} of `{name}` is its deletion: it has no source.", mend=known(found))
    return chosen


def known(found: Sequence[Version]) -> str:
    """A sentence that names the versions there are, the newest ones where they are many."""
    named = [f"{one.number} ({one.short or one.what})" for one in found[-_MOST_NAMED:]]
    return f"{'Its versions:' if len(found) <= _MOST_NAMED else 'Its last versions:'} {', '.join(named)}."


def _before(found: Sequence[Version]) -> list[Version]:
    now = found[-1]
    return [one for one in found if one.hash and one.hash != now.hash][-1:]


def has_earlier(found: Sequence[Version]) -> bool:
    """There is a version to go back to without naming it."""
    return bool(_before(found))


def _named(found: Sequence[Version], wanted: str) -> list[Version]:
    if wanted.isdecimal() and len(wanted) <= _LONGEST_NUMBER:
        by_number = [one for one in found if one.number == int(wanted)]
        if by_number:
            return by_number
    return [one for one in found if one.hash.startswith(wanted.lower())] if len(wanted) >= 4 else []


def diff(before: str, after: str, names: tuple[str, str]) -> str:
    """What became different between two sources of a function, as a unified diff."""
    return "".join(f"{line}\n" for line in diff_lines(bare_lines(before), bare_lines(after), names))


def blame(found: Sequence[Version]) -> list[tuple[str, Version]]:
    """Each line of the current source, or of the last one before a deletion, with the version that brought it."""
    lines: list[tuple[str, Version]] = []
    allowance = _for_all()
    for version in found:
        if version.hash:
            lines = list(_carried(lines, version, allowance))
    return lines


def _carried(
    before: list[tuple[str, Version]], version: Version, allowance: Allowance
) -> Iterator[tuple[str, Version]]:
    now = bare_lines(version.source)
    for kind, start, end, first, last in compare([text for text, _ in before], now, allowance).opcodes:
        yield from before[start:end] if kind == "equal" else [(text, version) for text in now[first:last]]


def _for_all() -> Allowance:
    """What may be spent on all versions of a function: a second or two, of a thread."""
    return Allowance(steps=4_000_000, lines=4_000_000)
