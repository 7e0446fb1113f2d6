"""Operations: each face reads the one definition, and calls the same body."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias

import httpx2
import pytest

from agent_core.interfaces.cli import main
from agent_core.interfaces.client import Client, ConnectionLost, HttpWire, connect
from agent_core.interfaces.conversation import Conversation
from agent_core.interfaces.remote import RemoteTalk, carried_out
from agent_core.interfaces.slash import take
from agent_core.interfaces.ui import Voice
from agent_core.operations.operation import OPERATIONS, Opens
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import VOWELS

from .conftest import Serve, Served

NAME = "count_vowels"
Face: TypeAlias = Callable[[Served], Awaitable[object]]


async def _shell(server: Served) -> None:
    words = ["-C", str(server.workspace.root), "functions", "history", NAME]
    assert await asyncio.to_thread(main, words) == 0


async def _shell_elsewhere(server: Served) -> None:
    words = ["--server", server.url, "--token", server.key, "functions", "history", NAME]
    assert await asyncio.to_thread(main, words) == 0


async def _prompt(server: Served) -> None:
    agent = await server.workspace.agent("ada")
    await take(Conversation(server.workspace, agent, Voice()), f"/history {NAME}")


async def _prompt_elsewhere(server: Served) -> None:
    async with Client(HttpWire(server.url, server.key)) as client:
        talk = RemoteTalk(client, "main", Voice(), None)
        await talk.take(f"/history {NAME}")
        assert not talk.failed


async def _http(server: Served) -> None:
    answer = await server.client.get(f"/api/v1/functions/{NAME}/history")
    assert answer.status_code == 200, answer.text


async def _client(server: Served) -> None:
    async with await connect(server.url, token=server.key) as client:
        await client.functions.history(NAME)


async def _client_in_process(server: Served) -> None:
    async with await connect(server.workspace) as client:
        await client.functions.history(NAME)


async def _model(server: Served) -> None:
    await server.said("What happened to it?")


@pytest.mark.parametrize(
    "face",
    [
        pytest.param(face, id=face.__name__.strip("_"))
        for face in (
            _shell,
            _shell_elsewhere,
            _prompt,
            _prompt_elsewhere,
            _http,
            _client,
            _client_in_process,
            _model,
        )
    ],
)
async def test_each_face_calls_the_body_of_an_operation_once(
    served: Serve, monkeypatch: pytest.MonkeyPatch, face: Face
) -> None:
    asks = Ask(Wanted("function_history", {"function_name": NAME}))
    server = await served([asks, Say("It was created.")] if face is _model else [])
    await server.save("words.py", VOWELS)
    history = OPERATIONS["functions"]["history"]
    calls: list[str] = []
    body = history.body

    @wraps(body)
    async def marked(here: Any, name: str) -> object:  # Any: each face is somewhere else
        calls.append(name)
        return await body(here, name)

    monkeypatch.setattr(history, "body", marked)
    monkeypatch.delattr(Client, "command")  # words of the shell do not travel
    await face(server)
    assert calls == [NAME]


async def test_a_prompt_elsewhere_asks_what_an_operation_asks_before_it(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await served([])
    await server.save("words.py", VOWELS)
    delete = OPERATIONS["functions"]["delete"]
    question = delete.asks
    assert question is not None
    asked: list[str] = []

    async def marked(here: Any, name: str) -> tuple[str, str]:  # Any: the server's door
        asked.append(name)
        return await question(here, name)

    monkeypatch.setattr(delete, "asks", marked)
    async with Client(HttpWire(server.url, server.key)) as client:
        talk = RemoteTalk(client, "main", Voice(agrees=True), None)
        await talk.take(f"/delete {NAME}")
    assert asked
    assert not talk.failed
    assert NAME not in server.workspace.functions.names()


@pytest.mark.parametrize("versions", [None, 7, [{"number": "one"}]])
async def test_a_document_of_another_shape_is_told(versions: object) -> None:
    document = {"name": NAME, "module": "", "deleted": False, "goes_back": False}
    answer = httpx2.Response(200, json={**document, "versions": versions})
    wire = HttpWire("http://knapper.test", "token", httpx2.MockTransport(lambda _: answer))
    async with Client(wire) as client:
        with pytest.raises(ConnectionLost, match="no Knapper server"):
            await carried_out(client, ["functions", "history", NAME])


@pytest.mark.parametrize(
    "verb",
    [verb for verb, one in OPERATIONS["functions"].items() if one.opens is Opens.READABLE],
)
@pytest.mark.parametrize(
    "flags", [pytest.param([], id="text"), pytest.param(["--json"], id="json")]
)
async def test_an_operation_shows_the_same_here_and_over_a_server(
    served: Serve, capsys: pytest.CaptureFixture[str], verb: str, flags: list[str]
) -> None:
    server = await served([])
    functions = server.workspace.functions
    await functions.create(NAME, VOWELS, "words")
    await functions.edit(NAME, "Count the vowels", "Count all vowels")
    places = {
        "here": ["-C", str(server.workspace.root)],
        "there": ["--server", server.url, "--token", server.key],
    }
    words = ["functions", verb, *OPERATIONS["functions"][verb].try_it, *flags]
    shown = {}
    for place, options in places.items():
        code = await asyncio.to_thread(main, [*options, *words])
        printed = capsys.readouterr()
        shown[place] = (code, printed.out.splitlines(), printed.err.splitlines())
    assert shown["there"] == shown["here"]
