"""`python -m benchmarks.startup`: whole commands, and the prompt ready for typing, against a bare interpreter.

Each command runs from start to end, the prompt until it is on the screen of a pseudo-terminal. The endpoint of `run`
answers at once.
"""

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from .fake_endpoint import running
from .measure import Row, median_ms, options, show

ROOT = Path(__file__).resolve().parents[1]
BARE = 'python -c "import argparse, json"'
PROMPT = "the prompt, ready for typing"
AIMS = {
    "knapper --version": 2,
    "knapper functions list": 12,
    "knapper functions call": 20,
    "knapper run --once --message": 32,
    PROMPT: 5,
}
MARK = "›".encode()


def main() -> None:
    given = options(__doc__, rounds=9)
    show(bench(given.rounds), as_json=given.json)


def bench(rounds: int) -> list[Row]:
    """Return the median of each command, and its ratio to that of the bare interpreter."""
    with tempfile.TemporaryDirectory() as folder, running() as url:
        until_end = partial(_until_end, Path(folder))
        until_end(_knapper("init", "."))
        takers: dict[str, Callable[[], float]] = {
            BARE: partial(until_end, [sys.executable, "-c", "import argparse, json"]),
            **{
                name: partial(until_end, command)
                for name, command in _commands(f"{url}/0/v1").items()
            },
            PROMPT: partial(_until_prompt, Path(folder)),
        }
        for take in takers.values():  # compiled modules and warm files for all
            take()
        taken: dict[str, list[float]] = {name: [] for name in takers}
        for _ in range(rounds):  # in turn, so that a busy moment affects all of them
            for name, take in takers.items():
                taken[name].append(take())
    medians = {name: statistics.median(times) for name, times in taken.items()}
    return [
        Row(name, median_ms(taken[name]), BARE, medians[name] / medians[BARE], aim)
        for name, aim in AIMS.items()
    ]


def _commands(url: str) -> dict[str, list[str]]:
    return {
        "knapper --version": _knapper("--version"),
        "knapper functions list": _knapper("functions", "list"),
        "knapper functions call": _knapper(
            "functions", "call", "add_to_date", "--args", '{"start": "2026-01-31", "months": 1}'
        ),
        "knapper run --once --message": _knapper(
            "run", "--once", "--message", "Hello", "--base-url", url, "--model", "fake"
        ),
    }


def _knapper(*words: str) -> list[str]:
    return [sys.executable, "-m", "knapper", *words]


def _until_end(folder: Path, command: Sequence[str]) -> float:
    """Return the seconds from start to end."""
    began = time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - began


def _until_prompt(folder: Path) -> float:
    """Return the seconds from start until the prompt is on the screen of a terminal."""
    command = _knapper("run", "--base-url", "http://127.0.0.1:9/v1", "--model", "none")
    master, slave = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=_environment(), stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    shown = b""
    while MARK not in shown:
        shown += os.read(master, 65_536)
    spent = time.perf_counter() - began
    process.kill()
    process.wait()
    os.close(master)
    return spent


def _environment() -> dict[str, str]:
    """Return the same environment for all commands, which keeps compiled modules like an installed package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}


if __name__ == "__main__":
    main()
