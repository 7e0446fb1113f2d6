"""The history of a prompt, stored in the workspace's state folder."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import History

from agent_core.base.plain_files import add_to, read_end

MOST_BYTES: Final = 2 << 20  # that are read of a file, its end
FORGET: Final = "/forget"  # such a line holds what is not to stay
MOST_CHARS: Final = 64 << 10  # of one message that is offered again


class KeptHistory(History):
    """A history in the workspace's state folder, or in memory for as long as it cannot be stored there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._early: list[str] = []

    def load_history_strings(self) -> Iterable[str]:
        """Return the stored messages, latest first; none if the file cannot be read."""
        try:
            text = read_end(self._path, MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return []
        return [message for message in _messages(text) if len(message) <= MOST_CHARS][::-1]

    def drop(self, buffer: Buffer) -> None:
        """Drop all messages, in the buffer too; those that are stored are read again. What is being typed stays."""
        is_typed = buffer.text not in self.get_strings()
        self._loaded, self._loaded_strings, self._early = False, [], []
        buffer.reset(buffer.document if is_typed else None)

    def store_string(self, string: str) -> None:
        """Store one message; only for this run if the disk is full or not writable, or if it says what to forget."""
        if string.lstrip(" ").startswith(FORGET):
            return
        self._early.append(string.encode("utf-8", "backslashreplace").decode())
        with suppress(OSError):
            while self._early and self._path.parent.is_dir() and not self._path.parent.is_symlink():
                lines = "".join(f"+{line}\n" for line in self._early[0].split("\n"))
                add_to(self._path, f"\n# {datetime.now()}\n{lines}".encode())
                del self._early[0]


def _messages(text: str) -> Iterator[str]:
    """Read the `prompt_toolkit` history format: each line of a message after a plus."""
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            yield "\n".join(lines)
            lines = []
