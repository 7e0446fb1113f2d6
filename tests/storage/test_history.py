"""The contents of an agent's conversation, in order, across turns and starts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from agent_core.base import events
from agent_core.base.events import CallAnswered, CallStarted, SpeakerChosen, Usage
from agent_core.base.messages import Call
from agent_core.runtime.event_fold import EventFold
from agent_core.storage import AgentRow, DropAgent, Entry, Misfit, Store
from agent_core.storage.journal import (
    ClientEntry,
    EffectsEntry,
    EndEntry,
    InnerAnswerEntry,
    InnerCallEntry,
    InnerGrantEntry,
    JournalEntry,
    KeptEntry,
    MessageEntry,
    NoticeEntry,
    OwnEntry,
    ParkedEntry,
    ProgramEntry,
    Quote,
    ReachEntry,
    ReceiptEntry,
    ReplyEntry,
    RequestEntry,
    StreamedEntry,
    SummaryEntry,
    TurnMarks,
    UnknownEntry,
    mark,
    read_entry,
    read_marks,
    write_entry,
)
from tests.storage.support import ManualClock, begin, say, texts, user


async def test_the_history_is_in_order_across_turns_and_starts_whatever_the_clock_does(
    store: Store, open_again: Callable[[], Store], clock: ManualClock
) -> None:
    first = await say(store, "a", "b")
    clock.time -= 3600
    open_turn = await begin(store)
    await store.append(open_turn.id, 1, 0, [user("c")])
    await store.close()
    entries = await open_again().history("main")
    assert texts(entries) == ["a", "b", "c"]
    assert [(entry.kind, entry.n, entry.turn, entry.at) for entry in entries] == [
        ("user", 0, first.id, clock.time + 3600),
        ("user", 1, first.id, clock.time + 3600),
        ("user", 0, open_turn.id, clock.time),
    ]


async def test_one_agent_does_not_see_what_another_one_said(store: Store) -> None:
    await say(store, "mine")
    await say(store, "theirs", agent="other")
    await say(store, "mine, too")
    assert texts(await store.history("main")) == ["mine", "mine, too"]
    whole = await store.read_agent("main")
    assert whole
    assert [texts([*turn.entries]) for turn in whole.turns] == [["mine"], ["mine, too"]]


async def test_the_history_since_a_place_starts_right_after_it(store: Store) -> None:
    await say(store, "a", "b")
    await say(store, "c", "d")
    entries = await store.history("main")
    for place, entry in enumerate(entries):
        assert await store.history("main", since=entry.seq) == entries[place + 1 :]
    assert [await store.history("main", since=(1 << bits) - 1) for bits in (31, 63)] == [[], []]


async def test_hidden_turns_leave_the_history_one_by_one_and_stay_in_the_record(
    store: Store,
) -> None:
    first = await say(store, "a")
    last = await say(store, "b", "c")
    await say(store, "theirs", agent="other")
    hidden = [texts(await store.hide_last_turn("main")) for _ in range(3)]
    assert hidden == [["b", "c"], ["a"], []]
    assert texts(await store.load(last.id)) == ["b", "c"]
    await say(store, "f")
    assert (texts(await store.history("main")), texts(await store.history("other"))) == (
        ["f"],
        ["theirs"],
    )
    assert texts(await store.load(first.id)) == ["a"]
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("running")])
    await store.hide_last_turn("main")
    assert texts(await store.history("main")) == ["running"]


async def test_the_agents_are_listed_with_their_turns_and_times(
    store: Store, clock: ManualClock
) -> None:
    await say(store, "a", agent="zoe")
    await say(store, "a", agent="adam")
    clock.time += 5
    await say(store, "b", agent="adam")
    assert await store.agents() == [
        AgentRow("adam", 2, clock.time, 0),
        AgentRow("zoe", 1, clock.time - 5, 0),
    ]


async def test_a_summary_is_no_part_of_the_conversation_and_is_found_by_its_kind(
    store: Store,
) -> None:
    for number in range(3):
        turn = await begin(store)
        await store.append(
            turn.id, 1, 0, [user(f"m{number}"), Entry("summary", {"text": f"s{number}"})]
        )
        await store.finish(turn.id, 1)
    await say(store, "theirs", agent="other")
    summaries = await store.history("main", kinds={"summary"})
    assert (texts(await store.history("main")), texts(summaries)) == (
        ["m0", "m1", "m2"],
        ["s0", "s1", "s2"],
    )
    assert await store.history("main", kinds=("summary",), since=summaries[0].seq) == summaries[1:]
    both = await store.history("main", kinds=("summary", "user"), since=summaries[1].seq)
    assert texts(both) == ["m2", "s2"]
    await store.hide_last_turn("main")
    assert await store.history("main", kinds={"summary"}) == summaries[:2]


MISFITS = [
    Entry("user", {"text": 1}),
    Entry("assistant", {"source": 1}),
    Entry("assistant", {"calls": [{"id": "c", "name": "f", "arguments": "{}", "extra": 1}]}),
    Entry("result", {"outcome": 1}),
    Entry("call", {"version": 1}),
    Entry("notice", {"speaker": 1}),
]


@pytest.mark.parametrize(
    "misfit", MISFITS, ids=lambda entry: f"{entry.kind} {next(iter(entry.payload))}"
)
async def test_an_entry_of_another_shape_is_an_error_of_its_agent_alone(
    store: Store, misfit: Entry
) -> None:
    await say(store, "mine")
    turn = await begin(store, "guest")
    await store.append(turn.id, turn.attempt, 0, [misfit])
    reads = (
        store.history("guest"),
        store.load(turn.id),
        store.history_page("guest", count=10, most_bytes=1 << 20),
        store.hide_last_turn("guest"),
    )
    await store.finish(turn.id, turn.attempt)
    for read in reads:
        with pytest.raises(Misfit, match="The agent `guest` cannot be read") as caught:
            await read
        assert caught.value.fix.endswith("knapper agents delete guest")
    assert texts(await store.history("main")) == ["mine"]
    whole = await store.read_agent("guest")
    assert whole, "an export keeps it"
    assert whole.turns[0].entries[0].payload == misfit.payload
    await store.apply([DropAgent("guest")])
    assert await store.agent_names() == ["main"]


async def test_a_page_of_the_history_has_as_many_bytes_as_it_may_and_at_least_one_entry(
    store: Store,
) -> None:
    said = ["a" * 400, "b" * 400, "c" * 5_000, "d", "e"]
    for text in said[:2]:
        await say(store, text)
    await say(store, *said[2:])
    pages, since, is_last = list[list[str]](), 0, False
    while not is_last:
        page = await store.history_page("main", since=since, count=10, most_bytes=1_000)
        pages.append([text[0] for text in texts(page.entries)])
        since, is_last = page.entries[-1].seq, page.is_last
    assert pages == [["a", "b"], ["c"], ["d", "e"]]
    newest = await store.history_page("main", count=2, most_bytes=1_000, is_newest=True)
    assert (texts(newest.entries), newest.is_last) == (["d", "e"], False)
    before = await store.history_page(
        "main", before=newest.entries[0].seq, count=10, most_bytes=5_500, is_newest=True
    )
    assert [text[0] for text in texts(before.entries)] == ["b", "c"]
    assert (await store.history_page("other", count=1, most_bytes=1)).entries == []


CALL = Call("c", "f", "{}", '{"id": 1}')
INNER: dict[str, Any] = {"program": "p", "ordinal": 1}
CLIENT_CALL = CallStarted(call_id="c", name="f", client=True)
HELD: list[OwnEntry | events.StoredEvent] = [
    MessageEntry(text="t", speaker="ann", packed="{}", whole="ab", chars=9),
    NoticeEntry(text="t", packed="", unheard=True),
    ReplyEntry(text="t", thought="h", calls=(CALL,), reasoning=("{}",), source="s"),
    ReplyEntry(text="t", speaker="ann", to="bob", whole="ab", chars=9),
    CallStarted(call_id="c", name="f", version="v", arguments="{}"),
    CLIENT_CALL,
    CallAnswered(call_id="c", name="f", text="t", outcome="o", seconds=1.5, detail={"a": [1]}),
    CallAnswered(call_id="c", name="f", text="t", whole="ab", chars=9, arguments="{}"),
    SummaryEntry(text="t", covers=2, upto=3, said=(Quote("user", "q"),), asked="a"),
    RequestEntry(program="1", model="m", parameters={"a": 1}, sections=("ab",), functions=("f",)),
    Usage(model="m", prompt_tokens=1, completion_tokens=2, estimated=True, context_limit=0),
    ClientEntry(text="t", event="message"),
    ParkedEntry(asks=({"id": "a"},)),
    ParkedEntry(calls=({"id": "c"},)),
    SpeakerChosen(agent="ann", rule="r", reason="w", passed=("x",), asked_model=True),
    ProgramEntry(id="c", program="p", at=1.0, text="t", form="f", sealed=("a", "b")),
    InnerCallEntry(id="c.1", name="f", arguments="{}", reaches=False, **INNER),
    InnerGrantEntry(**INNER),
    InnerAnswerEntry(call_id="c.1", name="f", outcome="o", text="t", detail={}, **INNER),
    KeptEntry(values={"a": "1"}),
    EffectsEntry(made={"called": {"f": 1}}),
    ReachEntry(call="c", place="a.org"),
    ReceiptEntry(made={}, reply="", steps=0, usage={"prompt_tokens": 1}),
    EndEntry(text="t"),
    StreamedEntry(text="t"),
    events.Warned(message="m", fix="f"),
]


async def test_what_an_entry_holds_comes_back_of_every_class(store: Store) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [write_entry(held) for held in HELD])
    stored = await store.load(turn.id)
    assert [read_entry(entry) for entry in stored] == HELD
    assert {type(held) for held in HELD} >= {*get_args(OwnEntry)}


async def test_the_marks_of_a_turn_are_beside_what_its_entry_holds(store: Store) -> None:
    sent: dict[str, Any] = {"message_id": "id-1", "origin": "page"}
    marks = TurnMarks(step=0, begins="heartbeat", said="", trace="00-1", **sent)
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [mark(write_entry(HELD[0]), marks), write_entry(HELD[0])])
    marked, plain = await store.load(turn.id)
    assert (read_entry(marked), read_marks(marked)) == (HELD[0], marks)
    assert (read_entry(plain), read_marks(plain)) == (HELD[0], TurnMarks())


TOLD_AS_STORED = [held for held in HELD if isinstance(held, get_args(events.Event))]


@pytest.mark.parametrize("held", TOLD_AS_STORED, ids=lambda held: str(held.type))
def test_what_is_told_as_it_is_stored_is_the_entry_with_its_place(held: Any) -> None:
    begun = mark(write_entry(MessageEntry(text="t")), TurnMarks(step=0, begins="message"))
    fold = EventFold.at("main", replace(begun, turn="turn-1"))
    fold.of(begun, 1)
    own = mark(write_entry(held), TurnMarks(step=2))
    [told] = fold.of(replace(own, turn="turn-1"), 7)
    assert (told.turn, told.step, told.seq) == ("turn-1", 2, 7)
    unplaced = replace(told, turn="", step=0, seq=0)
    assert unplaced == (replace(held, arguments="{}") if held == CLIENT_CALL else held)


EARLIER = [
    (Entry("assistant", {"text": "t"}), ReplyEntry(text="t")),
    (Entry("assistant", {"text": "t", "thought": None}), ReplyEntry(text="t")),
    (Entry("user", {"text": "t", "speaker": None, "more": 1}), MessageEntry(text="t")),
    (Entry("call", {"id": "c"}), CallStarted(call_id="c")),
    (
        Entry("program", {"id": "c", "program": "p", "at": 1}),
        ProgramEntry(id="c", program="p", at=1),
    ),
]


@pytest.mark.parametrize(("entry", "held"), EARLIER, ids=lambda value: getattr(value, "kind", ""))
def test_what_an_earlier_version_did_not_write_has_its_default(
    entry: Entry, held: OwnEntry
) -> None:
    assert read_entry(entry) == held


RECORDS = [
    Entry("usage", {"prompt_tokens": "many"}),
    Entry("inner_result", {"call_id": "c"}),
    Entry("receipt", {"made": 5}),
    Entry("speaker", {}),
    Entry("parked", {"calls": [1]}),
    Entry("grant_asked", {"question": 5}),
    Entry("of_a_later_version", {}),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda entry: entry.kind)
async def test_a_record_of_another_shape_is_read_as_unknown_and_costs_the_conversation_nothing(
    store: Store, record: Entry
) -> None:
    turn = await begin(store)
    await store.append(turn.id, 1, 0, [user("mine"), record])
    held: list[JournalEntry] = [read_entry(entry) for entry in await store.load(turn.id)]
    assert held == [MessageEntry(text="mine"), UnknownEntry()]
