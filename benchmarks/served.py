"""An HTTP server for benchmarks, in a subprocess: a module defines the answer to each request."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

Answer: TypeAlias = Callable[
    [bytes, bytes, asyncio.StreamWriter], Awaitable[None]
]  # the head in lower case, the body


def serve(answer: Answer) -> None:
    """Serve on a free port, which is printed, until the process is ended."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(answer))


@contextlib.contextmanager
def running(module: str) -> Iterator[str]:
    """Yield the address of a benchmark module that serves when run."""
    process = subprocess.Popen([sys.executable, "-m", module], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


async def _serve(answer: Answer) -> None:
    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await answer(head, await reader.readexactly(int(length)) if length else b"", writer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0, limit=1 << 26)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()
