"""What a call changed in the files and folders that it may write, seen from outside: their state before and after it.

A worker writes there by itself, so that no request tells of it. What others change meanwhile counts, too.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from agent_core.base.receipt import Receipt

MOST_FILES: Final = 5_000  # that are looked at before and after a call
_State: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class WritableFiles:
    """The state of files at one moment; `is_whole`: there were no more than can be looked at."""

    files: Mapping[str, _State] = field(default_factory=dict)
    is_whole: bool = True

    @classmethod
    def at(cls, paths: Sequence[str]) -> "WritableFiles":
        """Look at files, and at all that lies in folders."""
        files = dict(islice(_files(paths), MOST_FILES + 1))
        return cls(files, len(files) <= MOST_FILES)

    def changed(self, paths: Sequence[str], root: Path) -> Receipt:
        """Return what was written or removed since then; paths in the workspace `root` are named from there."""
        receipt, now = Receipt(), WritableFiles.at(paths)
        if not (self.is_whole and now.is_whole):
            for path in paths:
                receipt.note("wrote", f"{_name(path, root)} (perhaps: more than {MOST_FILES:,} files to compare)")
            return receipt
        for path, state in now.files.items():
            if self.files.get(path) != state:
                receipt.note("wrote", _name(path, root))
        for path in self.files.keys() - now.files.keys():
            receipt.note("removed", _name(path, root))
        return receipt


def _files(paths: Sequence[str]) -> Iterator[tuple[str, _State]]:
    waiting = [*paths]
    while waiting:
        path = waiting.pop()
        try:
            state = os.lstat(path)
            if stat.S_ISDIR(state.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in islice(entries, MOST_FILES + 1)]
                # Of a folder it counts that it is there: what lies in it speaks for itself.
                yield f"{path.rstrip('/')}/", (state.st_dev, state.st_ino, 0, 0)
            else:
                yield path, (state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns)
        except OSError:
            continue  # it is gone, or nobody may look into it


def _name(path: str, root: Path) -> str:
    own = f"{root}/"
    return path.removeprefix(own) or "./"
