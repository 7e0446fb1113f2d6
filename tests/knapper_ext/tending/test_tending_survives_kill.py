"""A library under maintenance is intact after `kill -9` at any moment, and the changes can be undone."""

import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

from agent_core.workspace.workspace import Workspace
from knapper_ext.tending.upkeep import tending_of
from tests.kit import Repeat, Say, Script, scripted
from tests.kit.crash import Worker, kill_at_work
from tests.kit.desk import Desk, desk
from tests.knapper_ext.tending.tending_work import tend
from tests.knapper_ext.tending.test_tending import GENERAL, with_copies, with_fees

NOWHERE = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Tended:
    """What maintenance changes: removed functions, a caller of one that stays, and a call of it with its value."""

    make: Callable[..., Awaitable[Desk]]
    gone: frozenset[str]
    caller: str
    arguments: dict[str, Any]
    value: int


COPIES = Tended(with_copies, frozenset({"vowel_count"}), "vowels_twice", {"text": "queue"}, 8)
SPECIAL = Tended(
    with_fees, frozenset({"fee_in_town", "fee_abroad"}), "fees", {"many": [16, 20]}, 24
)


async def whole_after(root: Path, tended: Tended) -> tuple[bool, dict[str, str]]:
    """Return whether all removals are done, and the sources after undoing them."""
    async with Workspace.open(root, flags={"model.base_url": NOWHERE}) as workspace:
        workshop = workspace.functions
        assert not workshop.rejected()
        names = set(workshop.names())
        assert (await workshop.call(tended.caller, tended.arguments)).value == tended.value
        done = [row for row in await workspace._store.tended() if not row.undone]
        assert tended.gone - names == {row.function for row in done if row.kind == "deleted"}
        tending = tending_of(workshop, workspace.settings)
        assert all(step.undone for step in await tending.undo())
        return not tended.gone & names, {
            name: workshop.plans.source(name) for name in workshop.names()
        }


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "tended", [pytest.param(COPIES, id="copies"), pytest.param(SPECIAL, id="special ones")]
)
async def test_a_library_is_whole_after_tending_was_killed_at_any_instant(
    tmp_path: Path, tended: Tended
) -> None:
    (kept := tmp_path / "kept").mkdir()
    async with AsyncExitStack() as stack:

        async def open_desk(script: Script, **settings: Any) -> Desk:
            model = stack.enter_context(scripted(script))
            return await stack.enter_async_context(desk(kept, model, **settings))

        made = await tended.make(open_desk)
        before = {
            name: made.workspace.functions.plans.source(name)
            for name in made.workspace.functions.names()
        }
    chance, ends, rounds = random.Random(os.getpid()), list[bool](), range(101)
    with scripted([Repeat(Say(f"```\n{GENERAL}```"))], models=["strong"]) as maker:
        for number in rounds:
            root = copytree(kept, tmp_path / f"killed{number}", symlinks=True)
            worker = Worker(tend, f"{root} {maker.base_url if tended is SPECIAL else NOWHERE}")
            if number != rounds[-1]:
                kill_at_work(worker, chance.uniform(0, 4))
            else:
                worker.reports()
            is_gone, after = await whole_after(root, tended)
            ends.append(is_gone)
            assert after == before, number
            rmtree(root)
    assert ends[-1], "a run that is not killed does all of it"
