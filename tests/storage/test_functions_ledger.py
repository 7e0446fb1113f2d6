"""Versions, the manifest, verdicts, candidates, intents, statistics, readings and pins."""

from collections.abc import Callable

import pytest

from agent_core.errors import StorageError
from agent_core.storage import (
    BeginWrite,
    DropPending,
    DropReading,
    EndWrite,
    ManifestConflict,
    OpenWrite,
    PinFunction,
    ReadingRow,
    RecordCall,
    SavePending,
    SaveReading,
    SaveText,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    Stats,
    Store,
    UnpinFunction,
    VersionRow,
    content_hash,
)
from tests.storage.support import ManualClock, saving, say

ONE, TWO = "x = 1\n", "x = 2\n"
V1, V2 = content_hash(ONE), content_hash(TWO)


async def test_a_version_tells_its_source_and_who_made_it_why(store: Store, clock: ManualClock) -> None:
    await store.apply([SaveVersion("text", V1, ONE, "agent", "turn-7", "counts vowels", "qwen")])
    expected = VersionRow("text", V1, ONE, "agent", "turn-7", "qwen", "counts vowels", clock.time)
    assert await store.version(V1) == expected
    assert await store.version(V2) is None


async def test_a_version_that_is_not_the_hash_of_its_source_is_refused(store: Store) -> None:
    with pytest.raises(StorageError, match="not the hash"):
        await store.apply([SaveVersion("text", V1, TWO)])


async def test_the_history_of_a_module_has_every_change_also_its_return_and_removal(store: Store) -> None:
    await store.apply(saving("text", ONE))
    await store.apply(saving("text", TWO, expected=V1))
    await store.apply(saving("text", ONE, expected=V2))
    await store.apply([SetManifest("text", V1, None, "human", reason="not needed")])
    rows = await store.module_history("text")
    assert [row.version for row in rows] == [V1, V2, V1, ""]
    assert (rows[-1].reason, rows[-1].text) == ("not needed", "")
    assert await store.manifest() == {}


async def test_a_source_in_two_modules_is_kept_once_and_known_in_both(store: Store) -> None:
    await store.apply([*saving("one", ONE), *saving("two", ONE)])
    assert await store.manifest() == {"one": V1, "two": V1}
    assert [row.module for row in await store.module_history("two")] == ["two"]


@pytest.mark.parametrize(
    ("expected", "version"),
    [
        pytest.param(None, V2, id="taken for new"),
        pytest.param(V2, V2, id="another version"),
        pytest.param(V2, None, id="removing another version"),
    ],
)
async def test_a_manifest_is_changed_only_from_what_the_writer_saw(
    store: Store, expected: str | None, version: str | None
) -> None:
    await store.apply([*saving("text", ONE), SaveVersion("text", V2, TWO)])
    with pytest.raises(ManifestConflict, match="changed meanwhile"):
        await store.apply([SetManifest("text", expected, version)])
    assert await store.manifest() == {"text": V1}


async def test_two_handles_that_change_one_module_cannot_both_win(
    store: Store, open_again: Callable[[], Store]
) -> None:
    await store.apply(saving("text", ONE))
    await open_again().apply(saving("text", TWO, expected=V1))
    with pytest.raises(ManifestConflict):
        await store.apply(saving("text", "x = 3\n", expected=V1))


async def test_a_manifest_never_points_at_a_version_that_was_not_saved(store: Store) -> None:
    with pytest.raises(StorageError, match="never saved"):
        await store.apply([SetManifest("text", None, V1)])


async def test_the_last_verdict_on_a_function_of_a_version_is_kept(store: Store) -> None:
    await store.apply([SaveVerdict(V1, "f", {"admitted": False}), SaveVerdict(V1, "f", {"admitted": True})])
    assert await store.verdict(V1, "f") == {"admitted": True}
    assert await store.verdict(V2, "f") is None


async def test_a_refused_candidate_waits_until_it_is_dropped(store: Store) -> None:
    await store.apply([SavePending("f", {"code": "1"}), SavePending("f", {"code": "2"})])
    assert await store.pending("f") == {"code": "2"}
    await store.apply([DropPending("f")])
    assert await store.pending("f") is None


async def test_a_write_that_was_begun_is_found_at_the_next_start(
    store: Store, open_again: Callable[[], Store], clock: ManualClock
) -> None:
    await store.apply([BeginWrite("functions/a.py", V1, ONE, None), BeginWrite("functions/b.py", None, None, V1)])
    await store.close()
    assert await open_again().open_writes() == [
        OpenWrite("functions/a.py", V1, ONE, None, clock.time),
        OpenWrite("functions/b.py", None, None, V1, clock.time),
    ]


async def test_an_ended_write_goes_and_leaves_another_one_of_the_same_file(store: Store) -> None:
    await store.apply([BeginWrite("a.py", V1, ONE, None), BeginWrite("a.py", V2, TWO, V1)])
    await store.apply([EndWrite("a.py", V1)])
    assert [write.version for write in await store.open_writes()] == [V2]
    await store.apply([BeginWrite("a.py", None, None, V2), EndWrite("a.py", V2), EndWrite("a.py", None)])
    assert await store.open_writes() == []


def calls(*outcomes: str, version: str = V1) -> list[RecordCall]:
    return [RecordCall("f", version, outcome, 0.5) for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "sums", "runs"),
    [
        pytest.param(["returned"], (1, 0), (0, 1), id="one return"),
        pytest.param(["raised", "timed_out", "killed"], (0, 3), (3, 0), id="failures in a row"),
        pytest.param(["raised", "returned", "returned"], (2, 1), (0, 2), id="a failure made good"),
        pytest.param(["returned", "returned", "raised"], (2, 1), (1, 0), id="a run that broke"),
        pytest.param(["raised", "refused", "interrupted", "skipped", "unknown"], (0, 1), (1, 0), id="no fault of it"),
    ],
)
async def test_calls_add_up_to_the_statistics_of_a_function(
    store: Store, outcomes: list[str], sums: tuple[int, int], runs: tuple[int, int]
) -> None:
    for call in calls(*outcomes):
        await store.apply([call])
    stats = (await store.call_stats())["f"]
    assert stats.calls == len(outcomes)
    assert (stats.returned, stats.failed) == sums
    assert (stats.failing, stats.holding) == runs


async def test_a_new_version_starts_a_new_run_and_keeps_the_totals(store: Store, clock: ManualClock) -> None:
    await store.apply(calls("raised", "raised"))
    clock.time += 60
    await store.apply(calls("returned", version=V2))
    expected = Stats(3, 1, 2, 0, 1, first_called=clock.time - 60, last_called=clock.time, seconds=1.5)
    assert await store.call_stats() == {"f": expected}


async def test_the_reading_of_a_file_is_replaced_and_dropped_by_path(store: Store) -> None:
    await store.apply([SaveReading("a.py", (1, 2, 3), V1, "{}"), SaveReading("b.py", (2**62, 5, 6), V1, "[]")])
    await store.apply([SaveReading("a.py", (7, 8, 2**64 - 1), V2, '{"new":1}')])
    expected = {
        "a.py": ReadingRow("a.py", (7, 8, 2**64 - 1), V2, '{"new":1}'),
        "b.py": ReadingRow("b.py", (2**62, 5, 6), V1, "[]"),
    }
    assert await store.readings() == expected
    await store.apply([DropReading("a.py")])
    assert list(await store.readings()) == ["b.py"]


async def test_a_pin_belongs_to_one_agent_and_can_be_taken_off(store: Store) -> None:
    await store.apply([PinFunction("main", "f"), PinFunction("main", "f"), PinFunction("other", "g")])
    assert await store.pins("main") == {"f"}
    await store.apply([UnpinFunction("main", "f")])
    assert await store.pins("main") == set()


async def test_a_text_is_found_by_its_hash_however_often_it_is_saved(store: Store) -> None:
    await store.apply([SaveText("You are …"), SaveText("You are …")])
    assert await store.text(content_hash("You are …")) == "You are …"
    assert await store.text(content_hash("never saved")) is None


async def test_a_text_that_utf8_cannot_hold_is_refused_in_words(store: Store) -> None:
    with pytest.raises(StorageError, match="surrogates not allowed"):
        await store.apply([DropPending("bad \ud800 name")])


async def test_a_functions_history_is_that_of_every_module_that_ever_defined_it(store: Store) -> None:
    texts = {"one": "def near(x):\n    return x\n", "two": "def nearby(x):\n    return x\n"}
    moved = texts["one"].replace("return x", "return 2 * x")
    await store.apply([*saving("one", texts["one"]), *saving("two", texts["two"])])
    await store.apply([SetManifest("one", content_hash(texts["one"]), None, reason="moved"), *saving("three", moved)])
    rows = await store.function_history("near")
    assert [(row.module, bool(row.version)) for row in rows] == [("one", True), ("one", False), ("three", True)]
    assert await store.function_history("never") == []


async def test_a_line_of_history_names_the_agent_whose_turn_it_was(store: Store) -> None:
    turn = await say(store, "make it", agent="scout")
    await store.apply([SaveVersion("text", V1, ONE, "agent", turn.id), SaveVersion("text", V2, TWO, "agent", "gone")])
    assert [row.agent for row in await store.module_history("text")] == ["scout", ""]


async def test_every_candidate_that_was_kept_is_named_with_what_is_kept_of_it(store: Store) -> None:
    await store.apply([SavePending("b", {"code": "2"}), SavePending("a", {"code": "1"}), DropPending("b")])
    assert await store.all_pending() == {"a": {"code": "1"}}
