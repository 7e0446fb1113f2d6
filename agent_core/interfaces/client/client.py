"""The client: what people and programs do with a workspace, the same in this process and over HTTP.

Results are the published JSON, as `knapper … --json` prints it; events are those of `agent_core.events`.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, get_args
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter, ValidationError

from agent_core.base import events
from agent_core.base.errors import KnapperError
from agent_core.base.events import Event
from agent_core.base.json_form import to_json
from agent_core.workspace.portable import text_of
from agent_core.workspace.workspace import Workspace
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from ..server import agent_operations as on_agents
from ..server import command_operations as on_commands
from ..server import function_operations as on_functions
from ..server import page_operations as on_page
from ..server import source_operations as on_records
from ..server.agent_host import Rooms, opened_rooms
from ..server.catalog import OPERATIONS
from ..server.failures import ApiRefusal
from ..server.identity import SCOPES, Identity
from ..server.journal_events import NumberedEvent
from ..server.operations import Handler, Operation, Sent, Stream
from ..server.parts import Nothing
from .wire import ConnectionLost, HttpWire, Query, Wire

Json = dict[str, Any]  # Any: JSON
_OF_HANDLER: Final = {row.handler: row for row in OPERATIONS}


class Resource:
    """A part of the API; `names` are those in the paths of its operations."""

    def __init__(self, wire: Wire, **names: str) -> None:
        self._wire = wire
        self._names = names

    async def _call(self, handler: Handler, **values: Any) -> Json:  # Any: JSON
        """Return the result of an operation: its names in the path, its query or its body are taken from the values.

        A function that the gate rejects has its verdict for a result, too.
        """
        operation = _OF_HANDLER[handler]
        values = {**self._names, **values}
        path = operation.path.format(**{name: quote(str(values.pop(name)), safe="") for name in operation.names})
        is_query = operation.method in ("GET", "DELETE")
        query = {name: value for name, value in values.items() if value not in ("", False)} if is_query else {}
        body = None if is_query or operation.body is Nothing else values
        try:
            return dict(await self._wire.ask(operation.method, path, query, body))
        except ApiRefusal as refused:
            verdict = refused.besides.get("verdict")
            if refused.code != "rejected" or not isinstance(verdict, dict):
                raise
            return verdict


class FunctionsResource(Resource):
    """The functions of a workspace. Verdicts are returned, whether they admit or reject."""

    async def list(self, pattern: str = "", module: str = "", standing: str = "") -> Json:
        """Return the functions that match, and what was rejected."""
        return await self._call(on_functions.functions, pattern=pattern, module=module, standing=standing)

    async def search(self, need: str, count: int = 5) -> Json:
        """Return the functions that serve a need, best first."""
        return await self._call(on_functions.search, need=need, count=count)

    async def show(self, name: str) -> Json:
        """Return everything that is known of a function."""
        return await self._call(on_functions.show, name=name)

    async def check(self, source: str, *, name: str = "", module: str = "", policy: str = "agent") -> Json:
        """Return the verdict on a function without admitting it."""
        return await self._call(on_functions.check, source=source, name=name, module=module, policy=policy)

    async def create(self, name: str, source: str, module: str = "grown", *, reason: str = "") -> Json:
        """Create a function if there is none of that name and the gate admits it. Return its verdict."""
        body = {"source": source, "module": module, "reason": reason}
        return await self._call(on_functions.put, name=name, when="new", **body)

    async def replace(self, name: str, source: str, *, reason: str = "") -> Json:
        """Replace a function that is there if the gate admits the new one. Return its verdict."""
        return await self._call(on_functions.put, name=name, when="there", source=source, reason=reason)

    async def edit(self, name: str, old: str, new: str, *, reason: str = "") -> Json:
        """Replace a part of a function's source if the gate admits it, and return its verdict."""
        return await self._call(on_functions.edit, name=name, old=old, new=new, reason=reason)

    async def delete(self, name: str) -> Json:
        """Delete a function that no other one calls."""
        return await self._call(on_functions.delete, name=name)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function, and return how it ended."""
        return await self._call(on_functions.call, name=name, arguments=dict(arguments))

    async def test(self, name: str, arguments: Mapping[str, Any] | None = None) -> Json:  # Any: JSON
        """Run a function's examples, or one call, off the record."""
        given = {} if arguments is None else {"arguments": dict(arguments)}
        return await self._call(on_functions.test, name=name, **given)

    async def trace(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function off the record, and return each line that ran with the locals that it changed."""
        return await self._call(on_page.trace, name=name, arguments=dict(arguments))

    async def history(self, name: str) -> Json:
        """Return the versions of a function."""
        return await self._call(on_page.history, name=name)

    async def diff(self, name: str, version: str = "") -> Json:
        """Return what changed since a version."""
        return await self._call(on_page.diff, name=name, version=version)

    async def rollback(self, name: str, version: str = "") -> Json:
        """Go back to an earlier version if the gate admits it, and return its verdict."""
        return await self._call(on_functions.rollback, name=name, version=version)

    async def confirm(self, name: str, expected: tuple[str, ...] = (), *, reason: str = "") -> Json:
        """Admit a rejected candidate with the results that came back, and return its verdict."""
        return await self._call(on_functions.confirm, name=name, expected=[*expected], reason=reason)

    async def release(self, name: str) -> Json:
        """Release a function from quarantine."""
        return await self._call(on_functions.release, name=name)


class GrantsResource(Resource):
    """The grants of functions."""

    async def list(self, function: str = "") -> Json:
        """Return the grants that the file proposes, and those in force."""
        return await self._call(on_records.grants, function=function)

    async def revoke(self, function: str, grants: Json | None = None) -> Json:
        """Revoke grants of a function, or all."""
        return await self._call(on_records.revoke, name=function, **({"grants": grants} if grants else {"all": True}))


class CallsResource(Resource):
    """The recorded calls."""

    async def list(self, function: str = "", *, failed: bool = False) -> Sequence[Json]:
        """Return the recorded calls, newest first."""
        return [*(await self._call(on_records.calls, function=function, failed=failed))["calls"]]

    async def show(self, call: int) -> Json:
        """Return one with what it got, and its outcome."""
        return await self._call(on_records.recorded_call, call=call)

    async def replay(self, call: int, version: str = "") -> Json:
        """Make a call again, and compare."""
        return await self._call(on_records.replay, call=call, version=version)


class MemoryResource(Resource):
    """The memory of one agent."""

    async def show(self) -> Json:
        """Return its blocks and sections."""
        return await self._call(on_agents.memory)

    async def block(self, label: str) -> Json:
        """Return one block, with its version and the history of its changes."""
        return await self._call(on_agents.block, label=label)

    async def edit(self, label: str, version: int, value: str | None = None, **about: str | int) -> Json:
        """Change a block that is still at this version: its value, `limit` or `description`.

        Raises:
            ApiRefusal: it is at another version by now; `problems` has what it is.
        """
        given = about if value is None else {**about, "value": value}
        return await self._call(on_agents.edit_block, label=label, version=version, **given)

    async def history(self, label: str) -> list[Json]:
        """Return the changes of a block."""
        return list((await self.block(label))["changes"])

    async def undo(self, label: str) -> Json:
        """Take back the last change of a block."""
        return await self._call(on_agents.undo, label=label)

    async def search(self, query: str, where: str = "both", *, page: int = 0, count: int = 10) -> Json:
        """Search what was said (`recall`), what was stored (`archival`), or both."""
        return await self._call(on_agents.search_memory, query=query, where=where, page=page, count=count)


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
        return await self._call(on_functions.status)

    async def doctor(self) -> Json:
        """Return what the machine of the workspace can do."""
        return await self._call(on_records.doctor)

    async def agents(self) -> list[Json]:
        """Return the agents, with how much each has said and remembers."""
        return list((await self._call(on_agents.agents))["agents"])

    async def make_agent(self, name: str) -> Json:
        """Make an agent, or return the one of that name."""
        return await self._call(on_agents.make, name=name)

    async def show_agent(self, name: str = "") -> Json:
        """Return an agent's settings, blocks, sections and sources."""
        return await self._of(name, on_agents.show)

    async def delete_agent(self, name: str) -> Json:
        """Delete an agent with its conversation and memory."""
        return await self._of(name, on_agents.delete)

    async def export_agent(self, name: str = "") -> str:
        """Return an agent as one document."""
        return str((await self._of(name, on_agents.export))["document"])

    async def import_agent(self, document: str | bytes | Mapping[str, Any], name: str = "") -> list[Json]:  # Any: JSON
        """Make the agents of a document, and return a report on each."""
        return list((await self._call(on_agents.take_in, document=text_of(document), name=name))["agents"])

    async def memory(self, agent: str = "") -> MemoryResource:
        """Return what an agent remembers."""
        return MemoryResource(self._wire, agent=await self._name(agent))

    async def messages(self, agent: str = "", *, after: int = 0, last: int = 0) -> list[Json]:
        """Return the conversation after a number, or its `last` entries."""
        return list((await self._of(agent, on_agents.messages, after=after, last=last))["messages"])

    async def post(self, text: str, agent: str = "", *, key: str = "") -> Json:
        """Send a message, and return its event and the last number before it; a `key` makes a repeat harmless."""
        return await self._of(agent, on_agents.post, text=text, **({"key": key} if key else {}))

    async def converse(self, name: str, agent: str = "") -> str:
        """Return the agent that holds a conversation with this name, which begins now if there is none."""
        return str((await self._of(agent, on_agents.converse, name=name))["agent"])

    async def turn_of(self, posted: Json, agent: str = "") -> str | None:
        """Return which turn took a message; None while it waits."""
        turn = (await self._of(agent, on_agents.taken, event=posted["event"]))["turn"]
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
        path = _OF_HANDLER[on_agents.events].path.format(agent=quote(await self._name(agent), safe=""))
        reader, tries = FrameReader(after), 0
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
        return bool((await self._of(agent, on_agents.interrupt))["interrupted"])

    async def pop(self, agent: str = "") -> str | None:
        """Take the last turn out of the context, and return what began it."""
        removed = (await self._of(agent, on_agents.pop))["removed"]
        return None if removed is None else str(removed)

    async def retry(self, agent: str = "") -> Json:
        """Take the last turn back, and send the message that began it again; return as `post` does."""
        return await self._of(agent, on_agents.retry)

    async def new(self, agent: str = "") -> int:
        """Begin a new conversation, and return how many turns left the context."""
        return int((await self._of(agent, on_agents.new))["turns"])

    async def approvals(self) -> list[Json]:
        """Return the questions about grants that wait for an answer, oldest first."""
        return list((await self._call(on_functions.approvals))["approvals"])

    async def answer(self, question: str, answer: str, word: str = "", *, wide: bool = False) -> Json:
        """Answer a question with `once`, `yes` or `no`, and a word for the model.

        A `wide` yes is for the folder around the file, too.
        """
        return await self._call(on_functions.answer, id=question, answer=answer, word=word, wide=wide)

    async def command(self, words: Sequence[str], texts: Mapping[str, str] | None = None, **typed: str | bool) -> Json:
        """Run a command of `knapper` where the workspace is, and return what it shows.

        `texts` are the files that it names; `typed` says where it was typed, as the API has it.
        """
        return await self._call(on_commands.command, words=[*words], texts=dict(texts or {}), **typed)

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

    async def _name(self, agent: str) -> str:
        """Return the name of an agent; that of the usual one is asked for once."""
        if not agent:
            self._usual = agent = self._usual or str((await self.status())["agent"])
        return agent

    async def _of(self, agent: str, handler: Handler, **values: Any) -> Json:  # Any: JSON
        """Return the result of an operation on an agent."""
        return await self._call(handler, agent=await self._name(agent), **values)


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


# Events as they come over a stream: frames read into the same dataclasses that a turn in this process yields.

_MOST: Final = 64 << 20  # bytes of one frame


class FrameReader:
    """Reads a stream onward; `last` is the number up to which all has been heard.

    After a break, what is not on disk yet comes again from its beginning: what was yielded of it is left out.
    """

    def __init__(self, after: int) -> None:
        self.last = after
        self._rest = b""
        self._heard = ""  # of the text that has no number yet
        self._again = ""

    def begin_again(self) -> None:
        """Note that the stream broke off, and that another one goes on after the last number."""
        self._rest, self._again, self._heard = b"", self._heard, ""

    def feed(self, part: bytes) -> Iterator[NumberedEvent]:
        """Yield the events whose frames are whole."""
        *frames, self._rest = (self._rest + part).split(b"\n\n")
        if len(self._rest) > _MOST:
            raise ValueError("a frame is too long")
        for frame in frames:
            number, data = _fields(frame)
            event = None if data is None else event_of(data)
            if isinstance(event, events.Text):
                event = self._unheard(event)
            if number is not None:
                self.last, self._heard, self._again = number, "", ""
            if number is not None or event is not None:
                yield NumberedEvent(number, event)

    def _unheard(self, event: events.Text) -> events.Text | None:
        text = event.text
        if self._again:
            known = len(text) if self._again.startswith(text) else len(self._again) * text.startswith(self._again)
            text, self._again = text[known:], self._again[known:]
        self._heard += event.text
        return events.Text(turn=event.turn, step=event.step, agent=event.agent, text=text) if text else None


def event_of(data: dict[str, Any]) -> Event | None:  # Any: JSON
    """Return the event of a published shape; None if this version does not know it."""
    kind = _kinds().get(str(data.get("type")))
    if kind is None:
        return None
    try:
        return kind.validate_python(data)
    except ValidationError:
        return None


@cache
def _kinds() -> dict[str, TypeAdapter[Event]]:
    return {kind.type: TypeAdapter(kind) for kind in get_args(Event)}


def _fields(frame: bytes) -> tuple[int | None, dict[str, Any] | None]:  # Any: JSON
    number: int | None = None
    data: dict[str, Any] | None = None
    for line in frame.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"id" and value.strip().isdigit():
            number = int(value)
        elif name == b"data":
            try:
                document = read_json(value, LOOSE)
            except Malformed:
                continue
            data = document if isinstance(document, dict) else None
    return number, data


# A workspace in this process behind the same operations as a server's, with its agents at work.

_GRACE_S: Final = 0.0  # whoever closes the client has heard what they wanted to
_OWNER: Final = Identity("in-process", frozenset(SCOPES))
_PATHS: Final = [(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", row.path)), row) for row in OPERATIONS]


@asynccontextmanager
async def local_wire(workspace: Workspace) -> AsyncIterator["LocalWire"]:
    """Give the way to the operations of a workspace that is open in this process."""
    async with opened_rooms(workspace, _GRACE_S) as rooms:
        yield LocalWire(rooms)


class LocalWire:
    """Requests to the operations of a workspace that is open in this process."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request."""
        content = b"" if body is None else json.dumps(body).encode("utf-8", "replace")
        result = await self._run(method, path, query, content)
        return read_json(json.dumps(to_json(result), default=str), LOOSE)

    async def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the frames of an event stream."""
        result = await self._run("GET", path, {"after": after}, b"")
        assert isinstance(result, Stream)
        async with aclosing(result.frames) as frames:
            async for frame in frames:
                yield frame

    async def aclose(self) -> None:
        """Do nothing: whoever opened the workspace closes it."""

    async def _run(self, method: str, path: str, query: Query, body: bytes) -> object:
        operation, names = _operation(method, path)
        sent = Sent(names, {key: str(value) for key, value in query.items()}, body)
        try:
            return await operation.run(self._rooms, _OWNER, sent)
        except KnapperError as error:
            raise ApiRefusal.of(error) from error


def _operation(method: str, path: str) -> tuple[Operation, dict[str, str]]:
    for pattern, operation in _PATHS:
        if operation.method == method and (match := pattern.fullmatch(path)):
            return operation, {name: unquote(value) for name, value in match.groupdict().items()}
    raise ApiRefusal(404, "no-route", "There is nothing at this address.")
