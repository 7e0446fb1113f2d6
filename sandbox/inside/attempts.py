"""Many attempts in one worker, one after another, each reported as soon as it has ended.

An attempt with its own text gets a separate module; the others share the imported module, so an attempt can break it
for the next ones. Files below `self.scratch` are removed before the next attempt.
"""

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType

from ..wire.caps import MOST_TRIED
from ..wire.protocol import Frame
from .channel import Channel, bounded
from .finder import ROOT
from .jobs import WorkerJobs, call_in, evaluate_in, reply_of

_CUT = f"\n[output cut after {MOST_TRIED} characters]"


def serve(frame: Frame, channel: Channel, scratch: Path) -> None:
    """Import the module, report that, then run attempts and report each until there are no more."""
    series = ModuleAttempts(frame, WorkerJobs(channel, scratch))
    channel.say({"kind": "loaded"})
    more: Frame | None = frame
    while more is not None:
        for attempt in more["attempts"]:
            output = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", newline="\n", write_through=True)
            sys.stdout = sys.stderr = output
            _empty(scratch)
            reply = bounded(series.reply(frame | attempt), frame["result"])
            channel.say({"kind": "tried", "reply": reply, "output": _printed_text(output)})
        more = channel.hear()
        series.texts += more["texts"] if more else []


def _empty(folder: Path) -> None:
    """Remove the files that an attempt left in the folder, as far as possible."""
    try:
        with os.scandir(folder) as entries:
            left = [*entries]
        for entry in left:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink()
    except OSError:
        return


def _printed_text(output: io.TextIOWrapper) -> str:
    buffer = output.buffer
    data = buffer.getvalue() if isinstance(buffer, io.BytesIO) and not buffer.closed else b""
    text = data[: 4 * MOST_TRIED].decode("utf-8", "replace")
    return text if len(text) <= MOST_TRIED else text[: MOST_TRIED - len(_CUT)] + _CUT


class ModuleAttempts:
    """The imported module, and the texts that replace its source in some attempts."""

    def __init__(self, frame: Frame, jobs: WorkerJobs) -> None:
        self._jobs = jobs
        jobs.is_trial = True
        self.texts: list[str] = frame["texts"]
        self._codes: dict[int, CodeType] = {}
        self._path: str = frame["modules"][frame["module"]]["path"]
        self._loaded: ModuleType | None = None
        self._unloaded = reply_of(lambda: self._load(frame), jobs)

    def _load(self, frame: Frame) -> Frame:
        self._loaded = self._jobs.load(frame)
        return {}

    def reply(self, frame: Frame) -> Frame:
        """Return the reply to one attempt."""
        return reply_of(lambda: self._try(frame), self._jobs)

    def _try(self, frame: Frame) -> Frame:
        work = call_in if "arguments" in frame else evaluate_in
        if "text" not in frame:
            return work(self._loaded, self._jobs, frame, MOST_TRIED) if self._loaded else self._unloaded
        with self._module_of(f"{ROOT}.{frame['module']}") as module:
            number = frame["text"]
            if number not in self._codes:
                self._codes[number] = compile(self.texts[number], self._path, "exec", dont_inherit=True)
            exec(self._codes[number], vars(module))
            return work(module, self._jobs, frame, MOST_TRIED)

    @contextmanager
    def _module_of(self, name: str) -> Iterator[ModuleType]:
        """Replace the module with that name with an empty one while the block runs."""
        module = ModuleType(name)
        module.__file__, module.__package__ = self._path, name.rpartition(".")[0]
        sys.modules[name] = module
        try:
            yield module
        finally:
            if self._loaded:
                sys.modules[name] = self._loaded
