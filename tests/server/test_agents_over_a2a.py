"""Agents as A2A clients of both versions see them: cards, tasks, streams, and turns that wait for a human."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_core.interfaces.server import chat_threads
from tests.kit import Ask, Fail, Say, Wanted

from .conftest import Serve
from .test_the_api import READS

Json = dict[str, Any]
SLOW = Say("It takes so very long. " * 400, pause_s=0.05)
V1, V03 = ("SendMessage", "GetTask", "CancelTask"), ("message/send", "tasks/get", "tasks/cancel")


def sent(text: str, **besides: Any) -> Json:
    """Return the parameters of a message."""
    part = {"kind": "text", "text": text}
    return {"message": {"messageId": text, "role": "user", "kind": "message", "parts": [part], **besides}}


async def rpc(client: httpx2.AsyncClient, method: str, params: Json, agent: str = "main") -> Json:
    """Return the response to a request."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = await client.post(f"/a2a/{agent}", json=body)
    assert answer.status_code == 200, answer.text
    document: Json = answer.json()
    assert (document["jsonrpc"], document["id"]) == ("2.0", 7)
    return document


async def task(client: httpx2.AsyncClient, method: str, params: Json) -> tuple[str, str, Json]:
    """Return the id and the state of the resulting task, and the task itself."""
    result = (await rpc(client, method, params))["result"]
    whole: Json = result.get("task", result)
    state = whole["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
    return whole["id"], state, whole


async def streamed(client: httpx2.AsyncClient, method: str, params: Json) -> list[Json]:
    """Return the results of a stream."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    async with asyncio.timeout(60), client.stream("POST", "/a2a/main", json=body) as answer:
        lines = [line async for line in answer.aiter_lines()]
    return [json.loads(line[6:])["result"] for line in lines if line.startswith("data: ")]


def bare(result: Json) -> Json:
    """Return the content of a result, which 1.0 wraps and 0.3 does not."""
    return next((result[kind] for kind in ("task", "statusUpdate", "artifactUpdate") if kind in result), result)


async def test_a_card_says_where_an_agent_is_and_needs_a_token(served: Serve) -> None:
    server = await served([])
    for place in ("/.well-known/agent-card.json", "/a2a/main/.well-known/agent-card.json"):
        card = (await server.client.get(place)).json()
        assert (card["name"], card["url"]) == ("main", f"{server.url}/a2a/main")
        versions = [interface["protocolVersion"] for interface in card["supportedInterfaces"]]
        assert (versions, card["preferredTransport"]) == (["1.0", "0.3"], "JSONRPC")
    async with httpx2.AsyncClient(base_url=server.url) as nobody:
        assert (await nobody.get("/.well-known/agent-card.json")).status_code == 401
    looking = await server.as_("looking", "read")
    assert (await looking.post("/a2a/main", json={})).status_code == 403
    bob = await server.as_("bob", "chat", agents=("bob",))
    assert (await bob.get("/a2a/main/.well-known/agent-card.json")).status_code == 404


async def test_a_message_is_a_task_and_its_context_goes_on(served: Serve) -> None:
    server = await served([Say("One."), Say("Two.")] * 2)
    for methods in (V1, V03):
        id, state, first = await task(server.client, methods[0], sent(f"first by {methods[0]}"))
        assert (state, first["artifacts"][0]["parts"][0]["text"]) == ("completed", "One.")
        _, _, second = await task(server.client, methods[0], sent("second", contextId=first["contextId"]))
        assert second["contextId"] == first["contextId"]
        assert "One." in server.model.requests[-1].text
        assert await task(server.client, methods[1], {"id": id}) == (id, "completed", first)
        assert (await rpc(server.client, methods[2], {"id": id}))["error"]["code"] == -32002


async def test_unnamed_contexts_go_and_named_ones_are_limited(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_threads, "_KEPT", 2)
    monkeypatch.setattr(chat_threads, "_MOST_NAMED", 1)
    server = await served([Say("Yes.")] * 5)
    begun = [await task(server.client, V1[0], sent(text)) for text in ("one", "two", "three")]
    known = [row for row in await server.workspace.agent_names() if row.startswith("main--")]
    assert known == sorted(f"main--{row['contextId']}" for _, _, row in begun[1:])
    assert (await rpc(server.client, V1[1], {"id": begun[0][0]}))["error"]["code"] == -32001
    for text in ("four", "five"):
        assert (await task(server.client, V1[0], sent(text, contextId="mine")))[1] == "completed"
    refused = await rpc(server.client, V1[0], sent("six", contextId="another"))
    assert "main has 1 named conversations, which is the most." in refused["error"]["message"]


async def test_a_reply_streams_in_pieces_between_the_states(served: Serve) -> None:
    server = await served([Say("It stands in Brindle.", pause_s=0.01)] * 2)
    for method in ("SendStreamingMessage", "message/stream"):
        results = await streamed(server.client, method, sent(f"Where, by {method}?"))
        first, *middle, last = map(bare, results)
        assert first["id"]
        text = "".join(one["artifact"]["parts"][0]["text"] for one in middle if "artifact" in one)
        assert text == "It stands in Brindle."
        assert last["status"]["state"] in ("TASK_STATE_COMPLETED", "completed")


async def test_a_turn_that_waits_for_a_human_is_a_task_that_needs_input(served: Serve, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "files.py").write_text(READS)
    server = await served([Ask(Wanted("first_line", {"path": "notes.txt"})), Say("It says hello.")])
    chatting = await server.as_("chatting", "chat")
    id, state, waits = await task(chatting, "SendMessage", sent("Read it."))
    assert state == "input-required"
    assert "first_line" in waits["status"]["message"]["parts"][0]["text"]
    assert await task(chatting, "GetTask", {"id": id}) == (id, state, waits)
    question = (await server.client.get("/api/v1/approvals")).json()["approvals"][0]["id"]
    yes = sent(f"yes {question}", taskId=id)
    refused = await chatting.post("/a2a/main", json={"id": 1, "method": "SendMessage", "params": yes})
    assert refused.status_code == 403
    for text in ("perhaps", "yes", "yes please", f"yes {question[:-1]}", f"yes {'0' * len(question)}"):
        error = (await rpc(server.client, "SendMessage", sent(text, taskId=id)))["error"]
        assert (error["code"], f"`yes {question}`" in error["message"]) == (-32602, True), text
        assert "read notes.txt" in error["message"], "with all that it shows"
    _, state, done = await task(server.client, "SendMessage", yes)
    assert (state, done["artifacts"][0]["parts"][0]["text"]) == ("completed", "It says hello.")
    assert (await rpc(server.client, "SendMessage", sent("more", taskId=id)))["error"]["code"] == -32004


async def test_a_task_at_work_is_canceled_and_its_stream_ends(served: Serve) -> None:
    server = await served([SLOW] * 2)
    now = {"configuration": {"returnImmediately": True, "blocking": False}}
    for number, (methods, follow) in enumerate(((V1, "SubscribeToTask"), (V03, "tasks/resubscribe")), 1):
        id, state, _ = await task(server.client, methods[0], {**sent(f"wait {number}"), **now})
        assert state in ("submitted", "working")
        following = asyncio.create_task(streamed(server.client, follow, {"id": id}))
        state = ""
        while state != "working" or len(server.model.requests) < number:
            await asyncio.sleep(0.02)
            _, state, _ = await task(server.client, methods[1], {"id": id})
        assert (await task(server.client, methods[2], {"id": id}))[1] == "canceled"
        assert "cancel" in bare((await following)[-1])["status"]["state"].lower()


NO_REQUESTS = {
    b"{": -32700,
    b'{"id": 1}': -32600,
    b'{"id": 1, "method": "tasks/forget"}': -32601,
    b'{"id": 1, "method": "SendMessage"}': -32602,
    b'{"id": 1, "method": "GetTask", "params": {"id": "a.b"}}': -32001,
    b'{"id": 1, "method": "SendMessage", "params": {"message": {"parts": [{"url": "https://e.org"}]}}}': -32005,
    b'{"id":1, "method": "SendMessage", "params": {"message": {"contextId": "..", "parts": [{"text": "a"}]}}}': -32602,
}


async def test_what_is_no_request_is_answered_in_the_protocols_words_and_a_failed_turn_says_why(served: Serve) -> None:
    server = await served([Fail(400, "no such model")])
    for body, number in NO_REQUESTS.items():
        answer = await server.client.post("/a2a/main", content=body)
        assert (body, answer.status_code, answer.json()["error"]["code"]) == (body, 200, number)
    _, state, whole = await task(server.client, "SendMessage", sent("Hello"))
    assert state == "failed"
    assert "no such model" in whole["status"]["message"]["parts"][0]["text"]


async def test_each_message_of_a_context_gets_its_own_answer_whatever_its_id(served: Serve) -> None:
    server = await served([Say("One is slow to come.", pause_s=0.2), Say("Two."), Say("Three.")])
    other = await server.as_("other", "chat")
    first = asyncio.create_task(task(server.client, V1[0], sent("one", contextId="k", messageId="1")))
    while not server.model.requests:  # noqa: ASYNC110 - the model tells nobody
        await asyncio.sleep(0.01)
    second = asyncio.create_task(task(other, V1[0], sent("two", contextId="k", messageId="1")))
    third = task(other, V1[0], sent("three", contextId="k", messageId="2"))
    done = [await first, await second, await third]
    assert [whole["artifacts"][0]["parts"][0]["text"] for _, _, whole in done] == [
        "One is slow to come.",
        "Two.",
        "Three.",
    ]
    assert await task(other, V1[0], sent("two", contextId="k", messageId="1")) == done[1]
    refused = await rpc(other, V1[0], sent("four", contextId="k", messageId="1"))
    assert (refused["error"]["code"], "messageId" in refused["error"]["message"]) == (-32602, True)
