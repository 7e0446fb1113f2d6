"""The versions of one function, read from the history of the modules that contained it.

Pure. A function has a new version when its own source changes, not when its neighbors change or when it moves to
another module. Its deletion is a separate entry without source.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_core.base.clock import shown_time
from agent_core.base.errors import UnknownName, UsageError
from agent_core.base.matching import ComparisonBudget, compare, diff_lines
from agent_core.base.records import FLAT, dataclass, field, published_as
from agent_core.registry.depends import offered_sources
from agent_core.storage import VersionRow
from sandbox.wire.lines import bare_lines

SAVED = "saved"  # reasons of changes that the user made in the files
REMOVED = "the file was removed"
SHORT = 8
_MOST_NAMED = 12
_LONGEST_NUMBER = 6  # digits; a longer number is a hash prefix
_WENT_BACK = re.compile(r"(?:rolled back to|brought back as) version (\d{1,6}) \(([0-9a-f]+)\)")


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a function. `hash` and `source` are empty if the function was deleted.

    `row` is the line of history that introduced it: who, when, why, and the whole module.
    """

    number: int
    hash: str
    source: str
    row: "VersionRow"
    change_kind: str = "changed"
    added: int = 0
    removed: int = 0

    @property
    def short(self) -> str:
        """The first characters of the version's hash, which identify it."""
        return self.hash[:SHORT]

    @property
    def who(self) -> str:
        """The author of the version: the user, or an agent with its name and model."""
        named = " ".join(filter(None, [self.row.by, self.row.agent]))
        return f"{named} ({self.row.model})" if self.row.model else named

    @property
    def when(self) -> str:
        """The time of the version to the minute, in the reader's time zone."""
        return shown_time(self.row.at)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Version":  # Any: JSON
        """Return a version from its published shape, which has no text."""
        names = ("module", "by", "turn", "model", "reason", "at", "agent")
        row = VersionRow(
            version=data["module_version"], text="", **{name: data[name] for name in names}
        )
        change = data.get("what", ""), data.get("added", 0), data.get("removed", 0)
        return cls(data["number"], data["version"], "", row, *change)

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the fields that identify a version: number, author, time and reason."""
        row = self.row
        return {
            "number": self.number,
            "version": self.hash,
            "module": row.module,
            "module_version": row.version,
            "at": row.at,
            **{"by": row.by, "agent": row.agent, "model": row.model, "turn": row.turn},
            "reason": row.reason,
        }


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A version in the history: its standing, the results accepted as returned, and the examples that it lost."""

    version: Version = field(metadata=FLAT)
    standing: str
    confirmed: tuple[str, ...]
    dropped: tuple[str, ...]
    is_current: bool = field(metadata=published_as("current"))

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published shape."""
        change = {
            "what": self.version.change_kind,
            "added": self.version.added,
            "removed": self.version.removed,
        }
        verdict = {
            "standing": self.standing,
            "confirmed": [*self.confirmed],
            "dropped": [*self.dropped],
        }
        return {**self.version.to_json(), **change, **verdict, "current": self.is_current}


@dataclass(frozen=True, slots=True)
class FunctionHistory:
    """The versions of a function, oldest first, and whether a rollback is possible."""

    name: str
    module: str
    deleted: bool
    goes_back: bool
    versions: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The difference between two versions of a function."""

    name: str
    from_: Version
    to: Version
    diff: str


def versions(rows: Iterable["VersionRow"], name: str) -> tuple[Version, ...]:
    """Return every version of a function, oldest first, from the ordered histories of its modules."""
    holders: dict[str, str] = {}
    entries: list[Version] = []
    allowance = _for_all()
    for row in rows:
        is_there = name in row.text and name not in row.kept_out
        source = offered_sources(row.text).get(name, "") if is_there else ""
        if source:
            holders[row.module] = source
        elif holders.pop(row.module, None) is None or holders:
            continue
        # A deletion was the first half of a move to another module, made in the user's own files.
        if len(entries) > 1 and not entries[-1].hash and entries[-2].source == source:
            deletion = entries[-1].row
            if (
                deletion.module != row.module
                and deletion.reason in (SAVED, REMOVED)
                and row.reason == SAVED
            ):
                entries.pop()
        last = entries[-1].source if entries else ""
        if source != last:
            if not entries:
                kind = "created"
            elif not source:
                kind = "deleted"
            elif not last:
                kind = "restored"
            else:
                kind = "changed"
            added, removed = compare(bare_lines(last), bare_lines(source), allowance).counts
            entries.append(
                Version(len(entries) + 1, hash_of(source), source, row, kind, added, removed)
            )
    return tuple(entries)


def hash_of(source: str) -> str:
    """Return the hash of a function's version as in the registry; empty for an empty source."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest() if source else ""


def current(versions: Sequence[Version]) -> Version | None:
    """Return the function's current version, or None if it is deleted."""
    return versions[-1] if versions and versions[-1].hash else None


def went_back(version: Version, *, is_there: bool) -> str:
    """Return the reason text of a version that a rollback made, which also identifies it as a rollback."""
    return f"{'rolled back to' if is_there else 'brought back as'} version {version.number} ({version.short})"


def _origin(versions: Sequence[Version]) -> int:
    """Return the index of the version that the last rollbacks restored, or of the current one if there are none.

    A reason only counts if it is true, because anyone can write one.
    """
    place = len(versions) - 1
    while found := _WENT_BACK.match(versions[place].row.reason):
        version, back = versions[place], int(found[1]) - 1
        if not (
            0 <= back < place and versions[back].hash == version.hash and version.short == found[2]
        ):
            break
        place = back
    return place


def pick(
    name: str, versions: Sequence[Version], reference: str, *, goes_back: bool = False
) -> Version:
    """Return the version with this number or hash prefix, by default the last one with another text.

    With `goes_back`, the default is the one before the version that the last rollbacks restored.

    Raises:
        UsageError: there is none, or more than one; the message lists the versions.
    """
    if not versions:
        raise UnknownName(
            f"There is no function `{name}`, and there never was.", fix="See the list of functions."
        )
    since = _origin(versions) + 1 if goes_back else len(versions)
    fitting = [] if reference else _before(versions, since)
    if reference.isdecimal() and len(reference) <= _LONGEST_NUMBER:
        fitting = [version for version in versions if version.number == int(reference)]
    if not fitting and len(reference) >= 4:
        fitting = [version for version in versions if version.hash.startswith(reference.lower())]
    if len({version.hash for version in fitting}) != 1:
        at = (
            "the current one"
            if since == len(versions)
            else f"version {since}, which it was rolled back to"
        )
        problem = f"has no version `{reference}`" if reference else f"has no version before {at}"
        raise UsageError(
            f"`{name}` {problem if not fitting else f'has more than one version `{reference}`'}.",
            fix=versions_text(versions),
        )
    chosen = fitting[-1]
    if not chosen.hash:
        raise UsageError(
            f"Version {chosen.number} of `{name}` is its deletion: it has no source.",
            fix=versions_text(versions),
        )
    return chosen


def versions_text(versions: Sequence[Version]) -> str:
    """Return a sentence that lists the versions; if there are many, only the newest."""
    named = [
        f"{version.number} ({version.short or version.change_kind})"
        for version in versions[-_MOST_NAMED:]
    ]
    return f"{'Its versions:' if len(versions) <= _MOST_NAMED else 'Its last versions:'} {', '.join(named)}."


def _before(versions: Sequence[Version], since: int) -> list[Version]:
    now = versions[-1]
    return [version for version in versions[:since] if version.hash and version.hash != now.hash][
        -1:
    ]


def has_earlier(versions: Sequence[Version]) -> bool:
    """Return whether there is a version to go back to by default."""
    return bool(_before(versions, _origin(versions) + 1))


def diff(before: str, after: str, names: tuple[str, str]) -> str:
    """Return the unified diff between two sources of a function."""
    return "".join(f"{line}\n" for line in diff_lines(bare_lines(before), bare_lines(after), names))


def _for_all() -> ComparisonBudget:
    """Return the budget for comparing all versions of a function, which is a second or two of one thread."""
    return ComparisonBudget(steps=4_000_000, lines=4_000_000)
