"""The changes of a call to the files and folders that it may write, from their state before and after it.

A worker writes there directly, so no request reports it. Changes by others in the meantime count, too.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from agent_core.base.receipt import Receipt

MOST_FILES: Final = 5_000  # examined before and after a call
_State: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class WritableFiles:
    """The state of files at one moment; `is_whole` means that all were examined."""

    files: Mapping[str, _State] = field(default_factory=dict)
    is_whole: bool = True

    @classmethod
    def at(cls, paths: Sequence[str]) -> "WritableFiles":
        """Examine files, and the contents of folders."""
        files = dict(islice(_files(paths), MOST_FILES + 1))
        return cls(files, len(files) <= MOST_FILES)

    def changed(self, paths: Sequence[str], root: Path) -> Receipt:
        """Return the files that were written or removed since then; paths in `root`, the workspace, are relative."""
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
                # For a folder, only its existence counts; its contents have entries of their own.
                yield f"{path.rstrip('/')}/", (state.st_dev, state.st_ino, 0, 0)
            else:
                yield path, (state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns)
        except OSError:
            continue  # it is gone, or unreadable


def _name(path: str, root: Path) -> str:
    own = f"{root}/"
    return path.removeprefix(own) or "./"
