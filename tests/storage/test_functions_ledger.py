"""Versions, the manifest, verdicts, candidates, intents, statistics, readings and pins."""

from collections.abc import Callable

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import (
    BEGUN,
    RESTORED,
    BeginState,
    BeginWrite,
    DropReading,
    EndWrite,
    JoinOwnSet,
    LeaveOwnSet,
    ManifestConflict,
    OpenWrite,
    ReadingRow,
    RecordCall,
    ReleaseFunction,
    SaveReading,
    SaveRecorded,
    SaveState,
    SaveText,
    SaveVerdict,
    SaveVersion,
    SetManifest,
    StateConflict,
    Stats,
    Store,
    content_hash,
)
from tests.storage.support import ManualClock, saving, say

ONE, TWO = "x = 1\n", "x = 2\n"
V1, V2 = content_hash(ONE), content_hash(TWO)


async def test_a_version_tells_its_source_maker_and_reason(
    store: Store, clock: ManualClock
) -> None:
    with pytest.raises(StorageError, match="not the hash"):
        await store.apply([SaveVersion("text", V1, TWO)])
    turn = await say(store, "make it", agent="scout")
    made = SaveVersion("text", V1, ONE, "agent", turn.id, "counts vowels", "qwen")
    await store.apply([made])
    row = await store.version(V1)
    assert row is not None
    assert (row.module, row.version, row.text, row.by) == ("text", V1, ONE, "agent")
    assert (row.turn, row.model, row.reason, row.at) == (
        turn.id,
        "qwen",
        "counts vowels",
        clock.time,
    )
    assert await store.version(V2) is None
    await store.apply([SaveVersion("text", V2, TWO, "agent", "gone")])
    assert await store.kept_out() == {}
    assert [row.agent for row in await store.module_history("text")] == ["scout", ""]


async def test_the_history_of_a_module_has_every_change_also_its_return_and_removal(
    store: Store,
) -> None:
    await store.apply(saving("text", ONE))
    await store.apply(saving("text", TWO, expected=V1))
    await store.apply(saving("text", ONE, expected=V2))
    await store.apply([SetManifest("text", V1, None, "human", reason="not needed")])
    rows = await store.module_history("text")
    assert [row.version for row in rows] == [V1, V2, V1, ""]
    assert (rows[-1].reason, rows[-1].text) == ("not needed", "")
    assert await store.manifest() == {}
    await store.apply([*saving("one", ONE), *saving("two", ONE)])  # one source in two modules
    assert await store.manifest() == {"one": V1, "two": V1}
    assert [row.module for row in await store.module_history("two")] == ["two"]


async def test_a_manifest_changes_only_from_what_was_seen(
    store: Store, open_again: Callable[[], Store]
) -> None:
    with pytest.raises(StorageError, match="never saved"):
        await store.apply([SetManifest("text", None, V1)])
    await store.apply([*saving("text", ONE), SaveVersion("text", V2, TWO)])
    for expected, version in ((None, V2), (V2, V2), (V2, None)):
        with pytest.raises(ManifestConflict, match="changed meanwhile"):
            await store.apply([SetManifest("text", expected, version)])
    assert await store.manifest() == {"text": V1}
    await open_again().apply(saving("text", TWO, expected=V1))
    with pytest.raises(ManifestConflict):
        await store.apply(saving("text", "x = 3\n", expected=V1))


async def test_a_begun_write_is_found_again(
    store: Store, open_again: Callable[[], Store], clock: ManualClock
) -> None:
    await store.apply(
        [
            BeginWrite("functions/a.py", V1, ONE, None),
            BeginWrite("functions/b.py", None, None, V1, is_part=True),
        ]
    )
    await store.close()
    assert await open_again().open_writes() == [
        OpenWrite("functions/a.py", V1, ONE, None, clock.time),
        OpenWrite("functions/b.py", None, None, V1, clock.time, is_part=True),
    ]


async def test_an_ended_write_goes_and_leaves_another_one_of_the_same_file(store: Store) -> None:
    await store.apply([BeginWrite("a.py", V1, ONE, None), BeginWrite("a.py", V2, TWO, V1)])
    await store.apply([EndWrite("a.py", V1)])
    assert [write.version for write in await store.open_writes()] == [V2]
    await store.apply(
        [BeginWrite("a.py", None, None, V2), EndWrite("a.py", V2), EndWrite("a.py", None)]
    )
    assert await store.open_writes() == []


def calls(*outcomes: str, version: str = V1, name: str = "f") -> list[RecordCall]:
    return [RecordCall(name, version, outcome, 0.5) for outcome in outcomes]


STATISTICS: dict[str, tuple[list[str], tuple[int, int], tuple[int, int], int | None, int]] = {
    "holds from the first": (["returned", "returned"], (2, 0), (0, 2), 0, 0),
    "failures in a row": (["raised", "timed_out", "killed"], (0, 3), (3, 0), None, 3),
    "a failure made good": (["raised", "returned", "returned"], (2, 1), (0, 2), 1, 1),
    "a run that broke": (["returned", "returned", "raised"], (2, 1), (1, 0), None, 1),
    "no fault of it": (
        ["raised", "refused", "interrupted", "skipped", "unknown"],
        (0, 1),
        (1, 0),
        None,
        1,
    ),
    "a refusal breaks nothing": (["returned", "refused", "returned"], (2, 0), (0, 2), 0, 0),
    "nor what the docstring names": (["returned", "documented", "returned"], (2, 0), (0, 2), 0, 0),
    "the longest row counts": (
        ["raised"] * 3 + ["returned"] + ["killed"] * 2,
        (1, 5),
        (2, 0),
        None,
        3,
    ),
}


async def test_calls_add_up_to_the_statistics_of_a_function(
    store: Store, clock: ManualClock
) -> None:
    for name, (outcomes, sums, runs, since, worst) in STATISTICS.items():
        start = clock.time
        for call in calls(*outcomes, name=name):
            await store.apply([call])
            clock.time += 1
        (stats,) = await store.call_stats(name)
        assert (stats.calls, stats.returned, stats.failed) == (len(outcomes), *sums), name
        assert (stats.failing, stats.holding) == runs, name
        assert (stats.since, stats.worst) == (None if since is None else start + since, worst), name


async def test_a_new_version_starts_a_new_run_beside_the_totals_of_the_old(
    store: Store, clock: ManualClock
) -> None:
    await store.apply(calls("raised", "raised"))
    clock.time += 60
    await store.apply(calls("returned", version=V2))
    then, now = clock.time - 60, clock.time
    old = Stats("f", V1, 2, 0, 2, 2, 0, then, then, 1.0, worst=2, longest=0.5)
    new = Stats("f", V2, 1, 1, 0, 0, 1, now, now, 0.5, since=now, worked=now, longest=0.5)
    assert await store.call_stats() == [old, new]
    assert await store.call_stats("g") == []


async def test_a_release_is_kept_and_failures_count_from_nought_again(
    store: Store, clock: ManualClock
) -> None:
    await store.apply(calls("raised", "killed", "timed_out"))
    assert await store.failing(3) == {("f", V1)}
    await store.apply([ReleaseFunction("f", V1)])
    assert await store.failing(1) == frozenset()
    assert await store.releases("f") == [(V1, clock.time)]
    await store.apply(calls("raised"))
    assert await store.failing(1) == {("f", V1)}
    assert (await store.call_stats("f"))[0].failed == 4


async def test_single_calls_are_capped_while_their_totals_stay(store: Store) -> None:
    calls = [
        RecordCall("f", V1, "raised", number, error=f"E{number}", message="m" * 500)
        for number in range(110)
    ]
    await store.apply(calls)
    kept = await store.recent_calls("f")
    assert [call.seconds for call in kept] == [*range(109, 9, -1)]
    assert len(kept[0].message) == 200
    assert (await store.call_stats("f"))[0].calls == 110


async def test_calls_are_those_of_the_agents_of_their_turns(store: Store) -> None:
    for agent in ("one", "other"):
        turn = (await say(store, f"Words of {agent}.", agent=agent)).id
        await store.apply(
            [
                RecordCall("f", V1, "returned", 1.0, turn),
                SaveRecorded("f", "returned", turn, {"by": agent}),
            ]
        )
    await store.apply(
        [RecordCall("f", V1, "raised", 1.0), SaveRecorded("f", "raised", "", {"by": "nobody"})]
    )
    numbers = {row.data["by"]: row.n for row in await store.recorded_calls()}
    assert [*numbers] == ["nobody", "other", "one"]
    for owners, theirs in (
        (("one", "absent"), ["one"]),
        (("other", "one"), ["other", "one"]),
        ((), []),
    ):
        assert [row.data["by"] for row in await store.recorded_calls(owners=owners)] == theirs
        assert [
            row.data["by"] for row in await store.recorded_calls("f", ("returned",), owners)
        ] == theirs
        assert len(await store.recent_calls("f", owners)) == len(theirs)
        assert {text for _, text in await store.requests_served(5, owners)} == {
            f"Words of {name}." for name in theirs
        }
        for name, number in numbers.items():
            assert (await store.recorded_call(number, owners) is not None) == (name in theirs)
    assert len(await store.recent_calls("f")) == 3


async def test_kinds_of_failure_are_counted_and_cannot_fill_the_table(store: Store) -> None:
    await store.apply([RecordCall("f", V1, "raised", 0.1, error="ValueError") for _ in range(2)])
    await store.apply(
        [RecordCall("f", V1, "raised", 0.1, error=f"E{number}") for number in range(50)]
    )
    await store.apply([RecordCall("f", V1, "raised", 0.1, error="ValueError")])
    kinds = {kind.error: kind.calls for kind in await store.call_kinds("f")}
    assert len(kinds) == 21
    assert (kinds["ValueError"], kinds["others"], sum(kinds.values())) == (3, 31, 53)


async def test_the_reading_of_a_file_is_replaced_and_dropped_by_path(store: Store) -> None:
    await store.apply(
        [SaveReading("a.py", (1, 2, 3), V1, "{}"), SaveReading("b.py", (2**62, 5, 6), V1, "[]")]
    )
    await store.apply([SaveReading("a.py", (7, 8, 2**64 - 1), V2, '{"new":1}')])
    expected = {
        "a.py": ReadingRow("a.py", (7, 8, 2**64 - 1), V2, '{"new":1}'),
        "b.py": ReadingRow("b.py", (2**62, 5, 6), V1, "[]"),
    }
    assert await store.readings() == expected
    await store.apply([DropReading("a.py")])
    assert list(await store.readings()) == ["b.py"]


async def test_verdicts_pins_and_texts_are_kept_as_they_were_last_saved(store: Store) -> None:
    await store.apply(
        [SaveVerdict(V1, "f", {"admitted": False}), SaveVerdict(V1, "f", {"admitted": True})]
    )
    assert (await store.verdict(V1, "f"), await store.verdict(V2, "f")) == (
        {"admitted": True},
        None,
    )
    await store.apply([JoinOwnSet("main", "f"), JoinOwnSet("main", "f"), JoinOwnSet("other", "g")])
    assert await store.own_set("main") == {"f"}
    await store.apply([LeaveOwnSet("main", "f")])
    assert await store.own_set("main") == set()
    await store.apply([SaveText("You are …"), SaveText("You are …")])
    assert await store.text(content_hash("You are …")) == "You are …"
    assert await store.text(content_hash("never saved")) is None


async def test_a_functions_history_is_that_of_every_module_that_ever_defined_it(
    store: Store,
) -> None:
    texts = {"one": "def near(x):\n    return x\n", "two": "def nearby(x):\n    return x\n"}
    moved = texts["one"].replace("return x", "return 2 * x")
    await store.apply([*saving("one", texts["one"]), *saving("two", texts["two"])])
    await store.apply(
        [
            SetManifest("one", content_hash(texts["one"]), None, reason="moved"),
            *saving("three", moved),
        ]
    )
    rows = await store.function_history("near")
    assert [(row.module, bool(row.version)) for row in rows] == [
        ("one", True),
        ("one", False),
        ("three", True),
    ]
    assert await store.function_history("never") == []


async def test_of_two_writers_of_a_state_the_one_who_saw_the_newest_is_taken(
    open_again: Callable[[], Store],
) -> None:
    one, other = open_again(), open_again()
    await one.apply([SaveState("count", {"n": 1}, 0, "turn-1")])
    begun, row = await other.states("count")
    assert (begun.turn, begun.value) == (BEGUN, {})
    await other.apply([SaveState("count", {"n": 2}, row.n, "turn-2")])
    with pytest.raises(StateConflict):
        await one.apply(
            [SaveState("count", {"n": 9}, row.n, "turn-1"), SaveText("not kept either")]
        )
    assert await one.text(content_hash("not kept either")) is None
    assert [row.value for row in await one.states("count")] == [{}, {"n": 1}, {"n": 2}]


async def test_of_the_states_of_a_turn_the_last_is_kept_and_no_number_comes_twice(
    store: Store,
) -> None:
    for number, turn in enumerate(("turn-1", "turn-2", "turn-2"), 1):
        rows = await store.states("count")
        await store.apply([SaveState("count", number, rows[-1].n if rows else 0, turn)])
    *_, newest = await store.states("count")
    for back in (1, 0):
        *_, last = await store.states("count")
        await store.apply([SaveState("count", back, last.n, RESTORED)])
    with pytest.raises(StateConflict):
        await store.apply([SaveState("count", 4, newest.n, "turn-3")])
    assert (await store.states())[-1].n > newest.n
    await store.apply([BeginState("count"), BeginState("another")])
    assert [row.value for row in await store.states()] == [{}, 1, 3, 0, {}]


async def test_of_one_function_the_newest_good_calls_are_kept_and_the_newest_others(
    store: Store,
) -> None:
    outcomes = ["returned"] * 22 + ["raised"] * 15 + ["timed_out"] * 10
    await store.apply(
        [SaveRecorded("f", outcome, "", {"at": at}) for at, outcome in enumerate(outcomes)]
    )
    await store.apply([SaveRecorded("g", "raised", "", {})])
    assert [row.data["at"] for row in await store.recorded_calls("f", ("returned",))] == [
        *range(21, 1, -1)
    ]
    assert [row.data["at"] for row in await store.recorded_calls("f", ("raised", "timed_out"))] == [
        *range(46, 26, -1)
    ]
