"""`/metrics` of the server: numbers for Prometheus, for tokens with the scope `read` and for all agents.

It counts from the first request on, since only who asks pays for the package `prometheus-client`.
"""

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from agent_core.base.errors import KnapperError
from agent_core.base.own_installation import add_extra

from .agent_host import AgentHost
from .identity import Identity, NotAllowed
from .responses import error_response, failure

if TYPE_CHECKING:
    from agent_core.workspace.metrics import Metrics

MISSING: Final = "The package prometheus-client is missing."


class MetricsDoor:
    """The numbers of one server."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._metrics: Metrics | None = None
        self._opening = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        try:
            _may_read(request.scope["identity"])
        except KnapperError as error:
            return failure(error)
        if find_spec("prometheus_client") is None:
            return error_response(404, "no-metrics", MISSING, f"Type: {add_extra('metrics')}")
        metrics = await self._opened()
        text, kind = await asyncio.to_thread(metrics.text, request.headers.get("accept", ""))
        return Response(text, headers={"Content-Type": kind})

    async def _opened(self) -> "Metrics":
        async with self._opening:
            if self._metrics is None:
                module = await asyncio.to_thread(import_module, "agent_core.workspace.metrics")
                made: Metrics = module.Metrics(self._host.workspace)
                self._metrics = made
                self._host.hearers.append(made.hear)
            return self._metrics


def _may_read(identity: Identity) -> None:
    identity.needs("read")
    if identity.agents:
        fix = "Make one without --agent: knapper tokens add NAME --scope read"
        raise NotAllowed("The numbers are those of all agents, and this token is for some.", fix=fix)
