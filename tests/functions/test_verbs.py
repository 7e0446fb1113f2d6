"""Each operation on functions: its success, each rejection, and the resulting file and store."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import UsageError, WorkspaceError
from agent_core.base.events import FunctionsChanged
from agent_core.functions.service import Author, FunctionService
from agent_core.functions.service.judgment import Judgment
from agent_core.storage import STATE
from tests.functions.support import USER, Room, named
from tests.kit.desk import VOWELS

pytestmark = pytest.mark.asyncio(loop_scope="module")
AGENT = Author("agent", turn="t1", model="m1")
FLAWED = VOWELS.replace("    5\n", "    4\n")
RAISING = VOWELS.replace("return sum", "return 1 / 0 + sum")
MADE = {"by": ["agent"], "verdict": ("agent", "trial"), "pending": False, "open": 0}
REFUSED: dict[str, Any] = {"by": [], "verdict": None, "pending": True, "open": 0}


def codes(verdict: Judgment) -> set[str]:
    return {each.code for each in verdict.refusals}


async def test_a_created_function_is_in_its_file_and_in_the_rows_of_its_author(here: Room) -> None:
    verdict = await here.shop.create("count_vowels", VOWELS, "functions.letters.py", reason="asked", author=AGENT)
    assert (verdict.admitted, verdict.standing, verdict.module) == (True, "trial", "letters")
    assert (here.letters.read_text(), here.leftovers()) == (VOWELS, ["letters.py"])
    assert await here.held("count_vowels") == MADE
    (version,) = (await here.shop.introspect("count_vowels")).versions
    assert (version.turn, version.model, version.reason) == ("t1", "m1", "asked")


async def test_what_imports_from_a_module_of_the_workspace_joins_the_others(here: Room) -> None:
    await here.shop.create("count_vowels", VOWELS, "letters")
    calling = VOWELS.replace("count_vowels", "count_all").replace("Count the vowels", "Count twice the vowels")
    calling = calling.replace("    5\n", "    10\n").replace("    0\n", "    0\n    >>> count_all('a')\n    2\n")
    body = calling.rpartition("    return")[0] + "    return 2 * count_vowels(text)\n"
    verdict = await here.shop.create("count_all", f"from letters import count_vowels\n\n\n{body}")
    assert (verdict.admitted, verdict.module) == (True, "grown"), verdict.problems


@pytest.mark.parametrize(
    ("name", "code", "module", "problem"),
    [
        pytest.param("count_vowels", "def count_vowels(:\n", "letters", "syntax-error", id="syntax"),
        pytest.param("count_vowels", FLAWED, "letters", "example-disagrees", id="example"),
        pytest.param("count_vowels", RAISING, "letters", "example-raises", id="raises"),
        pytest.param("count_more", VOWELS, "letters", "wrong-name", id="other-name"),
        pytest.param("count_vowels", VOWELS, "../letters", "bad-module", id="path"),
        pytest.param("count_vowels", VOWELS, "\ufb01x", "bad-module", id="ligature"),
        pytest.param("create_function", named("create_function"), "letters", "bad-name", id="reserved"),
        pytest.param("core_memory_append", named("core_memory_append"), "letters", "bad-name", id="of-memory"),
    ],
)
async def test_a_candidate_that_may_not_join_stands_refused_and_nothing_is_written(
    here: Room, name: str, code: str, module: str, problem: str
) -> None:
    verdict = await here.shop.create(name, code, module, author=AGENT)
    assert (verdict.admitted, problem in codes(verdict)) == (False, True)
    assert (here.leftovers(), here.shop.names()) == ([], [])
    assert await here.held(name) == REFUSED
    assert getattr(await here.shop.pending(name), "code", None) == code


async def test_a_name_that_is_taken_is_refused_with_its_place_and_nothing_is_kept(here: Room) -> None:
    await here.save(VOWELS)
    verdict = await here.shop.create("count_vowels", VOWELS.replace("vowels in", "letters in"), "other")
    assert (codes(verdict), verdict.problems[0].where.path) == ({"name-taken"}, "functions/letters.py")
    assert (here.leftovers(), await here.shop.pending("count_vowels")) == (["letters.py"], None)


async def test_a_function_joins_beside_what_a_human_wrote_word_for_word(here: Room) -> None:
    text = f"# mine\nLIMIT = 3  # kept\n\n\n{VOWELS}"
    await here.save(text)
    assert (await here.shop.create("count_more", named("count_more"), "letters", author=AGENT)).admitted
    assert here.letters.read_text() == f"{text}\n\n{named('count_more')}"
    assert (await here.held("count_vowels"))["verdict"] == ("human", "trial")
    assert (await here.held("count_more"))["verdict"] == ("agent", "trial")


async def test_an_edit_changes_one_place_of_a_function(here: Room) -> None:
    await here.save(f"# mine\n{VOWELS}")
    verdict = await here.shop.edit("count_vowels", '"aeiou"', '"uoiea"', author=AGENT)
    assert (verdict.admitted, verdict.fixes) == (True, ())
    assert here.letters.read_text() == f"# mine\n{VOWELS}".replace('"aeiou"', '"uoiea"')
    assert (await here.held("count_vowels"))["by"] == ["human", "agent"]


async def test_an_edit_fixes_the_candidate_that_stands_refused(here: Room) -> None:
    await here.shop.create("count_vowels", FLAWED, "letters", author=AGENT)
    assert (await here.shop.edit("count_vowels", "    4\n", "    5\n", author=AGENT)).admitted
    assert (here.letters.read_text(), await here.held("count_vowels")) == (VOWELS, MADE)


@pytest.mark.parametrize(
    ("old", "new", "is_pending"),
    [
        pytest.param("nowhere", "x", False, id="not-there"),
        pytest.param("text", "x", False, id="more-than-once"),
        pytest.param("", "x", False, id="empty"),
        pytest.param("aeiou", "aeio", True, id="examples-break"),
        pytest.param("count_vowels(text:", "count_others(text:", True, id="renamed"),
    ],
)
async def test_an_edit_that_cannot_be_leaves_the_function_as_it_was(
    here: Room, old: str, new: str, is_pending: bool
) -> None:
    await here.save(VOWELS)
    assert not (await here.shop.edit("count_vowels", old, new)).admitted
    assert (here.letters.read_text(), (await here.held("count_vowels"))["pending"]) == (VOWELS, is_pending)
    assert (await here.shop.call("count_vowels", {"text": "queueing"})).value == 5


async def test_a_replaced_function_keeps_its_place_and_its_neighbours(here: Room) -> None:
    await here.save(f"{VOWELS}\n\n{named('count_more')}")
    new = VOWELS.replace("Count the", "Number the")
    assert (await here.shop.replace("count_vowels", new, author=AGENT)).admitted
    assert here.letters.read_text() == f"{new}\n\n{named('count_more')}"
    assert (await here.held("count_more"))["verdict"] == ("human", "trial")


async def test_a_replacement_that_is_refused_leaves_the_function_running(here: Room) -> None:
    await here.save(VOWELS)
    assert codes(await here.shop.replace("count_vowels", FLAWED)) == {"example-disagrees"}
    assert here.letters.read_text() == VOWELS


async def test_confirming_writes_what_came_back_into_the_examples(here: Room) -> None:
    await here.shop.create("count_vowels", FLAWED, "letters", author=AGENT)
    verdict = await here.shop.confirm("count_vowels", author=AGENT)
    assert (verdict.admitted, verdict.confirmed) == (True, ('count_vowels("queueing")',))
    assert (here.letters.read_text(), await here.held("count_vowels")) == (VOWELS, MADE)


@pytest.mark.parametrize("code", [None, RAISING], ids=["nothing-waits", "more-than-results"])
async def test_what_cannot_be_confirmed_is_refused(here: Room, code: str | None) -> None:
    if code:
        await here.shop.create("count_vowels", code, "letters")
    assert not (await here.shop.confirm("count_vowels")).admitted
    assert (here.leftovers(), here.shop.names()) == ([], [])
    assert (await here.held("count_vowels"))["pending"] is bool(code)


async def test_a_deleted_function_leaves_its_neighbours_and_the_last_takes_the_file_along(here: Room) -> None:
    await here.save(f"# mine\n{VOWELS}\n\n{named('count_more')}")
    assert (await here.shop.delete("count_more", author=AGENT)).deleted == "count_more"
    assert (here.letters.read_text(), here.shop.names()) == (f"# mine\n{VOWELS}", ["count_vowels"])
    here.letters.write_text(VOWELS)
    await here.shop.reload()
    await here.shop.delete("count_vowels", author=AGENT)
    assert (here.leftovers(), here.shop.names(), await here.store.manifest()) == ([], [], {})
    assert [row.by for row in await here.store.module_history("letters")] == ["human", "agent", "human", "agent"]


async def test_a_function_that_another_uses_is_not_deleted(here: Room) -> None:
    await here.save(f"{VOWELS}\n\n{USER}")
    with pytest.raises(WorkspaceError, match="these use it: count_twice"):
        await here.shop.delete("count_vowels")
    assert here.letters.read_text() == f"{VOWELS}\n\n{USER}"


@pytest.mark.parametrize("verb", ["edit", "replace", "delete", "introspect", "call", "test", "source", "path_of"])
async def test_a_verb_on_a_function_that_is_not_there_is_a_wrong_use(shop: FunctionService, verb: str) -> None:
    given: dict[str, list[Any]] = {"edit": ["a", "b"], "replace": [VOWELS], "call": [{}]}

    async def act() -> None:
        await getattr(shop, verb)("nothing", *given.get(verb, []))

    with pytest.raises(UsageError, match="There is no function `nothing`"):
        await act()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({}, ["count_more", "count_vowels", "half"], id="all"),
        pytest.param({"pattern": "COUNT_*"}, ["count_more", "count_vowels"], id="pattern"),
        pytest.param({"pattern": "vowels in"}, ["count_more", "count_vowels"], id="description"),
        pytest.param({"module": "web"}, ["half"], id="module-below"),
        pytest.param({"module": "we"}, [], id="part-of-a-module"),
        pytest.param({"standing": "draft"}, ["half"], id="standing"),
    ],
)
async def test_a_list_holds_what_was_asked_for(here: Room, wanted: dict[str, str], found: list[str]) -> None:
    await here.save(f"{VOWELS}\n\n{named('count_more')}")
    (here.root / "functions/web").mkdir()
    await here.save("def half(n: int) -> float:\n    return n / 2\n", here.root / "functions/web/sums.py")
    assert [row.name for row in (await here.shop.list(**wanted)).functions] == found


async def test_a_function_laid_open_names_its_place_users_and_calls(here: Room) -> None:
    await here.save(f"# mine\n{VOWELS}\n\n{USER}")
    for text in ("queueing", "x"):
        await here.shop.call("count_vowels", {"text": text})
    found = await here.shop.introspect("count_vowels")
    assert (found.function.path, found.function.line, found.callers) == ("functions/letters.py", 2, ("count_twice",))
    assert (found.source + "\n", found.standing) == (VOWELS, "trial")
    assert (found.statistics.totals.calls, found.statistics.totals.failed) == (2, 0)
    assert (await here.shop.introspect("count_twice")).callees == ("count_vowels",)
    assert here.shop.source("count_vowels") == f"# mine\n{VOWELS}"
    assert here.shop.path_of("count_vowels") == (here.letters, 2)


@pytest.mark.parametrize(
    ("given", "outcome"),
    [({"text": "aha"}, "returned"), ('{"text": "aha"}', "returned"), ({"text": "fail"}, "raised")],
    ids=["object", "json", "raised"],
)
async def test_a_call_gives_its_outcome_and_is_counted(here: Room, given: Any, outcome: str) -> None:
    await here.save(VOWELS.replace("    return", '    assert text != "fail"\n    return'))
    assert (await here.shop.call("count_vowels", given)).outcome == outcome
    statistics = (await here.shop.introspect("count_vowels")).statistics
    assert (statistics.totals.calls, statistics.totals.failed) == (1, int(outcome == "raised"))


@pytest.mark.parametrize("given", ["{", "[]", {"txt": 1}, {}], ids=["broken", "list", "unknown", "missing"])
async def test_arguments_that_do_not_fit_are_a_wrong_use_and_run_nothing(here: Room, given: Any) -> None:
    await here.save(VOWELS)
    with pytest.raises(UsageError):
        await here.shop.call("count_vowels", given)
    assert (await here.shop.introspect("count_vowels")).statistics.totals.calls == 0


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


async def test_names_that_python_reads_as_one_are_refused_and_the_plain_one_works(here: Room, tmp_path: Path) -> None:
    await here.save(VOWELS, tmp_path / "functions/fix.py")
    await here.save(named("count_more"), tmp_path / "functions/\ufb01x.py")
    (problem,) = here.shop.rejected()
    assert (problem.code, problem.where.path) == ("module-name", "functions/\ufb01x.py")
    assert here.shop.names() == ["count_vowels"]
