"""Messages that wait for a turn, over HTTP: everyone of the conversation sees them, and their sender changes them."""

import asyncio

import httpx2

from agent_core import connect
from tests.kit import Repeat, Say, ScriptedModel, Seen, Step

from .conftest import Serve, Served, ends

AGENT = "/api/v1/agents/main"


def echo(seen: Seen) -> Step:
    """Answer with the last message; `slow` takes its time."""
    said = [str(one["content"]) for one in seen.messages if one["role"] == "user"][-1]
    return Say(f"heard {said}", pause_s=1 if "slow" in said else 0)


def sent(model: ScriptedModel) -> str:
    return str([request.body["messages"] for request in model.requests])


async def _begun(served: Serve) -> Served:
    """Return a server whose turn has begun, and goes on for some seconds."""
    server = await served([Repeat(echo)])
    await server.client.post(f"{AGENT}/messages", json={"text": "slow one"})
    await server.frames(lambda frames: any(data and data["type"] == "text" for _, data in frames))
    return server


async def _posted(client: httpx2.AsyncClient, text: str) -> str:
    answer = await client.post(f"{AGENT}/messages", json={"text": text, "alone": True})
    return str(answer.json()["event"])


async def test_a_message_that_waits_is_its_senders_to_edit_and_an_owner_takes_it_back(
    served: Serve,
) -> None:
    server = await _begun(served)
    anna = await server.as_("anna", "chat")
    bert = await server.as_("bert", "chat")
    events = [await _posted(anna, text) for text in ("alpha", "beta", "gamma")]
    shown = (await bert.get(f"{AGENT}/waiting")).json()["waiting"]
    assert [(row["text"], row["origin"]) for row in shown] == [
        (text, "anna") for text in ("alpha", "beta", "gamma")
    ]
    changed = {"text": "delta"}
    for client, expected in ((bert, 403), (server.client, 403), (anna, 200)):
        answer = await client.patch(f"{AGENT}/waiting/{events[0]}", json=changed)
        assert answer.status_code == expected, answer.text
    for client, event, expected in (
        (bert, events[1], 403),
        (anna, events[1], 200),
        (server.client, events[2], 200),
        (anna, events[2], 404),
    ):
        answer = await client.delete(f"{AGENT}/waiting/{event}")
        assert answer.status_code == expected, answer.text
    await server.frames(ends(2))
    assert "delta" in sent(server.model)
    assert not any(text in sent(server.model) for text in ("alpha", "beta", "gamma"))
    answer = await anna.delete(f"{AGENT}/waiting/{events[0]}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "taken-up")


async def test_a_stream_tells_of_what_waits_in_each_process_and_of_its_end(served: Serve) -> None:
    server = await _begun(served)

    def is_withdrawn(frames: object) -> bool:
        return "message_withdrawn" in str(frames)

    heard = asyncio.create_task(server.frames(is_withdrawn))
    async with await connect(server.url, token=server.key) as client:
        event = (await client.post("alpha"))["event"]
        assert [row["event"] for row in await client.waiting()] == [event]
        await client.edit_waiting(event, "beta")
        assert (await client.withdraw(event))["text"] == "beta"
    told = [data for _, data in await heard if data and data.get("message_id") == event]
    assert [(one["type"], one.get("message")) for one in told[-2:]] == [
        ("message", "beta"),
        ("message_withdrawn", None),
    ]
    assert told[0]["message"] == "alpha"


async def test_who_may_use_another_conversation_sees_and_changes_nothing_of_this(
    served: Serve,
) -> None:
    server = await _begun(served)
    event = await _posted(server.client, "alpha")
    row = (await server.client.post(f"{AGENT}/conversations", json={"name": "x"})).json()
    here = f"conversation={row['id']}"
    assert (await server.client.get(f"{AGENT}/waiting?{here}")).json()["waiting"] == []
    for path in (f"{AGENT}/waiting/{event}?{here}", f"{AGENT}/waiting/{event[:5]}"):
        assert (await server.client.delete(path)).status_code == 404
    limited = await server.as_("limited", "chat", agents=("other",))
    assert (await limited.get(f"{AGENT}/waiting")).status_code == 404
