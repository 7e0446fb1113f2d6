"""Prometheus metrics: turns, steps, calls and tokens of this process, and the backlog of its store.

The former are counted from events; the latter is queried on each scrape. No metric has a label with an agent, a
function or a text.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from agent_core import __version__
from agent_core.base import events
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.events import Event
from agent_core.storage import AGAIN
from agent_core.workspace.workspace import Workspace

_ASK_S: Final = 5.0
_LAST_PORT: Final = 65_535
_MOST_BEGUN: Final = 10_000  # turns without a known end
_TURN_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_CALL_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of a process with an open workspace."""

    def __init__(self, workspace: Workspace) -> None:
        """Start counting. Call this in the event loop that runs the turns."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._begun: dict[str, float] = {}
        self._turns = Counter(
            "knapper_turns", "Turns that ended, by how.", ["reason"], registry=registry
        )
        self._turn_s = Histogram(
            "knapper_turn_seconds",
            "From the beginning of a turn to its end.",
            buckets=_TURN_S,
            registry=registry,
        )
        self._steps = Counter("knapper_steps", "Steps of the turns that ended.", registry=registry)
        self._again = Counter(
            "knapper_take_overs",
            "Turns that go on with one that was cut off, here or elsewhere.",
            registry=registry,
        )
        self._calls = Counter(
            "knapper_calls", "Calls of functions, by outcome.", ["outcome"], registry=registry
        )
        self._call_s = Histogram(
            "knapper_call_seconds",
            "How long calls of functions took.",
            buckets=_CALL_S,
            registry=registry,
        )
        self._tokens = Counter(
            "knapper_tokens",
            "Tokens of requests to models; cached ones are prompt, too.",
            ["of"],
            registry=registry,
        )
        registry.register(_AtTheStore(workspace, asyncio.get_running_loop()))
        ProcessCollector(registry=registry)

    def hear(self, event: Event) -> None:
        """Count an event."""
        match event:
            case events.TurnStarted():
                if len(self._begun) >= _MOST_BEGUN:
                    self._begun.clear()
                self._begun[event.turn] = monotonic()
                self._again.inc(event.event == AGAIN)
            case events.TurnEnded():
                self._turns.labels(event.reason).inc()
                self._steps.inc(event.steps)
                if (begun := self._begun.pop(event.turn, None)) is not None:
                    self._turn_s.observe(monotonic() - begun)
            case events.CallAnswered():
                self._calls.labels(event.outcome).inc()
                self._call_s.observe(event.seconds)
            case events.Usage():
                self._tokens.labels("prompt").inc(event.prompt_tokens)
                self._tokens.labels("cached").inc(event.cached_tokens)
                self._tokens.labels("completion").inc(event.completion_tokens)
            case _:
                pass

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics in an accepted format, and its content type. Do not call this in the event loop."""
        try:
            encode, kind = choose_encoder(accept)
        except (TypeError, ValueError):  # the package cannot parse the header: plain text
            encode, kind = choose_encoder("")
        return encode(self.registry), kind


@contextmanager
def answered(metrics: Metrics, place: str) -> Iterator[str]:
    """Serve the metrics at HOST:PORT, without authentication, while the block runs; yield the URL.

    Raises:
        UsageError: the address is invalid or cannot be used.
    """
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise UsageError(
            f"`{place}` is not HOST:PORT.",
            fix="Write it like 127.0.0.1:9700, or with port 0 for any.",
        )

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        text, kind = metrics.text(environ.get("HTTP_ACCEPT", ""))
        start("200 OK", [("Content-Type", kind)])
        return [text]

    try:
        server, thread = start_http_server(int(port), host, metrics.registry)
    except OSError as error:
        raise UsageError(
            f"{place} cannot be used: {error.strerror or error}.", fix="Choose another port."
        ) from error
    server.set_app(answer)
    try:
        yield f"http://{place.rpartition(':')[0]}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _AtTheStore(Collector):
    """A collector of metrics from the store, which is queried in the event loop of its workspace."""

    def __init__(self, workspace: Workspace, loop: asyncio.AbstractEventLoop) -> None:
        self._workspace = workspace
        self._loop = loop

    def describe(self) -> Iterator[Metric]:
        """Return no names, because that would require a query."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the store's metrics, or only that it is down."""
        asked = asyncio.run_coroutine_threadsafe(self._gather(), self._loop)
        try:
            found = asked.result(_ASK_S)
        except (KnapperError, TimeoutError):
            asked.cancel()
            found = []
        yield GaugeMetricFamily("knapper_store_up", "1 if the store answered.", value=bool(found))
        yield from found

    async def _gather(self) -> list[Metric]:
        store = self._workspace.store
        backlog = await store.backlog()
        info = GaugeMetricFamily("knapper_info", "This program.", labels=["version", "sandbox"])
        info.add_metric([__version__, await self._workspace.sandbox_level()], 1)
        gauges = {
            "events_waiting": (
                "Events in the inboxes of agents that are due and not taken.",
                backlog.waiting,
            ),
            "oldest_event_seconds": (
                "For how long the oldest of them has been due.",
                backlog.oldest_s,
            ),
        }
        if store.is_shared:  # a file does not record its users
            workers = await store.workers()
            held = sum(len(row.agents) for row in workers if row.id == store.owner)
            alive = sum(row.is_alive for row in workers)
            gauges |= {
                "agents_held": ("Agents that no other process can run now.", held),
                "processes_alive": ("Processes at the database that were heard of.", alive),
            }
        lost = "Agents that this process has taken from one that was not heard of any more."
        return [
            info,
            CounterMetricFamily("knapper_lost_leases", lost, value=store.leases_taken),
            *(GaugeMetricFamily(f"knapper_{name}", *about) for name, about in gauges.items()),
        ]
