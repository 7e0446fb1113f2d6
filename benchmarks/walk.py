"""`python -m benchmarks.walk`: how many of our modules and functions an action enters.

Counted in the host process, by a profiler hook: a function, its module, and a pair of modules of which one calls the
other, count once between the user's message and the end of the turn, or between the save of a file and the moment when
its functions are callable. A comprehension or a lambda is part of its function. Each action runs once before it is
counted, to exclude what only the first one needs.
"""

import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TypeAlias

from agent_core.access.grants import Approver
from agent_core.registry.registry import RegistryChange
from tests.grants.support import READS, human
from tests.kit import Ask, Say, Script, Wanted, scripted
from tests.kit.desk import VOWELS, Desk, another, answers, desk

from .measure import Row, options, show

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent_core", "functions", "knapper", "knapper_ext", "meta_functions", "sandbox")
OURS = tuple(f"{ROOT / name}/" for name in PACKAGES)
AIMS: dict[str, tuple[int, int | None]] = {  # of modules and of functions
    "plain message": (28, 250),
    "one sandboxed call": (62, None),
    "creation": (98, 900),
    "memory edit": (38, None),
    "saved file": (48, None),
}
DONE = Say("Done.")
QUIET_S = 1.0

Act: TypeAlias = Callable[[Desk, int], Awaitable[None]]  # the number of its time


@dataclass
class Walk:
    """The modules and functions that one action entered, and the pairs of modules that called each other."""

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str, int]] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call, as the interpreter reports it."""
        if event != "call" or (module := _module(frame)) is None:
            return
        self.modules.add(module)
        if not frame.f_code.co_name.startswith("<"):
            self.functions.add((module, frame.f_code.co_name, frame.f_code.co_firstlineno))
        caller = _module(frame.f_back) if frame.f_back else None
        if caller not in (None, module):
            self.pairs.add((str(caller), module))


def main() -> None:
    given = options(__doc__, rounds=None)
    rows = []
    walks = asyncio.run(bench())
    for name, walk in walks.items():
        modules, functions = AIMS.get(name, (None, None))
        rows += [
            Row(
                f"{name} ({len(walk.pairs)} pairs of modules)",
                len(walk.modules),
                aim=modules,
                unit="modules",
            ),
            Row(name, len(walk.functions), aim=functions, unit="functions"),
        ]
    show(rows, as_json=given.json)
    if not given.json:
        for name, walk in walks.items():
            print(f"\n{name}:", *sorted(walk.modules), sep="\n    ")


async def bench() -> dict[str, Walk]:
    """Return the walk of each action."""
    walks = {}
    for name, (calls, approver) in _actions().items():
        script = [step for call in calls for step in (call, DONE)] or [DONE, DONE]
        walks[name] = await _walk(_say, script, approver)
    return {**walks, "saved file": await _walk(_save, [], None)}


def _actions() -> dict[str, tuple[list[Ask], Approver | None]]:
    """Return the calls of each action (the warm-up and the counted one) and the approver."""
    call, total = Ask(Wanted("count_vowels", {"text": "queue"})), Ask(Wanted("total", {}))
    edit = [
        Ask(Wanted("core_memory_append", {"name": "human", "content": text}))
        for text in ("Is Ada.", "Likes tea.")
    ]
    return {
        "plain message": ([], None),
        "one sandboxed call": ([call, call], None),
        "creation": (
            [_creation(name, another(name)) for name in ("count_more", "count_all")],
            None,
        ),
        "creation with a question": (
            [_reading("most", "max"), _reading("least", "min")],
            human("yes"),
        ),
        "call with a grant": ([total, total], human("yes")),
        "memory edit": (edit, None),
    }


async def _walk(act: Act, script: Script, approver: Approver | None) -> Walk:
    walk = Walk()
    async with _ready(script, approver) as here:
        for number, counted in enumerate((Walk(), walk)):
            await _quiet()
            with _counted(counted):
                await act(here, number)
    return walk


async def _say(here: Desk, _: int) -> None:
    told = answers(await here.say("go"))
    assert not any("was not made" in answer or "failed" in answer for answer in told), told


async def _save(here: Desk, number: int) -> None:
    """Save a changed function, and stop counting at the swap: later looks at it run in the background."""
    swapped = asyncio.Event()

    def at_swap(change: RegistryChange) -> None:
        assert change.changed == ("count_vowels",)
        sys.setprofile(None)
        swapped.set()

    end = here.workspace.functions.registry.subscribe(at_swap)
    here.put("letters.py", VOWELS.replace("text.lower()", f"text[:{1_000 + number}].lower()"))
    await swapped.wait()
    end()


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
    arguments = {
        "function_name": name,
        "function_code_with_docstring": code,
        "module_name": name,
        "reason": "asked",
    }
    return Ask(Wanted("create_function", arguments))


def _reading(name: str, picked_by: str) -> Ask:
    code = (
        READS.replace("total", name)
        .replace("sum(", f"{picked_by}(")
        .replace("Add up", f"Find the {name} of")
    )
    return _creation(name, code)


def _module(frame: FrameType | None) -> str | None:
    path = frame.f_code.co_filename if frame else ""
    return (
        path.removeprefix(f"{ROOT}/").removesuffix(".py").replace("/", ".")
        if path.startswith(OURS)
        else None
    )


if __name__ == "__main__":
    main()
