"""Forgetting in the store: it is done or not, even if interrupted, and every table with text is searched."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_core.base.clock import Clock
from agent_core.base.errors import StorageError
from agent_core.base.matching import Mention
from agent_core.base.messages import Assistant, Call
from agent_core.context import History, rebuilt, resume
from agent_core.context.folds import messages_of
from agent_core.memory import words
from agent_core.memory.classes import from_row
from agent_core.runtime.taken_up import entry_of_agent, said_by
from agent_core.storage import (
    NOBODY,
    SUMMARY,
    AnswerAsk,
    AttachBlock,
    BlockRow,
    ClaimedTurn,
    Entry,
    Erasure,
    LimitBlock,
    MessageGone,
    PassageRow,
    Post,
    QuestionRow,
    SaveAgent,
    SaveBlock,
    SavePassages,
    SaveRecorded,
    SaveState,
    SaveVectors,
    SendMessage,
    StateConflict,
    Store,
    TurnsGone,
    Write,
    open_store,
)
from agent_core.storage.journal import assistant
from agent_core.storage.turn_store import WakeAsker
from agent_core.workspace.portable.document import agent_of, document_of
from tests.storage.support import ManualClock, begin, say, user

NAME = "Quillon"


def erasing(target: Any) -> Erasure:
    def summed(summary: Entry, entries: Sequence[Entry]) -> Entry | None:
        return rebuilt(summary, messages_of(entries))

    return Erasure(target, words.indexed, summed, said_by)


async def filled(path: Path, passages: int = 600) -> Store:
    store = open_store(path, clock=Clock())
    await say(store, f"my friend is {NAME}", agent="main")
    turn = await claimed(store, "we met in Bergen")
    text = f"They met in Bergen. {NAME} is a friend; likes tea. Open: nothing."
    said = [
        {"by": "user", "text": f"my friend is {NAME}"},
        {"by": "user", "text": "we met in Bergen"},
    ]
    upto = (await store.history("main"))[-1].seq
    await store.append(
        *turn, [Entry(SUMMARY, {"text": text, "covers": 2, "upto": upto, "said": said})]
    )
    rows = tuple(
        PassageRow(f"p-{n}", "main", f"{NAME} {n}", f"quillon {n}", 1.0) for n in range(passages)
    )
    await store.apply([SavePassages(rows)])
    missing = await store.unembedded("archival", "space", 10_000)
    vector = bytes(4 * 7) + b"\x00\x00\x80\x3f"
    await store.apply(
        [SaveVectors("archival", "space", tuple((seq, vector) for seq, _ in missing))]
    )
    return store


async def claimed(store: Store, text: str) -> tuple[str, int, int]:
    await store.post(Post("main", "message", {"text": text}))
    turn = await store.next("main", "test")
    assert turn is not None
    done = await store.append(turn.id, turn.attempt, 0, [Entry("user", {"text": text})])
    return turn.id, turn.attempt, done.n


def dumped(path: Path) -> str:
    """Return all rows of all tables, including those of the word and character indexes."""
    db = apsw.Connection(str(path))
    names = [
        row[0]
        for row in db.execute(
            "select name from sqlite_schema where type = 'table' and sql not like '%virtual%'"
        )
    ]
    return "\n".join(repr(row) for name in names for row in db.execute(f'select * from "{name}"'))


def failing(text: str, at: float | None, tags: Sequence[str]) -> str:
    raise ZeroDivisionError


async def test_a_summary_loses_the_sentence_and_no_index_keeps_the_stem_or_nothing_is_changed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    store = await filled(path, 5_200)  # more than are compared one by one
    before = dumped(path)
    assert "quillon" in before.lower()
    with pytest.raises(ZeroDivisionError):  # in the middle
        await store.forget(replace(erasing(Mention(NAME)), words=failing))
    assert dumped(path) == before
    counts = await store.rehearse(erasing(Mention(NAME)))
    assert await store.forget(erasing(Mention(NAME))) == counts
    assert counts["passages"] == counts["vectors"] == 5_200
    (summary,) = await store.history("main", kinds=(SUMMARY,))
    assert summary.payload["text"] == "They met in Bergen. likes tea. Open: nothing."
    assert summary.payload["said"] == [{"by": "user", "text": "we met in Bergen"}]
    assert await store.check() is None
    await store.close()
    assert "quillon" not in dumped(path).lower()
    assert b"uillon" not in path.read_bytes()


async def test_a_summary_that_covers_a_forgotten_turn_is_made_anew_of_what_is_left(
    tmp_path: Path,
) -> None:
    store = await filled(tmp_path / "state.db")
    counts = await store.forget(erasing(TurnsGone("main", [1])))
    (summary,) = await store.history("main", kinds=(SUMMARY,))
    assert (counts["summaries"], summary.payload["text"], summary.payload["covers"]) == (1, "", 1)
    assert [quote["text"] for quote in summary.payload["said"]] == ["we met in Bergen"]
    assert await store.check() is None
    await store.close()


async def test_a_summary_of_earlier_turns_stays_as_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state.db", clock=Clock())
    await say(store, "we met in Bergen", agent="main")
    upto = (await store.history("main"))[-1].seq
    turn = await begin(store)
    summary = {"text": "They met in Bergen.", "covers": 1, "upto": upto, "said": []}
    await store.append(turn.id, turn.attempt, 0, [user("it rains"), Entry(SUMMARY, summary)])
    await store.finish(turn.id, turn.attempt)
    await say(store, "it snows", agent="main")
    counts = await store.forget(erasing(TurnsGone("main", [3])))
    (after,) = await store.history("main", kinds=(SUMMARY,))
    assert (counts.get("summaries", 0), after.payload) == (0, summary)
    assert "it snows" not in str(await store.history("main"))
    await store.close()


def mark(path: Path) -> Path:
    return path.with_name("state.db.scrub")


async def test_what_ends_before_the_file_is_written_anew_is_finished_by_the_next_opening(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    store = await filled(path)
    await store.close()
    db = apsw.Connection(str(path))
    db.execute("update entry set payload = replace(payload, 'Quillon', 'X')")
    db.execute("delete from passage")
    db.execute("delete from vector")
    db.close()
    mark(path).touch()
    assert b"Quillon 77" in path.read_bytes()
    async with open_store(path, clock=Clock()) as again:
        assert await again.check() is None
    assert b"Quillon 77" not in path.read_bytes()
    assert not mark(path).exists()


async def test_a_reader_of_an_earlier_state_is_waited_for_and_the_log_is_emptied(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=Clock()) as store:
        await store.apply([SavePassages((PassageRow("p", "main", NAME, "quillon", 1.0),))])
        reader = reading(path)
        asyncio.get_running_loop().call_later(1.0, reader.close)
        await store.forget(erasing(Mention(NAME)))
        assert not mark(path).exists()
        assert b"uillon" not in path.read_bytes() + path.with_name("state.db-wal").read_bytes()


async def test_a_reader_that_goes_on_is_named_and_the_log_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.storage.sqlite.connection.BUSY_MS", 1_000)
    path = tmp_path / "state.db"
    async with open_store(path, clock=Clock()) as store:
        await store.apply([SavePassages((PassageRow("p", "main", NAME, "quillon", 1.0),))])
        reader = reading(path)
        with pytest.raises(StorageError, match="It is forgotten, but its bytes are still in"):
            await store.forget(erasing(Mention(NAME)))
        assert mark(path).exists()
        reader.close()
        async with open_store(path, clock=Clock()):
            assert not mark(path).exists()
        assert b"uillon" not in path.read_bytes() + path.with_name("state.db-wal").read_bytes()


def reading(path: Path) -> apsw.Connection:
    """Return a connection in the middle of reading the current state."""
    db = apsw.Connection(str(path))
    list(db.execute("begin"))
    list(db.execute("select * from passage"))
    return db


async def test_a_name_is_found_in_every_form_of_writing_within_json_within_json(
    tmp_path: Path,
) -> None:
    path, twice = tmp_path / "state.db", json.dumps(json.dumps("Zoë"))
    forms = ("Zoë", "ZOË", "Zoe\u0308", json.dumps("Zoë"), twice, "Zo%C3%AB", "Zo&euml;", "Zo\\xeb")
    async with open_store(path, clock=Clock()) as store:
        turns = []
        for text in forms:
            turn = await claimed(store, "hello")
            call = {"id": "call-1", "name": "find", "arguments": json.dumps({"who": text, text: 1})}
            answer = {
                "call_id": "call-1",
                "name": "find",
                "text": json.dumps({"who": text}),
                "detail": {text: [text, 7]},
            }
            entries = [
                Entry("assistant", {"text": "", "thought": text, "calls": [call]}),
                Entry("result", answer),
            ]
            await store.append(*turn, entries)
            await store.finish(turn[0], turn[1])
            turns.append(turn[0])
        await store.forget(erasing(Mention("zoë")))
        for text, name in zip(forms, turns, strict=True):
            said = messages_of(await store.load(name))
            assert "Zo" not in str(said), text
            arguments = json.loads(said[1].calls[0].arguments)  # type: ignore[union-attr]
            assert arguments["who"].strip('"\\') == "[forgotten]", text
    assert b"Zo" not in path.read_bytes()
    assert b"ZO" not in path.read_bytes()


async def test_a_call_that_read_a_forgotten_text_in_a_state_cannot_write_it_back(
    store: Store,
) -> None:
    for turn, friend in (("turn-1", NAME), ("turn-2", f"{NAME} Ada")):
        rows = await store.states("friends")
        await store.apply(
            [SaveState("friends", {"friend": friend}, rows[-1].n if rows else 0, turn)]
        )
    await store.apply([SaveState("count", 1, 0)])
    (count,), before = (await store.states("count"))[1:], await store.states("friends")
    await store.forget(erasing(Mention(NAME)))
    with pytest.raises(StateConflict):
        await store.apply([SaveState("friends", {"friend": NAME, "seen": True}, before[-1].n)])
    after = await store.states("friends")
    assert [(row.turn, row.at) for row in after] == [(row.turn, row.at) for row in before]
    assert [row.value for row in after] == [
        {},
        {"friend": "[forgotten]"},
        {"friend": "[forgotten] Ada"},
    ]
    await store.apply(
        [SaveState("friends", {"friend": "Ada"}, after[-1].n), SaveState("count", 2, count.n)]
    )


async def test_a_call_that_read_the_state_of_a_forgotten_turn_cannot_write_it_back(
    store: Store,
) -> None:
    turn = await begin(store)
    state = SaveState("friends", {"friend": NAME}, 0, turn.id)
    await store.append(turn.id, 1, 0, [user("hi")], writes=[state])
    await store.finish(turn.id, 1)
    read = (await store.states("friends"))[-1]
    await store.forget(erasing(TurnsGone("main", await store.turns_before("main", 2e9))))
    with pytest.raises(StateConflict):
        await store.apply([SaveState("friends", {"friend": NAME, "seen": True}, read.n)])
    assert NAME not in str(await store.states("friends"))


async def test_a_word_that_was_added_to_an_answer_is_forgotten_with_it(store: Store) -> None:
    for id, word in (("told", f"Ask {NAME} first."), ("plain", "Not now.")):
        await store.ask_user(QuestionRow(id, "main", NOBODY, {"function": "weather"}))
        await store.answer_question(id, {"answer": "no", "word": word, "by": "human"})
    counts = await store.forget(erasing(Mention(NAME)))
    assert counts == {"questions about grants": 1}
    assert await store.take_answer("told") is None
    assert await store.take_answer("plain") is not None


async def take(
    store: Store, agent: str, *entries: Entry, writes: Sequence[Write] = ()
) -> ClaimedTurn:
    """Take an agent's next event in a turn with these entries after that of the event."""
    turn = await store.next(agent, "test")
    assert turn is not None
    first = entry_of_agent(turn.event) or Entry("user", {"text": turn.event.text})
    await store.append(turn.id, turn.attempt, 0, [first, *entries], writes=writes)
    await store.finish(turn.id, turn.attempt, writes=[WakeAsker(turn.id)])
    return turn


def result(call: str, name: str, **more: Any) -> Entry:
    return Entry(
        "result",
        {"call_id": call, "name": name, "outcome": "returned", "text": f"{NAME} {call}", **more},
    )


async def worked(store: Store) -> None:
    """Let `main` run a program and a helper and ask `editor`, whose answer it reads in its next turn."""
    names = {"c1": "run_program", "c2": "proofreader", "c3": "ask_agent"}
    calls = tuple(
        Call(id, name, json.dumps({"text": f"{NAME} {id}"})) for id, name in names.items()
    )
    inner = {"program": "key", "ordinal": 1, "name": "slug"}
    entries = [
        assistant(Assistant("", calls)),
        Entry("program", {"id": "c1", "program": "key", "at": 1.0, "text": "its digest"}),
        Entry("inner_call", {**inner, "id": "c1.1", "arguments": json.dumps({"text": NAME})}),
        Entry("inner_result", {**inner, "call_id": "c1.1", "text": NAME, "outcome": "returned"}),
        result("c1", "run_program"),
        Entry("kept", {"values": {"friend": f'"{NAME}"', "count": "1"}}),
        *(result(id, names[id]) for id in ("c2", "c3")),
    ]
    await store.post(Post("main", "message", {"text": f"Ask about {NAME}."}))
    turn = await take(store, "main", *entries)
    ask = SendMessage("ask-1", "ask", "main", "editor", f"Who is {NAME}?", turn.id, turn.id)
    settings = {"caller": "main", "turn": turn.id, "call": "c2"}
    recorded = SaveRecorded("slug", "returned", turn.id, {"arguments": NAME})
    await store.apply([ask, SaveAgent("helper--proofreader-1", settings), recorded])
    await store.post(Post("helper--proofreader-1", "message", {"text": f'{{"text": "{NAME}"}}'}))
    await take(store, "helper--proofreader-1")
    answer = f"{NAME} is a friend."
    await take(store, "editor", assistant(Assistant(answer)), writes=[AnswerAsk("ask-1", answer)])
    kept = [
        Entry("kept", {"values": {"friend": f'"{NAME}"', "count": count}}) for count in ("2", "1")
    ]
    await take(store, "main", *kept, assistant(Assistant("I see.")))


async def stored(store: Store) -> str:
    """Return all that is stored of all agents, with their messages and recorded calls."""
    agents = [await store.read_agent(name) for name in await store.agent_names()]
    turns = [turn for agent in agents if agent for turn in agent.turns]
    letters = [await store.letters(thread.id) for thread in await store.threads()]
    return repr(
        [
            agents,
            *([[*turn.events], [*turn.entries]] for turn in turns),
            letters,
            await store.recorded_calls(),
        ]
    )


@pytest.mark.parametrize("unit", ["turns", "messages"])
async def test_what_is_forgotten_leaves_nothing_with_others_or_in_programs(
    store: Store, unit: str
) -> None:
    await worked(store)
    assert "[forgotten]" not in await stored(store)
    first, last = await store.turns_before("main", 1e12)
    (others,) = await store.turns_before("editor", 1e12)
    targets: list[Any] = [TurnsGone("main", [first]), TurnsGone("editor", [others])]
    if unit == "messages":
        kinds = ("user", "assistant", "result")
        of = {agent: await store.history(agent, kinds=kinds) for agent in ("main", "editor")}
        targets = [
            MessageGone(agent, entry.seq)
            for agent, entries in of.items()
            for entry in reversed(entries)
        ]
    for target in targets:
        looked = await store.rehearse(erasing(target))
        assert await store.forget(erasing(target)) == looked
    kept = await store.history("main", kinds=("kept",))
    assert [entry.payload["values"] for entry in kept[-2:]] == [{"count": "2"}, {"count": "1"}]
    assert await store.history("main", kinds=("program",)) == []
    if unit == "turns":
        await store.forget(erasing(TurnsGone("main", [last])))
    assert NAME not in await stored(store)
    assert await store.agent_names() == (["editor", "main"] if unit == "messages" else [])
    assert await store.check() is None


async def test_forgetting_a_reply_leaves_the_answers_of_others_that_used_the_same_ids(
    store: Store,
) -> None:
    pairs = [
        entry
        for n in range(3)
        for entry in (assistant(Assistant("", (Call("c1", "slug", "{}"),))), result("c1", str(n)))
    ]
    await store.post(Post("main", "message", {"text": "Go."}))
    await take(store, "main", *pairs)
    replies = await store.history("main", kinds=("assistant",))
    await store.forget(erasing(MessageGone("main", replies[1].seq)))
    answers = [entry.payload["text"] for entry in await store.history("main", kinds=("result",))]
    assert answers == [f"{NAME} c1", "[forgotten]", f"{NAME} c1"]


async def test_what_one_agent_forgets_takes_nothing_from_another(
    store: Store, clock: ManualClock
) -> None:
    plan = BlockRow("b", "plan", "Goal: A", 99, shared=True)
    await store.apply(
        [
            SaveBlock(plan, "ann", "made"),
            LimitBlock("b", ("bob",), ("bob",)),
            AttachBlock("bob", "b"),
        ]
    )
    clock.time += 9
    await store.apply(
        [
            SaveBlock(
                replace(plan, value="Goal: B", version=2),
                "bob",
                '"Goal: A" became "Goal: B"',
                "human",
            )
        ]
    )
    for agent, before, history in (
        ("bob", 99, [("Goal: A", "made"), ("Goal: B", '"Goal: A" became "Goal: B"')]),
        ("ann", -5, [("Goal: B", "forgotten")]),  # the later line quotes the earlier text
        ("ann", 99, [("Goal: B", "forgotten")]),
    ):
        await store.forget(erasing(TurnsGone(agent, [], clock.time + before)))
        assert [(line.value, line.action) for line in await store.block_history("b")] == history
        assert (await store.block_access("b")).owner == "ann"
        assert [row.label for row in await store.blocks("ann")] == ["plan"]


async def test_a_line_of_history_does_not_quote_what_a_forgotten_turn_wrote(store: Store) -> None:
    turn = await begin(store)
    block, line = BlockRow("b", "human", f"Met {NAME}", 99), f'"Met {NAME}" became "Likes tea"'
    await store.append(
        turn.id, 1, 0, [user("hi")], writes=[SaveBlock(block, "main", NAME, turn=turn.id)]
    )
    await store.finish(turn.id, 1)
    await store.apply(
        [SaveBlock(replace(block, value="Likes tea", version=2), "main", line, "human")]
    )
    await store.forget(erasing(TurnsGone("main", await store.turns_before("main", 2e9))))
    assert NAME not in str(await store.block_history("b"))
    assert (await store.block_access("b")).owner == "main"


async def test_a_block_loses_every_sentence_that_a_text_touches_and_stays_within_its_limit(
    store: Store,
) -> None:
    rows = (
        ("a. b", "zz zz zz zz zz a. b", ""),  # across the end of a sentence
        ("Dr. Li", "Tea. See Dr. Li, 5 pm. Dr. Li sings!\n\n.. Pie ", "Tea.\n\n.. Pie "),  # twice
        (
            "Ann Lee",
            "Tea. Ann\nLee came. Pie.\nTea.",
            "Tea.\nPie.\nTea.",
        ),  # across the end of a line
        ("pie tea", "My pie. Pie tea. Tea.", "My pie. Tea."),  # as a sentence of its own
        ("x. y", "1 x. 2 x. y. y.", "1 …."),  # put together by what goes
    )
    for number, (sought, text, left) in enumerate(rows):
        agent = f"agent{number}"
        await store.apply([SaveBlock(BlockRow(sought, "note", text, len(text)), agent, "made")])
        await store.forget(erasing(Mention(sought)))
        [row] = await store.blocks(agent)
        assert (row.value, from_row(row).text) == (left, left), sought


@pytest.mark.parametrize(
    ("sought", "forms"),
    [
        pytest.param(
            "Großmann",
            ("GROSSMANN", "grossmann", "GROẞMANN", "Gro\\u00dfmann", "GRO&szlig;MANN"),
            id="ß",
        ),
        pytest.param("SCHLOSSSTRASSE", ("Schloßstraße", "Schlossstraße"), id="three in a row"),
        pytest.param("Griffin", ("Gri\ufb03n", "GRI\ufb00IN", "Gri\\ufb03n"), id="ligatures"),
        pytest.param(
            "ὈΔΥΣΣΕΎΣ",
            ("Ὀδυσσεύς", "\\u1f48\\u03b4\\u03c5\\u03c3\\u03c3\\u03b5\\u03cd\\u03c2"),
            id="sigma",
        ),
        pytest.param("Kim", ("\u212aim", "\\u212aim"), id="a sign that is a letter"),
        pytest.param("İpek", ("İPEK", "i\u0307pek"), id="a letter with a dot"),
    ],
)
def test_a_text_is_found_in_any_case_also_where_a_letter_becomes_two(
    sought: str, forms: Sequence[str]
) -> None:
    for text in forms:
        assert Mention(sought).without(f"<{text}>") == "<[forgotten]>", text
    assert Mention(sought, exact=True).count(forms[0]) == 0


async def test_a_turn_goes_without_the_turns_in_which_a_client_answers_its_calls(
    store: Store,
) -> None:
    said = Entry("assistant", {"text": "Ok.", "calls": []})
    called = [
        Entry("assistant", {"text": "", "calls": [{"id": id, "name": "look", "arguments": "{}"}]})
        for id in "ab"
    ]
    answers = [Entry("result", {"call_id": id, "name": "look", "text": NAME}) for id in "ab"]
    for gone in ([0], [1], [2], [0, 1], [1, 2], []):
        agent = "".join(map(str, ["a", *gone]))
        for state, entries in (
            ("client_calls", [user("look"), called[0]]),
            ("client_calls", [answers[0], called[1]]),
            ("done", [answers[1], said]),
            ("done", [user("thanks"), said]),
        ):
            turn = await begin(store, agent)
            await store.append(turn.id, 1, 0, entries)
            await store.finish(turn.id, 1, state)
        turns = await store.turns_before(agent, 2e9)
        await store.forget(erasing(TurnsGone(agent, [turns[number] for number in gone])))
        await resume(store, agent, history := History())
        assert history.open_calls() == (), gone
        whole = await store.read_agent(agent)
        assert whole is not None
        assert len(agent_of(document_of(whole), words.indexed).turns) == 4 - len(gone), gone
        assert str(whole).count(NAME) == sum(
            {number, number + 1}.isdisjoint(gone) for number in (0, 1)
        ), gone
    assert await store.check() is None
