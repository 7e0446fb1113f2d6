"""Between planning and applying a change, no save is lost, and file, rows and registry agree."""

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_core.base.errors import LostLease, StorageError, WorkspaceError
from agent_core.functions.service import Author, PlannedChange
from agent_core.functions.service.judgment import Judgment
from agent_core.registry.source import hash_of
from agent_core.storage import SetManifest
from tests.functions.support import USER, Room, named, room
from tests.kit.desk import VOWELS

pytestmark = pytest.mark.asyncio(loop_scope="module")
AGENT = Author("agent")
MORE = named("count_more")
NEW = VOWELS.replace("Count the", "Number the")
MINE = f"# mine\nLIMIT = 3\n\n\n{VOWELS}"
CHANGED = VOWELS.replace("Count the", "Tell the")

Verb: TypeAlias = Callable[[Room], Awaitable[PlannedChange]]


async def create(here: Room) -> PlannedChange:
    return await here.shop.plan_create("count_more", MORE, "letters", "", AGENT)


async def replace(here: Room) -> PlannedChange:
    return await here.shop.plans.replace("count_vowels", NEW, "", AGENT)


async def edit(here: Room) -> PlannedChange:
    return await here.shop.plans.edit("count_vowels", "Count the", "Number the", "", AGENT)


async def delete(here: Room) -> PlannedChange:
    return await here.shop.plans.delete("count_vowels", AGENT)


async def carried_out(here: Room, plan: PlannedChange) -> PlannedChange:
    async def record(made: PlannedChange) -> None:
        await here.store.apply(made.writes)

    return await here.shop.carry_out(plan, record, AGENT)


async def agree(here: Room) -> None:
    """Check that the file, the rows and the registry have the same text, and no write is open."""
    text = here.letters.read_text() if here.letters.exists() else None
    held = here.shop.registry.snapshot().modules.get("letters")
    manifest = (await here.store.manifest()).get("letters")
    assert (held.text if held else None) == text
    assert manifest == (hash_of(text) if text is not None else None)
    assert await here.store.open_writes() == []


@pytest.mark.parametrize(
    ("verb", "saved", "result"),
    [
        pytest.param(create, MINE, f"{MINE}\n\n{MORE}", id="create"),
        pytest.param(replace, MINE, MINE.replace(VOWELS, NEW), id="replace"),
        pytest.param(edit, MINE, MINE.replace(VOWELS, NEW), id="edit"),
        pytest.param(delete, f"{VOWELS}\n\n{named('mine')}", named("mine"), id="delete"),
        pytest.param(create, "LIMIT = 3\n", f"LIMIT = 3\n\n\n{MORE}", id="create-after-all-went"),
    ],
)
async def test_a_change_goes_on_top_of_what_a_human_saved_after_it_was_planned(
    here: Room, verb: Verb, saved: str, result: str
) -> None:
    await here.save(VOWELS)
    plan = await verb(here)
    here.letters.write_text(saved)
    done = await carried_out(here, plan)
    assert (done.outcome, here.letters.read_text()) == ("returned", result)
    await agree(here)
    assert [row.by for row in await here.store.module_history("letters")] == ["human", "human", "agent"]


@pytest.mark.parametrize(
    ("verb", "saved", "said"),
    [
        pytest.param(replace, CHANGED, "itself was changed by somebody", id="replace-a-changed-function"),
        pytest.param(edit, CHANGED, "itself was changed by somebody", id="edit-a-changed-function"),
        pytest.param(delete, CHANGED, "itself was changed by somebody", id="delete-a-changed-function"),
        pytest.param(replace, f"# new\n{VOWELS}", "itself was changed by somebody", id="a-comment-above-it"),
        pytest.param(replace, MORE, "itself was changed by somebody", id="replace-a-function-that-went"),
        pytest.param(create, f"{VOWELS}\n\n{MORE}", "exists already", id="create-a-name-that-came"),
        pytest.param(delete, f"{VOWELS}\n\n{USER}", "use it: count_twice", id="delete-what-is-used-now"),
    ],
)
async def test_a_change_that_a_humans_save_made_wrong_is_refused_and_the_save_stays(
    here: Room, verb: Verb, saved: str, said: str
) -> None:
    await here.save(VOWELS)
    plan = await verb(here)
    here.letters.write_text(saved)
    done = await carried_out(here, plan)
    assert (done.outcome, here.letters.read_text()) == ("refused", saved)
    assert said in done.text
    await agree(here)


@pytest.mark.parametrize("verb", [create, replace, delete])
@pytest.mark.parametrize("is_late", [True, False], ids=["after-the-plan", "before-the-plan"])
async def test_a_save_that_was_rejected_is_never_written_over(here: Room, verb: Verb, is_late: bool) -> None:
    await here.save(VOWELS)
    broken = "def (:\n"
    if is_late:
        plan = await verb(here)
        here.letters.write_text(broken)
        done = await carried_out(here, plan)
        assert (done.outcome, "because it was rejected" in done.text) == ("refused", True)
    else:
        here.letters.write_text(broken)
        expected = pytest.raises(WorkspaceError, match="because it was rejected") if verb is delete else nullcontext()
        with expected:
            assert "because it was rejected" in (await carried_out(here, await verb(here))).text
    assert (here.letters.read_text(), here.shop.names()) == (broken, ["count_vowels"])
    assert await here.store.open_writes() == []


async def test_a_save_that_nobody_has_seen_is_taken_before_a_change_is_planned(here: Room) -> None:
    await here.save(VOWELS)
    here.letters.write_text(MINE)
    assert (await here.shop.create("count_more", MORE, "letters")).admitted
    assert here.letters.read_text() == f"{MINE}\n\n{MORE}"
    here.letters.write_text(here.letters.read_text().replace(VOWELS, CHANGED))
    with pytest.raises(WorkspaceError, match="itself was changed"):
        await here.shop.replace("count_vowels", NEW)
    await agree(here)


async def test_a_file_that_was_deleted_meanwhile_is_begun_anew_or_left_gone(here: Room) -> None:
    await here.save(VOWELS)
    made, changed = await create(here), await replace(here)
    here.letters.unlink()
    assert (await carried_out(here, changed)).outcome == "refused"
    assert here.leftovers() == []
    assert (await carried_out(here, made)).outcome == "returned"
    assert here.letters.read_text() == MORE
    await agree(here)


async def test_plans_that_were_made_side_by_side_all_come_to_be(here: Room) -> None:
    names = [f"f{n}" for n in range(3)]
    plans = [await here.shop.plan_create(name, named(name), "letters", "", AGENT) for name in names]
    done = await asyncio.gather(*(carried_out(here, plan) for plan in plans))
    assert [plan.outcome for plan in done] == ["returned"] * 3
    assert here.shop.names() == names
    await agree(here)


async def test_the_second_of_two_replacements_of_one_function_is_refused(here: Room) -> None:
    await here.save(VOWELS)
    first, second = await replace(here), await here.shop.plans.replace("count_vowels", CHANGED, "", AGENT)
    assert (await carried_out(here, first)).outcome == "returned"
    late = await carried_out(here, second)
    assert isinstance(late.detail, Judgment)
    assert (late.outcome, late.detail.admitted) == ("refused", False)
    assert [each.code for each in late.detail.problems][-1:] == ["stale-file"]
    assert here.letters.read_text() == NEW
    await agree(here)


@pytest.mark.parametrize("verb", [create, replace, edit])
async def test_what_another_process_made_meanwhile_is_kept_and_known_here(here: Room, verb: Verb) -> None:
    await here.save(VOWELS)
    plan = await verb(here)
    async with room(here.root, here.sandbox) as other:
        assert (await other.shop.create("other", named("other"), "letters")).admitted
    assert (await carried_out(here, plan)).outcome == "returned"
    assert "other" in here.shop.names()
    await agree(here)


async def test_a_deletion_that_comes_too_late_is_said_and_is_no_deletion(here: Room) -> None:
    await here.save(VOWELS)
    async with room(here.root, here.sandbox) as other:
        await other.shop.replace("count_vowels", NEW)
        with pytest.raises(WorkspaceError, match="itself was changed"):
            await here.shop.delete("count_vowels")
    assert here.letters.read_text() == NEW
    await agree(here)


async def test_rows_that_another_process_changed_are_read_anew_and_the_change_made(here: Room) -> None:
    await here.save(VOWELS)
    plan = await create(here)
    await here.store.apply([SetManifest("letters", hash_of(VOWELS), None)])
    assert (await carried_out(here, plan)).outcome == "returned"
    assert here.letters.read_text() == f"{VOWELS}\n\n{MORE}"
    await agree(here)


def link_away(here: Room) -> None:
    (here.root / "outside.py").write_text(VOWELS)
    here.letters.unlink()
    here.letters.symlink_to(here.root / "outside.py")


def link_within(here: Room) -> None:
    here.letters.rename(here.letters.with_name("real.py"))
    here.letters.symlink_to("real.py")


def folder(here: Room) -> None:
    here.letters.unlink()
    here.letters.mkdir()


def pipe(here: Room) -> None:
    here.letters.unlink()
    os.mkfifo(here.letters)


@pytest.mark.parametrize("verb", [replace, delete])
@pytest.mark.parametrize("put", [link_away, link_within, folder, pipe], ids=lambda put: put.__name__)
async def test_what_was_put_in_the_place_of_the_file_stays_and_nothing_goes_through_it(
    here: Room, verb: Verb, put: Callable[[Room], None]
) -> None:
    await here.save(VOWELS)
    plan = await verb(here)
    put(here)
    before = {path: path.read_text() for path in here.root.rglob("*.py") if path.is_file()}
    assert (await carried_out(here, plan)).outcome == "refused"
    assert {path: path.read_text() for path in here.root.rglob("*.py") if path.is_file()} == before
    assert here.letters.is_symlink() == put.__name__.startswith("link")
    assert await here.store.open_writes() == []


async def test_a_module_below_a_file_cannot_be_written_and_says_so(here: Room) -> None:
    (here.root / "functions/web").write_text("")
    verdict = await here.shop.create("count_more", MORE, "web.letters")
    assert (verdict.admitted, verdict.standing, verdict.problems[-1].code) == (False, "", "workspace")
    assert "cannot be written" in verdict.problems[-1].message
    assert (here.leftovers(), here.shop.names()) == (["web"], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_read_only_folder_refuses_the_change(here: Room) -> None:
    (here.root / "functions").chmod(0o500)
    assert not (await here.shop.create("count_more", MORE, "letters")).admitted
    await agree(here)


@pytest.mark.parametrize("before", [None, VOWELS], ids=["new-file", "file-that-was-there"])
@pytest.mark.parametrize("error", [StorageError("full"), LostLease()], ids=repr)
async def test_a_change_that_cannot_be_recorded_is_taken_back(
    here: Room, before: str | None, error: BaseException
) -> None:
    if before:
        await here.save(before)
    plan = await (replace if before else create)(here)

    async def record(made: PlannedChange) -> None:
        assert here.letters.read_text() == (NEW if before else MORE)
        raise error

    with pytest.raises(type(error)):
        await here.shop.carry_out(plan, record, AGENT)
    await agree(here)
    assert here.letters.exists() is bool(before)


async def test_a_disk_that_takes_no_more_changes_nothing(here: Room) -> None:
    await here.save(VOWELS)
    code = MORE.replace("    return", f"    # {'long ' * 8_000}\n    return")
    plan = await here.shop.plan_create("count_more", code, "letters", "", AGENT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
    try:
        with pytest.raises(StorageError):
            await carried_out(here, plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (here.letters.read_text(), here.leftovers()) == (VOWELS, ["letters.py"])
    await agree(here)


@pytest.mark.parametrize("pauses", [0, 3, 30, 100])
async def test_a_verb_that_is_cancelled_makes_all_of_its_change_or_nothing(here: Room, pauses: int) -> None:
    await here.save(VOWELS)
    making = asyncio.create_task(here.shop.create("count_more", MORE, "letters"))
    for _ in range(pauses):
        await asyncio.sleep(0.001 if pauses > 10 else 0)
    making.cancel()
    await asyncio.wait([making])
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait([task for task in others if "carry_out" in repr(task.get_coro())] or [making])
    await agree(here)
    assert here.letters.read_text() in (VOWELS, f"{VOWELS}\n\n{MORE}")


async def test_a_plan_that_nobody_carries_out_leaves_no_trace(here: Room, tmp_path: Path) -> None:
    await here.save(VOWELS)
    for verb in (create, replace, edit, delete):
        assert (await verb(here)).change is not None
    assert (here.letters.read_text(), here.leftovers()) == (VOWELS, ["letters.py"])
    assert len(await here.store.module_history("letters")) == 1
    await agree(here)
