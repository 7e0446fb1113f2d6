"""Checks after a save: gaps in the examples, duplicates and failing inputs are reported later, as warnings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.events import FunctionsChanged
from agent_core.functions.service import FunctionService
from agent_core.functions.service.judgment import Judgment
from agent_core.views.call_log import changed_lines
from agent_core.workspace.workspace import Workspace
from tests.functions.support import CLAMP, COPY, CRASH, STRONG
from tests.kit.program import children
from tests.kit.waiting import patience_s

LONG = CRASH.replace('    return "', '    time.sleep(0.1)\n    return "')
BOTH = STRONG + "\n\n" + CLAMP


class Saves:
    """A workspace that someone edits, and the later reports on functions that its listeners receive."""

    def __init__(self, workspace: Workspace) -> None:
        self.shop: FunctionService = workspace.functions
        self._folder = workspace.root / "functions"
        self._heard = asyncio.Queue[FunctionsChanged]()
        self.shop.on_change(self._heard.put_nowait)

    def put(self, text: str, name: str = "mine.py") -> None:
        """Save a file; the watcher sees it."""
        (beside := self._folder / f".{name}.swp").write_text(text)
        beside.replace(self._folder / name)

    async def taken(self, *names: str) -> None:
        """Wait until functions are loaded."""
        left = set(names)
        while left:
            event = await self._heard.get()
            left -= {*event.loaded, *event.changed}

    async def told(self) -> FunctionsChanged:
        """Return the next report on an earlier save."""
        async with asyncio.timeout(patience_s()):
            while not (event := await self._heard.get()).noted or event.loaded or event.changed:
                pass
        return event

    def rest(self) -> list[FunctionsChanged]:
        """Return the reports that no test step waited for."""
        return [self._heard.get_nowait() for _ in range(self._heard.qsize())]


async def judged(desk: Saves, name: str) -> Judgment:
    verdict = (await desk.shop.introspect(name)).verdict
    assert verdict is not None
    return verdict


@asynccontextmanager
async def edited(root: Path, **flags: Any) -> AsyncIterator[Saves]:
    async with Workspace.open(root, flags={"sandbox.wall_s": 2, **flags}) as workspace:
        yield Saves(workspace)


WEAK = (
    "with `if value <= low:` in place of `if value < low:`, every example of `clamp` still agrees "
    "(functions/mine.py:29): add an example where `value` equals `low`"
)
REPEATED = (
    "`at_least` computes the same as a function that is there: `clamp(value: integer, low: integer) -> int` "
    "(functions/mine.py:1): Keep a value above a bound. (functions/mine.py:20): "
    "call `clamp` instead, or say in its docstring how yours differs from `clamp`"
)
RAISING = "raises `TypeError: sequence item 0: expected str instance, NoneType found` at "


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        pytest.param(CLAMP + "\n\n" + COPY, "at_least", REPEATED, id="copy"),
        pytest.param(CRASH, "initials", RAISING, id="crash"),
    ],
)
async def test_what_a_save_is_not_held_up_for_is_told_behind_it(
    tmp_path: Path, text: str, name: str, what: str
) -> None:
    async with edited(tmp_path) as desk:
        desk.put(text)
        await desk.taken(name)
        event = await desk.told()
        while name not in event.noted:
            event = await desk.told()
        assert what in event.noted[name]
        assert all(
            f"Of `{name}`: {line}." in desk.shop.tell_changes([event])
            for line in event.noted[name].split("\n")
        )
        shown = ["".join(text for _, text in line) for line in changed_lines(event)]
        assert shown == [f"~ {name}: {line}" for line in event.noted[name].split("\n")]


async def test_what_was_found_is_kept_with_the_verdict_and_of_what_is_good_nothing_is_said(
    tmp_path: Path,
) -> None:
    async with edited(tmp_path) as desk:
        desk.put(BOTH)
        event = await desk.told()
        assert list(event.noted) == ["clamp"]  # after `total`, which is above it
        assert WEAK in event.noted["clamp"]
        seen = {name: await judged(desk, name) for name in ("total", "clamp")}
        assert {"duplicate", "mutation", "robust"} < {one.stage for one in seen["total"].stages}
        problems = {
            name: [(one.code, one.where.line) for one in each.problems]
            for name, each in seen.items()
        }
        assert (problems["total"], ("weak-examples", 29) in problems["clamp"]) == ([], True)


async def test_only_what_changed_or_uses_what_changed_is_looked_at_again(tmp_path: Path) -> None:
    async with edited(tmp_path) as desk:
        desk.put(f"{CLAMP}\n\n{CRASH}")
        assert [*(await desk.told()).noted, *(await desk.told()).noted] == ["clamp", "initials"]
        desk.put(f"{CLAMP}\n\n{CRASH}".replace("else None", "else 7"))
        assert list((await desk.told()).noted) == ["initials"]
        assert all(not event.noted for event in desk.rest())
        # What is still true is not told again: of another docstring, and of another body that examples miss.
        desk.put(
            f"{CLAMP}\n\n{CRASH}".replace("else None", "else 7").replace("Give the", "Say the")
        )
        await desk.taken("initials")
        desk.put(
            f"{CLAMP}\n\n{CRASH}".replace("else None", "else 7").replace(
                "value < low", "low > value"
            )
        )
        await desk.taken("clamp")
        desk.put(CLAMP.replace("clamp", "bound").replace("<", ">"), "other.py")  # checked after it
        assert list((await desk.told()).noted) == ["bound"]
        assert RAISING.replace("NoneType", "int") in "\n".join(
            problem.message for problem in (await judged(desk, "initials")).problems
        )


async def test_a_save_of_another_file_puts_off_what_is_being_looked_at_and_loses_nothing(
    tmp_path: Path,
) -> None:
    async with edited(tmp_path) as desk:
        desk.put("import time\n\n\n" + LONG)
        await desk.taken("initials")
        await asyncio.sleep(0.6)
        desk.put(STRONG, "other.py")
        assert list((await desk.told()).noted) == ["initials"]
        desk.put("import time\n\n\n" + LONG.replace("Give the", "Say the"))
        await desk.taken("initials")
        await asyncio.sleep(0.6)
        desk.put(CLAMP.replace("clamp", "initials"))  # a newer version takes its place
        desk.put(CLAMP.replace("<", ">"), "other.py")
        assert "where `value` equals `low`" in (await desk.told()).noted["initials"]
        assert list((await desk.told()).noted) == ["clamp"]


async def test_a_close_while_looking_leaves_no_process_and_no_word(tmp_path: Path) -> None:
    before, tasks = (
        children(),
        asyncio.all_tasks(),
    )  # includes those of other tests in the same loop
    async with edited(tmp_path) as desk:
        desk.put("import time\n\n\n" + LONG)
        await desk.taken("initials")
        await asyncio.sleep(0.6)
        assert children() > before
    assert (children(), desk.rest()) == (before, [])
    assert asyncio.all_tasks() <= tasks


async def test_a_strict_team_is_warned_behind_a_save_and_refused_at_the_check(
    tmp_path: Path,
) -> None:
    async with edited(tmp_path, **{"gate.strict": True}) as desk:
        desk.put(CRASH)
        assert list((await desk.told()).noted) == ["initials"]
        verdict = await judged(desk, "initials")
        assert [(one.code, one.severity) for one in verdict.problems] == [("crashes", "warns")]
        assert desk.shop.names() == ["initials"]


async def test_of_many_functions_at_once_the_first_are_looked_at_and_the_rest_is_said(
    tmp_path: Path,
) -> None:
    functions = [f"def f{n}(a: int) -> int:\n    return a + {n}\n" for n in range(42)]
    async with edited(tmp_path) as desk:
        desk.put("\n\n".join(functions))
        event = await desk.told()
        assert list(event.noted) == ["f40 and 1 more"]
        assert event.noted["f40 and 1 more"].endswith(
            "(functions/mine.py): knapper functions check functions"
        )
