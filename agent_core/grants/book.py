"""What is granted in one workspace: the file's entries, as far as this user said yes to exactly the code that is there.

A yes is gone when its entry is gone, and narrowed with it: what was taken out of the file and comes back is asked for
again. The file is looked at before every call, which costs one `stat`.
"""

import asyncio
import getpass
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sandbox.foreign import read_json

from ..errors import StorageError
from ..problem import Problem
from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..seal import Sealer
from ..storage import DropYes, SaveYes, Store, Write, YesRow
from .approval import Question
from .content import Content, content_of, differences, misleading, modules_of
from .file import Entry, GrantsFile, Listing
from .record import Record
from .repositories import looked_through
from .value import NOTHING, Grants, joined

Alone = Callable[[], AbstractAsyncContextManager[None]]
"""The right to change the workspace's files, which one process has at a time."""


@dataclass(frozen=True, slots=True)
class Yes:
    """What a human agreed to for one content."""

    digest: str
    versions: tuple[tuple[str, str], ...]
    grants: Grants
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class Giving:
    """What is to be given to a function for one content, beside what it `held`, as far as its entry still has that."""

    function: str
    grants: Grants
    content: Content
    by: str
    held: Grants = NOTHING


@dataclass(frozen=True, slots=True)
class Held:
    """What a function has at one moment: by its entry, in force now, and by the newest yes to any content of it."""

    entry: Grants = NOTHING
    now: Grants = NOTHING
    last: Grants = NOTHING
    before: tuple[tuple[str, str], ...] = ()

    def wanted(self, needs: Grants, around: Grants = NOTHING) -> Grants:
        """What the entry proposes for these needs and those around, and the needs that it does not meet."""
        return self.entry.serving(needs | around) | needs.without(self.entry)


@dataclass(frozen=True, slots=True)
class _Known:
    listing: Listing
    yeses: Mapping[str, tuple[Yes, ...]] = field(default_factory=dict)


class GrantBook:
    """The grants of one workspace."""

    def __init__(self, root: Path, store: Store, alone: Alone, sealer: Sealer | None = None) -> None:
        self._root = root
        self._file = GrantsFile(root / "functions")
        self._record = Record(root)
        self._store = store
        self._alone = alone
        self._sealer = sealer or Sealer(root)
        self._known: _Known | None = None
        self._lent: dict[tuple[str, str], Grants] = {}

    async def allowed(self, function: Function, snapshot: Snapshot) -> Grants:
        """What a function may reach now, as it is in this snapshot."""
        return (await self.held(function, snapshot)).now

    async def held(self, function: Function, snapshot: Snapshot) -> Held:
        """What a function has now, and had."""
        known = await self._look()
        entry = known.listing.entries.get(function.name)
        if entry is None:
            return Held()
        yeses = known.yeses.get(function.name, ())
        digest = content_of(function, snapshot).digest
        is_ours = not misleading(function, snapshot)
        now = next((one.grants for one in yeses if is_ours and one.digest == digest), NOTHING)
        last = yeses[-1] if yeses else Yes("", (), NOTHING, "", 0)
        return Held(entry.grants, now & entry.grants, last.grants & entry.grants, last.versions)

    async def question(
        self, function: Function, snapshot: Snapshot, needs: Grants, around: Grants = NOTHING
    ) -> Question | None:
        """What is to be asked before a function has what it needs; None if it has it all.

        What its entry proposes for needs of the modules `around` it is asked for with them.
        """
        held = await self.held(function, snapshot)
        missing = held.wanted(needs, around).without(held.now)
        if not missing:
            return None
        texts = {module: await self._store.text(version) or "" for module, version in held.before}
        now = modules_of(function.module, snapshot).values()
        diff = await asyncio.to_thread(differences, texts, now) if texts else ""
        is_again = bool(texts) and held.last.covers(missing)
        return Question(function.name, missing, held.last, diff=diff, version=function.version, is_again=is_again)

    def lend(self, giving: Giving) -> None:
        """Let the next call of this content have more, and no later one."""
        self._lent[giving.function, giving.content.digest] = giving.grants

    def borrowed(self, function: Function, snapshot: Snapshot) -> Grants:
        """What was lent to the next call, which this is."""
        if not any(name == function.name for name, _ in self._lent):
            return NOTHING
        return self._lent.pop((function.name, content_of(function, snapshot).digest), NOTHING)

    def take_back(self, name: str) -> Grants:
        """What was lent to the next call of a function, and is lent no more."""
        mine = [key for key in self._lent if key[0] == name]
        return joined(self._lent.pop(key) for key in mine)

    async def needed_to_call(self, snapshot: Snapshot) -> frozenset[str]:
        """The functions that only those may call that have the grant for it: all that have an entry or a loan."""
        named = {*(await self._look()).listing.entries, *(name for name, _ in self._lent)}
        return frozenset(named & snapshot.functions.keys())

    async def agreed(self) -> Mapping[str, Grants]:
        """What the newest yes gave each function, whatever its content was then, as far as its entry goes."""
        known = await self._look()
        entries = known.listing.entries
        return {name: known.yeses[name][-1].grants & entries[name].grants for name in known.yeses.keys() & entries}

    async def entries(self) -> Mapping[str, Entry]:
        """What the file proposes."""
        return (await self._look()).listing.entries

    async def problems(self) -> tuple[Problem, ...]:
        """What of the file is not understood, and therefore grants nothing."""
        return (await self._look()).listing.problems

    async def give(self, function: Function, snapshot: Snapshot, grants: Grants, by: str) -> None:
        """Let a function, as it is in this snapshot, have more than it has; a human said so.

        Raises:
            WorkspaceError: the file cannot be written, or the key of the seals cannot be used.
        """
        now = await self.allowed(function, snapshot)
        giving = Giving(function.name, grants, content_of(function, snapshot), by, now)
        async with self._alone():
            await self._store.apply(await self.put(giving))
        self.forget()

    async def put(self, giving: Giving) -> tuple[Write, ...]:
        """Write the entry while nobody else writes; the rows that have to follow, after which to `forget`."""
        before = self._file.read()
        held = before.entries.get(giving.function, Entry())
        versions, text = giving.content.to_text(), _text(giving.grants | (giving.held & held.grants))
        seal = self._sealer.seal(
            giving.function, giving.content.digest, versions, text, giving.by, *self._since(giving.function)
        )
        self._record.look_through(*looked_through(self._root, giving.grants.read, giving.grants.write))
        moment = datetime.fromtimestamp(await self._store.now(), UTC).isoformat(timespec="milliseconds")
        entry = Entry(held.grants | giving.grants, giving.by, moment.replace("+00:00", "Z"))
        await asyncio.to_thread(self._file.write, {**before.entries, giving.function: entry}, before)
        return (SaveYes(giving.function, giving.content.digest, versions, text, giving.by, seal),)

    async def revoke(self, name: str, grants: Grants | None = None) -> Grants:
        """Take these grants, or all, from a function; what its entry has now.

        Raises:
            WorkspaceError: the file cannot be written; every yes to the function is gone all the same.
        """
        async with self._alone():
            before = self._file.read()
            held = before.entries.get(name, Entry())
            left = NOTHING if grants is None else held.grants.without(grants)
            if not left or before.problems:
                try:
                    self._record.take_back(name)
                finally:
                    await self._store.apply([DropYes(name)])
                await self._check_dropped(name)
            self.forget()
            entries = {one: entry for one, entry in before.entries.items() if one != name}
            entries |= {name: Entry(left, held.by, held.at)} if left else {}
            await asyncio.to_thread(self._file.write, entries, before)
        await self._look()
        return left

    async def _check_dropped(self, name: str) -> None:
        if any(row.function == name for row in await self._store.yeses()):
            what = f"The yes to `{name}` is still in the state file, which did not let it be removed."
            raise StorageError(what, mend="Move .toolwright/state.db away: a new one is begun, without any yes.")

    def forget(self) -> None:
        """Look anew before the next answer."""
        self._known = None

    async def _look(self) -> _Known:
        known = self._known
        if known is None or known.listing.stamp != self._file.stamp():
            listing, rows = self._file.read(), await self._store.yeses()
            if listing.stamp is not None or rows:  # where there is neither, nobody need be waited for
                listing, rows = await self._look_alone()
            known = self._known = _Known(listing, self._valid(rows))
        return known

    async def _look_alone(self) -> tuple[Listing, list[YesRow]]:
        """The file and the rows as they belong together: who gives has written both, or neither."""
        async with self._alone():
            listing, rows = self._file.read(), await self._store.yeses()
            writes = list(self._settled(rows, listing))
            if not writes:
                return listing, rows
            await self._store.apply(writes)
            return listing, await self._store.yeses()

    def _valid(self, rows: Iterable[YesRow]) -> Mapping[str, tuple[Yes, ...]]:
        found: dict[str, tuple[Yes, ...]] = {}
        for row in self._ours(rows):
            versions = tuple((module, version) for module, version in read_json(row.content))
            yes = Yes(row.digest, versions, Grants.from_json(read_json(row.grants)), row.by, row.at)
            found[row.function] = (*found.get(row.function, ()), yes)
        return found

    def _ours(self, rows: Iterable[YesRow]) -> list[YesRow]:
        """Those that this user sealed here, since the yeses of their function were last taken back."""
        said = self._record.read()
        return [
            row
            for row in rows
            if said.is_trusted and self._sealer.holds(row.seal, *_sealed(row), *said.since(row.function))
        ]

    def _since(self, function: str) -> tuple[str, ...]:
        return self._record.read().since(function)

    def _settled(self, rows: Iterable[YesRow], listing: Listing) -> Iterable[Write]:
        """What makes our yeses no wider than the entries; where the file is not understood all stays."""
        if listing.problems:
            return
        ours = self._ours(rows)
        for name in dict.fromkeys(row.function for row in ours):
            own = [row for row in ours if row.function == name]
            if name not in listing.entries:
                self._record.take_back(name)
                yield DropYes(name)
                continue
            entry = listing.entries[name].grants
            narrowed = [(row, Grants.from_json(read_json(row.grants)) & entry) for row in own]
            if any(_text(grants) != row.grants for row, grants in narrowed):
                self._record.take_back(name)
                yield from (self._resealed(row, _text(grants)) for row, grants in narrowed)

    def _resealed(self, row: YesRow, text: str) -> SaveYes:
        seal = self._sealer.seal(row.function, row.digest, row.content, text, row.by, *self._since(row.function))
        return SaveYes(row.function, row.digest, row.content, text, row.by, seal)


def who() -> str:
    """The user that says yes, by the name that the system has for them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {os.getuid()}"


def _sealed(row: YesRow) -> tuple[str, ...]:
    return row.function, row.digest, row.content, row.grants, row.by


def _text(grants: Grants) -> str:
    return json.dumps(grants.to_json(), sort_keys=True)
