"""What is shown is what was appended: a stream from any number, live or later, is the journal and nothing else."""

import asyncio
import json
from pathlib import Path

from agent_core.base import events
from sandbox import Sandbox
from tests.kit import scripted
from tests.kit.desk import VOWELS, Desk, desk
from tests.kit.waiting import until

from .conftest import Frames, Serve, Served, ends
from .told import EARLIER, PIECES, Human, Told, prepare, replayed, script, without_pieces


async def take_turns(here: Desk) -> Told:
    """Take all turns of the script, with a saved file before the last; return what was told of each."""
    heard: list[events.Event] = []
    human = Human()
    for number in range(EARLIER + 2):
        if number >= EARLIER:
            saved = VOWELS.replace("count_vowels", f"saved_{number}").replace("Count", "Add up")
            await here.save(f"saved{number}.py", saved)
        heard += [one async for one in here.agent.turn(f"Message {number}.", approver=human)]
    return [event.to_json() for event in heard]


async def test_what_is_told_live_is_what_the_journal_tells(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    prepare(tmp_path)
    with scripted(script()) as model:
        async with desk(tmp_path, model, one_sandbox, model__stream=True) as here:
            live = json.loads(json.dumps(without_pieces(await take_turns(here))))
            later = without_pieces([event for _, event in await replayed(here.workspace.store)])
    kinds = {event["type"] for event in live}
    assert kinds >= {
        *("turn_started", "call", "answer", "grant_asked", "grant_answered", "turn_ended"),
        *("functions_changed", "memory_changed", "warning", "usage"),
    }
    assert "are a summary now" in str(live)
    assert "Trying again" in str(live)
    assert live == later


async def answer(server: Served) -> None:
    """Answer the questions as `Human` does."""
    for decision in ("once", "no"):
        found = await until(
            lambda: server.client.get("/api/v1/approvals"), lambda found: found.json()["approvals"]
        )
        (row,) = found.json()["approvals"]
        body = {"answer": decision, "word": "Not that one."}
        given = await server.client.post(f"/api/v1/approvals/{row['id']}", json=body)
        assert given.status_code == 200


def lasting(frames: Frames) -> Frames:
    """Return what is in the journal; of a text, which is told in pieces while it comes, only the number."""
    kept: Frames = []
    for number, data in frames:
        if data is not None and (data["type"] in PIECES or not data["turn"]):
            data = None
        if number is not None or data is not None:
            kept.append((number, data))
    return kept


async def test_a_stream_from_each_number_is_the_stream_from_the_start_after_it(
    served: Serve,
) -> None:
    server = await served(script())
    prepare(server.workspace.root)
    await server.workspace.functions.reload()
    listening = asyncio.create_task(server.frames(ends(EARLIER + 2)))
    answering = asyncio.create_task(answer(server))
    for number in range(EARLIER + 2):
        if number >= EARLIER:
            await server.save(
                f"saved{number}.py", VOWELS.replace("count_vowels", f"saved_{number}")
            )
        await server.said(f"Message {number}.")
    await answering
    live, whole = await listening, await server.frames(ends(EARLIER + 2))
    assert [data for _, data in whole if data and data["type"] == "grant_asked"]
    assert lasting(live) == lasting(whole)
    numbers = [number for number, _ in whole if number is not None]
    assert numbers == sorted(set(numbers))
    for at, (after, _) in enumerate(whole[:-1], 1):
        if after is not None:
            rest = whole[at:]
            assert await server.frames(lambda now: len(now) >= len(rest), after) == rest  # noqa: B023
