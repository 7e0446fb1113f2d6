"""The tour as an endpoint like any other: its server runs for as long as the model is open."""

from ...settings import ModelSettings
from ..endpoint import Endpoint
from .script import SERVED
from .server import Server


class TourEndpoint(Endpoint):
    """Asks the tour's own server."""

    def __init__(self, server: Server, settings: ModelSettings) -> None:
        super().__init__(server.url, SERVED, settings=settings)
        self._server = server

    @classmethod
    async def start(cls, settings: ModelSettings) -> "TourEndpoint":
        """The server on a free port of the loopback, and who asks it."""
        return cls(await Server.start(), settings)

    async def aclose(self) -> None:
        """Close the connections and the server."""
        await super().aclose()
        await self._server.aclose()
