"""A minimal OpenTelemetry span collector for tests."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """The spans received, in order."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector."""
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent = ExportTraceServiceRequest.FromString(
                _plain(body, self.headers.get("Content-Encoding"))
            )
            made.spans += [
                span
                for one in sent.resource_spans
                for scope in one.scope_spans
                for span in scope.spans
            ]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,)
    )  # it is asked to stop that often
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _plain(body: bytes, encoding: str | None) -> bytes:
    return gzip.decompress(body) if encoding == "gzip" else body


def attributes(span: Span) -> dict[str, str | int]:
    """Return the attributes of a span."""
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
