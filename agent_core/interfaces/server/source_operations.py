"""The API of sources: documents that a client uploads for an agent, in parts, and those that it has."""

import binascii
import hashlib
import re
import time
from base64 import b64decode
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from agent_core.base.errors import UsageError
from agent_core.base.untrusted import one_line
from agent_core.memory.source_catalog import Sources
from agent_core.storage import prepare_state_dir

from ..render.source_reports import report_json, source_json
from .failures import ApiRefusal
from .operations import Asked, operation
from .parts import Part

MOST_BYTES: Final = 32 << 20
_MOST_PART: Final = 1_400_000  # characters of base64
_STALE_S: Final = 24 * 3_600
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")


class Upload(Part):
    """A part of a document, in base64. `offset` is where in the document it begins; `more`: others follow."""

    name: Annotated[str, Field(min_length=1, max_length=300)]
    data: Annotated[str, Field(max_length=_MOST_PART)]
    offset: Annotated[int, Field(ge=0, le=MOST_BYTES)] = 0
    more: bool = False


class SourceName(Part):
    """A source: its name, or the beginning of its hash."""

    source: Annotated[str, Field(min_length=1, max_length=300)]


@operation("GET", "/agents/{agent}/sources", ("read",), "List the sources of an agent.")
async def sources(asked: Asked, agent: str) -> object:
    """List the sources of an agent, with how much of each is stored."""
    rows = await (await _sources(asked, agent)).list()
    return {"agent": agent, "sources": [source_json(row) for row in rows]}


@operation("POST", "/agents/{agent}/sources", ("edit",), "Upload a part of a source.")
async def upload(asked: Asked, agent: str, upload: Upload) -> object:
    """Take a part of a document; after the last one, read it all into archival memory. `GET` tells how far it is."""
    place = _place(asked, agent, upload.name)
    size = place.stat().st_size if place.exists() else 0
    if upload.offset not in (0, size):
        message = f"The next part of `{one_line(upload.name, 80)}` begins at {size}, not at {upload.offset}."
        raise ApiRefusal(409, "offset", message, "Go on there, or begin again at 0.", [{"offset": size}])
    data = _bytes(upload.data)
    if upload.offset + len(data) > MOST_BYTES:
        place.unlink(missing_ok=True)
        raise UsageError(f"A document may have {MOST_BYTES >> 20} MiB.", fix="Split it, or use knapper sources add.")
    with place.open("ab" if upload.offset else "wb") as file:
        file.write(data)
    if upload.more:
        return {"name": upload.name, "received": upload.offset + len(data), "sources": []}
    try:
        reports = await (await _sources(asked, agent)).add(str(place), name=one_line(upload.name))
    finally:
        place.unlink(missing_ok=True)
    return {
        "name": upload.name,
        "received": upload.offset + len(data),
        "sources": [report_json(one) for one in reports],
    }


@operation("DELETE", "/agents/{agent}/sources", ("edit",), "Remove a source.")
async def remove(asked: Asked, agent: str, source_name: SourceName) -> object:
    """Remove a source from an agent, with its passages."""
    rows = await (await _sources(asked, agent)).remove(source_name.source)
    return {"removed": [source_json(row) for row in rows]}


async def _sources(asked: Asked, name: str) -> Sources:
    await asked.rooms.host.agent(name)
    return await asked.workspace.sources(name)


def _place(asked: Asked, agent: str, name: str) -> Path:
    """Return where the parts of a document are put together: nothing of its name but the kind is in the path."""
    folder = prepare_state_dir(asked.workspace.root) / "uploads"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.iterdir():
        if time.time() - path.stat().st_mtime > _STALE_S:
            path.unlink(missing_ok=True)
    kind = _SUFFIX.search(name)
    key = "\0".join((asked.identity.name, agent, name))
    return folder / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()}{kind[0] if kind else ''}"


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("The data are not base64.", fix="Encode the bytes of the document as base64.") from error
