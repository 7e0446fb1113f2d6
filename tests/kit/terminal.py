"""A real pseudo-terminal with a program in it: type, wait for what the screen shows, read the screen."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyte
import pytest

from .program import Program, surroundings
from .waiting import patience_s

KNAPPER = (sys.executable, "-m", "knapper")
ENTER, ALT_ENTER, CTRL_C, CTRL_D, TAB, ESCAPE = "\r", "\x1b\r", "\x03", "\x04", "\t", "\x1b"
UP, DOWN = "\x1b[A", "\x1b[B"


@cache
def _has_control_keys() -> bool:
    """Tell whether a terminal that reads line by line ends its input at Ctrl-D, as by default."""
    master, slave = pty.openpty()
    try:
        os.write(master, CTRL_D.encode())
        return bool(select.select([slave], [], [], 0.2)[0])
    finally:
        os.close(master)
        os.close(slave)


class Terminal:
    """One program on its own screen; `sent` holds every byte that it wrote."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self.sent = b""
        self._visible: set[str] | None = (
            None  # the lines that were ever visible, while someone watches
        )
        self.breath_s = 0.0  # pause between two pieces of input, to simulate a slow connection
        self._page = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self._seen: list[str] | None = (
            None  # the cached results of `screen` and `scrolled`, until more output arrives
        )
        self._read_back: str | None = None
        self._stream = pyte.Stream(self._page)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._changed = threading.Condition()
        self._master, slave = pty.openpty()
        self._resize(columns, rows)
        around = surroundings({"TERM": "xterm-256color", "PYTHONUTF8": "1", **(environment or {})})
        self.process = self._start(command, slave, cwd, around)
        os.close(slave)
        self._has_ended = threading.Event()  # a kernel may not tell the reader
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, text: str) -> None:
        """Press keys."""
        is_line_by_line = termios.tcgetattr(self._master)[3] & termios.ICANON
        if text in (CTRL_C, CTRL_D) and is_line_by_line and not _has_control_keys():
            pytest.skip("a terminal of this kernel (gVisor) passes Ctrl-C and Ctrl-D on as nothing")
        os.write(self._master, text.encode())

    def line(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text + ENTER)

    def answer(self, key: str, *shows: str) -> None:
        """Wait until a question shows this key, and answer with it as `do`: keys do not count before."""
        pattern = re.compile(rf"\b(Press|Type|or)\s+([oy]\s+\(\w+\),\s+)*{key}\s+\(")
        self.wait(
            lambda: pattern.search("\n".join(self.screen())) is not None,
            f"a question with the key {key}",
        )
        self.do(key, *shows)

    def do(self, typed: str, *shows: str) -> None:
        """Type a line and wait until the screen and its scrollback show each of these texts once more than before."""
        before = [self.scrolled().count(text) for text in shows]
        self.line(typed)
        for text, count in zip(shows, before, strict=True):
            self.wait_count(text, count + 1)

    def paste(self, text: str) -> None:
        """Send a text as a terminal sends a paste."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Change the window while the program runs."""
        with self._changed:
            self._page.resize(rows, columns)
            self._seen = self._read_back = None
        self._resize(columns, rows)
        os.kill(self.process.pid, signal.SIGWINCH)

    def screen(self) -> list[str]:
        """Return the visible lines."""
        with self._changed:
            if self._seen is None:
                self._seen = [line.rstrip() for line in self._page.display]
            return [*self._seen]

    def watch(self) -> set[str]:
        """Return a set that collects every line that is visible from now on, as often as the screen changes."""
        with self._changed:
            self._visible = {line.rstrip() for line in self._page.display}
            return self._visible

    def scrolled(self) -> str:
        """Return everything on the screen and in the scrollback, from the top."""
        with self._changed:
            if self._read_back is None:
                above = [
                    "".join(row[at].data for at in range(self._page.columns))
                    for row in self._page.history.top
                ]
                self._read_back = "\n".join([*(line.rstrip() for line in above), *self.screen()])
            return self._read_back

    def cells(self) -> list[list[Any]]:  # Any: pyte's cells, which are not typed
        """Return the screen, cell by cell, with its styles."""
        with self._changed:
            page = self._page
            return [
                [page.buffer[row][at] for at in range(page.columns)] for row in range(page.lines)
            ]

    def cursor(self) -> tuple[int, int] | None:
        """Return the row and column of the cursor, if it is visible."""
        with self._changed:
            cursor = self._page.cursor
            return None if cursor.hidden else (cursor.y, cursor.x)

    def colour_of(self, text: str) -> tuple[str, str]:
        """Return the foreground and background of the text's first character on the screen."""
        with self._changed:
            for number, line in enumerate(self._page.display):
                if text in line:
                    cell = self._page.buffer[number][line.index(text)]
                    return cell.fg, cell.bg
        raise AssertionError(f"{text!r} is not on the screen:\n{self.scrolled()}")

    def wait_for(self, text: str, timeout_s: float | None = None) -> None:
        """Wait until the screen shows the text."""
        self.wait(
            lambda: any(text in line for line in self.screen()),
            f"{text!r} on the screen",
            timeout_s,
        )

    def wait_count(self, text: str, count: int, timeout_s: float | None = None) -> None:
        """Wait until the text occurs this many times on the screen and in the scrollback."""
        self.wait(lambda: self.scrolled().count(text) >= count, f"{count} × {text!r}", timeout_s)

    def wait_gone(self, text: str, timeout_s: float | None = None) -> None:
        """Wait until the screen no longer shows the text."""
        self.wait(
            lambda: not any(text in line for line in self.screen()),
            f"{text!r} off the screen",
            timeout_s,
        )

    def wait(self, holds: Callable[[], bool], what: str, timeout_s: float | None = None) -> None:
        """Wait until the condition holds; check again whenever the screen changes."""
        most_s = patience_s() if timeout_s is None else timeout_s
        until = time.monotonic() + most_s
        while not holds():
            left = until - time.monotonic()
            if left <= 0:
                raise AssertionError(
                    f"waited {most_s:.0f} s for {what}; the screen is:\n{self.scrolled()}"
                )
            with self._changed:
                self._changed.wait(min(left, 0.05))

    def exit_code(self, timeout_s: float | None = None) -> int:
        """Wait for the program to end and return its exit code."""
        most_s = patience_s() if timeout_s is None else timeout_s
        try:
            code = self.process.wait(most_s)
        except subprocess.TimeoutExpired:
            message = f"waited {most_s:.0f} s for the end; the screen is:\n{self.scrolled()}"
            raise AssertionError(message) from None
        self._has_ended.set()
        self._reader.join(most_s)
        return code

    def fileno(self) -> int:
        """Return the terminal's own end, to read its settings."""
        return self._master

    def hang_up(self) -> None:
        """Take the terminal away, as closing its window does; nothing more can be read from it."""
        if not _has_control_keys():
            pytest.skip("a terminal of this kernel (gVisor) tells nobody that it was closed")
        os.dup2(os.open(os.devnull, os.O_RDWR), self._master)

    def close(self) -> None:
        """End the program if it is still running."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._has_ended.set()
        self._reader.join(5)
        os.close(self._master)

    def _start(
        self, command: Sequence[str], slave: int, cwd: Path, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | Program":
        return subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def _resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        while True:
            # A blocking read would keep the terminal open: `hang_up` could not take it away.
            if not select.select([self._master], [], [], 0.1)[0]:
                if self._has_ended.is_set():
                    return
                continue
            try:
                time.sleep(self.breath_s)
                data = os.read(self._master, 256 if self.breath_s else 65_536)
            except OSError:  # the end of the program closes the terminal
                return
            if not data:
                return
            with self._changed:
                self.sent += data
                self._stream.feed(self._decoder.decode(data))
                self._seen = self._read_back = None
                if self._visible is not None:
                    self._visible.update(line.rstrip() for line in self._page.display)
                self._changed.notify_all()


class Knapper(Terminal):
    """A terminal that runs our program: the command is only the arguments. `first` is code that runs before it."""

    def __init__(
        self, command: Sequence[str], *, first: str = "", **options: Any
    ) -> None:  # Any: those of a terminal
        self._first = first
        super().__init__(command, **options)

    def _start(
        self, command: Sequence[str], slave: int, cwd: Path, environment: Mapping[str, str]
    ) -> Program:
        return Program(command, [slave] * 3, cwd=cwd, environment=environment, first=self._first)


@contextmanager
def terminal(
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    columns: int = 80,
    rows: int = 24,
    first: str = "",
) -> Iterator[Terminal]:
    """Run `knapper` with these arguments in a terminal; it ends on exit."""
    running = Knapper(
        arguments, cwd=cwd, environment=environment, columns=columns, rows=rows, first=first
    )
    try:
        yield running
    finally:
        running.close()
