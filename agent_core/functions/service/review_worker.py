"""The program of a judging process, with requests and answers as JSON lines.

It is started as `python -m agent_core.functions.service.review_worker`.
"""

import asyncio
import sys

from .review_pool import AT_ONCE, serve

_LONGEST_LINE = 64 << 20


async def main() -> None:
    """Read jobs from standard input and write verdicts to standard output until the input ends."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    await serve(reader.readline, write, AT_ONCE)


if __name__ == "__main__":
    asyncio.run(main())
