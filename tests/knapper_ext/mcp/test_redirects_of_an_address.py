"""A server that redirects: within its own address the client follows, elsewhere nothing is sent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from knapper_ext.mcp.connection import ServerConnection, ServerPlace, ServerUnavailable
from knapper_ext.mcp.servers import ServerEntry
from tests.broker.servers import Request, redirect, reply, serving

from .hostile import ECHO, EVENTS, FINE, JSON, event, result

Redirects: TypeAlias = Callable[[Request], bytes | None]
SECRET = {"TOKEN": "s3cret"}


def answering(kind: str, redirects: Redirects) -> Callable[[Request], bytes]:
    """Return a server's behavior: answers of this type, except where `redirects` has another response."""

    def answer(request: Request) -> bytes:
        if (other := redirects(request)) is not None:
            return other
        if request.line.startswith("GET"):
            return reply(status=405)
        body = json.loads(request.body or b"{}")
        if "id" not in body:
            return reply(status=202)
        about = {"serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}}}
        values = {"tools/list": {"tools": [ECHO]}, "tools/call": FINE}
        if body["method"] == "initialize":
            values["initialize"] = {"protocolVersion": body["params"]["protocolVersion"], **about}
        if body["method"] not in values:
            error = {"code": -32601, "message": "Method not found"}
            text = json.dumps({"jsonrpc": "2.0", "id": body["id"], "error": error}).encode()
            return reply(text, 400, Content_Type=JSON)
        value = values[body["method"]]
        if kind == EVENTS:
            return reply(event({"id": body["id"], "result": value}), Content_Type=EVENTS)
        return reply(result(body["id"], value), Content_Type=JSON)

    return answer


async def called(root: Path, port: int) -> str:
    """Call the tool of the server at this port, with a token, and return its text."""
    entry = ServerEntry(url=f"http://127.0.0.1:{port}/mcp", bearer="TOKEN")
    place = ServerPlace(root, root, mask=str, note=lambda text: None, is_wanted=lambda: True)
    connection = ServerConnection("strange", entry, place, SECRET)
    try:
        answer = await connection.call("echo", {"text": "a"}, lambda *progress: None)
    finally:
        await connection.aclose()
    return str(answer.content[0].text)


def from_mcp(location: str, status: int) -> Redirects:
    """Return the redirect of everything that is sent to `/mcp`."""
    return lambda request: redirect(location, status) if request.path == "/mcp" else None


@pytest.mark.parametrize(
    "kind", [pytest.param(JSON, id="answers"), pytest.param(EVENTS, id="streams")]
)
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/mcp/", "http://127.0.0.1:{port}/elsewhere?x=1#part"])
async def test_a_redirect_within_the_same_address_is_followed(
    tmp_path: Path, kind: str, status: int, location: str
) -> None:
    async with serving(lambda request: answering(kind, redirects)(request)) as server:
        redirects = from_mcp(location.format(port=server.port), status)
        assert await called(tmp_path, server.port) == "fine"
    posts = [
        request
        for request in server.asked
        if request.line.startswith("POST") and request.path != "/mcp"
    ]
    assert json.loads(posts[-1].body)["method"] == "tools/call"
    assert {request.headers["authorization"] for request in posts} == {"Bearer s3cret"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_elsewhere_is_told_with_its_address_and_sent_nothing(
    tmp_path: Path, status: int
) -> None:
    async with (
        serving() as other,
        serving(answering(JSON, from_mcp(f"http://127.0.0.1:{other.port}/mcp", status))) as server,
    ):
        with pytest.raises(
            ServerUnavailable,
            match=f"redirects to http://127.0.0.1:{other.port}/mcp, which is another",
        ):
            await called(tmp_path, server.port)
    assert other.asked == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_drop_the_message_is_told(tmp_path: Path, status: int) -> None:
    async with serving(answering(JSON, from_mcp("/mcp/", status))) as server:
        with pytest.raises(
            ServerUnavailable,
            match=f"/mcp/, with the status {status}, after which no message is sent",
        ):
            await called(tmp_path, server.port)
    assert {request.path for request in server.asked} == {"/mcp"}


async def test_redirects_without_end_are_given_up(tmp_path: Path) -> None:
    async with serving(lambda request: redirect(request.path + "/again", 307)) as server:
        with pytest.raises(ServerUnavailable, match="it redirects more than 3 times"):
            await called(tmp_path, server.port)
    assert max(request.path.count("again") for request in server.asked) == 3


@pytest.mark.parametrize("location", ["/news", "http://127.0.0.1:{port}/news"])
async def test_a_redirect_of_the_stream_of_news_holds_up_no_call(
    tmp_path: Path, location: str
) -> None:
    async with serving() as other:

        def of_news(request: Request) -> bytes | None:
            is_first = request.line.startswith("GET") and request.path == "/mcp"
            return redirect(location.format(port=other.port), 302) if is_first else None

        async with serving(answering(JSON, of_news)) as server:
            assert await called(tmp_path, server.port) == "fine"
        assert other.asked == []
