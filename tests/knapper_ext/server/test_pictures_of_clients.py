"""Pictures by the doors: OpenAI's image parts, and a message over HTTP; nothing is fetched."""

import asyncio
import json
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent_core.base.pictures import Picture, UnusablePicture
from agent_core.storage.picture_files import PictureFiles
from tests.kit import Expect, Repeat, Say
from tests.kit.pictures import png
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


def _tiny(number: int, side: int = 1) -> bytes:
    return png(side, side, color=(number >> 16, number >> 8 & 255, number & 255))


def _sent(*pictures: bytes) -> list[dict[str, str]]:
    return [{"data": b64encode(data).decode(), "name": "a.png"} for data in pictures]


def _kept(root: Path) -> set[str]:
    folder = root / ".knapper" / "pictures"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


async def test_the_pictures_of_a_refused_message_are_not_kept(
    served: Serve, tmp_path: Path
) -> None:
    server = await served([Repeat(Say("ok"))])
    client = await server.as_("sender", "chat")
    path = "/api/v1/agents/main/messages"
    first = {"text": "hello", "key": "k", "pictures": _sent(_tiny(1))}
    assert (await client.post(path, json=first)).status_code == 202
    named = {sha256(_tiny(1)).hexdigest()}
    for text, pictures, code in (
        ("other", [_tiny(number) for number in range(2, 22)], 409),
        ("hello", [_tiny(2)], 409),  # its caption is that of the first
        ("hello", [], 409),
        ("other", [_tiny(1), _tiny(2)], 409),  # the first one is named by a message
        ("fresh", [_tiny(2), b"BM" + bytes(60)], 400),
        ("hello", [_tiny(1)], 202),
    ):
        body = {"text": text, "pictures": _sent(*pictures), "key": "k"}
        answer = await client.post(path, json=body)
        assert (answer.status_code, _kept(tmp_path)) == (code, named), text


async def test_the_pictures_of_a_refused_completion_are_not_kept(
    served: Serve, tmp_path: Path
) -> None:
    server = await served([Repeat(Say("ok"))])
    client = await server.as_("sender", "chat")
    keyed = {"Idempotency-Key": "k"}
    for content in ("What?", [{"type": "image_url", "image_url": {"url": URL}}]):
        body = {"model": "main", "messages": [{"role": "user", "content": content}]}
        answer = await client.post("/v1/chat/completions", json=body, headers=keyed)
        assert answer.is_success == (content == "What?"), answer.text
    assert _kept(tmp_path) == set()


async def test_two_messages_with_a_picture_keep_it_if_one_is_refused(
    served: Serve, tmp_path: Path
) -> None:
    server = await served([Repeat(Say("ok"))])
    client = await server.as_("sender", "chat")
    path = "/api/v1/agents/main/messages"
    await client.post(path, json={"text": "hello", "key": "k"})
    for number in range(8):
        pictures = _sent(_tiny(number, 40), *(_tiny(n, 40) for n in range(100, 119)))
        both = [{"text": "other", "key": "k"}, {"text": "fresh"}]
        posts = [client.post(path, json={**body, "pictures": pictures}) for body in both]
        codes = sorted(answer.status_code for answer in await asyncio.gather(*posts))
        assert codes == [202, 409]
        assert sha256(_tiny(number, 40)).hexdigest() in _kept(tmp_path)


async def test_a_new_picture_lists_no_others(served: Serve, tmp_path: Path) -> None:
    server = await served([Repeat(Say("ok"))])
    path = "/api/v1/agents/main/messages"
    listed = list[str]()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.scandir" and str(arguments[0]) == folder:
            listed.append(folder)

    folder = str(tmp_path / ".knapper" / "pictures")
    sys.addaudithook(note)
    try:
        for number in range(6):
            body = {
                "text": "hello",
                "pictures": _sent(*(_tiny(20 * number + n) for n in range(20))),
            }
            assert (await server.client.post(path, json=body)).status_code == 202
        (tmp_path / ".knapper" / "pictures" / ("0" * 64)).write_bytes(b"of another process")
        body = {"text": "hello", "pictures": _sent(*(_tiny(200 + n) for n in range(20)))}
        assert (await server.client.post(path, json=body)).status_code == 202
        assert 1 <= len(listed) <= 3
    finally:
        folder = ""  # a hook stays


async def test_there_is_a_most_of_pictures(tmp_path: Path) -> None:
    files = PictureFiles(tmp_path, most=3)
    for number in range(3):
        await files.keep(_tiny(number))
    await files.keep(_tiny(2))
    with pytest.raises(UnusablePicture, match="3 pictures here already"):
        await files.keep(_tiny(3))
    files.drop([sha256(_tiny(0)).hexdigest()])
    await files.keep(_tiny(3))
    small = PictureFiles(tmp_path, most_bytes=sum(len(_tiny(n)) for n in (1, 2, 3)))
    with pytest.raises(UnusablePicture, match="more than"):
        await small.keep(_tiny(4))


async def _messages(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    return list((await client.get("/api/v1/agents/main/messages")).json()["messages"])
