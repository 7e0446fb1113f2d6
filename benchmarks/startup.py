"""Start-up: the version, read commands, and a prompt ready for typing, against a reference command in the same run.

Prints the best and the median of each in milliseconds, and the ratio of the medians. Exits 1 above the limits:
`--version` ≤ 2 ×, `functions list` and `functions history` ≤ 20 ×, the prompt on the screen of a pseudo-terminal ≤ 8 ×
`python -c "import argparse, json"`.
"""

import argparse
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (sys.executable, "-c", "import argparse, json")
VERSION = (sys.executable, "-m", "agent_core", "--version")
LIST = (sys.executable, "-m", "agent_core", "functions", "list")
HISTORY = (sys.executable, "-m", "agent_core", "functions", "history", "add_to_date")
INIT = (sys.executable, "-m", "agent_core", "init", ".")
PROMPT = (sys.executable, "-m", "agent_core", "run", "--base-url", "http://127.0.0.1:9/v1", "--model", "none")
LIMITS = {"version": 2.0, "list": 20.0, "history": 20.0, "prompt": 8.0}
MARK = "›".encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = measure(options.runs, Path(folder))
    print(json.dumps(report) if options.json else table(report))
    sys.exit(0 if all(row["ratio"] <= LIMITS.get(name, 1e9) for name, row in report.items()) else 1)


def measure(runs: int, folder: Path) -> dict[str, dict[str, float]]:
    """Run the commands in turn, round by round, so that a busy moment affects all of them."""
    takers: dict[str, Callable[[], float]] = {
        "reference": lambda: until_end(REFERENCE, folder),
        "version": lambda: until_end(VERSION, folder),
        "list": lambda: until_end(LIST, folder),
        "history": lambda: until_end(HISTORY, folder),
        "prompt": lambda: until_prompt(PROMPT, folder),
    }
    until_end(INIT, folder)
    for take in takers.values():  # compiled modules and warm files for all
        take()
    taken: dict[str, list[float]] = {name: [] for name in takers}
    for _ in range(runs):
        for name, take in takers.items():
            taken[name].append(take())
    reference = statistics.median(taken["reference"])
    return {
        name: {
            "best_ms": round(min(times) * 1000, 1),
            "median_ms": round(statistics.median(times) * 1000, 1),
            "ratio": round(statistics.median(times) / reference, 2),
        }
        for name, times in taken.items()
    }


def until_end(command: Sequence[str], folder: Path) -> float:
    """Return the seconds from start to end."""
    began = time.perf_counter()
    subprocess.run(
        command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - began


def until_prompt(command: Sequence[str], folder: Path) -> float:
    """Return the seconds from start until the prompt is on the screen of a terminal."""
    master, slave = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while MARK not in shown:
        shown += os.read(master, 65_536)
    spent = time.perf_counter() - began
    process.kill()
    process.wait()
    os.close(master)
    return spent


def environment() -> dict[str, str]:
    """Return the same environment for all commands, to make the ratio fair."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}


def table(report: dict[str, dict[str, float]]) -> str:
    """Return the figures as text."""
    rows = [
        f"{name:10} best {row['best_ms']:7.1f} ms  median {row['median_ms']:7.1f} ms  {row['ratio']:5.2f} ×"
        + (f"  (limit {LIMITS[name]:g} ×)" if name in LIMITS else "")
        for name, row in report.items()
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    main()
