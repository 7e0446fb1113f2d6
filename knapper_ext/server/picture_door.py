"""Pictures over HTTP, by the hash of their content: as files that run nothing, whatever is in them."""

import asyncio
from collections import OrderedDict
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from agent_core.api.agent_host import Rooms
from agent_core.api.identity import Identity
from agent_core.base.errors import KnapperError
from agent_core.base.picture_formats import media_type_of
from agent_core.storage import STATE
from agent_core.storage.picture_files import PictureFiles

from .responses import error_response, failure

PATH: Final = "/api/v1/pictures/{digest}"
_MAX_SHOWN: Final = 1_000
_DIGITS: Final = frozenset("0123456789abcdef")
_HEADERS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=3600",
}


class PictureDoor:
    """Returns the pictures of conversations to tokens that may read these."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._files = PictureFiles(rooms.workspace.root / STATE)
        self._one_at_a_time = asyncio.Lock()  # the record is read for each
        self._shown = OrderedDict[tuple[str, str], None]()
        """The pictures that tokens were shown, the last ones."""

    async def answer(self, request: Request) -> Response:
        """Return a picture."""
        identity = request.scope["identity"]
        try:
            identity.needs("read", "chat")
        except KnapperError as error:
            return failure(error)
        digest = request.path_params["digest"]
        data = None
        if len(digest) == 64 and _DIGITS.issuperset(digest):
            data = await asyncio.to_thread(self._files.content, digest)
        if data is None or not await self._may_see(identity, digest):
            fix = "It may have been forgotten."
            return error_response(404, "not-found", "There is no such picture.", fix)
        return Response(data, media_type=media_type_of(data), headers=_HEADERS)

    async def _may_see(self, identity: Identity, digest: str) -> bool:
        key = (identity.id, digest)
        async with self._one_at_a_time:
            if key not in self._shown and not await self._rooms.shows_picture(digest, identity):
                return False
        self._shown[key] = None
        self._shown.move_to_end(key)
        if len(self._shown) > _MAX_SHOWN:
            self._shown.popitem(last=False)
        return True
