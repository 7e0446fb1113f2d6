"""Records the way from nothing to the first self-made function without a key: commands, seconds, bytes, output.

    pip wheel --no-deps --wheel-dir dist .
    python benchmarks/first_minutes.py dist/knapper-*.whl [--ask TEXT] [--python PYTHON]

Everything happens in an empty temporary home, which is deleted afterwards. The transcript goes to standard output.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ASK = "How many vowels are in 'queueing'? Make a function for it."
MODEL = "qwen2.5-coder-1.5b"
KEPT = ("PIP_", "SSL_CERT_", "http_proxy", "https_proxy", "no_proxy")
WIDE = 120
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and how many of its last lines are shown (0: all)."""

    command: str
    last: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one task."""

    step: Step
    code: int
    seconds: float
    fetched: float
    output: str


def main() -> int:
    """Record the commands; return the exit code of the first that failed."""
    given = _options()
    with tempfile.TemporaryDirectory(prefix="first-minutes-") as folder:
        home = Path(folder)
        shutil.copy(given.wheel, home)
        environment = _environment(home)
        all_done: list[Done] = []
        for step in _steps(given.wheel.name, given.python, given.ask):
            done = _run(step, home, environment)
            all_done.append(done)
            _print(done, home)
            if done.code:
                break
        _sum_up(all_done)
        return all_done[-1].code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path, help="the built wheel")
    parser.add_argument("--ask", default=ASK, metavar="TEXT", help="the first request")
    parser.add_argument("--python", default="python3", help="the Python that makes the environment")
    return parser.parse_args()


def _steps(wheel: str, python: str, ask: str) -> Iterator[Step]:
    yield Step(f"{python} -m venv venv && . venv/bin/activate")
    yield Step(f"pip install {shlex.quote(f'{wheel}[local]')}", last=1)
    yield Step(f"knapper models get {MODEL}")
    yield Step("knapper init my-assistant && cd my-assistant")
    yield Step(f"knapper run --message {_quoted(ask)}")
    yield Step("cat functions/grown.py")


def _quoted(text: str) -> str:
    """Quote the text as a human types it, if that is safe."""
    return shlex.quote(text) if set(text) & set('"$`\\') else f'"{text}"'


def _environment(home: Path) -> dict[str, str]:
    """Return a new user's environment: only what the package installer needs to know of the network."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    return {**kept, "HOME": str(home), "PATH": f"{home}/venv/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def _run(step: Step, home: Path, environment: Mapping[str, str]) -> Done:
    inside = home / "my-assistant"
    models = home / ".local" / "share" / "knapper" / "models"
    before, began = _size_of(models), time.monotonic()
    done = subprocess.run(
        ["bash", "-c", step.command],
        cwd=inside if inside.is_dir() else home,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    return Done(
        step,
        done.returncode,
        seconds,
        _told_by_pip(done.stdout) + _size_of(models) - before,
        done.stdout,
    )


def _told_by_pip(output: str) -> float:
    """Return the bytes in pip's lines `Downloading NAME (1.2 MB)`."""
    told = re.findall(r"^\s*Downloading .* \(([\d.]+) (bytes|kB|MB|GB)\)$", output, re.MULTILINE)
    return sum(float(number) * UNITS[unit] for number, unit in told)


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _print(done: Done, home: Path) -> None:
    lines = done.output.replace(str(home), "~").splitlines()
    shown = lines[-done.step.last :] if not done.code else lines
    sys.stdout.write(f"$ {done.step.command}\n")
    sys.stdout.writelines(
        f"{line[: WIDE - 1]}…\n" if len(line) > WIDE else f"{line}\n" for line in shown
    )
    sys.stdout.write(
        f"                                        [{_figures(done.seconds, done.fetched)}]\n\n"
    )
    sys.stdout.flush()


def _sum_up(all_done: list[Done]) -> None:
    total = _figures(sum(done.seconds for done in all_done), sum(done.fetched for done in all_done))
    sys.stdout.write(f"In all: {total}\n")


def _figures(seconds: float, fetched: float) -> str:
    return f"{seconds:.1f} s" + (f", {fetched / 1e6:,.1f} MB fetched" if fetched >= 1e5 else "")


if __name__ == "__main__":
    sys.exit(main())
