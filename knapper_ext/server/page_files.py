"""The files of the page: read once, sent compressed, and kept by browsers under an address that names their content.

The address of a file has the hash of all of them, so a browser never mixes two versions of the page. Without the hash
it is asked for anew each time.
"""

import asyncio
import gzip
import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass, field

from .responses import error_response

FOLDER: Final = Path(__file__).with_name("page")
PAGE: Final = "/page"
INDEX: Final = "index.html"
_SIZE_LIMIT: Final = 1 << 20
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:;"
    " manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_CACHING: Final = {True: "public, max-age=31536000, immutable", False: "no-cache"}
"""By whether the address has the hash."""


@dataclass(frozen=True)
class PageFile:
    """A file with its media type."""

    kind: str
    body: bytes

    @cached_property
    def packed(self) -> bytes:
        """The body, compressed."""
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def tag(self) -> str:
        """What a browser compares."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True)
class PageFiles:
    """The files of the page by their names, and the hash of all."""

    files: Mapping[str, PageFile]
    version: str
    index: PageFile = field(init=False)

    def __post_init__(self) -> None:
        named = self.files[INDEX].body.replace(b'"/page/', f'"{PAGE}/{self.version}/'.encode())
        object.__setattr__(self, "index", PageFile(_KINDS[".html"], named))

    @classmethod
    def read(cls, folder: Path = FOLDER) -> "PageFiles":
        """Read the files of a folder and of those in it."""
        paths = sorted(path for path in folder.rglob("*") if path.suffix in _KINDS)
        files = {
            path.relative_to(folder).as_posix(): PageFile(
                _KINDS[path.suffix], read_plain(path, _SIZE_LIMIT)
            )
            for path in paths
        }
        whole = hashlib.sha256()
        for name, file in files.items():
            whole.update(f"{name} {file.tag}\n".encode())
        return cls(files, whole.hexdigest()[:16])

    async def first(self, request: Request) -> Response:
        """Answer with the page itself, whose files have the hash in their addresses."""
        return await self._send(request, self.index, _CACHING[False])

    async def part(self, request: Request) -> Response:
        """Answer with a file: for good if its address has the hash of today's, otherwise to be asked for again."""
        asked = str(request.path_params["name"])
        is_today = asked.startswith(f"{self.version}/")
        name = asked.removeprefix(f"{self.version}/")
        file = self.files.get(name)
        if file is None or name == INDEX:
            message = "There is nothing at this address."
            return error_response(404, "no-route", message, "Load the page again.")
        return await self._send(request, file, _CACHING[is_today])

    async def _send(self, request: Request, file: PageFile, kept: str) -> Response:
        headers = {
            "Content-Security-Policy": _POLICY,
            "Cache-Control": kept,
            "ETag": file.tag,
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(file.body, headers=headers, media_type=file.kind)
        packed = await asyncio.to_thread(lambda: file.packed)
        return Response(
            packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.kind
        )
