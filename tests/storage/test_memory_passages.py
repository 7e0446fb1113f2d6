"""Passages, sources and the index of messages, by number, place, time and tag."""

from dataclasses import replace

from agent_core.storage import (
    Counts,
    DocumentRow,
    DropDocument,
    DropPassages,
    SaveDocument,
    SavePassages,
    SaveSaid,
    Store,
)
from tests.storage.memory_support import insert, message, passage


async def test_a_passage_is_kept_once_for_each_agent_and_comes_back_as_it_was(store: Store) -> None:
    row = passage(
        "p", "red wine", tags=("drink", "ü"), source="a.txt", place="line 3", document="d", n=4
    )
    again = (replace(row, words="another"), passage("p", "theirs", "other"), passage("q", "two"))
    await store.apply([SavePassages((row,)), SavePassages(again)])
    total, [two, kept] = await store.list_passages("main", (), 0, 10)
    assert (total, two.words, kept) == (2, "two", replace(row, seq=kept.seq))
    assert await store.passages([kept.seq, 999]) == [kept]
    assert await store.search_words("archival", "main", ["another"], 5) == []
    assert [row.words for row in (await store.list_passages("other", (), 0, 9))[1]] == ["theirs"]


async def test_passages_are_listed_by_tag_in_pages_newest_first(store: Store) -> None:
    rows = [
        passage(f"p{n}", "x", tags=("even", f"n{n // 3}") if n % 2 == 0 else ("odd", "odd"))
        for n in range(7)
    ]
    await store.apply([SavePassages(tuple(rows))])
    total, page = await store.list_passages("main", ["even"], 1, 2)
    assert (total, [row.id for row in page]) == (4, ["p4", "p2"])
    total, page = await store.list_passages("main", ["n0", "even"], 0, 1)
    assert (total, [row.id for row in page]) == (2, ["p2"])
    assert (await store.list_passages("main", (), 5, 9))[0] == 7
    assert await store.list_passages("main", ["nothing"], 0, 9) == (0, [])


async def test_ids_are_found_by_how_they_begin_and_never_as_patterns(store: Store) -> None:
    await store.apply(
        [SavePassages(tuple(passage(id, "x") for id in ("ab", "abc", "a_", "b", "AB")))]
    )
    assert await store.passage_ids("main", "ab") == ["ab", "abc"]
    assert await store.passage_ids("main", "a_") == ["a_"]
    await insert(store, *("x" for _ in range(30)), prefix="many-")
    assert len(await store.passage_ids("main", "many-")) == 10


async def test_a_deleted_passage_is_gone_from_everywhere_but_its_neighbours_stay(
    store: Store,
) -> None:
    rows = (passage("p0", "pie", tags=("t",)), passage("p1", "pie", tags=("t",)))
    await store.apply(
        [
            SavePassages(rows),
            DropPassages("main", ("p0", "nowhere")),
            DropPassages("other", ("p1",)),
        ]
    )
    assert [row.id for row in (await store.list_passages("main", ["t"], 0, 9))[1]] == ["p1"]
    assert len(await store.search_words("archival", "main", ["pie"], 9)) == 1
    assert await store.memory_counts("main") == Counts(0, 1, 0.0)


async def test_a_source_is_kept_as_far_as_it_was_read_and_goes_with_its_passages(
    store: Store,
) -> None:
    first, second = (
        DocumentRow("p", "main", "a.md", "markdown", 1.0, 1, 3),
        DocumentRow("q", "main", "b", "text", 2.0),
    )
    await store.apply([SaveDocument(first), SaveDocument(second)])
    await insert(store, "x", "y")
    done = DocumentRow("p", "main", "a.md", "markdown", 1.0, 3, 3, complete=True)
    await store.apply([SaveDocument(done)])
    assert await store.documents("main") == [done, second]
    await store.apply([DropDocument("main", "p")])
    assert await store.documents("main") == [second]
    assert await store.memory_counts("main") == Counts(0, 0, 0.0)


async def test_messages_come_back_by_number_and_by_place_in_order(store: Store) -> None:
    rows = [
        message(10 * n, f"m{n}", n=n, asks=n == 1, session=n, length=2, timed=True, turn="t")
        for n in range(4)
    ]
    await store.apply(
        [
            SaveSaid(tuple(rows)),
            SaveSaid((message(0, "again", n=9), message(7, agent="other", n=1))),
        ]
    )
    assert await store.messages("main", [20, 0, 7]) == [rows[0], rows[2]]
    assert await store.messages_beside("main", [3, 1, 8]) == [rows[1], rows[3]]
    assert (await store.last_message("main"), await store.last_message("nobody")) == (rows[3], None)
    assert (await store.memory_counts("main")).messages == 4


async def test_messages_of_a_time_come_in_pages_oldest_first(store: Store) -> None:
    await store.apply([SaveSaid(tuple(message(n) for n in range(6)))])
    for span, page, expected in (  # the end is not part of it
        ((2, 5), (0, 9), (3, [2, 3, 4])),
        ((0, 99), (2, 2), (6, [2, 3])),
        ((7, 99), (0, 9), (0, [])),
    ):
        total, rows = await store.messages_between("main", *span, *page)
        assert (total, [row.n for row in rows]) == expected
