"""OpenTelemetry spans from the events of turns: one span per turn, with its function calls as children.

A message is stored with its `traceparent`, so that the sender's trace continues in the process that runs the turn.
Spans have the names of agents and functions, but no texts, arguments or results.
"""

import asyncio
from collections import OrderedDict
from types import MappingProxyType
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agent_core import __version__
from agent_core.base import events
from agent_core.base.events import Event

_MOST_OPEN: Final = 10_000  # turns without a known end
_TOKENS: Final = MappingProxyType(
    {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
)
_FAILED: Final = ("failed", "stuck", "limits")


class Spans:
    """The spans of this process, exported as `OTEL_EXPORTER_OTLP_ENDPOINT` and related variables say."""

    def __init__(self) -> None:
        self._provider = TracerProvider(
            resource=Resource.create({SERVICE_NAME: "knapper"}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("knapper", __version__)
        self._turns: OrderedDict[str, tuple[Span, dict[str, Span]]] = OrderedDict()

    def hear(self, event: Event) -> None:
        """Start or end a span for an event."""
        if isinstance(event, events.TurnStarted):
            from_sender = TraceContextTextMapPropagator().extract({"traceparent": event.trace})
            names = {
                "knapper.agent": event.agent,
                "knapper.turn": event.turn,
                "knapper.event": event.event,
            }
            span = self._tracer.start_span("turn", from_sender, SpanKind.CONSUMER, names)
            self._turns[event.turn] = span, {}
            if len(self._turns) > _MOST_OPEN:
                self._turns.popitem(last=False)
            return
        if event.turn not in self._turns:
            return
        turn, calls = self._turns[event.turn]
        match event:
            case events.CallStarted():
                name, about = f"call {event.name}", {"knapper.step": event.step}
                calls[event.call_id] = self._tracer.start_span(
                    name, set_span_in_context(turn), attributes=about
                )
            case events.CallAnswered() if event.call_id in calls:
                _end(calls.pop(event.call_id), event.outcome, is_well=event.outcome == "returned")
            case events.TurnEnded():
                del self._turns[event.turn]
                for call in calls.values():
                    _end(call, "unknown", is_well=False)
                usage = {
                    f"gen_ai.usage.{_TOKENS[name]}": n
                    for name, n in event.usage.items()
                    if name in _TOKENS
                }
                turn.set_attribute("knapper.steps", event.steps)
                turn.set_attributes(usage)
                _end(turn, event.reason, is_well=event.reason not in _FAILED)
            case _:
                pass

    async def aclose(self) -> None:
        """Send the remaining spans."""
        await asyncio.to_thread(self._provider.shutdown)


def _end(span: Span, outcome: str, *, is_well: bool) -> None:
    span.set_attribute("knapper.outcome", outcome)
    if not is_well:
        span.set_status(Status(StatusCode.ERROR, outcome))
    span.end()
