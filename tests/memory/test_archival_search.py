"""Archival memory: passages are found, shown with their tags and places, and deleted by id."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.base.errors import UsageError
from agent_core.memory.embedding import embedder
from agent_core.storage import SavePassages
from tests.memory.talk import Talk, open_talk


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    opened = open_talk(tmp_path)
    yield opened
    await opened.store.close()


async def _keep(talk: Talk, content: str, *tags: str) -> str:
    edit = await talk.archival().insert(content, tags)
    await talk.store.apply(edit.writes)
    return edit.text


async def test_a_passage_is_found_by_meaning_and_by_words(talk: Talk) -> None:
    for fact in (
        "The boiler was serviced in autumn.",
        "Her cat is named Pixel.",
        "The rent is 900 euros.",
    ):
        await _keep(talk, fact)
    archival = talk.archival(embedder("wordllama"))
    assert (
        (await archival.search("how much is paid for the flat, in euro"))
        .items[0]
        .text.startswith("The rent")
    )
    assert (await archival.search("kitten")).items[0].text.startswith("Her cat")


async def test_tags_are_a_condition_and_are_shown(talk: Talk) -> None:
    await _keep(talk, "The red plan", "Work", "draft")
    await _keep(talk, "The blue plan", "home")
    found = await talk.archival().search("plan", ["work", "draft"])
    assert [item.text for item in found.items] == ["The red plan"]
    assert "tags work, draft" in str(found)


async def test_no_passage_without_the_tags_takes_the_place_of_one_with_them(talk: Talk) -> None:
    await _keep(talk, "The meeting on the budget agreed on the vault code 4711.", "beta", "alpha")
    usual = [talk.archival().passage(f"budget meeting {n}", tags=("alpha",)) for n in range(200)]
    await talk.store.apply([SavePassages(tuple(usual))])
    archival = talk.archival(embedder("wordllama"))
    await archival.vectors.embed_all()
    for query, archive in [
        ("budget meeting", talk.archival()),
        ("seminar about expenses", archival),
        ("", archival),
    ]:
        found = await archive.search(query, ["alpha", "beta"])
        assert ("4711" in found.items[0].text, found.total) == (True, 1), query


async def test_a_passage_of_a_source_says_where_it_is_from(talk: Talk) -> None:
    passage = talk.archival().passage("Tides rise twice a day.", "sea.pdf", "page 3", "hash")
    await talk.store.apply([SavePassages((passage,))])
    assert "sea.pdf, page 3" in str(await talk.archival().search("tides"))


async def test_without_a_question_the_newest_come_first(talk: Talk) -> None:
    for number in range(3):
        await _keep(talk, f"fact {number}")
    assert [item.text for item in (await talk.archival().search("", count=2)).items] == [
        "fact 2",
        "fact 1",
    ]
    assert not (await talk.archival().search("", page=10**19)).items


async def test_an_id_that_names_no_one_passage_is_refused(talk: Talk) -> None:
    for id in ["", "01", "ffff-not-there"]:
        await _keep(talk, "The code is 1234.")
        with pytest.raises(UsageError, match="No one passage"):
            await talk.archival().delete(id)


async def test_nothing_is_kept_of_an_empty_text(talk: Talk) -> None:
    with pytest.raises(UsageError, match="empty"):
        await talk.archival().insert("  \n")
