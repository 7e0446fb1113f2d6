"""An endpoint for `prompt_latency`, in a subprocess: it answers with 1,000 lines of Markdown a second.

Each chunk is a line; they are sent in batches of ten, a hundred batches a second, until the reader has gone.
"""

import asyncio
import json
from contextlib import AbstractContextManager

from . import served

BATCH, EVERY_S = 10, 0.01
_TEXT = """\
## Part § of the reply

A paragraph of some **bold** words, a `name` in code and a [link](http://example.org/) to nowhere, which
goes on for a second line, and for a third one with *stress* on it and 漢字 in it.
The third line has an emoji 🎉 and ends the paragraph.

- one thing
- another thing with `code`
- a third thing

```python
def count(text: str) -> int:
    \"\"\"Count what is in a text.

    Over some lines.
    \"\"\"
    total = 0
    for letter in text:
        if letter in "aeiou":
            total += 1  # a vowel
    return total
```

| name | value | note |
|---|---|---|
| a | 1 | first |
| b | 22 | second |

1. first
2. second
3. third

> quoted words

"""
_HEAD = {"id": "chatcmpl-0", "created": 0, "model": "fake", "object": "chat.completion.chunk"}


def running() -> AbstractContextManager[str]:
    """Yield the address of a running endpoint, to be used with `/v1`."""
    return served.running("benchmarks.prompt_stream")


async def _answer(_head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
    if b'"stream":true' in body:
        await _stream(writer)
    else:
        writer.write(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
        )


async def _stream(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    lines = [_chunk(line) for line in _TEXT.splitlines(keepends=True)]
    loop = asyncio.get_running_loop()
    began, sent = loop.time(), 0
    while True:
        batch = b"".join(lines[(sent + n) % len(lines)] for n in range(BATCH))
        writer.write(b"%x\r\n%b\r\n" % (len(batch), batch))
        await writer.drain()
        sent += BATCH
        await asyncio.sleep(max(began + sent / BATCH * EVERY_S - loop.time(), 0))


def _chunk(line: str) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": line}, "finish_reason": None}
    return b"data: " + json.dumps({**_HEAD, "choices": [choice]}).encode() + b"\n\n"


if __name__ == "__main__":
    served.serve(_answer)
