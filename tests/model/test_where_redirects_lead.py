"""An endpoint's redirect to another origin receives neither the key nor the conversation."""

import httpx2
import pytest

from agent_core.base.errors import ModelError
from agent_core.memory.embedding import EmbeddingUnavailable, embedder
from agent_core.model.connection import Connection
from tests.kit.drawing import crossed
from tests.kit.http import Answer, Request, Server

URL = "https://model.example/v1"
PATH = "/chat/completions"
DONE = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}]}


def connection(sent: list[httpx2.Request], to: str, status: int) -> Connection:
    """Return a connection to a server that redirects its first request."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        if len(sent) == 1:
            return httpx2.Response(status, headers={"Location": to})
        return httpx2.Response(200, json=DONE)

    return Connection(URL, key="sk-mine", transport=httpx2.MockTransport(answer))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("to", "status"),
    crossed(
        [
            "https://collector.example/v1/chat/completions",
            "http://model.example/v1/chat/completions",
            "https://model.example:8443/v1/chat/completions",
            "//collector.example/x",
            "https://model.example@collector.example/v1",
        ],
        [pytest.param(status, id=str(status)) for status in (301, 302, 303, 307, 308)],
    ),
)
async def test_another_origin_is_sent_nothing(to: str, status: int) -> None:
    sent: list[httpx2.Request] = []
    with pytest.raises(ModelError, match=r"redirects to .*, which is not followed"):
        async for _chunk in connection(sent, to, status).stream(PATH, b'{"secret": 1}', streamed=False):
            pass
    assert [str(request.url.host) for request in sent] == ["model.example"]


async def test_the_same_origin_is_followed() -> None:
    sent: list[httpx2.Request] = []
    server = connection(sent, "https://model.example/v2/chat/completions", 307)
    chunks = [chunk async for chunk in server.stream(PATH, b'{"secret": 1}', streamed=False)]
    assert (len(chunks), sent[1].url.path) == (1, "/v2/chat/completions")


async def test_texts_to_be_embedded_follow_no_redirect() -> None:
    heard: list[bytes] = []

    async def answer(request: Request, reply: Answer) -> None:
        heard.append(request.body)
        port = request.headers["host"].rpartition(":")[2]
        await reply.send(307, b"", {"Location": f"http://localhost:{port}/elsewhere"})

    server = Server(answer)
    model = embedder("endpoint", model="m", url=f"http://127.0.0.1:{server.port}/v1", key="k")
    assert model is not None
    with pytest.raises(EmbeddingUnavailable):
        await model.embed(["my diary"])
    server.close()
    assert len(heard) == 1
