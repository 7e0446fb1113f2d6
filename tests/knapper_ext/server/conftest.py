"""A workspace behind a real socket, and its clients."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from agent_core import Workspace
from agent_core.api.identity import SCOPES, TokenBook
from agent_core.operations.operation import Scope
from agent_core.storage import WholeAgent, line_named, line_of
from knapper_ext.server import app
from knapper_ext.server.app import ServeOptions, serve
from sandbox import Sandbox
from tests.kit import Script, ScriptedModel
from tests.kit import scripted as running

Frames: TypeAlias = list[tuple[int | None, dict[str, Any] | None]]


@dataclass
class Served:
    """A running server: its workspace, its address, and a client whose token has all scopes."""

    workspace: Workspace
    url: str
    login: str
    client: httpx2.AsyncClient
    model: ScriptedModel
    clients: list[httpx2.AsyncClient] = field(default_factory=list)

    async def save(self, path: str, text: str) -> None:
        """Save a file in the functions folder and have it loaded."""
        (self.workspace.root / "functions" / path).write_text(text)
        await self.workspace.functions.reload()

    async def token(
        self,
        name: str,
        *scopes: Scope,
        agents: tuple[str, ...] = (),
        expires: str = "",
        lines: tuple[str, ...] = (),
    ) -> str:
        """Return a new token."""
        book = TokenBook(self.workspace.store, time.time)
        own = tuple(map(line_named, lines))
        return (await book.add(name, scopes, agents, expires, lines=own)).token

    @property
    def key(self) -> str:
        """Return the token with all scopes."""
        return self.client.headers["Authorization"].removeprefix("Bearer ")

    async def as_(
        self,
        name: str,
        *scopes: Scope,
        agents: tuple[str, ...] = (),
        lines: tuple[str, ...] = (),
    ) -> httpx2.AsyncClient:
        """Return a client with a new token."""
        token = await self.token(name, *scopes, agents=agents, lines=lines)
        client = httpx2.AsyncClient(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        self.clients.append(client)
        return client

    async def logged_in(self) -> httpx2.AsyncClient:
        """Return a browser with a logged-in page: the browser sends the cookie, and the page the key."""
        browser = httpx2.AsyncClient(base_url=self.url, timeout=60)
        self.clients.append(browser)
        answer = await browser.post("/login", json={"code": self.login.partition("code=")[2]})
        assert answer.status_code == 200, answer.text
        browser.headers["Knapper-Key"] = answer.json()["key"]
        return browser

    async def frames(
        self,
        until: Callable[[Frames], bool],
        after: int = 0,
        agent: str = "main",
        last: int | None = None,
        conversation: str = "main",
    ) -> Frames:
        """Return an event stream's frames until `until` holds; a frame without data only advances the number."""
        frames: Frames = []
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        path = f"/api/v1/agents/{agent}/events?after={after}&conversation={conversation}"
        async with asyncio.timeout(60), self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            number: int | None = None
            data: dict[str, Any] | None = None
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    data = json.loads(line[6:])
                elif not line and (number is not None or data is not None):
                    frames.append((number, data))
                    number = data = None
                    if until(frames):
                        return frames
        return frames

    async def said(
        self, text: str, agent: str = "main", turns: int = 1, conversation: str = "main"
    ) -> Frames:
        """Send a message and return the events of its turn; an empty text resends the last message."""
        before = await self.last(line_of(agent, conversation))
        following = self.frames(ends(turns), before, agent, conversation=conversation)
        heard = asyncio.create_task(following)
        verb, body = ("messages", {"text": text}) if text else ("retry", {})
        path = f"/api/v1/agents/{agent}/{verb}?conversation={conversation}"
        answer = await self.client.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return await heard

    async def begin_as_before(self, name: str, agent: str = "main") -> str:
        """Make the agent that earlier versions made for a conversation with a name; return its name."""
        whole = WholeAgent(f"{agent}--{name}", {"chat_of": agent})
        await self.workspace.store.write_agent(whole)
        return whole.name

    async def last(self, agent: str = "main") -> int:
        """Return the number of the last end of a turn."""
        ended = await self.workspace.store.ended_turns(agent, 0)
        return ended[-1].seq if ended else 0


def end_of(frames: Frames) -> dict[str, Any]:  # Any: JSON
    """Return the event at the end of the last turn."""
    (*_, last) = (data for _, data in frames if data is not None)
    assert last["type"] == "turn_ended"
    return last


def ends(turns: int) -> Callable[[Frames], bool]:
    """Return a condition that holds once this many turns have ended."""
    return lambda frames: (
        sum(data is not None and data["type"] == "turn_ended" for _, data in frames) >= turns
    )


Serve: TypeAlias = Callable[..., Awaitable[Served]]


@pytest.fixture
async def served(
    tmp_path: Path, scripted: Callable[..., ScriptedModel], one_sandbox: Sandbox
) -> AsyncIterator[Serve]:
    """Start a server with the scripted model; `turn__max_steps=3` sets `turn.max_steps`."""
    async with AsyncExitStack() as stack:

        async def start(
            script: Script, options: ServeOptions | None = None, **flags: Any
        ) -> Served:  # Any: settings
            opened = server(tmp_path, scripted(script), one_sandbox, options, **flags)
            return await stack.enter_async_context(opened)

        yield start


@pytest.fixture(scope="module")
async def unchanged(
    tmp_path_factory: pytest.TempPathFactory, one_sandbox: Sandbox
) -> AsyncIterator[Served]:
    """One server for those tests of a file that change nothing and ask no model."""
    with running([]) as model:
        async with server(tmp_path_factory.mktemp("unchanged"), model, one_sandbox) as started:
            yield started


@cache
def _document() -> dict[str, Any]:  # Any: JSON
    """Return the description of the API, which is the same for all servers and takes long."""
    return app.openapi(app.OPERATIONS)


def port_of(url: str) -> str:
    """Return the port in a URL."""
    return url.rpartition(":")[2]


@asynccontextmanager
async def server(
    root: Path,
    model: ScriptedModel,
    sandbox: Sandbox,
    options: ServeOptions | None = None,
    /,
    **flags: Any,
) -> AsyncIterator[Served]:
    """Run a server on a free port of this machine."""
    given = {name.replace("__", "."): value for name, value in flags.items()}
    settings = {
        "model.base_url": model.base_url,
        "model.name": "scripted",
        "model.context_tokens": 8_192,
        **given,
    }
    patch, document = pytest.MonkeyPatch(), _document()
    patch.setattr(app, "openapi", lambda _: document)
    async with Workspace.open(root, flags=settings, sandbox=sandbox) as workspace:
        started: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        stopping = asyncio.Event()
        work = asyncio.create_task(
            serve(
                workspace,
                options or ServeOptions(port=0),
                lambda d: started.set_result((d.url, d.login)),
                stopping,
            )
        )
        url, login = await started
        running = Served(workspace, url, login, httpx2.AsyncClient(), model)
        running.client = await running.as_(
            f"all-{secrets.token_hex(4)}", *SCOPES
        )  # a new name after a restart
        try:
            yield running
        finally:
            for client in running.clients:
                await client.aclose()
            stopping.set()
            await work
            patch.undo()
