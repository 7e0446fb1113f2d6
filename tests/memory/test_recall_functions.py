"""The functions of recall and archival, called by a model in a turn."""

from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import answers


async def test_what_was_said_in_an_earlier_turn_is_found_by_the_model(at_desk: OpenDesk) -> None:
    search = Wanted("conversation_search", {"query": "Who is the dentist?"})
    today = Wanted("conversation_search_date", {"start_date": "today"})
    desk = await at_desk([Say("Noted."), Ask(search), Ask(today), Repeat(Say("Done."))])
    await desk.say("My dentist is Doctor Okafor.")
    found, dated = answers(await desk.say("Go."))
    assert "user: My dentist is Doctor Okafor." in found
    assert "Showing 3 of 3 messages" in dated


async def test_a_passage_is_kept_found_and_deleted_by_the_model(at_desk: OpenDesk) -> None:
    keep = Wanted(
        "archival_memory_insert", {"content": "The boiler is from 1998.", "tags": ["home"]}
    )
    search = Wanted("archival_memory_search", {"query": "boiler", "tags": ["home"]})
    desk = await at_desk([Ask(keep), Ask(search), Repeat(Say("Done."))])
    kept, found = answers(await desk.say("Go."))
    assert kept.endswith("archival memory now holds 1 passage.")
    assert "tags home: The boiler is from 1998." in found
    edit = await desk.agent.memory.archival.delete(kept.split()[2].strip(";"))
    assert len(edit.writes) == 1
