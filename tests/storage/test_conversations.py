"""Conversations of one agent: lines of turns with inboxes, histories and owners of their own, and branches of them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.base.errors import AgentBusy, StorageError, UsageError
from agent_core.storage import (
    ConversationRow,
    DropAgent,
    Due,
    InboxFull,
    JoinOwnSet,
    Post,
    SaveAgent,
    SaveBlock,
    SaveDoor,
    SaveSaid,
    Store,
    WholeAgent,
    WholeEvent,
    WholeTurn,
    conversation_store,
    dump,
    line_of,
    prepare_state_dir,
)
from agent_core.storage.block_store import BlockRow
from agent_core.storage.memory_store import RecallMessage
from agent_core.storage.subject import BlockConflict, Entry
from agent_core.storage.turn_store import INBOX_LIMIT, SUMMARY

from .support import ManualClock, begin, say, texts

DOOR = '{"window":"door","token":"t1"}'


async def other(store: Store, **given: str) -> ConversationRow:
    return await store.begin_conversation("main", **given)


async def read(store: Store, line: str) -> list[str]:
    return texts(await store.history(line))


async def test_a_conversation_has_an_inbox_a_history_and_turns_of_its_own(store: Store) -> None:
    line = (await other(store)).line
    assert line.startswith("main/")
    turn = await begin(store)
    beside = await begin(store, line)
    assert (turn.agent, beside.agent) == ("main", "main")
    await store.post(Post(line, "message", {"text": "more"}, key="k"))
    await store.post(Post("main", "message", {"text": "same key"}, key="k"))
    assert [event.text for event in await store.waiting(line)] == ["more"]
    assert sorted(due.line for due in await store.due()) == ["main", line]
    await store.append(beside.id, beside.attempt, 0, [Entry("user", {"text": "there"})])
    await store.append(turn.id, turn.attempt, 0, [Entry("user", {"text": "here"})])
    await store.finish(turn.id, turn.attempt)
    assert [await read(store, each) for each in ("main", line)] == [["here"], ["there"]]
    assert await store.due() == [
        Due(line, is_takeover=True),
        Due("main", is_takeover=False),
    ]
    assert [row.name for row in await store.agents()] == ["main"]
    assert await store.agent_names() == ["main"]


async def test_a_full_inbox_of_one_conversation_leaves_the_others_alone(store: Store) -> None:
    line = (await other(store)).line
    for number in range(INBOX_LIMIT):
        await store.post(Post(line, "message", {"text": str(number)}))
    with pytest.raises(InboxFull, match="Agent `main`"):
        await store.post(Post(line, "message", {"text": "one more"}))
    await store.post(Post("main", "message", {"text": "fits"}))


async def test_its_first_words_are_its_name_until_a_person_renames_it(store: Store) -> None:
    row = await other(store)
    assert (row.name, row.renamed) == ("", False)
    await store.post(Post(row.line, "message", {"text": "  Plan the\ngarden " + "x" * 90}))
    await store.post(Post(row.line, "message", {"text": "Something else"}))
    named = await store.conversation(row.line)
    assert named is not None
    assert named.name == f"Plan the garden {'x' * 43}…"
    assert len(named.name) == 60
    renamed = await store.rename_conversation(row.line, "Garden")
    assert (renamed.name, renamed.renamed) == ("Garden", True)
    main = await store.rename_conversation("main", "Everything")
    assert (main.id, main.name) == ("main", "Everything")


async def test_every_turn_knows_its_conversation_and_what_began_it(store: Store) -> None:
    line = (await other(store)).line
    await store.post(Post(line, "message", {"text": "a"}, origin=DOOR))
    turn = await store.next(line, "here")
    assert turn is not None
    source = await store.source_of(turn.id)
    assert source is not None
    assert (source.line, source.origin) == (line, DOOR)


async def test_a_branch_has_what_was_visible_then_and_goes_on_alone(store: Store) -> None:
    await say(store, "popped before")
    await store.hide_last_turn("main")
    for word in ("a", "b", "c"):
        await say(store, word)
    entries = await store.history("main")
    branch = await store.begin_branch("main", entries[1].seq)
    assert (branch.parent, branch.upto) == ("main", entries[1].seq)
    assert await read(store, branch.line) == ["a", "b"]
    assert await store.last_seq(branch.line) == entries[1].seq
    await say(store, "d")
    await say(store, "there", agent=branch.line)
    assert await read(store, branch.line) == ["a", "b", "there"]
    for _ in range(4):
        await store.hide_last_turn("main")
    assert await read(store, "main") == []
    assert await read(store, branch.line) == ["a", "b", "there"]
    removed = [texts(await store.hide_last_turn(branch.line)) for _ in range(4)]
    assert removed == [["there"], ["b"], ["a"], []]
    assert await read(store, branch.line) == []


async def test_a_branch_that_begins_anew_leaves_all_that_it_stands_on_to_its_parent(
    store: Store,
) -> None:
    await say(store, "1")
    await say(store, "2")
    branch = await store.begin_branch("main", await store.branch_point("main"))
    await say(store, "3", agent=branch.line)
    assert await store.hide_turns(branch.line) == 3
    await say(store, "4", agent=branch.line)
    assert [await read(store, line) for line in ("main", branch.line)] == [["1", "2"], ["4"]]
    assert await store.hide_turns("main") == 2
    assert await read(store, "main") == []


async def test_a_branch_of_a_branch_may_end_in_what_the_first_stands_on(store: Store) -> None:
    for word in ("a", "b"):
        await say(store, word)
    first, second = await store.history("main")
    one = (await store.begin_branch("main", second.seq)).line
    await say(store, "c", agent=one)
    await say(store, "d", agent=one)
    whole = await store.history(one)
    two = (await store.begin_branch(one, whole[2].seq)).line
    await say(store, "e", agent=two)
    assert await read(store, two) == ["a", "b", "c", "e"]
    short = await store.begin_branch(two, first.seq)
    assert (short.parent, await read(store, short.line)) == ("main", ["a"])
    last = await store.history(two)
    for place, entry in enumerate(last):
        assert await store.history(two, since=entry.seq) == last[place + 1 :]
        assert await store.history(two, before=entry.seq) == last[:place]
        found = await store.history(two, since=entry.seq - 1, most=1)
        assert [each.seq for each in found] == [entry.seq]
    with pytest.raises(StorageError, match="no such message"):
        await store.begin_branch(short.line, second.seq)


@pytest.mark.parametrize("is_newest", [False, True])
async def test_pages_of_a_branch_go_through_all_that_it_stands_on(
    store: Store, is_newest: bool
) -> None:
    for number in range(5):
        await say(store, str(number))
    upto = (await store.history("main"))[-1].seq
    line = (await store.begin_branch("main", upto)).line
    for number in range(5, 8):
        await say(store, str(number), agent=line)
    pages: list[list[str]] = []
    since = 0
    before = 1 << 62
    is_last = False
    while not is_last:
        page = await store.history_page(
            line, since=since, before=before, count=3, most_bytes=1_000, is_newest=is_newest
        )
        pages.append(texts(page.entries))
        is_last = page.is_last
        if is_newest:
            before = page.entries[0].seq
        else:
            since = page.entries[-1].seq
    expected = [["0", "1", "2"], ["3", "4", "5"], ["6", "7"]]
    if is_newest:
        expected = [["5", "6", "7"], ["2", "3", "4"], ["0", "1"]]
    assert pages == expected


async def test_a_summary_of_the_parent_is_one_of_the_branch_if_it_came_before(store: Store) -> None:
    await say(store, "a")
    seq = (await store.history("main"))[0].seq
    turn = await begin(store)
    summary = Entry(SUMMARY, {"text": "so far", "covers": 1, "upto": seq})
    await store.append(turn.id, turn.attempt, 0, [summary, Entry("user", {"text": "b"})])
    await store.finish(turn.id, turn.attempt)
    early = (await store.begin_branch("main", seq)).line
    late = (await store.begin_branch("main", (await store.history("main"))[-1].seq)).line
    found = [texts(await store.history(line, kinds=(SUMMARY,))) for line in (early, late)]
    assert found == [[], ["so far"]]


async def test_deleting_hides_a_conversation_and_what_stands_on_it_stays(store: Store) -> None:
    line = (await other(store)).line
    await say(store, "here")
    await say(store, "a", agent=line)
    branch = (await store.begin_branch(line, (await store.history(line))[0].seq)).line
    await say(store, "b", agent=branch)
    assert [row.line for row in await store.conversations("main")] == [branch, line, "main"]
    empty = (await other(store)).line
    for each in (
        empty,
        (await store.begin_branch("main", (await store.history("main"))[0].seq)).line,
    ):
        is_branch = each != empty
        assert (each in [row.line for row in await store.conversations("main")]) == is_branch
        await store.delete_conversation(each)
    gone = await store.delete_conversation(line)
    assert gone.deleted is not None
    assert [row.line for row in await store.conversations("main")] == [branch, "main"]
    assert len(await store.conversations("main", with_deleted=True)) == 4
    assert await store.conversations_named("main", gone.id) == []
    assert await read(store, branch) == ["a", "b"]
    await store.delete_conversation(line, is_deleted=False)
    assert [row.line for row in await store.conversations("main")] == [branch, line, "main"]
    with pytest.raises(StorageError, match="main conversation stays"):
        await store.delete_conversation("main")


async def said(store: Store, line: str, word: str, n: int = 0) -> None:
    await say(store, word, agent=line)
    seq = (await store.history(line))[-1].seq
    scope = await store.recall_scope(line)
    row = RecallMessage(seq, scope, n, word, word, 0.0, "user", turn="t", line=line)
    await store.apply([SaveSaid((row,))])


async def found(store: Store, line: str, word: str) -> int:
    scope = await store.recall_scope(line)
    return len(await store.search_words("recall", scope, [word], 10))


async def test_recall_reaches_all_that_is_not_deleted_and_of_a_private_one_only_itself(
    store: Store,
) -> None:
    open_line = (await other(store)).line
    private = (await other(store, origin=DOOR)).line
    for line in ("main", open_line, private):
        await said(store, line, "heron")
    assert [await found(store, line, "heron") for line in ("main", open_line, private)] == [2, 2, 1]
    assert (await store.memory_counts("main")).messages == 2
    await store.delete_conversation(open_line)
    assert [await found(store, line, "heron") for line in ("main", open_line)] == [1, 1]
    await store.delete_conversation(open_line, is_deleted=False)
    assert [await found(store, line, "heron") for line in ("main", open_line)] == [2, 2]
    assert (await store.memory_counts("main")).messages == 2


async def test_a_token_finds_no_conversation_that_is_private_to_another(store: Store) -> None:
    tricky = dump({"window": "door", "token": "t2", "user": '"token":"t1"'})
    rows = [await other(store, origin=origin, name="plan") for origin in ("", DOOR, tricky)]
    for row in rows:
        await say(store, f"of {row.id}", agent=row.line)
    await say(store, "hello")
    free, mine, theirs = (row.line for row in rows)
    for token, lines in (
        (None, {"main", free, mine, theirs}),
        ("t1", {"main", free, mine}),
        ("t2", {"main", free, theirs}),
        ("", {"main", free}),
    ):
        listed = await store.conversations("main", token=token)
        assert {row.line for row in listed} == lines, token
        named = await store.conversations_named("main", "plan", token=token)
        assert {row.line for row in named} == lines - {"main"}, token
        whole = await store.read_agent("main", token=token)
        assert whole is not None
        assert {line_of("main", turn.conversation) for turn in whole.turns} == lines, token
        assert {line_of("main", row.id) for row in whole.conversations} == lines - {"main"}, token
    of_door = await store.conversations_of("main", DOOR, "PLAN")
    assert [row.line for row in of_door] == [mine]


async def test_a_token_begins_a_limited_number_of_conversations(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_store, "_TOKEN_LIMIT", 2)
    for _ in range(2):
        await other(store, origin=DOOR)
    with pytest.raises(StorageError, match="begun 2 conversations with `main`, which is the most"):
        await other(store, origin=DOOR)
    await other(store, origin=DOOR.replace("t1", "t2"))
    await other(store)


async def test_conversations_have_owners_of_their_own_and_the_whole_agent_excludes_all(
    store: Store, open_again: Callable[[], Store], tmp_path: Path
) -> None:
    folder = prepare_state_dir(tmp_path)
    line = (await other(store)).line
    beside = open_again()
    async with store.hold(folder, "main"), beside.hold(folder, line):
        with pytest.raises(AgentBusy, match=rf"`main` \(conversation {line[5:]}\)"):
            async with store.hold(folder, line):
                pass
    async with beside.hold(folder, line):
        with pytest.raises(AgentBusy, match=f"conversation {line[5:]}"):
            async with store.hold_agent(folder, "main"):
                pass
    async with store.hold_agent(folder, "main"):
        with pytest.raises(AgentBusy):
            async with beside.hold(folder, "main"):
                pass
    async with store.hold_agent(folder, "main"), beside.hold(folder, "another"):
        pass


async def test_many_conversations_are_opened_at_the_same_moment(
    store: Store, tmp_path: Path
) -> None:
    folder = prepare_state_dir(tmp_path)
    lines = [(await other(store)).line for _ in range(10)]

    async def hold(line: str) -> None:
        async with store.hold(folder, line):
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(hold, lines))


async def test_blocks_that_another_conversation_may_change_are_looked_at_in_every_step(
    store: Store,
) -> None:
    row = BlockRow("b1", "human", "Ann", 100)
    await store.apply([SaveBlock(row, "main", "created")])
    assert await store.block_versions("main") == {}
    line = (await other(store)).line
    assert await store.block_versions("main") == {"b1": 1}
    turn = await begin(store, line)
    change = SaveBlock(replace(row, value="Ann, Bob", version=2), "main", "add")
    appended = await store.append(turn.id, turn.attempt, 0, [], writes=[change])
    assert appended.shared == {"b1": 2}
    with pytest.raises(BlockConflict):
        await store.apply([change])


async def test_a_deleted_agent_takes_all_its_conversations_along(
    store: Store, clock: ManualClock
) -> None:
    line = (await other(store, origin=DOOR)).line
    await said(store, line, "heron")
    await say(store, "here")
    await say(store, "theirs", agent="other")
    await store.apply([DropAgent("main")])
    assert await store.agent_names() == ["other"]
    assert await store.lines("main") == []
    assert await store.conversation(line) is None
    assert await store.check() is None


@pytest.mark.parametrize("name", ["main/4023b0", "main/4023b0--chat-1", "n" * 65, "", "a b", "@x"])
async def test_nothing_is_stored_under_a_name_that_no_agent_can_have(
    store: Store, name: str
) -> None:
    with pytest.raises(UsageError):
        await store.write_agent(WholeAgent(name, {}))
    with pytest.raises(UsageError):
        await store.apply([SaveAgent(name, {})])
    with pytest.raises(UsageError):
        await store.apply([JoinOwnSet(name, "f")])
    with pytest.raises(UsageError):
        await store.begin_conversation(name)
    assert await store.agent_names() == []


async def test_what_a_door_keeps_is_found_by_a_text_and_goes_with_its_conversation(
    store: Store,
) -> None:
    user = WholeTurn(
        "before-0",
        "done",
        0.0,
        0.0,
        [WholeEvent("message", {"text": "first"}, 0.0)],
        [Entry("user", {"text": "first"})],
    )
    lines = []
    for name in ("", "trip"):
        row = await store.begin_with(
            "main", DOOR, name, [user, replace(user, id="before-1")], {"asked": f"k-{name}"}
        )
        lines.append(row.line)
        assert await read(store, row.line) == ["first", "first"]
    one, trip = lines
    assert await store.doors_with("k-trip") == {trip: {"asked": "k-trip"}}
    assert {*await store.doors_with("k-", "main", DOOR)} == {one, trip}
    assert await store.doors_with("k-", "main", '{"token":"t2"}') == {}
    assert (await store.named_by("main", "t1"), await store.named_by("main", "t2")) == (1, 0)
    assert {row.line for row in await store.private_conversations("main", 9)} == {one, trip}
    await store.apply([SaveDoor(one, {"asked": "new"}), SaveDoor("main/0a0a0a", {})])
    assert await store.door(one) == {"asked": "new"}
    branch = await store.begin_branch(trip, await store.branch_point(trip), DOOR)
    assert (await store.erase_conversation(one), await store.erase_conversation(trip)) == (
        True,
        False,
    )
    assert await store.door(one) is None
    assert await store.conversation(one) is None
    assert [await read(store, line) for line in (one, branch.line)] == [[], ["first", "first"]]
    with pytest.raises(StorageError, match="main conversation stays"):
        await store.erase_conversation("main")
    report = await store.check_journal()
    assert (report.faults, report.missing) == ((), 0)
    await store.delete_conversation(trip)
    assert (await store.door(trip), await store.doors_with("k-trip")) == (None, {})
