"""Has sources read in a process of its own, one after another; one that takes too long or too much ends it.

What comes back is a claim: text and places of limited length, and nothing else.
"""

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from sandbox.foreign import MESSAGE, read_json

from .. import programs
from .errors import Unreadable
from .parts import LONGEST, Chunk, Cut

_LONGEST_LINE: Final = 16 << 20
_MOST_CHUNKS: Final = 400_000
_DIVIDE: Final = "Divide it, or convert it to plain text first."


class Reading:
    """A process that reads; started by the first source, and ended with the block."""

    def __init__(self, within_s: float = 60.0) -> None:
        self._within_s = within_s
        self._process: Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def read(self, name: str, data: bytes, content_type: str = "") -> Cut:
        """A source as chunks.

        Raises:
            Unreadable: it is no text, or not what it says it is, or takes too long or too much to read.
        """
        order = json.dumps({"name": name, "content_type": content_type, "size": len(data)}).encode() + b"\n"
        is_answered = False
        try:
            async with asyncio.timeout(self._within_s):
                process = self._process = self._process or await _spawn()
                found = await _asked(process, order + data)
            is_answered = True
        except TimeoutError as error:
            raise Unreadable(f"It was not read within {self._within_s:g} s.", mend=_DIVIDE) from error
        except (OSError, EOFError, ValueError, LookupError) as error:
            raise Unreadable("Reading it ended the process that read it.", mend=_DIVIDE) from error
        finally:
            if not is_answered:
                await self._end()
        return _checked(found)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            # What was not written any more would keep the pipe, and warn when it is collected.
            getattr(process, "_transport").close()  # noqa: B009 - asyncio offers no other door


async def _asked(process: Process, order: bytes) -> list[dict[str, Any]]:  # Any: JSON
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order)
    await process.stdin.drain()
    answers: list[dict[str, Any]] = []
    while not answers or "chunks" in answers[-1]:
        answers.append(read_json(await process.stdout.readuntil(b"\n"), MESSAGE))
    return answers


def _checked(answers: list[dict[str, Any]]) -> Cut:  # Any: JSON
    *lines, last = answers
    if "error" in last:
        raise Unreadable(str(last["error"]), mend=str(last["mend"]))
    rows = [row for each in lines for row in each["chunks"]]
    if len(rows) > _MOST_CHUNKS or any(len(text) > 2 * LONGEST for text, _ in rows):
        raise Unreadable("It holds more than is kept of one source.", mend="Divide it.")
    return Cut(str(last["kind"]), tuple(Chunk(str(text), str(place)) for text, place in rows), tuple(last["notes"]))


async def _spawn() -> Process:
    return await programs.start(
        programs.python("-m", f"{__package__}.child"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=programs.variables_for_python("HOME", "TMPDIR"),
        cwd="/",
        limit=_LONGEST_LINE,
    )
