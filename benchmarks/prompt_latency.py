"""`python -m benchmarks.prompt_latency`: from a key press to its character on the screen, in a pseudo-terminal.

Quiet, and while a reply of 1,000 lines a second streams; 1,000 functions are loaded. The aim, p95 ≤ 16 ms, is for
the second.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from .measure import Row, options, show
from .prompt_stream import running

ROOT = Path(__file__).resolve().parents[1]
READY = b"/help lists"
STREAMING = "§".encode()
FUNCTIONS = 1_000
PER_MODULE = 50
AIM_MS = 16.0
KEYS_PER_ROUND = 40
PAUSE_S = 0.037
_LONGEST_S = 30.0
SETTLE_S = 5.0
_KILL_LINE = "\x15"
_FUNCTION = '''def {name}(text: str) -> str:
    """Give back text number {n} as it came.

    Args:
        text: What to give back.
    """
    return text[{n}:]


'''


def main() -> None:
    given = options(__doc__, rounds=5)
    show(bench(given.rounds), as_json=given.json)


def bench(rounds: int, functions: int = FUNCTIONS, settle_s: float = SETTLE_S) -> list[Row]:
    """Return the median and the 95th percentile, quiet and under the stream."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running() as url,
        _Prompt(_workspace(Path(folder), functions), f"{url}/v1") as prompt,
    ):
        prompt.until(READY)
        prompt.read_for(settle_s)  # what loads in the background is loaded by then
        quiet = _presses(prompt, rounds)
        prompt.write("go\r")
        prompt.until(STREAMING)
        streaming = _presses(prompt, rounds)
    return [
        Row("key to screen, quiet: p50", _share(quiet, 0.5)),
        Row("key to screen, quiet: p95", _share(quiet, 0.95)),
        Row("key to screen, 1,000 lines a second: p50", _share(streaming, 0.5)),
        Row("key to screen, 1,000 lines a second: p95", _share(streaming, 0.95), aim=AIM_MS),
    ]


def _share(taken: list[float], share: float) -> float:
    """Return the milliseconds within which this share of the values lies."""
    return sorted(taken)[min(int(len(taken) * share), len(taken) - 1)] * 1000


def _workspace(root: Path, functions: int) -> Path:
    (root / "functions").mkdir()
    for module in range(0, functions, PER_MODULE):
        numbers = range(module, min(module + PER_MODULE, functions))
        text = "".join(_FUNCTION.format(name=f"give_back_{n}", n=n) for n in numbers)
        (root / "functions" / f"module_{module}.py").write_text(text)
    (root / "knapper.toml").touch()
    return root


def _presses(prompt: "_Prompt", rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        for n in range(KEYS_PER_ROUND):
            taken.append(prompt.press(chr(0x4E00 + prompt.pressed)))
            prompt.read_for(PAUSE_S + n % 7 / 1000)
        prompt.write(_KILL_LINE)
        prompt.read_for(0.1)
    return taken


class _Prompt:
    """`knapper run` in a pseudo-terminal of 120 × 40."""

    def __init__(self, root: Path, url: str) -> None:
        self.pressed = 0
        self._root, self._url = root, url

    def __enter__(self) -> "_Prompt":
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        command = (
            sys.executable,
            "-m",
            "knapper",
            "run",
            "--base-url",
            self._url,
            "--model",
            "fake",
        )
        around = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "PYTHONUTF8": "1",
        }
        self._process = subprocess.Popen(
            command,
            cwd=self._root,
            env=around,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def write(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press(self, key: str) -> float:
        """Return the seconds from the key to its character on the screen."""
        self.pressed += 1
        began = time.perf_counter()
        self.write(key)
        self.until(key.encode())
        return time.perf_counter() - began

    def until(self, wanted: bytes) -> None:
        seen, end = b"", time.monotonic() + _LONGEST_S
        while wanted not in seen:
            if time.monotonic() > end:
                raise TimeoutError(f"{wanted!r} did not come; the last was {seen[-400:]!r}")
            seen = seen[-100:] + self.read(1)

    def read_for(self, seconds: float) -> None:
        """Keep reading for this long: an unread terminal would block the program."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def read(self, timeout_s: float) -> bytes:
        if not select.select([self._master], [], [], timeout_s)[0]:
            return b""
        return os.read(self._master, 1 << 16)


if __name__ == "__main__":
    main()
