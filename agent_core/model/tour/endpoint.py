"""The tour as an ordinary endpoint: its server runs while the model is open."""

from agent_core.base.settings import ModelSettings

from ..endpoint import Endpoint
from .script import SERVED
from .server import TourServer


class TourEndpoint(Endpoint):
    """A client of the tour's own server."""

    def __init__(self, server: TourServer, settings: ModelSettings) -> None:
        super().__init__(server.url, SERVED, settings=settings)
        self._server = server

    @classmethod
    async def start(cls, settings: ModelSettings) -> "TourEndpoint":
        """Start the server on a free loopback port, and return its client."""
        return cls(await TourServer.start(), settings)

    async def aclose(self) -> None:
        """Close the connections and the server."""
        await super().aclose()
        await self._server.aclose()
