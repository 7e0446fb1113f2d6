"""Recall: messages are found by words, meaning, speaker and time."""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent_core.memory.embedding import Embedder, embedder
from agent_core.storage import DropAgent
from tests.memory.talk import Talk, open_talk


class Lengths:
    """A poor embedding model: all texts are alike."""

    space, recipe = "lengths/2", "endpoint"
    lexicon: Embedder | None = None

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [struct.pack("<2f", 1, 0) for _ in texts]


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    opened = open_talk(tmp_path)
    yield opened
    await opened.store.close()


async def _told(talk: Talk) -> None:
    await talk.say(
        "2026-03-02 10:00",
        ("user", "My dentist is Doctor Okafor in Lisbon."),
        ("assistant", "Noted, thank you."),
    )
    await talk.say(
        "2026-03-02 18:00", ("user", "What is your favourite colour?"), ("assistant", "Deep green.")
    )
    await talk.say(
        "2026-05-19 09:00", ("user", "I adopted a puppy last week, we call her Biscuit.")
    )


async def test_a_message_is_found_by_another_form_of_its_word(talk: Talk) -> None:
    await _told(talk)
    found = await talk.recall().search("who are the dentists")
    assert found.items[0].text.startswith("My dentist")


async def test_an_answer_is_found_by_the_question_that_stands_before_it(talk: Talk) -> None:
    await _told(talk)
    recall = talk.recall()
    await recall.catch_up()
    evidence, _ = await recall.gather("favourite colour")
    assert [row.text for row in (await recall.ranked(evidence))[:2]] == [
        "Deep green.",
        "What is your favourite colour?",
    ]


async def test_meaning_finds_what_shares_no_word_with_the_question(talk: Talk) -> None:
    await _told(talk)
    found = await talk.recall(embedder("wordllama")).search("does the user own a dog")
    assert "Biscuit" in found.items[0].text


async def test_a_question_without_words_is_answered(talk: Talk) -> None:
    for query in ["\x86\x8f\x91\U0010f8a5", "?!", "🦊"]:
        await _told(talk)
        assert (await talk.recall(embedder("wordllama")).search(query)).items is not None, query


async def test_a_month_in_the_question_brings_what_was_said_then(talk: Talk) -> None:
    for month in ("01", "02", "03"):
        await talk.say(
            f"2026-{month}-10 10:00", ("user", "I went hiking in the hills with my brother today.")
        )
    found = await talk.recall().search("hiking in February")
    assert found.items[0].at == pytest.approx(talk.at[0] - 28 * 86_400, abs=3_700)


async def test_a_message_of_the_named_speaker_goes_first(talk: Talk) -> None:
    await talk.say("2026-01-01 10:00", ("Maria", "I play the cello."), ("Tom", "I play the cello."))
    found = await talk.recall().search("which instrument does Tom play, the cello?")
    assert found.items[0].who == "Tom"


async def test_only_what_people_and_the_assistant_said_is_searched(talk: Talk) -> None:
    await talk.say(
        "2026-01-01 10:00",
        ("user", "zebra one"),
        ("notice", "zebra two"),
        ("result", "zebra three"),
    )
    assert [item.text for item in (await talk.recall().search("zebra")).items] == ["zebra one"]


async def test_what_was_sent_counts_and_not_the_thought_before_it(talk: Talk) -> None:
    sent = [
        {"id": "1", "name": "send_message", "arguments": '{"message": "The zebra is striped."}'}
    ]
    await talk.say("2026-01-01 10:00", ("assistant", "I should tell of the zebra."), calls=sent)
    assert [item.text for item in (await talk.recall().search("zebra")).items] == [
        "The zebra is striped."
    ]


async def test_catching_up_takes_only_what_is_new(talk: Talk) -> None:
    recall = talk.recall()
    await talk.say("2026-01-01 10:00", ("user", "one"), ("assistant", "two"))
    assert await recall.catch_up() == 2
    await talk.say("2026-01-01 10:01", ("user", "three"))
    assert await recall.catch_up() == 1
    assert await talk.recall().catch_up() == 0


async def test_a_session_begins_after_a_long_silence(talk: Talk) -> None:
    await _told(talk)
    await talk.recall().catch_up()
    said = await talk.store.messages_beside("ann", range(5))
    assert [row.session for row in said] == [0, 0, 1, 1, 2]
    assert [row.asks for row in said] == [False, False, True, False, False]
    assert said[4].timed


async def test_pages_follow_one_another_and_say_how_many_there_are(talk: Talk) -> None:
    await talk.say("2026-01-01 10:00", *[("user", f"zebra number {number}") for number in range(7)])
    recall = talk.recall()
    pages = [await recall.search("zebra", page, 3) for page in range(4)]
    assert [len(found.items) for found in pages] == [3, 3, 1, 0]
    assert len({item.seq for found in pages for item in found.items}) == 7
    assert (
        "Showing 3 of 7 messages (page 0, pages 0 to 2); page=1 with count=3 has the next."
        in str(pages[0])
    )
    assert "There is no page 3" in str(pages[3])


async def test_dates_in_natural_forms_give_what_was_said_between_them(talk: Talk) -> None:
    await _told(talk)
    talk.at[0] += 86_400
    recall = talk.recall()
    assert (await recall.on_dates("March 2026", "")).total == 4
    assert [item.text[:9] for item in (await recall.on_dates("yesterday", "today")).items] == [
        "I adopted"
    ]
    assert (await recall.on_dates("2026-05-19", "2026-03-02")).total == 5


async def test_a_word_that_no_result_holds_is_said(talk: Talk) -> None:
    await _told(talk)
    assert "No result contains: helicopter" in str(await talk.recall().search("dentist helicopter"))


async def test_a_long_message_is_shown_around_the_words_asked_for(talk: Talk) -> None:
    await talk.say(
        "2026-01-01 10:00", ("user", f"{'filler ' * 400}the zebra sleeps {'filler ' * 400}")
    )
    line = str(await talk.recall().search("zebra"))
    assert "the zebra sleeps" in line
    assert "read_on(name='text-" in line
    assert len(line) < 1_000


async def test_another_model_embeds_everything_anew_and_the_old_vectors_go(talk: Talk) -> None:
    await _told(talk)
    await talk.recall(embedder("wordllama")).catch_up()
    assert await talk.recall(Lengths()).vectors.embed_all() == 5
    assert await talk.store.unembedded("recall", "wordllama-l2-supercat/256", 9) != []


async def test_without_its_model_search_goes_on_by_words_and_says_so(talk: Talk) -> None:
    await _told(talk)
    away = embedder("endpoint", model="none-such", url="http://127.0.0.1:9/v1")
    found = await talk.recall(away).search("dentist")
    assert found.items[0].text.startswith("My dentist")
    assert "by words alone" in str(found)


async def test_a_search_that_meets_a_deletion_answers_with_what_is_left(talk: Talk) -> None:
    for number in range(30):
        await talk.say("2026-03-02 10:00", ("user", f"My dentist number {number} is in Lisbon."))
    await talk.recall().catch_up()

    async def searched(delay_s: float) -> int:
        await asyncio.sleep(delay_s)
        return (await talk.recall().search("dentist in Lisbon")).total

    searches = asyncio.gather(*(searched(number / 2_000) for number in range(40)))
    await asyncio.sleep(0.01)
    await talk.store.apply([DropAgent("ann")])
    assert {*await searches} <= {0, 30}
    assert await searched(0) == 0
