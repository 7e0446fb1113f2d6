"""The sources of one agent: read, cut, and stored passage by passage, once for each content.

The progress of a source is stored with its passages, in the same transaction; cutting is deterministic, and a passage's
id follows from its content and position. So if the work is interrupted for any reason, adding the source again
continues where it stopped.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_core.base.errors import UnknownName, UsageError
from agent_core.base.matching import did_you_mean
from agent_core.base.records import dataclass, replace
from agent_core.base.untrusted import one_line
from agent_core.storage import (
    LOADED,
    CopyDocument,
    DocumentRow,
    DropDocument,
    MemoryStore,
    SaveDocument,
    SavePassages,
)

from .archival import Archival
from .sources import (
    Cut,
    SourcePlace,
    SourceReader,
    Unreadable,
    is_missing,
    not_prose,
    of_program,
    places,
)

if TYPE_CHECKING:
    from agent_core.base.clock import Clock

OnProgress: TypeAlias = Callable[[int, int, str], None]
"""A listener that receives the number of stored passages of a source, their total, and its name."""

BATCH: Final = 512
_LEAST_HASH: Final = 6
_LONGEST_NAME: Final = 300


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The result for one source; `there` means that it was stored before, under this name."""

    name: str
    outcome: Literal["added", "replaced", "resumed", "there", "refused"]
    passages: int = 0
    kind: str = ""
    hash: str = ""
    notes: tuple[str, ...] = ()
    folder: str = ""
    """The folder in which it was found, as the user named it."""

    def __str__(self) -> str:
        many = f"{self.passages:,} passage{'s' * (self.passages != 1)}"
        texts = {
            "added": many,
            "replaced": f"{many}, replacing the earlier version",
            "resumed": f"{many}; it was resumed",
            "there": f"there already, {many}",
            "refused": "left out",
        }
        return f"{self.name}: {texts[self.outcome]}. {' '.join(self.notes)}".rstrip()


class Sources:
    """The sources that the user gave one agent."""

    def __init__(self, store: MemoryStore, archival: Archival, agent: str, clock: "Clock") -> None:
        self._store = store
        self._archival = archival
        self._agent = agent
        self._clock = clock

    async def add(
        self, place: str, on_progress: OnProgress = lambda *_: None, name: str | None = None
    ) -> list[SourceReport]:
        """Store a file, a folder's files, a URL's page, or `-`, standard input. May be canceled at any time.

        Raises:
            Unreadable: it cannot be read; an unreadable file of a folder is left out and reported.
        """
        reports: list[SourceReport] = []
        async with SourceReader() as reading:
            for source in await asyncio.to_thread(places, place, name or ""):
                try:
                    report = await self._add(source, reading, on_progress)
                except Unreadable as error:
                    if not source.is_found:
                        raise Unreadable(
                            f"{one_line(source.name)}: {error.message}", fix=error.fix
                        ) from error
                    report = SourceReport(
                        one_line(source.name, _LONGEST_NAME), "refused", notes=(str(error),)
                    )
                reports.append(
                    replace(report, folder=one_line(name or place)) if source.is_found else report
                )
        return reports

    async def is_only_loaded(self, source: str) -> bool:
        """Check whether no file or folder has this name, but a source that was loaded for all agents."""
        return is_missing(source) and bool(
            _matching_documents(source, await self._store.documents(LOADED))
        )

    async def attach(self, source: str) -> tuple[Sequence[DocumentRow], Sequence[DocumentRow]]:
        """Attach loaded sources to the agent, with their vectors: by name, the beginning of the hash, or folder.

        Return those that are new to it, and the agent's own that already have the same text, under any name.

        Raises:
            UsageError: no loaded source matches.
        """
        rows, had = await self._store.documents(LOADED), await self.list()
        matches = [row for row in _matching_documents(source, rows) if row.complete]
        if not matches:
            names = ", ".join(row.name for row in rows[:10])
            fix = f"Loaded are: {names}." if names else "Type: knapper sources load PATH"
            fix = did_you_mean(source, [row.name for row in rows], fix)
            raise UsageError(f"No source {one_line(source)} is loaded.", fix=fix)
        whole = {row.hash: row for row in had if row.complete}
        new = [row for row in matches if row.hash not in whole]
        for row in new:
            old = [
                DropDocument(self._agent, other.hash)
                for other in had
                if row.hash == other.hash or row.name == other.name
            ]
            await self._store.apply([*old, CopyDocument(row.hash, LOADED, self._agent)])
        return new, [whole[row.hash] for row in matches if row.hash in whole]

    async def list(self) -> Sequence[DocumentRow]:
        """Return the sources, oldest first; an incomplete one was interrupted."""
        return await self._store.documents(self._agent)

    async def remove(self, source: str) -> Sequence[DocumentRow]:
        """Remove a source with its passages: by its name, the beginning of its hash, or its folder.

        Raises:
            UsageError: there is none.
        """
        rows = await self.list()
        matches = _matching_documents(source, rows)
        if not matches:
            names = ", ".join(row.name for row in rows[:10])
            raise UnknownName(
                f"{self._agent} has no source {one_line(source)}.",
                fix=names and f"Known are: {names}.",
            )
        await self._store.apply([DropDocument(self._agent, row.hash) for row in matches])
        return matches

    async def _add(
        self, place: SourcePlace, reader: SourceReader, on_progress: OnProgress
    ) -> SourceReport:
        material = await place.material()
        if place.is_found and (
            why := of_program(place, material.data) or not_prose(place.name, material.data)
        ):
            raise Unreadable(
                f"It is {why}, not a text to read.",
                fix="To add it nevertheless, name the file itself.",
            )
        hash = (await asyncio.to_thread(hashlib.sha256, material.data)).hexdigest()
        rows = await self.list()
        had = next((row for row in rows if row.hash == hash), None)
        name = one_line(
            f"{place.name} {hash[:8]}" if place.is_unnamed else place.name, _LONGEST_NAME
        )
        if had is not None and had.complete:
            return SourceReport(had.name, "there", had.total, had.kind, hash)
        cut = await reader.cut(material.guess or place.name, material.data, material.content_type)
        old = [row for row in rows if row.name == name and row.hash != hash]
        row = DocumentRow(
            hash, self._agent, name, cut.kind, self._clock.now(), total=len(cut.chunks)
        )
        begun = had if had is not None and (had.kind, had.total) == (row.kind, row.total) else None
        if begun is None and had is not None:  # it was cut differently then
            await self._store.apply([DropDocument(self._agent, hash)])
        await self._keep(replace(row, done=begun.done if begun else 0), cut, old, on_progress)
        outcome: Literal["resumed", "replaced", "added"] = (
            "resumed" if begun else "replaced" if old or had else "added"
        )
        trouble = self._archival.vectors.trouble
        notes = (
            *material.notes,
            *cut.notes,
            *((f"For now, it is found only by words: {trouble}",) if trouble else ()),
        )
        return SourceReport(name, outcome, row.total, row.kind, hash, notes)

    async def _keep(
        self, row: DocumentRow, cut: Cut, old: Sequence[DocumentRow], on_progress: OnProgress
    ) -> None:
        """Store the missing passages; with the last of them, remove the sources that it replaces.

        While a batch is stored, vectors of the previous one are computed: they are derived, so missing ones can follow
        later.
        """
        on_progress(row.done, row.total, row.name)
        for start in range(row.done, row.total, BATCH):
            done = min(start + BATCH, row.total)
            passages = await asyncio.to_thread(self._passages, row, cut, start, done)
            is_last = done == row.total
            dropped = (
                [DropDocument(self._agent, document.hash) for document in old] if is_last else []
            )
            saved = SaveDocument(replace(row, done=done, complete=is_last))
            await asyncio.gather(self._store.apply([passages, saved, *dropped]), self._embed())
            on_progress(done, row.total, row.name)
        await self._embed()

    async def _embed(self) -> None:
        while await self._archival.vectors.embed():
            pass

    def _passages(self, row: DocumentRow, cut: Cut, start: int, end: int) -> SavePassages:
        passages = []
        for n, chunk in enumerate(cut.chunks[start:end], start):
            digits = hashlib.sha256(f"{row.hash}:{n}:{chunk.text}".encode()).hexdigest()
            # The same passage of a document gets the same id, in the form of a UUIDv8 (RFC 9562).
            id = f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
            passages.append(
                self._archival.passage(
                    chunk.text, row.name, one_line(chunk.place), row.hash, n, id=id
                )
            )
        return SavePassages(tuple(passages))


def _matching_documents(source: str, rows: Sequence[DocumentRow]) -> Sequence[DocumentRow]:
    exact = [row for row in rows if row.name == source]
    hashed = [
        row for row in rows if len(source) >= _LEAST_HASH and row.hash.startswith(source.lower())
    ]
    below = [row for row in rows if row.name.startswith(f"{source.rstrip('/')}/")]
    return exact or (hashed if len(hashed) == 1 else []) or below
