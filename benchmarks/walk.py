"""`python -m benchmarks.walk`: how many of our modules an action visits, and how many pairs of modules call each other.

Counted on real turns in the host process, by a profiler hook: a module counts once a function of it runs between the
user's message and the end of the turn, a pair once a function of one module calls one of another. Each action runs once
before it is counted, to exclude what only the first turn needs.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from agent_core.access.grants import Approver
from tests.grants.support import READS, human
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS, Desk, another, answers, desk

from .measure import Row, options, show

ROOT = Path(__file__).parents[1]
OURS = tuple(f"{ROOT / name}/" for name in ("agent_core", "meta_functions"))
AIMS = {"plain message": 30, "one sandboxed call": 60, "creation": 90, "memory edit": 40}
DONE = Say("Done.")
QUIET_S = 1.0


@dataclass
class Walk:
    """The modules that one action visited, and the pairs of modules that called each other."""

    modules: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call, as the interpreter reports it."""
        if event != "call" or (module := _module(frame)) is None:
            return
        self.modules.add(module)
        caller = _module(frame.f_back) if frame.f_back else None
        if caller not in (None, module):
            self.pairs.add((str(caller), module))


def main() -> None:
    given = options(__doc__, rounds=None)
    walks = asyncio.run(bench())
    rows = [
        Row(f"{name} ({len(walk.pairs)} pairs of modules)", len(walk.modules), aim=AIMS.get(name), unit="modules")
        for name, walk in walks.items()
    ]
    show(rows, as_json=given.json)


async def bench() -> dict[str, Walk]:
    """Return the walk of each action."""
    return {name: await _walk(twice, approver) for name, (twice, approver) in _actions().items()}


def _actions() -> dict[str, tuple[list[Ask], Approver | None]]:
    """Return the calls of each action (the warm-up and the counted one) and the approver."""
    call, total = Ask(Wanted("count_vowels", {"text": "queue"})), Ask(Wanted("total", {}))
    edit = [Ask(Wanted("core_memory_append", {"name": "human", "content": text})) for text in ("Is Ada.", "Likes tea.")]
    return {
        "plain message": ([], None),
        "one sandboxed call": ([call, call], None),
        "creation": ([_creation(name, another(name)) for name in ("count_more", "count_all")], None),
        "creation with a question": ([_reading("most", "max"), _reading("least", "min")], human("yes")),
        "call with a grant": ([total, total], human("yes")),
        "memory edit": (edit, None),
    }


async def _walk(calls: list[Ask], approver: Approver | None) -> Walk:
    walk = Walk()
    async with _ready([step for call in calls for step in (call, DONE)] or [DONE, DONE], approver) as here:
        for counted in (Walk(), walk):
            await _quiet()
            with _counted(counted):
                told = answers(await here.say("go"))
                assert not any("was not made" in answer or "failed" in answer for answer in told), told
    return walk


async def _quiet() -> None:
    """Wait until no background work is left except polling, which is always the same."""
    before: set[str] = set()
    while True:
        with _counted(background := Walk()):
            await asyncio.sleep(QUIET_S)
        if background.modules <= before:
            return
        before = background.modules


@asynccontextmanager
async def _ready(script: Script, approver: Approver | None) -> AsyncIterator[Desk]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, scripted(script) as model:
        root = Path(folder)
        (root / "data").mkdir()
        (root / "data" / "numbers").write_text("6")
        async with desk(root, model) as here:
            here.workspace.functions.granting.approver = approver
            here.put("letters.py", VOWELS)
            here.put("sums.py", READS)
            await here.workspace.functions.reload()
            yield here


@contextmanager
def _counted(walk: Walk) -> Iterator[None]:
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _creation(name: str, code: str) -> Ask:
    arguments = {"function_name": name, "function_code_with_docstring": code, "module_name": name, "reason": "asked"}
    return Ask(Wanted("create_function", arguments))


def _reading(name: str, picked_by: str) -> Ask:
    code = READS.replace("total", name).replace("sum(", f"{picked_by}(").replace("Add up", f"Find the {name} of")
    return _creation(name, code)


def _module(frame: FrameType | None) -> str | None:
    path = frame.f_code.co_filename if frame else ""
    return path.removeprefix(f"{ROOT}/").removesuffix(".py").replace("/", ".") if path.startswith(OURS) else None


if __name__ == "__main__":
    main()
