"""A conversation of any length fits a small window: no request is rejected, and no message is lost."""

from pathlib import Path

import pytest

from agent_core.storage import SUMMARY
from tests.context.long_talk import in_json, journal, not_found, periods, talk, talkative
from tests.kit import Repeat, Say, scripted
from tests.kit.desk import desk, ended

WINDOW = 4_000


async def go_through(root: Path, turns: int) -> list[int]:
    """Run the conversation and check it; return how often the model was warned in each period."""
    told = in_json("What happened: they talked about the weather.")
    small = {"model__mode": "constrained", "model__context_tokens": WINDOW}
    with scripted([Repeat(talkative(in_json))], limit_tokens=WINDOW, summary=told) as model:
        async with desk(root, model, **small) as here:
            await talk(here, turns)
            assert await not_found(here, turns) == []
    entries = await journal(root)
    last = [entry for entry in entries if entry.kind == SUMMARY][-1]
    assert model.refusals == []
    assert last.payload["covers"] > turns
    return periods(entries)


async def test_a_conversation_of_many_windows_is_never_refused_and_warned_once_in_each(
    tmp_path: Path,
) -> None:
    counts = await go_through(tmp_path, 60)
    assert len(counts) > 5
    assert set(counts[:-1]) == {1}
    assert counts[-1] <= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_two_thousand_messages_go_through_a_window_of_four_thousand_tokens(
    tmp_path: Path,
) -> None:
    counts = await go_through(tmp_path, 1_000)
    assert len(counts) > 50
    assert set(counts[:-1]) == {1}
    assert counts[-1] <= 1


async def test_a_system_message_whose_letters_cost_more_than_thought_is_made_shorter_once(
    tmp_path: Path,
) -> None:
    with scripted([Say("Aye.")] * 3, limit_tokens=6_000, refusals_expected=True) as model:
        async with desk(tmp_path, model) as here:
            for name in ("one", "two", "three"):
                await here.agent.memory.sections.set(name, 50, "界" * 3_900)
            replies = [
                ended(await here.say(text)).reply for text in ("Hi.", "界" * 20_000, "And now?")
            ]
    assert replies == ["Aye."] * 3
    assert len(model.refusals) == 2  # only in the first turn
