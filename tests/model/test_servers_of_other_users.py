"""A server found on this machine gets a message only if its port is owned by this user or root, or after approval."""

import json
import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_core.access.grants.record import confirm, is_confirmed
from agent_core.base import machine
from agent_core.base.settings import ModelSettings
from agent_core.model.dialect import ServerKind
from agent_core.model.discover import UnconfirmedServer, choose
from tests.kit import ScriptedModel

from .test_which_model_is_chosen import here

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root starts a server as another user")
Scripted = Callable[..., ScriptedModel]


def _serve(listener: socket.socket, user: int) -> None:
    os.setuid(user)
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener.sendall(str(server.getsockname()[1]).encode())
        body = json.dumps({"data": [{"id": "spy"}]}).encode()
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


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


async def test_a_server_of_another_user_is_not_used_unasked(stranger: ServerKind, scripted: Scripted) -> None:
    with pytest.raises(UnconfirmedServer, match="configure --confirm-address"):
        await choose(ModelSettings(), {}, servers=[stranger])
    own = scripted([], models=["mine"])
    found = await choose(ModelSettings(), {}, servers=[stranger, here("Own", own)])
    assert found.model_name == "mine"
    assert (await choose(ModelSettings(), {}, servers=[stranger], weights=lambda: "small")).kind == "local"


async def test_a_yes_for_this_workspace_lets_it_be_used(
    stranger: ServerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    url = f"http://127.0.0.1:{stranger.port}/v1"
    confirm(tmp_path, url)
    found = await choose(ModelSettings(), {}, servers=[stranger], confirmed=lambda one: is_confirmed(tmp_path, one))
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
