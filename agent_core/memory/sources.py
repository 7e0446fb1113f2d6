"""The sources of one agent: read, cut, and kept passage by passage, once for each content.

How far a source is kept stands in the store with its passages, in the same transaction; cutting is deterministic and
a passage's id follows from its content and place. So whatever ends the work, adding it again goes on where it stopped.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from ..clock import Clock
from ..errors import UsageError
from ..sources import Cut, Place, Reading, Unreadable, places
from ..storage import DocumentRow, DropDocument, MemoryStore, SaveDocument, SavePassages, Store
from ..untrusted import one_line
from .archival import Archival, Piece

OnProgress: TypeAlias = Callable[[int, int, str], None]
"""Hears how many passages of a source are kept, of how many, and its name."""

BATCH: Final = 512
_LEAST_HASH: Final = 6
_LONGEST_NAME: Final = 300


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one source; one that is `there` was kept before, under this name."""

    name: str
    outcome: Literal["added", "replaced", "resumed", "there", "refused"]
    passages: int = 0
    kind: str = ""
    hash: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        many = f"{self.passages:,} passage{'s' * (self.passages != 1)}"
        said = {
            "added": many,
            "replaced": f"{many}, in the place of what it was before",
            "resumed": f"{many}; it went on where it stopped",
            "there": f"there already, {many}",
            "refused": "left out",
        }
        return f"{self.name}: {said[self.outcome]}. {' '.join(self.notes)}".rstrip()


class Sources:
    """What a human gave one agent to know."""

    def __init__(self, store: Store, kept: MemoryStore, archival: Archival, agent: str, clock: Clock) -> None:
        self._store = store
        self._kept = kept
        self._archival = archival
        self._agent = agent
        self._clock = clock

    async def add(self, place: str, on_progress: OnProgress = lambda *_: None, name: str | None = None) -> list[Report]:
        """Keep a file, a folder's files, a URL's page, or `-`, standard input. May be cancelled at any time.

        Raises:
            Unreadable: it cannot be read; what a folder holds and cannot be read is left out, and told.
        """
        reports: list[Report] = []
        async with Reading() as reading:
            for one in await asyncio.to_thread(places, place, name or ""):
                try:
                    reports.append(await self._add(one, reading, on_progress))
                except Unreadable as error:
                    if not one.is_found:
                        raise Unreadable(f"{one_line(one.name)}: {error.message}", mend=error.mend) from error
                    reports.append(Report(one_line(one.name, _LONGEST_NAME), "refused", notes=(str(error),)))
        return reports

    async def list(self) -> Sequence[DocumentRow]:
        """The sources, oldest first; one that is not complete was interrupted."""
        return await self._kept.documents(self._agent)

    async def remove(self, wanted: str) -> Sequence[DocumentRow]:
        """Forget a source with its passages: by its name, the beginning of its hash, or the folder it came with.

        Raises:
            UsageError: there is none.
        """
        rows = await self.list()
        found = _meant(wanted, rows)
        if not found:
            known = ", ".join(row.name for row in rows[:10])
            raise UsageError(f"{self._agent} has no source {one_line(wanted)}.", mend=known and f"Known are: {known}.")
        await self._store.apply([DropDocument(self._agent, row.hash) for row in found])
        return found

    async def _add(self, place: Place, reading: Reading, on_progress: OnProgress) -> Report:
        material = await place.material()
        hash = (await asyncio.to_thread(hashlib.sha256, material.data)).hexdigest()
        rows = await self.list()
        had = next((row for row in rows if row.hash == hash), None)
        name = one_line(f"{place.name} {hash[:8]}" if place.is_unnamed else place.name, _LONGEST_NAME)
        if had is not None and had.complete:
            return Report(had.name, "there", had.total, had.kind, hash)
        cut = await reading.read(material.guess or place.name, material.data, material.content_type)
        old = [row for row in rows if row.name == name and row.hash != hash]
        row = DocumentRow(hash, self._agent, name, cut.kind, self._clock.now(), total=len(cut.chunks))
        begun = had if had is not None and (had.kind, had.total) == (row.kind, row.total) else None
        if begun is None and had is not None:  # it was cut otherwise then
            old.append(had)
            await self._store.apply([DropDocument(self._agent, hash)])
        await self._keep(replace(row, done=begun.done if begun else 0), cut, old, on_progress)
        outcome: Literal["resumed", "replaced", "added"] = "resumed" if begun else "replaced" if old else "added"
        notes = (*material.notes, *cut.notes, *self._trouble())
        return Report(name, outcome, row.total, row.kind, hash, notes)

    async def _keep(self, row: DocumentRow, cut: Cut, old: Sequence[DocumentRow], on_progress: OnProgress) -> None:
        """Keep what is not kept yet, and with the last of it forget what it replaces.

        While a batch is kept, vectors are made for the one before: they are derived, and made later where they lack.
        """
        on_progress(row.done, row.total, row.name)
        for start in range(row.done, row.total, BATCH):
            done = min(start + BATCH, row.total)
            passages = await asyncio.to_thread(self._passages, row, cut, start, done)
            is_last = done == row.total
            dropped = [DropDocument(self._agent, one.hash) for one in old if one.hash != row.hash] if is_last else []
            saved = SaveDocument(replace(row, done=done, complete=is_last))
            await asyncio.gather(self._store.apply([passages, saved, *dropped]), self._embed())
            on_progress(done, row.total, row.name)
        await self._embed()

    async def _embed(self) -> None:
        while await self._archival.vectors.embed():
            pass

    def _passages(self, row: DocumentRow, cut: Cut, start: int, end: int) -> SavePassages:
        pieces = [
            Piece(chunk.text, row.name, one_line(chunk.place), row.hash, start + n)
            for n, chunk in enumerate(cut.chunks[start:end])
        ]
        made = self._archival.saving(pieces).passages
        return SavePassages(tuple(replace(one, id=_id(one.document, one.n, one.text)) for one in made))

    def _trouble(self) -> tuple[str, ...]:
        trouble = self._archival.vectors.trouble
        return (f"It is found by words alone for now: {trouble}",) if trouble else ()


def _id(document: str, n: int, text: str) -> str:
    """The same passage has the same id, whoever keeps it and how often; in the form of a uuid8 (RFC 9562)."""
    digits = hashlib.sha256(f"{document}:{n}:{text}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _meant(wanted: str, rows: Sequence[DocumentRow]) -> Sequence[DocumentRow]:
    exact = [row for row in rows if row.name == wanted]
    hashed = [row for row in rows if len(wanted) >= _LEAST_HASH and row.hash.startswith(wanted.lower())]
    below = [row for row in rows if row.name.startswith(f"{wanted.rstrip('/')}/")]
    return exact or (hashed if len(hashed) == 1 else []) or below
