"""Pictures by the doors: OpenAI's image parts, and a message over HTTP; nothing is fetched."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import httpx2
import pytest

from agent_core.base.pictures import Picture
from tests.kit import Expect, Say
from tests.knapper_ext.server.conftest import Serve
from tests.pictures.support import CAPTION, RED, URL, sees

PATHS = {
    "/v1/chat/completions": {
        "model": "main",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
                ],
            }
        ],
    },
    "/v1/responses": {
        "model": "main",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?"},
                    {"type": "input_image", "image_url": URL},
                ],
            }
        ],
    },
}


@pytest.mark.parametrize("path", PATHS)
async def test_openai_clients_send_pictures_and_nothing_is_fetched(
    served: Serve, path: str
) -> None:
    server = await served([Expect(Say("Red."), sees(URL))])
    answer = await server.client.post(path, json=PATHS[path])
    assert "Red." in answer.text
    for url, says in (
        ("https://example.org/a.png", "not fetched"),
        ("data:image/png;base64,%%%", "base64"),
        (f"data:image/png;base64,{b64encode(RED[:30]).decode()}", "cut off"),
    ):
        body = json.loads(json.dumps(PATHS[path]).replace(URL, url))
        refused = await server.client.post(path, json=body)
        assert (refused.status_code, says in refused.text) == (400, True), refused.text


async def test_a_message_over_http_has_pictures(served: Serve) -> None:
    server = await served([Expect(Say("Red."), sees(URL))])
    path = "/api/v1/agents/main/messages"
    picture = {"data": b64encode(RED).decode(), "name": "photo.png"}
    posted = await server.client.post(path, json={"text": "What?", "pictures": [picture]})
    assert posted.status_code == 202, posted.text
    rows = await _messages(server.client)
    while len(rows) < 2:
        await asyncio.sleep(0.05)
        rows = await _messages(server.client)
    assert rows[0]["text"] == f"What?\n{CAPTION}"
    assert Picture.from_json(rows[0]["pictures"][0]).name == "photo.png"
    for data, says in (("%%%", "base64"), (b64encode(b"BM" + bytes(60)).decode(), "BMP")):
        body = {"text": "What?", "pictures": [{"data": data}]}
        refused = await server.client.post(path, json=body)
        assert (refused.status_code, says in refused.text) == (400, True), refused.text


async def _messages(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return list((await client.get("/api/v1/agents/main/messages")).json()["messages"])
