"""`python -m tests.packages.popular` tries typical tasks with twenty packages and writes docs/packages.md.

Each function of `tests/data/packages.toml` is saved in a new workspace, granted its package by the command, called by
the command, and called twice more by one process. Everything except the package index is on this machine.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic import TypeAdapter

from agent_core import Decision, Question, Workspace
from tests.kit.http import Answer, Request, Server

REPOSITORY: Final = Path(__file__).parents[2]
DATA: Final = REPOSITORY / "tests" / "data" / "packages.toml"
PAGE: Final = REPOSITORY / "docs" / "packages.md"
BEGIN, END = (
    "<!-- packages: written by `python -m tests.packages.popular` -->",
    "<!-- packages: end -->",
)
_HEAD: Final = "| package | tried | result | size | install | first call | next call |"
_WITHIN_S: Final = 600


@dataclass(frozen=True)
class Task:
    """A function's use of a package, with the files before and after it."""

    name: str
    package: str
    task: str
    source: str
    arguments: dict[str, Any]
    value: Any
    together: tuple[str, ...] = ()  # further packages
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    hex: Mapping[str, str] = field(default_factory=dict)
    begins: Mapping[str, str] = field(
        default_factory=dict
    )  # the first bytes of the written files, in hexadecimal
    fails: str = ""  # the error, if the sandbox does not allow it
    why: str = ""  # an explanation, in Markdown
    serves: str = ""  # the response of a granted host

    @property
    def packages(self) -> tuple[str, ...]:
        """The granted packages."""
        return (self.package, *self.together)


@dataclass(frozen=True)
class Trial:
    """The result of a task."""

    task: Task
    problem: str  # with the grant or a call; empty if all went well
    printed: tuple[str, ...]  # all output besides the value
    size_mb: float
    install_s: float
    first_s: float
    next_s: float


def tasks() -> list[Task]:
    """Return all tasks of the data file."""
    return TypeAdapter(list[Task]).validate_python(tomllib.loads(DATA.read_text())["function"])


def tried(task: Task, folder: Path) -> Trial:
    """Run a task in a new workspace below a folder."""
    root = folder / "workspace"
    _command("init", str(root), folder=folder)
    (root / "functions" / f"{task.name}.py").write_text(task.source.lstrip())
    for name, text in task.files.items():
        (root / name).write_text(text)
    for name, text in task.hex.items():
        (root / name).write_bytes(bytes.fromhex(text))
    with _host(task.serves) as host:
        arguments = json.loads(json.dumps(task.arguments).replace("{server}", f"http://{host}"))
        items = [
            *_flags("--package", task.packages),
            *_flags("--read", task.read),
            *_flags("--write", task.write),
        ]
        items += ["--network", host] if task.serves else []
        began = time.monotonic()
        granted = _command("functions", "grant", task.name, *items, "--yes", folder=root)
        install_s = time.monotonic() - began
        if granted.returncode:
            return Trial(task, granted.stderr.strip(), (), 0, install_s, 0, 0)
        called = _command(
            "functions", "call", task.name, "--args", json.dumps(arguments), "--json", folder=root
        )
        problem, printed = _seen(task, root, called)
        if problem or task.fails:
            return Trial(task, problem, printed, _size_mb(root), install_s, 0, 0)
        (first_s, next_s), questions = asyncio.run(_timed(root, folder, task.name, arguments))
    return Trial(task, "", (*printed, *questions), _size_mb(root), install_s, first_s, next_s)


def _seen(
    task: Task, root: Path, called: subprocess.CompletedProcess[str]
) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with a call, and the output besides its value."""
    report: dict[str, Any] = (
        json.loads(called.stdout)
        if called.stdout
        else {"outcome": "nothing", "error": called.stderr}
    )
    if task.fails and report["error"] and report["error"]["type"] == task.fails:
        return "", ()
    if report["outcome"] != "returned":
        return f"{report['outcome']}: {report['error']}", ()
    if report["value"] != task.value:
        return f"it returned {report['value']!r}, not {task.value!r}", ()
    for name, start in task.begins.items():
        if not (root / name).read_bytes().startswith(bytes.fromhex(start)):
            return f"{name} is not what was asked for", ()
    noise = [report["output"], report.get("lacks", ""), called.stderr]
    return "", tuple(text.strip() for text in noise if text.strip())


async def _timed(
    root: Path, folder: Path, name: str, arguments: dict[str, Any]
) -> tuple[list[float], list[str]]:
    """Return the seconds of the first and the next call in one process, and the questions to its user."""
    seconds: list[float] = []
    questions: list[str] = []

    async def ask(question: Question) -> Decision:
        questions.append(f"it asks to {', '.join(question.missing.sentences())}")
        return Decision("no")

    os.environ.update(_environment(folder))
    async with Workspace.open(root, approver=ask) as workspace:
        for _ in range(2):
            began = time.monotonic()
            report = await workspace.functions.call(name, arguments)
            seconds.append(time.monotonic() - began)
            assert report.outcome == "returned", report
    return seconds, questions


@contextmanager
def _host(text: str) -> Iterator[str]:
    """Run a host with one response; no host if there is none."""

    async def answer(_request: Request, answer: Answer) -> None:
        await answer.send(200, text.encode())

    if not text:
        yield ""
        return
    server = Server(answer)
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.close()


def _command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    base = folder if folder.name != "workspace" else folder.parent
    return subprocess.run(
        [sys.executable, "-m", "knapper", *arguments],
        cwd=folder,
        env={**os.environ, **_environment(base), "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_WITHIN_S,
        check=False,
    )


def _environment(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}


def _flags(flag: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _size_mb(root: Path) -> float:
    return (
        sum(
            path.stat().st_size for path in (root / ".knapper" / "env").rglob("*") if path.is_file()
        )
        / 1e6
    )


def table(trials: Sequence[Trial]) -> str:
    """Return the table of results, with its marks."""
    rows = [_HEAD, "|---|---|---|---:|---:|---:|---:|", *map(_row, trials)]
    return "\n".join([BEGIN, "", *rows, "", END])


def _row(trial: Trial) -> str:
    begin = _begin(trial.task, is_done=not (trial.problem or trial.task.fails))
    if trial.problem or trial.task.fails:
        return f"{begin} | | | |"
    size = f"{trial.size_mb:.0f} MB" if trial.size_mb >= 1 else "< 1 MB"
    return f"{begin} {' | '.join((size, *map(_seconds, _times(trial))))} |"


def _begin(task: Task, *, is_done: bool) -> str:
    names = ", ".join(f"`{name}`" for name in task.packages)
    return f"| {names} | {task.task} | {'yes' if is_done else f'no: {task.why}' if task.why else 'no'} |"


def pattern(task: Task) -> re.Pattern[str]:
    """Return a pattern for the row of a task in the table, whatever was measured."""
    return re.compile(
        f"^{re.escape(_begin(task, is_done=not task.fails))}( [^|]*\\|){{4}}$", re.MULTILINE
    )


def _times(trial: Trial) -> tuple[float, float, float]:
    return trial.install_s, trial.first_s, trial.next_s


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def main() -> int:
    """Try the named tasks, or all; write the table if all ran."""
    wanted = sys.argv[1:]
    trials = []
    for task in tasks():
        if wanted and not {task.name, task.package} & {*wanted}:
            continue
        with TemporaryDirectory() as folder:
            trials.append(trial := tried(task, Path(folder)))
        print(
            _row(trial),
            *([trial.problem] if trial.problem else []),
            *trial.printed,
            sep="\n    ",
            flush=True,
        )
    if not wanted:
        before = PAGE.read_text()
        PAGE.write_text(
            re.sub(
                f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(trials), before, flags=re.S
            )
        )
    return 1 if any(trial.problem or trial.printed for trial in trials) else 0


if __name__ == "__main__":
    sys.exit(main())
