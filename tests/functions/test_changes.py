"""Each operation on functions: its result, its refusals, and that no save of a human is lost from plan to change."""

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agent_core.base.errors import LostLease, StorageError, UsageError, WorkspaceError
from agent_core.base.events import FunctionsChanged
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import Author, FunctionService, PlannedChange
from agent_core.functions.service.judgment import Judgment
from agent_core.registry.source import hash_of
from agent_core.storage import STATE, SetManifest, only_writer
from tests.functions.support import USER, Room, named, room
from tests.kit.desk import VOWELS
from tests.kit.program import knapper

AGENT = Author("agent", turn="t1", model="m1")
FLAWED = VOWELS.replace("    5\n", "    4\n")
RAISING = VOWELS.replace("return sum", "return 1 / 0 + sum")
MADE = {"by": ["agent"], "verdict": ("agent", "trial"), "pending": False, "open": 0}
REFUSED: dict[str, Any] = {"by": [], "verdict": None, "pending": True, "open": 0}


def codes(verdict: Judgment) -> set[str]:
    return {each.code for each in verdict.refusals}


async def test_what_imports_from_a_module_of_the_workspace_joins_the_others(here: Room) -> None:
    await here.shop.create("count_vowels", VOWELS, "letters")
    calling = VOWELS.replace("count_vowels", "count_all").replace(
        "Count the vowels", "Count twice the vowels"
    )
    calling = calling.replace("    5\n", "    10\n").replace(
        "    0\n", "    0\n    >>> count_all('a')\n    2\n"
    )
    body = calling.rpartition("    return")[0] + "    return 2 * count_vowels(text)\n"
    verdict = await here.shop.create("count_all", f"from letters import count_vowels\n\n\n{body}")
    assert (verdict.admitted, verdict.module) == (True, "grown"), verdict.problems


async def test_a_candidate_that_may_not_join_stands_refused_and_nothing_is_written(
    here: Room,
) -> None:
    for name, code, module, problem in (
        ("count_vowels", "def count_vowels(:\n", "letters", "syntax-error"),
        ("count_vowels", FLAWED, "letters", "example-disagrees"),
        ("count_vowels", RAISING, "letters", "example-raises"),
        ("count_more", VOWELS, "letters", "wrong-name"),
        ("count_vowels", VOWELS, "../letters", "bad-module"),
        ("count_vowels", VOWELS, "\ufb01x", "bad-module"),
        ("create_function", named("create_function"), "letters", "bad-name"),
        ("core_memory_append", named("core_memory_append"), "letters", "bad-name"),
    ):
        verdict = await here.shop.create(name, code, module, author=AGENT)
        assert (verdict.admitted, problem in codes(verdict)) == (False, True), (
            problem,
            verdict.problems,
        )
        assert (here.leftovers(), here.shop.names()) == ([], [])
        assert await here.held(name) == REFUSED
        assert getattr(await here.shop.pending(name), "code", None) == code


async def test_a_name_that_is_taken_is_refused_with_its_place_and_nothing_is_kept(
    here: Room,
) -> None:
    await here.save(VOWELS)
    verdict = await here.shop.create(
        "count_vowels", VOWELS.replace("vowels in", "letters in"), "other"
    )
    assert (codes(verdict), verdict.problems[0].where.path) == (
        {"name-taken"},
        "functions/letters.py",
    )
    assert (here.leftovers(), await here.shop.pending("count_vowels")) == (["letters.py"], None)


async def test_each_change_keeps_all_around_it_word_for_word(here: Room) -> None:
    text = f"# mine\nLIMIT = 3  # kept\n\n\n{VOWELS}"
    await here.save(text)
    assert (
        await here.shop.create("count_more", named("count_more"), "letters", author=AGENT)
    ).admitted
    assert here.letters.read_text() == f"{text}\n\n{named('count_more')}"
    assert (await here.held("count_vowels"))["verdict"] == ("human", "trial")
    assert (await here.held("count_more"))["verdict"] == ("agent", "trial")
    verdict = await here.shop.edit("count_vowels", '"aeiou"', '"uoiea"', author=AGENT)
    assert (verdict.admitted, verdict.fixes) == (True, ())
    assert here.letters.read_text() == f"{text}\n\n{named('count_more')}".replace(
        '"aeiou"', '"uoiea"', 1
    )
    new = VOWELS.replace("Count the", "Number the")
    assert (await here.shop.replace("count_vowels", new, author=AGENT)).admitted
    assert here.letters.read_text() == f"{text}\n\n{named('count_more')}".replace(VOWELS, new)
    assert (await here.held("count_vowels"))["by"] == ["human", "agent", "agent", "agent"]
    assert codes(await here.shop.replace("count_vowels", FLAWED)) == {"example-disagrees"}
    assert (await here.shop.delete("count_vowels", author=AGENT)).deleted == "count_vowels"
    assert here.letters.read_text() == f"# mine\nLIMIT = 3  # kept\n\n\n{named('count_more')}"
    assert here.shop.names() == ["count_more"]
    assert (await here.held("count_more"))["by"] == ["human", *["agent"] * 4]


async def test_a_refused_candidate_is_fixed_by_an_edit_or_by_confirming_what_came_back(
    here: Room,
) -> None:
    for fixing in ("edit", "confirm"):
        await here.shop.create("count_vowels", FLAWED, "letters", author=AGENT)
        if fixing == "edit":
            verdict = await here.shop.edit("count_vowels", "    4\n", "    5\n", author=AGENT)
        else:
            verdict = await here.shop.confirm("count_vowels", author=AGENT)
            assert verdict.confirmed == ('count_vowels("queueing")',)
        assert verdict.admitted
        assert here.letters.read_text() == VOWELS
        versions = 1 if fixing == "edit" else 3  # made, deleted, and made again
        assert await here.held("count_vowels") == {**MADE, "by": ["agent"] * versions}
        await here.shop.delete("count_vowels", author=AGENT)
        assert (here.leftovers(), here.shop.names(), await here.store.manifest()) == ([], [], {})


async def test_an_edit_that_cannot_be_leaves_the_function_as_it_was(here: Room) -> None:
    await here.save(VOWELS)
    for old, new, is_pending in (
        ("nowhere", "x", False),
        ("text", "x", False),  # more than once
        ("", "x", False),
        ("aeiou", "aeio", True),  # its examples break
        ("count_vowels(text:", "count_others(text:", True),
    ):
        assert not (await here.shop.edit("count_vowels", old, new)).admitted, old
        assert (here.letters.read_text(), (await here.held("count_vowels"))["pending"]) == (
            VOWELS,
            is_pending,
        ), old
        if is_pending:
            await here.shop.drop("count_vowels")
    assert (await here.shop.call("count_vowels", {"text": "queueing"})).value == 5


async def test_what_cannot_be_confirmed_is_refused(here: Room) -> None:
    for code in (None, RAISING):  # nothing waits; more is wrong than a result
        if code:
            await here.shop.create("count_vowels", code, "letters")
        assert not (await here.shop.confirm("count_vowels")).admitted
        assert (here.leftovers(), here.shop.names()) == ([], [])
        assert (await here.held("count_vowels"))["pending"] is bool(code)


async def test_a_function_that_another_uses_is_not_deleted(here: Room) -> None:
    await here.save(f"{VOWELS}\n\n{USER}")
    with pytest.raises(WorkspaceError, match="these use it: count_twice"):
        await here.shop.delete("count_vowels")
    assert here.letters.read_text() == f"{VOWELS}\n\n{USER}"


async def test_a_verb_on_a_function_that_is_not_there_is_a_wrong_use(shop: FunctionService) -> None:
    given: dict[str, list[Any]] = {"edit": ["a", "b"], "replace": [VOWELS], "call": [{}]}

    async def act(verb: str) -> None:
        await getattr(shop, verb)("nothing", *given.get(verb, []))

    for verb in ("edit", "replace", "delete", "introspect", "call", "test", "source", "path_of"):
        with pytest.raises(UsageError, match="There is no function `nothing`"):
            await act(verb)


async def test_a_list_holds_what_was_asked_for(here: Room) -> None:
    await here.save(f"{VOWELS}\n\n{named('count_more')}")
    (here.root / "functions/web").mkdir()
    await here.save(
        "def half(n: int) -> float:\n    return n / 2\n", here.root / "functions/web/sums.py"
    )
    wanted: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["count_more", "count_vowels", "half"]),
        ({"pattern": "COUNT_*"}, ["count_more", "count_vowels"]),
        ({"pattern": "vowels in"}, ["count_more", "count_vowels"]),
        ({"module": "web"}, ["half"]),
        ({"module": "we"}, []),
        ({"standing": "draft"}, ["half"]),
    ]
    for asked, found in wanted:
        assert [row.name for row in (await here.shop.list(**asked)).functions] == found, asked


async def test_a_function_laid_open_names_its_place_users_and_calls(here: Room) -> None:
    await here.save(f"# mine\n{VOWELS}\n\n{USER}")
    for text in ("queueing", "x"):
        await here.shop.call("count_vowels", {"text": text})
    found = await here.shop.introspect("count_vowels")
    assert (found.function.path, found.function.line, found.callers) == (
        "functions/letters.py",
        2,
        ("count_twice",),
    )
    assert (found.source + "\n", found.standing) == (VOWELS, "trial")
    assert (found.statistics.totals.calls, found.statistics.totals.failed) == (2, 0)
    assert (await here.shop.introspect("count_twice")).callees == ("count_vowels",)
    assert here.shop.source("count_vowels") == f"# mine\n{VOWELS}"
    assert here.shop.path_of("count_vowels") == (here.letters, 2)


async def test_a_call_gives_its_outcome_and_is_counted_unless_its_arguments_do_not_fit(
    here: Room,
) -> None:
    await here.save(VOWELS.replace("    return", '    assert text != "fail"\n    return'))
    given: Any
    for given in ("{", "[]", {"txt": 1}, {}):
        with pytest.raises(UsageError):
            await here.shop.call("count_vowels", given)
    for given, outcome in (
        ({"text": "aha"}, "returned"),
        ('{"text": "aha"}', "returned"),
        ({"text": "fail"}, "raised"),
    ):
        assert (await here.shop.call("count_vowels", given)).outcome == outcome
    totals = (await here.shop.introspect("count_vowels")).statistics.totals
    assert (totals.calls, totals.failed) == (3, 1)


async def test_a_test_runs_each_example_anew_and_shows_both_sides(here: Room) -> None:
    await here.save(FLAWED)
    first, second = (await here.shop.test("count_vowels")).examples
    assert (first.agreed, first.expected, first.returned) == (False, "4", "5")
    assert (second.agreed, second.call) == (True, 'count_vowels("rhythm")')
    report = (await here.shop.test("count_vowels", {"text": "a"})).outcome
    assert report is not None
    assert report.value == 1


async def test_a_save_that_cannot_be_taken_is_told_to_listeners(here: Room) -> None:
    heard: list[FunctionsChanged] = []
    here.shop.on_change(heard.append)
    lock = here.root / STATE / "write.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    await here.save(VOWELS)
    assert ["write.lock" in text for event in heard for text in event.rejected] == [True]
    assert here.shop.names() == []
    lock.rmdir()
    await here.shop.reload()
    assert here.shop.names() == ["count_vowels"]


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
    return await here.shop.plans.edit("count_vowels", [("Count the", "Number the")], "", AGENT)


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
        pytest.param(edit, MINE, MINE.replace(VOWELS, NEW), id="edit"),
        pytest.param(delete, f"{VOWELS}\n\n{named('mine')}", named("mine"), id="delete"),
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
    assert [row.by for row in await here.store.module_history("letters")] == [
        "human",
        "human",
        "agent",
    ]


@pytest.mark.parametrize(
    ("verb", "saved", "said"),
    [
        pytest.param(
            delete, CHANGED, "itself was changed by somebody", id="delete-a-changed-function"
        ),
        pytest.param(
            replace, f"# new\n{VOWELS}", "itself was changed by somebody", id="a-comment-above-it"
        ),
        pytest.param(
            replace, MORE, "itself was changed by somebody", id="replace-a-function-that-went"
        ),
        pytest.param(create, f"{VOWELS}\n\n{MORE}", "exists already", id="create-a-name-that-came"),
        pytest.param(
            delete, f"{VOWELS}\n\n{USER}", "use it: count_twice", id="delete-what-is-used-now"
        ),
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


async def test_a_save_that_was_rejected_is_never_written_over(here: Room) -> None:
    await here.save(VOWELS)
    plans = [await verb(here) for verb in (create, delete)]
    here.letters.write_text(broken := "def (:\n")
    for plan in plans:
        done = await carried_out(here, plan)
        assert (done.outcome, "because it was rejected" in done.text) == ("refused", True)
    assert "because it was rejected" in (await carried_out(here, await create(here))).text
    with pytest.raises(WorkspaceError, match="because it was rejected"):
        await delete(here)
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
    here.letters.write_text(here.letters.read_text().replace(CHANGED, VOWELS))
    with pytest.raises(WorkspaceError, match="itself was changed"):
        await here.shop.delete("count_vowels")
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
    first, second = (
        await replace(here),
        await here.shop.plans.replace("count_vowels", CHANGED, "", AGENT),
    )
    assert (await carried_out(here, first)).outcome == "returned"
    late = await carried_out(here, second)
    assert isinstance(late.detail, Judgment)
    assert (late.outcome, late.detail.admitted) == ("refused", False)
    assert [each.code for each in late.detail.problems][-1:] == ["stale-file"]
    assert here.letters.read_text() == NEW
    await agree(here)


async def test_what_another_process_made_meanwhile_is_kept_and_known_here(here: Room) -> None:
    await here.save(VOWELS)
    plan = await edit(here)
    async with room(here.root, here.sandbox) as other:
        assert (await other.shop.create("other", named("other"), "letters")).admitted
    assert (await carried_out(here, plan)).outcome == "returned"
    assert "other" in here.shop.names()
    await agree(here)


async def test_rows_that_another_process_changed_are_read_anew_and_the_change_made(
    here: Room,
) -> None:
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


@pytest.mark.parametrize(
    ("verb", "put"),
    [(replace, link_away), (delete, link_within), (replace, folder), (delete, pipe)],
)
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
    assert (verdict.admitted, verdict.standing, verdict.problems[-1].code) == (
        False,
        "",
        "workspace",
    )
    assert "cannot be written" in verdict.problems[-1].message
    assert (here.leftovers(), here.shop.names()) == (["web"], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_read_only_folder_refuses_the_change(here: Room) -> None:
    (here.root / "functions").chmod(0o500)
    assert not (await here.shop.create("count_more", MORE, "letters")).admitted
    await agree(here)


@pytest.mark.parametrize(("before", "error"), [(None, StorageError("full")), (VOWELS, LostLease())])
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


@pytest.mark.parametrize("pauses", [3, 30])
async def test_a_verb_that_is_cancelled_makes_all_of_its_change_or_nothing(
    here: Room, pauses: int
) -> None:
    await here.save(VOWELS)
    making = asyncio.create_task(here.shop.create("count_more", MORE, "letters"))
    for _ in range(pauses):
        await asyncio.sleep(0.001 if pauses > 10 else 0)
    making.cancel()
    await asyncio.wait([making])
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(
        [task for task in others if "carry_out" in repr(task.get_coro())] or [making]
    )
    await agree(here)
    assert here.letters.read_text() in (VOWELS, f"{VOWELS}\n\n{MORE}")


def created(root: Path, name: str) -> tuple[int, str]:
    """Run `knapper functions create` in a subprocess; return its exit code and output."""
    words = ("functions", "create", "--module", "letters", "--file", "-", name)
    done = knapper(*words, cwd=root, given=named(name))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_processes_that_create_at_once_on_one_module_all_succeed(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    with ThreadPoolExecutor(3) as at_once:
        starts = (asyncio.wrap_future(at_once.submit(created, tmp_path, f"f{n}")) for n in range(3))
        done = await asyncio.gather(*starts)
    assert [code for code, _ in done] == [0] * 3, done
    async with room(tmp_path, sandbox) as after:
        assert list(after.shop.names()) == sorted(f"f{n}" for n in range(3))
        assert await after.store.open_writes() == []


async def test_a_change_that_waited_too_long_is_refused_and_nothing_is_written(
    here: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.storage.folder._PATIENCE_S", 0.05)
    async with only_writer(here.root / STATE):
        verdict = await here.shop.create("count_vowels", VOWELS, "letters")
    assert (verdict.admitted, verdict.problems[-1].code) == (False, "no-turn")
    assert (here.leftovers(), here.shop.names()) == ([], [])
