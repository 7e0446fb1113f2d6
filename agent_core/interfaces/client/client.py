"""The client: what people and programs do with a workspace, the same in this process and over HTTP.

Results are the published JSON, as `knapper … --json` prints it; events are those of `agent_core.events`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from agent_core.base import events
from agent_core.base.events import Event
from agent_core.workspace.portable import text_of
from agent_core.workspace.workspace import Workspace

from ..server.journal_events import NumberedEvent
from .frame_reader import FrameReader
from .local import local_wire
from .resources import CallsResource, FunctionsResource, GrantsResource, Json, MemoryResource, Resource
from .wire import ConnectionLost, HttpWire, Wire

_WAITS_S: Final = (0.1, 0.3, 1.0, 2.0, 5.0)
"""How long to wait before each try to go on with a stream that broke off."""


class Client(Resource):
    """A workspace as its users see it; without a name, `agent` is the usual one."""

    def __init__(self, wire: Wire, resources: AsyncExitStack | None = None) -> None:
        """Create the client; `resources` are closed with it."""
        super().__init__(wire)
        self.functions = FunctionsResource(wire)
        self.grants = GrantsResource(wire)
        self.calls = CallsResource(wire)
        self._resources = resources or AsyncExitStack()
        self._usual = ""

    async def status(self) -> Json:
        """Return what runs and what waits."""
        return await self._get("/status")

    async def doctor(self) -> Json:
        """Return what the machine of the workspace can do."""
        return await self._get("/doctor")

    async def agents(self) -> list[Json]:
        """Return the agents, with how much each has said and remembers."""
        return list((await self._get("/agents"))["agents"])

    async def make_agent(self, name: str) -> Json:
        """Make an agent, or return the one of that name."""
        return await self._post("/agents", {"name": name})

    async def show_agent(self, name: str = "") -> Json:
        """Return an agent's settings, blocks, sections and sources."""
        return await self._get(await self._path(name))

    async def delete_agent(self, name: str) -> Json:
        """Delete an agent with its conversation and memory."""
        return await self._ask("DELETE", await self._path(name))

    async def export_agent(self, name: str = "") -> str:
        """Return an agent as one document."""
        return str((await self._get(await self._path(name, "/export")))["document"])

    async def import_agent(self, document: str | bytes | Mapping[str, Any], name: str = "") -> list[Json]:  # Any: JSON
        """Make the agents of a document, and return a report on each."""
        return list((await self._post("/agents/import", {"document": text_of(document), "name": name}))["agents"])

    async def memory(self, agent: str = "") -> MemoryResource:
        """Return what an agent remembers."""
        return MemoryResource(self._wire, await self._path(agent))

    async def messages(self, agent: str = "", *, after: int = 0, last: int = 0) -> list[Json]:
        """Return the conversation after a number, or its `last` entries."""
        path = await self._path(agent, "/messages")
        return list((await self._get(path, after=after, last=last))["messages"])

    async def post(self, text: str, agent: str = "", *, key: str = "") -> Json:
        """Send a message, and return its event and the last number before it; a `key` makes a repeat harmless."""
        body = {"text": text, **({"key": key} if key else {})}
        return await self._post(await self._path(agent, "/messages"), body)

    async def converse(self, name: str, agent: str = "") -> str:
        """Return the agent that holds a conversation with this name, which begins now if there is none."""
        return str((await self._post(await self._path(agent, "/conversations"), {"name": name}))["agent"])

    async def turn_of(self, posted: Json, agent: str = "") -> str | None:
        """Return which turn took a message; None while it waits."""
        turn = (await self._get(await self._path(agent, f"/messages/{posted['event']}")))["turn"]
        return None if turn is None else str(turn)

    async def turn(self, text: str, agent: str = "") -> AsyncGenerator[Event, None]:
        """Send a message, and yield the events until the turn that took it has ended.

        Leaving the iteration early ends the view, not the turn.
        """
        posted = await self.post(text, agent, key=uuid4().hex)
        async with aclosing(self.follow(posted, agent)) as followed:
            async for event in followed:
                yield event

    async def follow(self, posted: Json, agent: str = "") -> AsyncGenerator[Event, None]:
        """Yield the events since a message was posted, until the turn that took it has ended."""
        async with aclosing(self.events(agent, after=posted["after"])) as heard:
            async for numbered in heard:
                if numbered.event is not None:
                    yield numbered.event
                ended = numbered.event if isinstance(numbered.event, events.TurnEnded) else None
                if ended is not None and await self.turn_of(posted, agent) == ended.turn:
                    return

    async def ask(self, text: str, agent: str = "") -> str:
        """Send a message and return the reply.

        Raises:
            TurnError: the turn ended without one.
        """
        warned, ended = None, None
        async for event in self.turn(text, agent):
            if isinstance(event, events.Warned):
                warned = event
            ended = event if isinstance(event, events.TurnEnded) else ended
        if ended is not None and ended.reason == "replied":
            return ended.reply
        raise events.no_reply("The agent", warned, ended.reason if ended else "interrupted")

    async def events(self, agent: str = "", *, after: int = 0) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of an agent after a number, and then those that come; a break of the connection is bridged.

        Pieces of text have no number until they are on disk; a number without an event says that all up to it is.

        Raises:
            ConnectionLost: the server stays away.
        """
        path, reader, tries = f"{self._base}{await self._path(agent, '/events')}", FrameReader(after), 0
        while True:
            try:
                async with aclosing(self._wire.stream(path, reader.last)) as parts:
                    async for part in parts:
                        tries = 0
                        for numbered in reader.feed(part):
                            yield numbered
            except ConnectionLost:
                if tries >= len(_WAITS_S):
                    raise
                await asyncio.sleep(_WAITS_S[tries])
                tries += 1
                reader.begin_again()
            else:
                return

    async def interrupt(self, agent: str = "") -> bool:
        """End the running turn, and return whether there was one."""
        return bool((await self._post(await self._path(agent, "/interrupt")))["interrupted"])

    async def pop(self, agent: str = "") -> str | None:
        """Take the last turn out of the context, and return what began it."""
        removed = (await self._post(await self._path(agent, "/pop")))["removed"]
        return None if removed is None else str(removed)

    async def retry(self, agent: str = "") -> Json:
        """Take the last turn back, and send the message that began it again; return as `post` does."""
        return await self._post(await self._path(agent, "/retry"))

    async def new(self, agent: str = "") -> int:
        """Begin a new conversation, and return how many turns left the context."""
        return int((await self._post(await self._path(agent, "/new")))["turns"])

    async def approvals(self) -> list[Json]:
        """Return the questions about grants that wait for an answer, oldest first."""
        return list((await self._get("/approvals"))["approvals"])

    async def answer(self, question: str, answer: str, word: str = "", *, wide: bool = False) -> Json:
        """Answer a question with `once`, `yes` or `no`, and a word for the model.

        A `wide` yes is for the folder around the file, too.
        """
        body = {"answer": answer, "word": word, "wide": wide}
        return await self._post(f"/approvals/{self._quoted(question)}", body)

    async def command(self, words: Sequence[str], texts: Mapping[str, str] | None = None, **typed: str | bool) -> Json:
        """Run a command of `knapper` where the workspace is, and return what it shows.

        `texts` are the files that it names; `typed` says where it was typed, as the API has it.
        """
        return await self._post("/commands", {"words": [*words], "texts": dict(texts or {}), **typed})

    async def aclose(self) -> None:
        """End the connection, and what was opened for it."""
        await self._wire.aclose()
        await self._resources.aclose()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _path(self, agent: str, end: str = "") -> str:
        if not agent:
            self._usual = agent = self._usual or str((await self.status())["agent"])
        return f"/agents/{self._quoted(agent)}{end}"


async def connect(
    place: str | Path | Workspace,
    *,
    token: str = "",
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,  # Any: what `Workspace.open` takes
) -> Client:
    """Return a client of the workspace at a place: its folder, its server's address (`https://…`), or an open one.

    With a folder, the workspace runs in this process, and `options` are those of `Workspace.open`; with an address,
    `token` says who you are, and `transport` is another way to the server than a socket. Close the client with
    `aclose`, or use it in `async with`.

    Raises:
        WorkspaceError: the folder cannot be used.
    """
    if isinstance(place, str) and urlsplit(place).scheme in ("http", "https"):
        return Client(HttpWire(place, token, transport))
    async with AsyncExitStack() as stack:
        if not isinstance(place, Workspace):
            place = await stack.enter_async_context(Workspace.open(place, **options))
        wire = await stack.enter_async_context(local_wire(place))
        return Client(wire, stack.pop_all())
