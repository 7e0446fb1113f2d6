"""Shared by the tests of sources: an agent's sources in a real store, and PDFs built by the tests."""

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_core.base.clock import Clock
from agent_core.memory.archival import Archival
from agent_core.memory.embedding import embedder
from agent_core.memory.source_catalog import Sources
from agent_core.storage import PassageRow, Store, open_store


@dataclass(frozen=True, slots=True)
class Desk:
    store: Store
    archival: Archival
    sources: Sources

    async def passages(self) -> list[PassageRow]:
        """Return all passages in order of their place."""
        _, rows = await self.store.list_passages("main", (), 0, 100_000)
        return sorted(rows, key=lambda row: (row.document, row.n))


@asynccontextmanager
async def desk(folder: Path, *, meaning: bool = False) -> AsyncIterator[Desk]:
    """Yield the sources of `main`, stored in a state file in this folder."""
    clock = Clock()
    async with open_store(folder / "state.db", clock=clock) as store:
        archival = Archival(store, "main", embedder("wordllama" if meaning else "none"), clock)
        yield Desk(store, archival, Sources(store, archival, "main", clock))


def pdf(pages: Sequence[str], *, packed: bytes = b"") -> bytes:
    """Return a PDF with these pages, or with one page that has this compressed content."""
    streams = [
        packed or zlib.compress(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()) for text in pages
    ]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(streams):
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R"
        objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        head = f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + stream + b"\nendstream")
    return _with_index(objects)


def _with_index(objects: Sequence[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )
    return bytes(out)
