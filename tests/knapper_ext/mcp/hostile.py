"""A hostile MCP server at an address, as a separate program: `python hostile.py WHAT WHERE`. It prints its port.

It answers correctly, except to the requests of one method (WHERE), which get WHAT, such as `blanks`, `drip:a-body` or
`honest:progress`.
"""

import asyncio
import json
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any, Final, TypeAlias

MIB: Final = b" " * (1 << 20)
TEXT: Final = {"type": "object", "properties": {"text": {"type": "string"}}}
ECHO: Final = {"name": "echo", "description": "Repeat.", "inputSchema": TEXT}
JSON, EVENTS = "application/json", "text/event-stream"
Parts: TypeAlias = AsyncIterator[bytes]


async def endless(part: bytes, pause_s: float = 0.0, first: bytes = b"") -> Parts:
    """Send the same part forever."""
    yield first
    while True:
        yield part
        await asyncio.sleep(pause_s)


async def once(part: bytes) -> Parts:
    """Send one part."""
    yield part


def head(kind: str = JSON, status: str = "200 OK", more: str = "") -> bytes:
    """Return the head of a response that ends with the connection."""
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Connection: close\r\n\r\n".encode()


def event(message: dict[str, Any]) -> bytes:  # Any: JSON
    """Return one event."""
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


def result(number: int | str, value: object) -> bytes:
    """Return the body of the response to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}).encode()


def listed(number: int | str, tools: list[dict[str, Any]], **more: Any) -> bytes:  # Any: JSON
    """Return a response with a page of tools."""
    return head() + result(number, {"tools": tools, **more})


async def late(*parts: tuple[float, bytes]) -> Parts:
    """Send each part this many seconds after the previous one."""
    for pause_s, part in parts:
        await asyncio.sleep(pause_s)
        yield part


def bomb(form: int = 31) -> bytes:
    """Return 400 MiB of blanks, compressed: as gzip, or in another zlib format."""
    packer = zlib.compressobj(1, wbits=form)
    return b"".join([*(packer.compress(MIB) for _ in range(400)), packer.flush()])


async def nested(levels: int) -> Parts:
    """Send a tool whose schema has this depth."""
    schema = '{"properties":{"a":' * levels + "{}" + "}}" * levels
    yield (
        head()
        + b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":'
        + schema.encode()
        + b"}]}}"
    )


PAGES: Final = count()
WHAT: Final[dict[str, Callable[[Any], Parts]]] = {
    "blanks": lambda number: endless(MIB, first=head()),
    "blanks-in-events": lambda number: endless(MIB, first=head(EVENTS)),
    "a-packed-bomb": lambda number: once(head(more="Content-Encoding: gzip\r\n") + bomb()),
    "a-bomb-in-events": lambda number: once(
        head(EVENTS, more="Content-Encoding: gzip\r\n") + bomb()
    ),
    "headers": lambda number: endless(
        b"X-Y: " + b"z" * 60_000 + b"\r\n", first=b"HTTP/1.1 200 OK\r\n"
    ),
    "slow-headers": lambda number: endless(b"X", 0.2, first=b"HTTP/1.1 200 OK\r\n"),
    "continue": lambda number: endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "silence": lambda number: endless(b"", 0.5),
    "slowly": lambda number: endless(b" ", 0.2, first=head()),
    "slow-event": lambda number: endless(b"x", 0.2, first=head(EVENTS) + b"data: "),
    "comments": lambda number: endless(b": ping\n\n" * 1000, first=head(EVENTS)),
    "one-event": lambda number: endless(b"x" * (1 << 20), first=head(EVENTS) + b"data: "),
    "one-comment": lambda number: endless(b"x" * (1 << 20), first=head(EVENTS) + b": "),
    "data-lines": lambda number: endless(b"data:\n" * 1000, first=head(EVENTS)),
    "garbage": lambda number: endless(b"data: {]\n\n" * 1000, first=head(EVENTS)),
    "progress": lambda number: endless(
        event(
            {"method": "notifications/progress", "params": {"progressToken": number, "progress": 1}}
        )
        * 100,
        first=head(EVENTS),
    ),
    "large-log-lines": lambda number: endless(
        event(
            {
                "method": "notifications/message",
                "params": {"level": "info", "data": "x" * (4 << 20)},
            }
        ),
        first=head(EVENTS),
    ),
    "questions": lambda number: endless(
        b"".join(event({"id": f"q-{at}", "method": "ping"}) for at in range(1000)),
        first=head(EVENTS),
    ),
    "reconnecting": lambda number: once(head(EVENTS) + b"id: 1\nretry: 0\ndata:\n\n"),
    "redirects": lambda number: once(head(status="307 Again", more="Location: /mcp\r\n")),
    "tools": lambda number: once(
        listed(number, [{**ECHO, "name": f"t{at}"} for at in range(20_000)])
    ),
    "tiny-tools": lambda number: once(
        head()
        + b'{"jsonrpc":"2.0","id":1,"result":{"tools":['
        + b'{"name":"","inputSchema":{}},' * 280_000
        + b"1]}}"
    ),
    "empty-lists": lambda number: once(
        head() + b'{"jsonrpc":"2.0","id":1,"result":{"x":[' + b"[]," * 2_700_000 + b"0]}}"
    ),
    "deep": lambda number: once(head() + b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 4_000_000),
    "descriptions": lambda number: once(
        listed(
            number, [{**ECHO, "name": f"t{at}", "description": "x" * 38_000} for at in range(200)]
        )
    ),
    "pages": lambda number: once(
        listed(
            number,
            [{**ECHO, "name": f"t{next(PAGES)}", "description": "x" * 7_000_000}],
            nextCursor="more",
        )
    ),
    "one-name": lambda number: once(listed(number, [{**ECHO, "name": "x" * 8_000_000}])),
    "a-deep-schema": lambda number: nested(400_000),
    "a-schema-of-itself": lambda number: once(
        listed(
            number,
            [
                {
                    **ECHO,
                    "inputSchema": {
                        **TEXT,
                        "$defs": {"a": {"$ref": "#/$defs/a"}},
                        "$ref": "#/$defs/a",
                    },
                }
            ],
        )
    ),
    "the-same-key": lambda number: once(
        head()
        + b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],"x":{'
        + b'"a":0,' * 1_300_000
        + b'"b":0}}}'
    ),
    "a-deflated-bomb": lambda number: once(head(more="Content-Encoding: deflate\r\n") + bomb(15)),
    "packed-by-the-way": lambda number: once(
        head(more="Transfer-Encoding: gzip, chunked\r\n") + bomb()
    ),
    "a-line-of-status": lambda number: endless(b"x" * 60_000, first=b"HTTP/1.1 200 "),
    "another-protocol": lambda number: endless(
        MIB, first=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
    ),
    "a-promised-length": lambda number: endless(
        b" " * 1000, first=head(more="Content-Length: 999999999999\r\n")
    ),
    "news-of-the-list": lambda number: endless(
        event({"method": "notifications/tools/list_changed"}) * 100, first=head(EVENTS)
    ),
    "a-long-session": lambda number: once(
        head(more=f"Mcp-Session-Id: {'s' * 60_000}\r\n") + result(number, {"tools": [ECHO]})
    ),
    "empty-pages": lambda number: once(listed(number, [], nextCursor="more")),
    "schemas": lambda number: once(
        listed(
            number,
            [
                {**ECHO, "name": f"t{at}", "inputSchema": {**TEXT, "enum": ["x"] * 400}}
                for at in range(200)
            ],
        )
    ),
}
FINE: Final = {"content": [{"type": "text", "text": "fine"}]}
DRIPS: Final[
    dict[str, Callable[[Any], Parts]]
] = {  # one byte, line or event a second, without any result
    "a-head": lambda number: endless(b"X", 1.0, first=b"HTTP/1.1 200 OK\r\n"),
    "interim-heads": lambda number: endless(b"HTTP/1.1 100 Continue\r\n\r\n", 1.0),
    "blanks-before-a-body": lambda number: endless(b" ", 1.0, first=head()),
    "a-body": lambda number: endless(b"x", 1.0, first=head() + b'{"jsonrpc": "2.0", "result": "'),
    "an-event": lambda number: endless(b"x", 1.0, first=head(EVENTS) + b"data: "),
    "a-comment": lambda number: endless(b"x", 1.0, first=head(EVENTS) + b": "),
    "comments": lambda number: endless(b": ping\n\n", 1.0, first=head(EVENTS)),
    "garbage": lambda number: endless(b"data: {]\n\n", 1.0, first=head(EVENTS)),
    "progress-of-no-call": lambda number: endless(
        event({"method": "notifications/progress", "params": {"progressToken": 77, "progress": 1}}),
        1.0,
        first=head(EVENTS),
    ),
    "an-answer-to-another": lambda number: once(head() + result(77, FINE)),
}
HONEST: Final[dict[str, Callable[[Any], Parts]]] = {  # works for a long time, then answers
    "kept-open-for-a-while": lambda number: late(
        (0, head(EVENTS)),
        *[(0.3, b": ping\n\n")] * 10,
        (0, b"data: " + result(number, FINE)[:20]),
        (1, result(number, FINE)[20:] + b"\n\n"),
    ),
    "silent-before-the-body": lambda number: late((0, head()), (20, result(number, FINE))),
    "silent-in-a-stream": lambda number: late(
        (0, head(EVENTS)), (20, b"data: " + result(number, FINE) + b"\n\n")
    ),
    "kept-open": lambda number: late(
        (0, head(EVENTS)),
        *[(2.5, b": ping\n\n")] * 14,
        (1, b"data: " + result(number, FINE) + b"\n\n"),
    ),
    "progress": lambda number: late(
        (0, head(EVENTS)),
        *(
            (
                0.5,
                event(
                    {
                        "method": "notifications/progress",
                        "params": {"progressToken": number, "progress": at},
                    }
                ),
            )
            for at in range(60)
        ),
        (0, b"data: " + result(number, FINE) + b"\n\n"),
    ),
}
FOR_RESULTS: Final = {  # a schema that takes forever to validate a result
    **ECHO,
    "outputSchema": {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}},
    },
}


async def answer(body: dict[str, Any], method: str, what: str, where: str) -> Parts:  # Any: JSON
    """Return the response to a request, in parts."""
    number = body.get("id")
    if where in (name := str(body.get("method", method)), "everything"):
        if what == "a-result":
            return once(
                head() + result(number or 0, {**FINE, "structuredContent": {"x": "a" * 60 + "!"}})
            )
        kind, _, rest = what.partition(":")
        return {"drip": DRIPS, "honest": HONEST}[kind][rest](number) if rest else WHAT[what](number)
    if number is None or "method" not in body:
        return once(head(status="202 Accepted"))
    if name == "initialize":
        about = {
            "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}},
        }
        more = "Mcp-Session-Id: s\r\n"
        return once(
            head(more=more)
            + result(number, {"protocolVersion": body["params"]["protocolVersion"], **about})
        )
    if name == "tools/list":
        return once(listed(number, [FOR_RESULTS]))
    error = {"error": {"code": -32601, "message": "Method not found"}}
    return once(
        head(status="400 No") + json.dumps({"jsonrpc": "2.0", "id": number, **error}).encode()
    )


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        sizes = [
            int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")
        ]
        body = json.loads(await reader.readexactly(sizes[0])) if sizes and sizes[0] else {}
        method = lines[0].split()[0].upper()
        if method == "GET" and sys.argv[2] not in ("GET", "everything"):
            writer.write(head(status="405 No"))
        else:
            async for part in await answer(body, method, *sys.argv[1:3]):
                writer.write(part)
                await writer.drain()
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=32 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
