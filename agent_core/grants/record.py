"""What this user said for one workspace, kept with the key of the seals and not in the workspace.

An older state of the folder may be brought back; what is kept here is not: how often the yeses of a function were taken
back, which addresses were confirmed, and which folders could be looked through at their yes.
"""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sandbox.foreign import read_json

from ..errors import WorkspaceError
from ..seal import is_private
from ..user_folders import data_folder

_LARGEST = 1 << 20
_MEND = "Set XDG_DATA_HOME to a folder of yours that you may write to."


@dataclass(frozen=True, slots=True)
class Statements:
    """What is in the record. Where it cannot be trusted, `is_trusted` says so, and no yes counts."""

    taken_back: Mapping[str, int] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    looked_through: frozenset[str] = frozenset()
    is_trusted: bool = True

    def since(self, function: str) -> tuple[str, ...]:
        """What a seal of a yes has in it, so that one from before the yeses were taken back is no seal any more."""
        count = self.taken_back.get(function, 0)
        return (f"taken back {count}",) if count else ()

    def to_text(self) -> str:
        """The file's content."""
        sets = {"confirmed": sorted(self.confirmed), "looked_through": sorted(self.looked_through)}
        return json.dumps({"taken_back": dict(self.taken_back), **sets}, indent=1)

    @classmethod
    def from_text(cls, text: bytes) -> Self:
        """The same, read; ValueError where it is something else."""
        data: Any = read_json(text, most=_LARGEST)  # Any: JSON
        counts, confirmed, looked = (data[name] for name in ("taken_back", "confirmed", "looked_through"))
        if not all(isinstance(one, str) for each in (counts, confirmed, looked) for one in each):
            raise ValueError("no record")
        return cls({name: int(count) for name, count in counts.items()}, frozenset(confirmed), frozenset(looked))


class Record:
    """The record of one workspace."""

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        self._name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
        self._folder = folder

    def read(self) -> Statements:
        """Return what was said; nothing where there is no record."""
        try:
            descriptor = os.open(self._file(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, RuntimeError):  # no record, or no home
            return Statements()
        except OSError:
            return Statements(is_trusted=False)
        with os.fdopen(descriptor, "rb") as file:
            if not is_private(descriptor):
                return Statements(is_trusted=False)
            try:
                return Statements.from_text(file.read(_LARGEST))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return Statements(is_trusted=False)

    def take_back(self, function: str) -> None:
        """Have no yes count any more that was given to a function up to now, not even one that is brought back."""
        self._change(lambda said: _counted(said, function))

    def confirm(self, seal: str) -> None:
        """Keep the seal of an address that the user confirmed."""
        self._change(lambda said: replace(said, confirmed=said.confirmed | {seal}))

    def look_through(self, whole: frozenset[str], large: frozenset[str]) -> None:
        """Keep which folders could be looked through at a yes, and which the user let be too large for it."""
        said = self.read()
        if (said.looked_through | whole) - large != said.looked_through:
            self._change(lambda now: replace(now, looked_through=(now.looked_through | whole) - large))

    def _file(self) -> Path:
        return (self._folder or data_folder()) / "workspaces" / f"{self._name}.json"

    def _change(self, different: Callable[[Statements], Statements]) -> None:
        try:
            with _alone(self._file().parent) as folder:
                said = self.read()
                if not said.is_trusted:
                    what = f"{self._file()} is not yours alone, or not whole, so no yes counts here."
                    raise WorkspaceError(what, mend="Remove it; what was confirmed here is then asked for once more.")
                _write(folder, self._file(), different(said).to_text())
        except (OSError, RuntimeError) as error:
            raise WorkspaceError(f"What you said here cannot be kept: {error}.", mend=_MEND) from error


def _counted(said: Statements, function: str) -> Statements:
    return replace(said, taken_back={**said.taken_back, function: said.taken_back.get(function, 0) + 1})


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(descriptor)


def _write(folder: Path, file: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        Path(temporary).replace(file)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
