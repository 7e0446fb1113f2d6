"""A conversation that is summarized repeatedly is intact after `kill -9` at any moment."""

import random
from pathlib import Path

import pytest

from agent_core.storage import SUMMARY, Entry
from agent_core.workspace.workspace import Workspace
from tests.context.long_talk import in_json, journal, periods, talkative
from tests.crash.context_work import WINDOW, talk
from tests.kit import Repeat, Seen, Step, scripted
from tests.kit.crash import Worker, kill_at_work

COUNTED = ("user", "assistant", "result")


def summed_up(seen: Seen) -> Step:
    """Return a summary slowly, so that kills come before, during and after it."""
    return in_json(f"What happened: {len(seen.text)} characters of talk.")


def check(entries: list[Entry], told: list[str]) -> None:
    """Check that nothing reported is lost, each summary covers exactly what precedes it, and warnings came once."""
    said = {entry.payload["text"] for entry in entries if entry.kind == "user"}
    assert {text.removeprefix("said ") for text in told if text.startswith("said ")} <= said
    assert not [text for text in told if text.startswith("failed")]
    for summary in (entry for entry in entries if entry.kind == SUMMARY):
        covered = [
            entry
            for entry in entries
            if entry.seq <= summary.payload["upto"] and entry.kind in COUNTED
        ]
        assert summary.payload["covers"] == len(covered)
        assert summary.payload["upto"] < summary.seq
    assert max(periods(entries)) == 1


async def kill_again_and_again(root: Path, times: int, seed: int) -> None:
    chance, told = random.Random(seed), list[str]()
    with scripted([Repeat(talkative(in_json))], limit_tokens=WINDOW, summary=summed_up) as model:
        for number in range(times * 5):  # a slow machine needs more kills until a summary is made
            worker = Worker(talk, f"{root}|{model.base_url}|{number * 10}")
            told += kill_at_work(worker, chance.uniform(0, 0.6))
            if number + 1 >= times and any(entry.kind == SUMMARY for entry in await journal(root)):
                break
        assert model.summaries
        assert model.refusals == []
    entries = await journal(root)
    check(entries, told)
    async with Workspace.open(root, flags={"model.base_url": "http://127.0.0.1:9/v1"}) as workspace:
        first, *_ = await (await workspace.agent()).history()
        assert (
            f"The {[each for each in entries if each.kind == SUMMARY][-1].payload['covers']:,} oldest"
            in first.text
        )


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_conversation_that_is_summed_up_is_whole_after_a_hundred_kills(
    tmp_path: Path,
) -> None:
    await kill_again_and_again(tmp_path, times=100, seed=11)
