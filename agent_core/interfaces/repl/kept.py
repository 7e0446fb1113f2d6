"""What was typed at a prompt, kept in the workspace's state folder."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import FileHistory


class KeptHistory(FileHistory):
    """What was typed, in the workspace's state folder; kept in memory for as long as it cannot be kept there."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._folder, self._name = path.parent, path.name
        self._early: list[str] = []

    def load_history_strings(self) -> Iterable[str]:
        """What was kept, latest first; nothing of a file that cannot be read."""
        try:
            return [] if self._is_behind_link() else list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Keep one message; where the disk takes no more, for this run only."""
        self._early.append(string.encode("utf-8", "backslashreplace").decode())
        with suppress(OSError):
            while self._early and self._folder.is_dir() and not self._is_behind_link():
                super().store_string(self._early[0])
                del self._early[0]

    def _is_behind_link(self) -> bool:
        """Whether the file, or its folder, is a link: the workspace may come from somebody else."""
        return self._folder.is_symlink() or (self._folder / self._name).is_symlink()
