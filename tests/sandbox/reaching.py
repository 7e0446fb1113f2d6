"""Files within reach and just out of it: `python -m tests.sandbox.reaching full` tries everything as the current user.

Prints JSON: for each attempt, what it reached but must not; for each honest need, what failed; {"": why} if this user
has no such level. Standard library only, so that any user's Python runs it.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sandbox import Access, FunctionCall, Job, Limits, Outcome, Returned, Sandbox
from sandbox.processes.pool import Pool
from sandbox.processes.startup import (
    LEVELS,
    Level,
    StartedLevel,
    plan_at,
    plan_for,
    try_level,
    without_root,
)
from sandbox.processes.zygote import wipe
from tests.sandbox.support import code

SECRET = f"secret-{secrets.token_hex(8)}"
LIMITS = Limits(wall_s=30)
FILES = ("reaching_attempts.py", "reaching_needs.py")
FOLDER = Path(__file__).parent


@contextmanager
def world() -> Iterator[Path]:
    """Yield a folder with granted (in, out, one, two) and closed parts (closed, beside)."""
    with tempfile.TemporaryDirectory(prefix="reach-") as name:
        root = Path(name)
        for folder in ("in/deep", "out", "closed", "beside"):
            root.joinpath(folder).mkdir(parents=True)
        for file in ("closed/secret", "beside/kept"):
            root.joinpath(file).write_text(SECRET)
        for file in ("in/a.csv", "in/deep/b.csv", "one", "two"):
            root.joinpath(file).write_text("1,2")
        _link(root / "in")
        root.joinpath("in/link_in").symlink_to("a.csv")
        yield root


def _link(folder: Path) -> None:
    folder.joinpath("link_out").symlink_to("../closed/secret")
    folder.joinpath("folder_out").symlink_to("../closed")


def _begin(root: Path) -> None:
    """Restore the writable parts."""
    wipe(root / "out")
    root.joinpath("out/sub").mkdir()
    root.joinpath("out/kept").write_text("1,2")
    root.joinpath("two").write_text("1,2")
    _link(root / "out")


def access(root: Path) -> Access:
    """Return what the functions of `attempts` may reach."""
    return Access(readable=(f"{root}/in", f"{root}/one"), writable=(f"{root}/out", f"{root}/two"))


@contextmanager
def watched(root: Path) -> Iterator[list[str]]:
    """Yield a list that receives the forbidden changes when the block ends."""
    _begin(root)
    before, found = _look(root), list[str]()
    yield found
    after = _look(root)
    found += [
        f"changed: {path}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
    for path in root.joinpath("out").rglob("*"):
        facts = path.lstat()
        if facts.st_mode & 0o6000 or not (path.is_file() or path.is_dir() or "_out" in path.name):
            found.append(f"made: {path.name} {facts.st_mode:o}")
        if path.is_symlink() and "_out" not in path.name:
            found.append(f"a link was planted: {path.name}")


def _look(root: Path) -> dict[str, tuple[Any, ...]]:
    seen: dict[str, tuple[Any, ...]] = {}
    for path in [root, *root.rglob("*")]:
        name = str(path.relative_to(root))
        facts = path.lstat()
        if name in ("out", "two"):
            seen[name] = (facts.st_ino, facts.st_mode, facts.st_nlink if name == "two" else None)
        elif not name.startswith("out/"):
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            seen[name] = (content, facts.st_mode, facts.st_uid, facts.st_ino, facts.st_nlink)
    return seen


def breaches(outcome: Outcome) -> list[str]:
    """Return what an outcome shows but must not."""
    found = ["the secret came back"] if SECRET in repr(outcome) else []
    if isinstance(outcome, Returned) and "got in" in outcome.shown:
        found.append(f"it says: {outcome.shown}")
    return found


def functions(file: str) -> list[str]:
    """Return the names of the functions in a file of this folder."""
    lines = FOLDER.joinpath(file).read_text().splitlines()
    return [
        line[4:].partition("(")[0]
        for line in lines
        if line.startswith("def ") and not line.startswith("def _")
    ]


async def tried(sandbox: Sandbox, root: Path, file: str, name: str) -> list[str]:
    """Run one attempt or need and return what was wrong with it. Without layers, nothing needs to be granted."""
    granted = Access() if sandbox.level == "none" else access(root)
    module = code(file.removesuffix(".py"), FOLDER.joinpath(file).read_text())
    with watched(root) as found:
        outcome = await sandbox.run(
            Job(
                {module.module: module},
                module.module,
                FunctionCall(name, {"root": str(root)}),
                limits=LIMITS,
                access=granted,
            )
        )
    if file == "reaching_needs.py" and not (
        isinstance(outcome, Returned) and outcome.value is True
    ):
        found.append(repr(outcome))
    return found + breaches(outcome)


@asynccontextmanager
async def sandbox_at(level: Level) -> AsyncIterator[Sandbox | str]:
    """Yield a sandbox at exactly this level, or the reason why there is none."""
    scratch = str(Path(tempfile.gettempdir(), f"reach-scratch-{secrets.token_hex(8)}"))
    plan, missing = plan_for({}, slots=6, scratch_folder=scratch), list[str]()
    ground = await try_level(level, plan_at(level, plan), missing)
    if ground is None:
        yield "; ".join(missing)
        return
    async with Sandbox(ground, 1) as sandbox:
        yield sandbox


@asynccontextmanager
async def sandbox_without_layers() -> AsyncIterator[Sandbox]:
    """Yield a sandbox without any layer, to check that an escape is noticed."""
    scratch = str(Path(tempfile.gettempdir(), f"reach-scratch-{secrets.token_hex(8)}"))
    plan = replace(
        without_root(plan_for({}, slots=6, scratch_folder=scratch)), layers=(), user=None
    )
    async with Sandbox(StartedLevel("none", plan, Pool(plan), {}, ()), 1) as sandbox:
        yield sandbox


async def run(level: Level) -> dict[str, list[str]]:
    """Run everything at this level."""
    async with sandbox_at(level) as sandbox:
        if isinstance(sandbox, str):
            return {"": [sandbox]}
        with world() as root:
            return {
                name: await tried(sandbox, root, file, name)
                for file in FILES
                for name in functions(file)
            }


if __name__ == "__main__":
    signal.alarm(240)
    os.umask(0o022)
    print(json.dumps(asyncio.run(run(next(level for level in LEVELS if level == sys.argv[1])))))
