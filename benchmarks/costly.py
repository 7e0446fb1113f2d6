"""`python -m benchmarks.costly`: Python that is cheap to write and expensive to read, at every entry of a server.

Each shape in `tests/hostile/shapes.py` comes as a candidate and as a program from a scripted model, and as a saved
file: the largest text that is read, in a process of its own, after one that is plain. Per row: seconds until the
answer, the longest silence of the event loop, the most memory above the idle process, and the answer's first words.
`SHAPE ...` picks some; `--entry` picks one entry.
"""

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from agent_core.base import syntax
from agent_core.functions.service.file_checks import CheckRequest
from agent_core.functions.service.judgment import Judgment
from tests.hostile.shapes import PLAIN, SHAPES, Entry, Shape
from tests.kit import Ask, Repeat, Say, Wanted, scripted
from tests.kit.desk import Desk, answers, desk, ended

MOST_SILENT_S: Final = 0.1
MOST_MIB: Final = 150.0
_BEAT_S: Final = 0.005
_PATIENCE_S: Final = 300.0
ENTRIES: Final[Mapping[Entry, int]] = {
    "candidate": 64 << 10,
    "program": 64 << 10,
    "file": 256 << 10,
}
"""The size limit of each entry, in bytes."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one text cost."""

    shape: str
    entry: str
    size: int
    seconds: float
    silent_s: float
    mib: float
    answer: str

    def __str__(self) -> str:
        marks = (
            f"{'!' if self.silent_s > MOST_SILENT_S else ' '}{'!' if self.mib > MOST_MIB else ' '}"
        )
        figures = f"{self.seconds:7.2f} s {self.silent_s:7.3f} s silent {self.mib:6.0f} MiB {marks}"
        return f"{self.shape:24} {self.entry:10} {self.size:8,} {figures} {self.answer}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="only these")
    parser.add_argument("--entry", choices=[*ENTRIES], help="only this entry")
    parser.add_argument("--json", action="store_true", help="one JSON line per row")
    parser.add_argument("--alone", action="store_true", help="measure in this process")
    given = parser.parse_args()
    for shape in given.shapes or SHAPES:
        for entry in [given.entry] if given.entry else ENTRIES:
            if given.alone:
                print(json.dumps(asdict(asyncio.run(cost_of(shape, entry)))))
                continue
            row = cost_apart(shape, entry)
            print(json.dumps(asdict(row)) if given.json else row, flush=True)


def cost_apart(shape: str, entry: str) -> Cost:
    """Return the cost as a process of its own measures it."""
    command = [sys.executable, "-m", "benchmarks.costly", "--alone", "--entry", entry, shape]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Cost(shape, entry, 0, _PATIENCE_S, _PATIENCE_S, 0, "not done")
    if done.returncode:
        return Cost(
            shape,
            entry,
            0,
            0,
            0,
            0,
            f"ended with {done.returncode}: {done.stderr.strip()[-200:]!r}",
        )
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


async def cost_of(shape: str, entry: Entry) -> Cost:
    """Return the cost of a shape at an entry; a plain text is judged first, so that everything is loaded."""
    text = _largest(SHAPES[shape], entry)
    asked: list[Ask | Say] = (
        [] if entry == "file" else [_step(entry, PLAIN[entry]), Say("Done."), _step(entry, text)]
    )
    async with AsyncExitStack() as stack:
        root = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()))
        )
        model = stack.enter_context(scripted([*asked, Repeat(Say("Done."))]))
        here = await stack.enter_async_context(desk(root, model, model__context_tokens=1_000_000))
        await _give(here, entry, PLAIN[entry], "plain.py")
        await asyncio.sleep(1)  # what a save leaves to do afterwards
        gc.collect()
        gc.freeze()  # as a server does when it has started
        _reset_peak()
        idle, silent = _memory("VmRSS"), Silence()
        began = time.perf_counter()
        async with silent:
            answer = await _give(here, entry, text, "costly.py")
        seconds = time.perf_counter() - began
        mib = (_memory("VmHWM") - idle) / 1024
    answer = re.sub(r"\s+", " ", answer)[:160]
    return Cost(
        shape,
        entry,
        len(text.encode()),
        round(seconds, 2),
        round(silent.longest_s, 3),
        round(mib),
        answer,
    )


def _largest(shape: Shape, entry: Entry) -> str:
    """Return the largest text of a shape that is read; one at the size limit if none is."""
    most = ENTRIES[entry]
    low, high = 1_000, most

    def is_read(size: int) -> bool:
        return not isinstance(syntax.read(shape(entry, size), most), syntax.Flaw)

    if not is_read(most):
        while high - low > most // 32:
            middle = (low + high) // 2
            low, high = (middle, high) if is_read(middle) else (low, middle)
        most = most if low == 1_000 else low
    return shape(entry, most)


def _step(entry: Entry, text: str) -> Ask:
    if entry == "candidate":
        named = {
            "function_name": text.partition("def ")[2].partition("(")[0]
            if text is PLAIN[entry]
            else "f"
        }
        return Ask(
            Wanted(
                "create_function",
                {**named, "module_name": "lib", "function_code_with_docstring": text},
            )
        )
    return Ask(Wanted("run_program", {"code": text}))


async def _give(here: Desk, entry: Entry, text: str, path: str) -> str:
    if entry == "file":
        here.put(path, text)
        change = await here.workspace.functions.reload()
        told = [str(problem) for problem in change.rejected] or [f"{len(change.loaded)} taken"]
        rows = list[Judgment]()
        request = CheckRequest((here.functions / path,), "human", root=here.workspace.root)
        await here.workspace.functions.checks.check(request, rows.append)
        return f"{'; '.join(told)}; {len(rows)} checked, {sum(len(row.problems) for row in rows)} problems"
    events = await here.say("Go.")
    return " | ".join(answers(events)) or str(ended(events))


class Silence:
    """The longest time that the event loop did not run within a block, as far as this process used a processor then.

    What a busy machine takes away counts for the clock and not for the process, so the lesser of both is taken. Work
    in C in another thread counts, since it holds the interpreter's lock.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def __aenter__(self) -> "Silence":
        self._beats = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.sleep(2 * _BEAT_S)  # one more beat
        self._beats.cancel()
        with suppress(asyncio.CancelledError):
            await self._beats

    async def _beat(self) -> None:
        while True:
            clock, processor = time.perf_counter(), time.process_time()
            await asyncio.sleep(_BEAT_S)
            passed = min(time.perf_counter() - clock - _BEAT_S, time.process_time() - processor)
            self.longest_s = max(self.longest_s, passed)


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", "ascii")


def _memory(field: str) -> int:
    """Return a figure of this process in KiB."""
    lines = Path(f"/proc/{os.getpid()}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    main()
