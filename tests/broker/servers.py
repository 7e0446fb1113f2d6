"""Real HTTP servers on the loopback interface that record their requests and answer with bytes."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True)
class Request:
    """One received request."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


Handler: TypeAlias = Callable[[Request], bytes | AsyncIterator[bytes]]


@dataclass
class Server:
    """A server's address and its requests so far."""

    port: int = 0
    asked: list[Request] = field(default_factory=list)
    connections: int = 0
    quiet: asyncio.Event = field(
        default_factory=asyncio.Event
    )  # set when the connections have ended


def reply(body: bytes = b"", status: int = 200, **headers: str) -> bytes:
    """Return a whole response; `_` in a header's name stands for `-`."""
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return reply(status=status, Location=location)


def hello(_request: Request) -> bytes:
    return reply(b"hello", Content_Type="text/plain")


@asynccontextmanager
async def serving(
    handler: Handler = hello,
    *,
    address: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """Run a server for the duration of the block."""
    server = Server()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.quiet.clear()
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _serve(server, handler, reader, writer)
        finally:
            writer.close()
            server.quiet.set()

    listening = await asyncio.start_server(accept, address, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def _serve(
    server: Server, handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    request = Request(
        head[0], headers, await reader.readexactly(int(headers.get("content-length", "0")))
    )
    server.asked.append(request)
    answer = handler(request)
    if isinstance(answer, bytes):
        writer.write(answer)
        await writer.drain()
        return
    async for piece in answer:
        writer.write(piece)
        await writer.drain()


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate, which is its own authority."""

    file: Path
    key: Path

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key)
        return context

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


def certificate(folder: Path, names: str) -> Certificate:
    """Return a certificate for names, such as `DNS:one,IP:127.0.0.1`."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -addext"
    asked = [
        *command.split(),
        f"subjectAltName={names}",
        "-out",
        str(made.file),
        "-keyout",
        str(made.key),
    ]
    subprocess.run(asked, check=True, capture_output=True)
    return made
