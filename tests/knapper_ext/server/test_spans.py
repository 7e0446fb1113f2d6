"""`serve --spans`: a turn is part of the trace of the request that started it, if there is one."""

import pytest

from knapper_ext.server.app import ServeOptions
from tests.kit import Say
from tests.kit.collector import collector

from .conftest import Serve

TRACE, SENDER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


SENT = {f"00-{TRACE}-{SENDER}-01": True, "": False, f"00-{TRACE}-x": False, "x" * 9_000: False}


async def test_a_turn_goes_on_with_the_trace_of_its_message(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as heard:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", heard.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        server = await served([Say("hello")] * len(SENT), ServeOptions(port=0, spans=True))
        for number, (sent, kept) in enumerate(SENT.items()):
            server.client.headers["traceparent"] = sent
            await server.said(f"hello {number}")
            while len(heard.spans) <= number:
                await server.client.get("/api/v1/status")
            turn = heard.spans[number]
            assert (turn.trace_id.hex() == TRACE, turn.parent_span_id.hex() == SENDER) == (
                kept,
                kept,
            ), sent
