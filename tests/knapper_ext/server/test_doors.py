"""The doors that extensions add to a server: who gets in, what is answered, and in which form it is refused."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from agent_core.api.agent_host import Rooms
from agent_core.api.http_door import HttpAnswer, HttpApp, HttpDoor, HttpRoute, HttpStream
from agent_core.base.errors import KnapperError, UsageError
from tests.kit.beside import extension

from .conftest import Serve, Served


class EchoDoor(HttpDoor):
    """A door that says what it was sent; its clients read refusals as one text."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms

    def routes(self) -> Sequence[HttpRoute | HttpApp]:
        return (
            HttpRoute("/echo", self.echo, methods=("POST",), scopes=("chat",)),
            HttpRoute("/echo/parts", self.parts),
            HttpRoute("/echo/broken", self.broken),
            HttpRoute("/page/echo", self.echo),
            HttpApp("/login/echo", self.app),
            HttpApp("/echo/app", self.app),
        )

    def refusal(self, error: KnapperError) -> HttpAnswer:
        return HttpAnswer({"refused": error.message}, 418)

    async def echo(self, request: Request) -> HttpAnswer:
        body = (await request.body()).decode()
        if body == "nothing":
            raise UsageError("There is nothing to say.")
        return HttpAnswer({"said": body, "by": request.scope["identity"].name}, 201)

    async def parts(self, _: Request) -> HttpStream:
        return self._parts()

    async def _parts(self) -> HttpStream:
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"

    async def broken(self, _: Request) -> HttpAnswer:
        raise RuntimeError("at the door")

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["query_string"]:
            raise UsageError("No query is read.")
        await PlainTextResponse("let in")(scope, receive, send)


@pytest.fixture
async def at_door(served: Serve, tmp_path: Path) -> AsyncIterator[Served]:
    """A server with the door of one more extension in a folder that is listed."""
    text = f"from {__name__} import EchoDoor\nDOORS = {{'echo': EchoDoor}}\n"
    with extension("echoing", text, tmp_path):
        yield await served([])


async def test_a_door_answers_those_who_have_a_scope_of_it(at_door: Served) -> None:
    said = await at_door.client.post("/echo", content="hello")
    assert (said.status_code, said.json()["said"]) == (201, "hello")
    reader = await at_door.as_("reader", "read")
    refused = await reader.post("/echo", content="hello")
    assert refused.status_code == 418
    assert "needs a token with the scope `chat`" in refused.json()["refused"]
    assert (await reader.get("/echo/parts")).text == "data: 1\n\ndata: 2\n\n"
    assert (await reader.get("/echo/app")).text == "let in"
    narrow = await at_door.as_("narrow", "chat", lines=("main",))
    for path in ("/echo/parts", "/echo/app", "/v1/models"):
        assert "reaches beyond one" in (await narrow.get(path)).text


@pytest.mark.parametrize("path", ["/echo", "/echo/parts", "/echo/app", "/page/echo", "/login/echo"])
async def test_no_path_of_a_door_is_reached_without_a_token(at_door: Served, path: str) -> None:
    async with httpx2.AsyncClient(base_url=at_door.url) as stranger:
        for method in ("GET", "POST"):
            answer = await stranger.request(method, path)
            assert answer.status_code in (401, 404, 405, 418), (method, answer.text)
            assert "let in" not in answer.text


async def test_what_a_door_raises_is_a_refusal_in_its_own_form(at_door: Served) -> None:
    refused = await at_door.client.post("/echo", content="nothing")
    assert (refused.status_code, refused.json()) == (418, {"refused": "There is nothing to say."})
    refused = await at_door.client.get("/echo/app?x=1")
    assert (refused.status_code, refused.json()) == (418, {"refused": "No query is read."})
    broken = await at_door.client.get("/echo/broken")
    assert (broken.status_code, broken.json()["error"]["code"]) == (500, "internal")
    assert "at the door" not in broken.text


async def test_a_door_takes_no_path_of_the_server_and_no_other_method(at_door: Served) -> None:
    assert (await at_door.client.get("/echo")).status_code == 405
    assert (await at_door.client.get("/v1/models")).status_code == 200
