"""The order of choice: settings, the environment, this machine's servers, models of extensions, else suggestions."""

import asyncio
import json
import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_core.access.grants.record import confirm, is_confirmed
from agent_core.base import machine
from agent_core.base.errors import ModelError, NoModel
from agent_core.base.settings import ModelSettings
from agent_core.model import Model
from agent_core.model.client import NativeModel, open_model
from agent_core.model.dialect import ServerKind, quirks
from agent_core.model.discover import DiscoveredModel, UnconfirmedServer, choose, listed
from tests.kit import ScriptedModel

Scripted = Callable[..., ScriptedModel]
NONE: dict[str, str] = {}
KEY = {"OPENAI_API_KEY": "sk-secret"}


def here(name: str, server: ScriptedModel) -> ServerKind:
    """Return a server of this kind, as if found on this machine."""
    return ServerKind(name, urlsplit(server.base_url).port or 0)


CLOSED = ServerKind("closed", 9)


async def test_what_is_said_is_taken_without_looking_further() -> None:
    rows: list[tuple[str, dict[str, str], dict[str, str], str, str]] = [
        (
            "settings-before-environment",
            {"base_url": "http://a/v1", "name": "m"},
            KEY,
            "http://a/v1",
            "m",
        ),
        ("address", {"name": "m"}, {"OPENAI_BASE_URL": "http://b/v1", **KEY}, "http://b/v1", "m"),
        ("key-only", {}, KEY, quirks().openai_url, quirks().openai_model),
        ("name-of-an-extension-before-all", {"name": "local/small"}, KEY, "", "local/small"),
    ]
    for case, settings, environment, address, name in rows:
        chosen = await choose(ModelSettings(**settings), environment, servers=())
        assert (chosen.endpoint_url, chosen.model_name) == (address, name), case
        assert chosen.kind == ("endpoint" if address else "beside"), case
        assert "\n" not in chosen.why, case
        assert "sk-secret" not in repr(chosen), case


async def test_an_address_without_a_name_gives_its_first_model_that_talks(
    scripted: Scripted,
) -> None:
    server = scripted(
        [], models=["nomic-embed-text", {"id": "qwen3", "max_model_len": 4096}], key="sk-secret"
    )
    chosen = await choose(ModelSettings(base_url=server.base_url), KEY)
    assert (chosen.model_name, chosen.context_tokens, chosen.key) == ("qwen3", 4096, "sk-secret")


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        pytest.param(
            "401 Unauthorized",
            '{"error": {"message": "No key"}}',
            r"says \(401\): No key",
            id="refused",
        ),
        pytest.param(
            "200 OK", "<html>Welcome to nginx!</html>", "sent a web page", id="a-web-page"
        ),
    ],
)
async def test_what_an_address_sends_in_place_of_a_list_is_told(
    status: str, body: str, says: str
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.0 {status}\r\n\r\n{body}".encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ModelError, match=says) as refused:
            await choose(ModelSettings(base_url=f"http://127.0.0.1:{port}/v1"), {})
    assert "--model NAME" in refused.value.fix


async def test_an_address_at_which_nothing_listens_is_said_to_be_that() -> None:
    with pytest.raises(ModelError, match=r"cannot be reached: .* Is it running\?"):
        await choose(ModelSettings(base_url="http://127.0.0.1:9/v1"), NONE)


async def test_a_name_that_an_endpoint_does_not_list_is_refused_with_those_that_are_near(
    scripted: Scripted,
) -> None:
    server = scripted([], models=["qwen3:8b", "qwen3:14b", "gemma3:latest", "mistral", "phi4"])

    def named(name: str) -> DiscoveredModel:
        return DiscoveredModel(server.base_url, name, "", "named")

    with pytest.raises(ModelError, match="has no model `qwen3:7b`") as told:
        await listed(named("qwen3:7b"))
    assert told.value.fix.startswith("The nearest of its 5: `qwen3:8b`, ")
    assert [await listed(named(name)) for name in ("gemma3", "phi4:free")] == [
        named("gemma3"),
        named("phi4:free"),
    ]


async def test_a_name_is_taken_where_an_endpoint_lists_nothing_and_that_is_said(
    scripted: Scripted,
) -> None:
    server = scripted([], models=["qwen3"], key="sk-another")
    taken = await listed(DiscoveredModel(server.base_url, "qwen3", "sk-wrong", "named"))
    assert taken.why == "named; it does not list its models, so the name was not checked"


async def test_the_first_server_in_the_order_wins_and_gets_no_key(scripted: Scripted) -> None:
    first, second = scripted([], models=["a"]), scripted([], models=["b"])
    chosen = await choose(
        ModelSettings(), NONE, servers=[CLOSED, here("One", first), here("Two", second)]
    )
    assert (chosen.endpoint_url, chosen.model_name, chosen.key) == (first.base_url, "a", "")
    assert chosen.why == f"a at {first.base_url}: One runs on this machine"


async def test_a_named_model_is_found_at_whichever_server_has_it(scripted: Scripted) -> None:
    for name in ["gemma3", "gemma3:latest"]:
        first, second = scripted([], models=["a"]), scripted([], models=["gemma3:latest"])
        chosen = await choose(
            ModelSettings(name=name), NONE, servers=[here("One", first), here("Two", second)]
        )
        assert (chosen.endpoint_url, chosen.model_name) == (second.base_url, "gemma3:latest"), name


async def test_nothing_found_names_the_ways_to_a_model(scripted: Scripted) -> None:
    for name in [None, "gemma3"]:
        servers = [
            CLOSED,
            here("One", scripted([], models=["embed-only" if name is None else "other"])),
        ]
        with pytest.raises(NoModel) as caught:
            await choose(ModelSettings(name=name), NONE, servers=servers, beside=[])
        for way in ("2 ways", "1. a key", "OPENAI_API_KEY", "2. a local server", "Ollama"):
            assert way in str(caught.value), name
        assert (name or "") in str(caught.value), name
        # A name that nobody knows may be one of an extension that is not here.
        assert ("extras of this program" in caught.value.fix) is (name is not None), name


async def test_the_window_is_as_set_told_known_or_assumed(scripted: Scripted) -> None:
    rows: list[tuple[str, dict[str, object], str, dict[str, int], tuple[int, str]]] = [
        (
            "setting-first",
            {"max_model_len": 4096},
            "gpt-4.1",
            {"context_tokens": 2000},
            (2000, "set in"),
        ),
        ("endpoint-before-table", {"max_model_len": 4096}, "gpt-4.1", {}, (4096, "told by")),
        ("table", {"meta": None}, "gpt-4.1-mini", {}, (1_047_576, "known for")),
        ("assumed", {"max_model_len": "many"}, "nobody-knows", {}, (16384, "assumed")),
    ]
    for case, entry, name, settings, window in rows:
        server = scripted([], models=[{"id": name, **entry}])
        model = await opened(server, name, ModelSettings(mode="native", **settings))
        assert isinstance(model, NativeModel), case
        assert (model.name, model.mode, model.context_limit) == (name, "native", window[0]), case
        assert model.window.source.startswith(window[1]), case


async def opened(server: ScriptedModel, name: str, settings: ModelSettings) -> Model:
    """Return the model of the server; it sends no request, so it holds no connection."""
    model = await open_model(DiscoveredModel(server.base_url, name, "", "a test"), settings)
    await model.aclose()
    return model


needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root starts a server as another user"
)


def _serve(listener: socket.socket, user: int) -> None:
    os.setuid(user)
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener.sendall(str(server.getsockname()[1]).encode())
        body = json.dumps({"data": [{"id": "spy"}]}).encode()
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(
                    b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                )


@pytest.fixture
def stranger() -> Iterator[ServerKind]:
    """A server of another user that lists a model."""
    ours, theirs = socket.socketpair()
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs, 65534))
    process.start()
    with ours, theirs:
        yield ServerKind("Spy", int(ours.recv(100)))
    process.kill()
    process.join()


@needs_root
async def test_a_server_of_another_user_is_not_used_unasked(
    stranger: ServerKind, scripted: Scripted
) -> None:
    with pytest.raises(UnconfirmedServer, match="configure --confirm-address"):
        await choose(ModelSettings(), {}, servers=[stranger])
    own = scripted([], models=["mine"])
    found = await choose(ModelSettings(), {}, servers=[stranger, here("Own", own)])
    assert found.model_name == "mine"


@needs_root
async def test_a_yes_for_this_workspace_lets_it_be_used(
    stranger: ServerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    url = f"http://127.0.0.1:{stranger.port}/v1"
    confirm(tmp_path, url)
    found = await choose(
        ModelSettings(), {}, servers=[stranger], confirmed=lambda one: is_confirmed(tmp_path, one)
    )
    assert (found.model_name, found.endpoint_url) == ("spy", url)


async def test_where_nobody_says_whose_a_port_is_it_is_asked(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = scripted([], models=["mine"])
    monkeypatch.setattr(machine, "_SOCKETS", (tmp_path / "tcp",))
    with pytest.raises(UnconfirmedServer):
        await choose(ModelSettings(), {}, servers=[here("Own", own)])
    (tmp_path / "tcp").write_text("odd\nodd odd\n")
    assert not machine.is_own_port(here("Own", own).port)
