"""Operations: each face reads the one definition, and calls the same body."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, TypeAlias

import httpx2
import pytest

from agent_core.client.client import Client, ConnectionLost, HttpWire, connect
from agent_core.operations.operation import Opens, operations_of
from agent_core.views.function_view import source_lines
from agent_core.views.styled_lines import coloured, line, plain
from knapper.prompt.conversation import Conversation
from knapper.prompt.slash import take
from knapper.prompt.ui import Voice
from knapper.shell.cli import main
from knapper.shell.remote import RemoteTalk, carried_out
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
    history = operations_of("functions")["history"]
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
    delete = operations_of("functions")["delete"]
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


def _hostile(document: Any) -> Client:  # Any: JSON
    """Return a client of a server that answers everything with this document."""
    answer = httpx2.Response(200, json=document)
    return Client(HttpWire("http://knapper.test", "token", httpx2.MockTransport(lambda _: answer)))


def _with_a_line_in_each_text(value: Any) -> Any:  # Any: JSON
    if isinstance(value, str):
        return f"{value}\nforged line"
    if isinstance(value, list):
        return [_with_a_line_in_each_text(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_a_line_in_each_text(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("verb", ["show", "history", "good", "rollback"])
async def test_no_field_of_a_servers_document_makes_a_line_of_its_own(
    served: Serve, verb: str
) -> None:
    server = await served([])
    await server.workspace.functions.create(NAME, VOWELS, "words")
    await server.workspace.functions.edit(NAME, "Count the vowels", "Count all vowels")
    words = ["functions", verb, NAME, *(["1"] if verb == "rollback" else [])]
    async with Client(HttpWire(server.url, server.key)) as client:
        honest = await carried_out(client, words)
    async with _hostile(_with_a_line_in_each_text(honest.document)) as client:
        shown = await carried_out(client, words)
    rows = plain([*shown.lines, *shown.aside, line(shown.hint)]).split("\n")
    assert "forged line" in "".join(rows)
    assert not [row for row in rows if row.startswith("forged")]


ODD: Sequence[Any] = (None, True, 10**400, "", "[", [], {}, [1], {"a": 1})


@pytest.mark.parametrize("words", [["show"], ["show", "--brief"], ["history"], ["rollback", "1"]])
async def test_a_document_with_anything_in_a_field_is_shown_or_told(
    served: Serve, words: list[str]
) -> None:
    server = await served([])
    await server.workspace.functions.create(NAME, VOWELS, "words")
    await server.workspace.functions.edit(NAME, "Count the vowels", "Count all vowels")
    verb, *more = words
    words = ["functions", verb, NAME, *more]
    async with Client(HttpWire(server.url, server.key)) as client:
        honest = (await carried_out(client, words)).document
    told = 0
    for key, odd in itertools.product(honest, ODD):
        async with _hostile({**honest, key: odd}) as client:
            try:
                shown = await carried_out(client, words)
                plain([*shown.lines, *shown.aside])
            except ConnectionLost:
                told += 1
    assert told


@pytest.mark.parametrize("odd", [*ODD, [[["no role", "x"]]], [["x"]]])
@pytest.mark.parametrize("key", ["lines", "aside", "source", "code"])
async def test_lines_of_a_server_with_anything_in_them_are_shown_or_told(
    key: str, odd: object
) -> None:
    document = {"document": 1, "lines": [], "hint": "", "code": 0, "aside": []}
    async with _hostile({**document, key: odd}) as client:
        with suppress(ConnectionLost):
            shown = await carried_out(client, ["functions", "list"])
            coloured([*shown.lines, *shown.aside])
            source_lines(*shown.source or ("", 1))


@pytest.mark.parametrize(
    "verb",
    [verb for verb, one in operations_of("functions").items() if one.opens is Opens.READABLE],
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
    words = ["functions", verb, *operations_of("functions")[verb].try_it, *flags]
    shown = {}
    for place, options in places.items():
        code = await asyncio.to_thread(main, [*options, *words])
        printed = capsys.readouterr()
        shown[place] = (code, printed.out.splitlines(), printed.err.splitlines())
    assert shown["there"] == shown["here"]
