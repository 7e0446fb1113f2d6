"""The client of a workspace for people and programs, the same in this process and over HTTP, and its connections.

Results are the published JSON, as printed by `knapper … --json`; events are those of `agent_core.events`.
"""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, get_args, overload
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter, ValidationError

from agent_core.api import agent_operations as on_agents
from agent_core.api import page_operations as on_page
from agent_core.api import workspace_operations as on_workspace
from agent_core.api.agent_host import NumberedEvent, Rooms, opened_rooms
from agent_core.api.identity import SCOPES, ApiRefusal, Identity
from agent_core.api.operations import ApiOperation, Asked, Names, Nothing, api_of
from agent_core.base import events
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.events import Event
from agent_core.base.pictures import PictureFile
from agent_core.base.records import to_json
from agent_core.base.untrusted import one_line
from agent_core.operations.operation import Operation
from agent_core.registry.answer_shapes import AnswerShape
from agent_core.storage import MAIN
from agent_core.workspace.portable import text_of
from agent_core.workspace.workspace import Workspace
from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .resources import FunctionOperations

Json = dict[str, Any]  # Any: JSON
Query = Mapping[str, str | int | bool]
T = TypeVar("T")
_ADDRESS: Final = re.compile("https?://", re.IGNORECASE)
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
NO_SERVER: Final = "What answers there is no Knapper server."
_ROW: Final = ("id", "agent", "name")  # of a conversation
_SILENCE: Final = httpx2.Timeout(60.0)  # on a stream with a comment every 15 s


class ConnectionLost(KnapperError):
    """The server cannot be reached, or the connection broke."""

    code = "connection"


class Wire(Protocol):
    """A connection from a client to the operations."""

    async def ask(
        self, operation: ApiOperation, names: Names, query: Query, body: object
    ) -> Any:  # Any: JSON
        """Request an operation and return the response; `names` are for the parameters in its path.

        Raises:
            ApiRefusal: the request was refused or failed; the error says why.
            ConnectionLost: there was no response.
        """

    def stream(
        self, operation: ApiOperation, names: Names, query: Query
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream.

        Raises:
            ApiRefusal: the request was refused; the error says why.
            ConnectionLost: the stream broke.
        """

    async def aclose(self) -> None:
        """Close the connection."""


class HttpWire:
    """A `Wire` that sends requests to a server over HTTP."""

    def __init__(
        self, url: str, token: str, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        """Prepare the connection.

        Raises:
            UsageError: this is no address of a server, or no token.
        """
        if not (token.isascii() and token.isprintable()):
            raise UsageError(
                "This is no token: it has characters that none has.",
                fix="Copy it again, without line ends.",
            )
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
                raise ValueError  # noqa: TRY301 - the same as what the parser finds
            self._client = httpx2.AsyncClient(
                base_url=self._url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                follow_redirects=False,
            )
        except (ValueError, httpx2.InvalidURL) as error:
            fix = "Write it as http://HOST:PORT or https://HOST."
            raise UsageError(f"{one_line(url, 200)} is no address of a server.", fix=fix) from error

    async def ask(
        self, operation: ApiOperation, names: Names, query: Query, body: object
    ) -> Any:  # Any: JSON
        """Request an operation and return the response."""
        return await self.request(operation.method, _path(operation, names), query, body)

    async def request(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Send a request and return the response."""
        params = {key: str(value) for key, value in query.items()}
        content = None if body is None else json.dumps(body).encode("utf-8", "replace")
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._client.request(
                method, path, params=params, content=content, headers=headers
            )
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        return _result(answer.status_code, answer.content)

    async def stream(
        self, operation: ApiOperation, names: Names, query: Query
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream."""
        path, given = _path(operation, names), {key: str(value) for key, value in query.items()}
        try:
            async with self._client.stream(
                operation.method, path, params=given, timeout=_SILENCE
            ) as answer:
                if answer.status_code != 200:
                    _result(answer.status_code, await answer.aread())
                async with aclosing(answer.aiter_raw()) as parts:
                    async for part in parts:
                        yield part
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        raise ConnectionLost(f"{self._url} has ended the stream.", fix="Is the server running?")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _lost(self, error: httpx2.HTTPError) -> ConnectionLost:
        reason = one_line(str(error)) or type(error).__name__
        return ConnectionLost(
            f"{self._url} cannot be reached: {reason.rstrip('.')}.", fix="Is the server running?"
        )


def _path(operation: ApiOperation, names: Names) -> str:
    return operation.path.format(**{name: quote(value, safe="") for name, value in names.items()})


def _result(status: int, content: bytes) -> Any:  # Any: JSON
    try:
        document = read_json(content, LOOSE)
    except Malformed:
        document = None
    if 200 <= status < 300:
        return of_knapper(document)
    raise ApiRefusal.read(status, document)


def of_knapper(document: Any, *names: str) -> Json:  # Any: JSON
    """Return a successful response if it is an object with these names.

    Raises:
        ConnectionLost: it is not, so it comes from another program.
    """
    if isinstance(document, dict) and document.keys() >= {*names}:
        return document
    raise ConnectionLost(NO_SERVER, fix="Check the address and the port.")


class Resource:
    """A part of the API; `names` are values for the path parameters of its operations."""

    def __init__(self, wire: Wire, **names: str) -> None:
        self._wire = wire
        self._names = names

    async def _call(self, operation: ApiOperation, **values: Any) -> Json:  # Any: JSON
        """Call an operation and return its result. The values fill its path parameters, its query, or its body.

        For a function that the gate rejects, the result is also its verdict.
        """
        values = {**self._names, **values}
        names = {name: str(values.pop(name)) for name in operation.names}
        is_query = operation.method in ("GET", "DELETE")
        asked = [*values] if is_query else [*operation.query.model_fields.keys() & values.keys()]
        query = {name: value for name in asked if (value := values.pop(name)) not in ("", False)}
        if query.get("conversation") == MAIN:
            del query["conversation"]  # a server of an earlier version knows no other one
        body = None if is_query or operation.body is Nothing else values
        try:
            return dict(await self._wire.ask(operation, names, query, body))
        except ApiRefusal as refused:
            verdict = refused.besides.get("verdict")
            if refused.code != "rejected" or not isinstance(verdict, dict):
                raise
            return verdict


class FunctionsResource(FunctionOperations, Resource):
    """The functions of a workspace. Verdicts are returned, whether they admit or reject."""

    async def run(self, operation: Operation, **values: Any) -> Json:  # Any: JSON
        """Run an operation and return its result."""
        return await self._call(api_of(operation), **values)

    async def list(self, pattern: str = "", module: str = "", standing: str = "") -> Json:
        """Return the matching functions and the rejected candidates."""
        return await self._call(
            on_workspace.functions, pattern=pattern, module=module, standing=standing
        )

    async def search(self, need: str, count: int = 5) -> Json:
        """Return the functions that serve a need, best first."""
        return await self._call(on_workspace.search, need=need, count=count)

    async def check(
        self, source: str, *, name: str = "", module: str = "", policy: str = "agent"
    ) -> Json:
        """Return the verdict on a function without admitting it."""
        return await self._call(
            on_workspace.check, source=source, name=name, module=module, policy=policy
        )

    async def create(
        self, name: str, source: str, module: str = "grown", *, reason: str = ""
    ) -> Json:
        """Create a function if none has this name and the gate admits it. Return the verdict."""
        body = {"source": source, "module": module, "reason": reason}
        return await self._call(on_workspace.put, name=name, when="new", **body)

    async def replace(self, name: str, source: str, *, reason: str = "") -> Json:
        """Replace an existing function if the gate admits the new source. Return the verdict."""
        return await self._call(
            on_workspace.put, name=name, when="there", source=source, reason=reason
        )

    async def edit(self, name: str, old: str, new: str, *, reason: str = "") -> Json:
        """Replace a part of a function's source if the gate admits the result. Return the verdict."""
        return await self._call(on_workspace.edit, name=name, old=old, new=new, reason=reason)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function and return the outcome."""
        return await self._call(on_workspace.call, name=name, arguments=dict(arguments))

    async def test(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> Json:  # Any: JSON
        """Run a function's examples or one call, without recording it."""
        given = {} if arguments is None else {"arguments": dict(arguments)}
        return await self._call(on_workspace.test, name=name, **given)

    async def trace(self, name: str, arguments: Mapping[str, Any]) -> Json:  # Any: JSON
        """Call a function without recording it, and return each executed line with the locals that it changed."""
        return await self._call(on_page.trace, name=name, arguments=dict(arguments))


class GrantsResource(Resource):
    """The grants of functions."""

    async def list(self, function: str = "") -> Json:
        """Return the grants proposed by the file and those in force."""
        return await self._call(on_workspace.grants, function=function)

    async def revoke(self, function: str, grants: Json | None = None) -> Json:
        """Revoke the given grants of a function, or all of them."""
        return await self._call(
            on_workspace.revoke, name=function, **({"grants": grants} if grants else {"all": True})
        )


class CallsResource(Resource):
    """The recorded calls."""

    async def list(self, function: str = "", *, failed: bool = False) -> Sequence[Json]:
        """Return the recorded calls, newest first."""
        return [*(await self._call(on_workspace.calls, function=function, failed=failed))["calls"]]

    async def show(self, call: int) -> Json:
        """Return a call with its arguments and outcome."""
        return await self._call(on_workspace.recorded_call, call=call)

    async def replay(self, call: int, version: str = "") -> Json:
        """Repeat a call and compare the outcomes."""
        return await self._call(on_workspace.replay, call=call, version=version)


class MemoryResource(Resource):
    """The memory of one agent."""

    async def show(self) -> Json:
        """Return its blocks and sections."""
        return await self._call(on_agents.memory)

    async def block(self, label: str) -> Json:
        """Return a block with its version and the history of its changes."""
        return await self._call(on_agents.block, label=label)

    async def edit(
        self, label: str, version: int, value: str | None = None, **about: str | int
    ) -> Json:
        """Change the value, `limit` or `description` of a block that is still at this version.

        Raises:
            ApiRefusal: the block has another version by now; `problems` contains its current state.
        """
        given = about if value is None else {**about, "value": value}
        return await self._call(on_agents.edit_block, label=label, version=version, **given)

    async def history(self, label: str) -> list[Json]:
        """Return the changes of a block."""
        return list((await self.block(label))["changes"])

    async def undo(self, label: str) -> Json:
        """Undo the last change of a block."""
        return await self._call(on_agents.undo, label=label)

    async def search(
        self,
        query: str,
        where: str = "both",
        *,
        page: int = 0,
        count: int = 10,
        conversation: str = MAIN,
    ) -> Json:
        """Search what was said (`recall`), what was stored (`archival`), or both.

        What was said is found in all conversations, but for those that are deleted or private to another token; one
        that is private to a token finds itself alone.
        """
        terms = {"where": where, "page": page, "count": count, "conversation": conversation}
        return await self._call(on_agents.search_memory, query=query, **terms)


_WAITS_S: Final = (0.1, 0.3, 1.0, 2.0, 5.0)
"""The delay before each attempt to resume a broken stream."""


class Client(Resource):
    """A workspace as its users see it. Without a name, `agent` is the default agent.

    A `conversation` of an agent is given by its id or its name; without one, it is the main one.
    """

    def __init__(self, wire: Wire, resources: AsyncExitStack | None = None) -> None:
        """Create the client; `resources` are closed with it."""
        super().__init__(wire)
        self.functions = FunctionsResource(wire)
        self.grants = GrantsResource(wire)
        self.calls = CallsResource(wire)
        self._resources = resources or AsyncExitStack()
        self._usual = ""

    async def status(self) -> Json:
        """Return what is running and what is waiting."""
        return of_knapper(await self._call(on_workspace.status), "agent")

    async def doctor(self) -> Json:
        """Return the capabilities of the workspace's machine."""
        return await self._call(on_workspace.doctor)

    async def agents(self) -> list[Json]:
        """Return the agents with the sizes of their conversations and memories."""
        return list((await self._call(on_agents.agents))["agents"])

    async def make_agent(self, name: str) -> Json:
        """Create an agent, or return the existing one with this name."""
        return await self._call(on_agents.make, name=name)

    async def show_agent(self, name: str = "") -> Json:
        """Return an agent's settings, blocks, sections and sources."""
        return await self._of(name, on_agents.show)

    async def delete_agent(self, name: str) -> Json:
        """Delete an agent with its conversation and memory."""
        return await self._of(name, on_agents.delete)

    async def export_agent(self, name: str = "") -> str:
        """Return an agent as a single document."""
        return str((await self._of(name, on_agents.export))["document"])

    async def import_agent(
        self, document: str | bytes | Mapping[str, Any], name: str = ""
    ) -> list[Json]:  # Any: JSON
        """Create the agents in a document and return a report on each."""
        return list(
            (await self._call(on_agents.take_in, document=text_of(document), name=name))["agents"]
        )

    async def memory(self, agent: str = "") -> MemoryResource:
        """Return the memory of an agent."""
        return MemoryResource(self._wire, agent=await self._name(agent))

    async def conversations(
        self, agent: str = "", *, limit: int = 100, deleted: bool = False
    ) -> list[Json]:
        """Return the conversations in which something was said, the last used first; if asked, also `deleted` ones."""
        listed = await self._of(agent, on_agents.conversations, limit=limit, deleted=deleted)
        return list(listed["conversations"])

    async def conversation(self, conversation: str, agent: str = "") -> Json:
        """Return a conversation by its id or name."""
        row = await self._of(agent, on_agents.conversation, conversation=conversation)
        return of_knapper(row, *_ROW)

    async def begin_conversation(self, name: str = "", agent: str = "") -> Json:
        """Begin a conversation, or return the one that you began with this name. Its `id` names it from then on."""
        row = await self._of(agent, on_agents.converse, name=name)
        return of_knapper(row, *_ROW)

    async def branch_conversation(
        self, conversation: str = MAIN, agent: str = "", *, upto: int | None = None, name: str = ""
    ) -> Json:
        """Begin a conversation with what was said in another one, up to the entry with a number or all of it."""
        branch = {"branch_of": conversation, "upto": upto, "name": name}
        row = await self._of(agent, on_agents.converse, **branch)
        return of_knapper(row, *_ROW)

    async def rename_conversation(self, conversation: str, name: str, agent: str = "") -> Json:
        """Give a conversation a name, which it keeps."""
        row = await self._of(agent, on_agents.rename, conversation=conversation, name=name)
        return of_knapper(row, *_ROW)

    async def delete_conversation(self, conversation: str, agent: str = "") -> Json:
        """Hide a conversation from lists and from search; nothing of it is erased."""
        row = await self._of(agent, on_agents.hide, conversation=conversation)
        return of_knapper(row, *_ROW)

    async def undelete_conversation(self, id: str, agent: str = "") -> Json:
        """Bring a deleted conversation back."""
        row = await self._of(agent, on_agents.bring_back, conversation=id)
        return of_knapper(row, *_ROW)

    async def export_conversation(self, conversation: str = MAIN, agent: str = "") -> str:
        """Return what was said in a conversation as Markdown."""
        parts, after, has_more = list[str](), 0, True
        while has_more:
            exported = await self._of(
                agent, on_agents.transcribe, conversation=conversation, after=after
            )
            parts.append(str(exported["markdown"]))
            has_more = exported["more"] and exported["after"] > after
            after = exported["after"]
        return "\n".join(parts)

    async def messages(
        self, agent: str = "", *, after: int = 0, last: int = 0, conversation: str = MAIN
    ) -> list[Json]:
        """Return the conversation entries after a number, or the `last` ones."""
        part = {"after": after, "last": last, "conversation": conversation}
        return list((await self._of(agent, on_agents.messages, **part))["messages"])

    async def post(  # noqa: PLR0913 - what a message may have
        self,
        text: str,
        agent: str = "",
        *,
        key: str = "",
        conversation: str = MAIN,
        result: object = None,
        pictures: Sequence[PictureFile] = (),
        mode: str = "",
        growth: str = "",
    ) -> Json:
        """Send a message, and return its event and the last number before it. With a `key`, a retry has no effect.

        The turn's reply is JSON of the shape `result`, if there is one, as in `ask`. `pictures` go with the message.
        `mode` and `growth` are for the turn that it begins; a token gets no more than it has anyway.
        """
        message: Json = {"text": text, "key": key or None, "conversation": conversation}
        message |= {"mode": mode or None, "growth": growth or None}
        if result is not None:
            message["result"] = AnswerShape.of(result).schema
        if pictures:
            message["pictures"] = [
                {"data": b64encode(file.data).decode(), "name": file.name} for file in pictures
            ]
        posted = await self._of(agent, on_agents.post, **message)
        return of_knapper(posted, "event", "after")

    async def turn_of(
        self, posted: Json, agent: str = "", *, conversation: str = MAIN
    ) -> str | None:
        """Return the turn that took a message, or None while the message waits."""
        which = {"event": posted["event"], "conversation": conversation}
        turn = (await self._of(agent, on_agents.taken, **which))["turn"]
        return None if turn is None else str(turn)

    async def turn(
        self,
        text: str,
        agent: str = "",
        *,
        conversation: str = MAIN,
        result: object = None,
        pictures: Sequence[PictureFile] = (),
    ) -> AsyncGenerator[Event, None]:
        """Send a message and yield the events until the turn that took it has ended.

        Leaving the iteration early does not end the turn. `result` is the shape of its reply, as in `ask`; `pictures`
        go with the message.
        """
        posted = await self.post(
            text,
            agent,
            key=uuid4().hex,
            conversation=conversation,
            result=result,
            pictures=pictures,
        )
        async with aclosing(self.follow(posted, agent, conversation=conversation)) as followed:
            async for event in followed:
                yield event

    async def follow(
        self, posted: Json, agent: str = "", *, conversation: str = MAIN
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of the turn that takes a message, from its beginning, or from where it took the message.

        One that is cut off is followed into the turn that resumes it.
        """
        place = {"agent": agent, "conversation": conversation}
        own = ""
        async with aclosing(self.events(**place, after=posted["after"])) as heard:
            async for numbered in heard:
                event = numbered.event
                if event is None:
                    continue
                if isinstance(event, events.MessageAdded) and not own:
                    if event.message_id != posted["event"]:
                        continue
                    own = event.turn
                if isinstance(event, events.TurnStarted) and not own:
                    own = event.turn if await self._is_taken(posted, event, place) else ""
                if own or not event.turn:
                    yield event
                if isinstance(event, events.TurnEnded) and event.turn == own:
                    if await self._is_taken(posted, event, place):
                        return
                    own = ""

    async def _is_taken(self, posted: Json, event: Event, place: Mapping[str, str]) -> bool:
        """Return whether a message was taken by the turn of an event, or goes on in it."""
        return await self.turn_of(posted, place["agent"], conversation=place["conversation"]) == (
            event.turn
        )

    @overload
    async def ask(
        self, text: str, agent: str = "", *, conversation: str = MAIN, result: None = None
    ) -> str: ...
    @overload
    async def ask(
        self, text: str, agent: str = "", *, conversation: str = MAIN, result: type[T]
    ) -> T: ...
    @overload
    async def ask(
        self, text: str, agent: str = "", *, conversation: str = MAIN, result: object
    ) -> Any: ...  # Any: as the shape says

    async def ask(
        self, text: str, agent: str = "", *, conversation: str = MAIN, result: object = None
    ) -> Any:
        """Send a message and return the reply. The message waits for the end of a running turn, and begins its own.

        With a `result`, return a value of this type, JSON Schema, or text with fields such as `name, age int`.

        Raises:
            TurnError: the turn ended without a reply, or the reply is no such value.
            UsageError: no reply can have this type.
        """
        warned, ended = None, None
        message: Json = {"text": text, "key": uuid4().hex, "alone": True}
        shape: AnswerShape | None = None
        if result is not None:
            shape = AnswerShape.of(result)
            message["result"] = shape.schema
        posted = await self._of(agent, on_agents.post, conversation=conversation, **message)
        async for event in self.follow(posted, agent, conversation=conversation):
            if isinstance(event, events.Warned):
                warned = event
            ended = event if isinstance(event, events.TurnEnded) else ended
        if ended is not None and ended.reason == "replied":
            if shape is None:
                return ended.reply
            return shape.read(ended.reply)
        raise events.no_reply("The agent", warned, ended.reason if ended else "interrupted")

    async def events(
        self, agent: str = "", *, after: int = 0, conversation: str = MAIN
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of a conversation after a number, then new ones as they occur.

        Reconnect if the connection breaks.

        Pieces of text have no number until they are on disk; a number without an event means that all text up to it is.

        Raises:
            ConnectionLost: the server remains unreachable.
        """
        name = await self._name(agent)
        reader = FrameReader(after)
        tries = 0
        where = {} if conversation == MAIN else {"conversation": conversation}
        while True:
            try:
                async with aclosing(
                    self._wire.stream(
                        on_agents.events, {"agent": name}, {"after": reader.last, **where}
                    )
                ) as parts:
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

    async def waiting(self, agent: str = "", *, conversation: str = MAIN) -> list[Json]:
        """Return the messages that no turn has taken up yet, the oldest first."""
        found = await self._of(agent, on_agents.waiting, conversation=conversation)
        return list(found["waiting"])

    async def edit_waiting(
        self, event: str, text: str, agent: str = "", *, conversation: str = MAIN
    ) -> Json:
        """Replace the words of a message that you sent and that waits."""
        values = {"event": event, "text": text, "conversation": conversation}
        return await self._of(agent, on_agents.edit_waiting, **values)

    async def withdraw(self, event: str, agent: str = "", *, conversation: str = MAIN) -> Json:
        """Take a message back that waits, and return it."""
        return await self._of(agent, on_agents.withdraw, event=event, conversation=conversation)

    async def interrupt(self, agent: str = "", *, conversation: str = MAIN) -> bool:
        """End the running turn and return whether there was one."""
        ended = await self._of(agent, on_agents.interrupt, conversation=conversation)
        return bool(ended["interrupted"])

    async def pop(self, agent: str = "", *, conversation: str = MAIN) -> str | None:
        """Remove the last turn from the context and return what began it."""
        removed = (await self._of(agent, on_agents.pop, conversation=conversation))["removed"]
        return None if removed is None else str(removed)

    async def retry(self, agent: str = "", *, conversation: str = MAIN) -> Json:
        """Remove the last turn and resend the message that began it. Return the same as `post`."""
        return await self._of(agent, on_agents.retry, conversation=conversation)

    async def new(self, agent: str = "", *, conversation: str = MAIN) -> int:
        """Remove every turn of a conversation from its context and return their number."""
        return int((await self._of(agent, on_agents.new, conversation=conversation))["turns"])

    async def approvals(self) -> list[Json]:
        """Return the unanswered questions about grants, oldest first."""
        return list((await self._call(on_workspace.approvals))["approvals"])

    async def answer(
        self, question: str, answer: str, word: str = "", *, wide: bool = False
    ) -> Json:
        """Answer a question with `once`, `yes` or `no`, and an optional `word` for the model.

        A `wide` yes also covers the folder around the file.
        """
        return await self._call(
            on_workspace.answer, id=question, answer=answer, word=word, wide=wide
        )

    async def command(
        self, words: Sequence[str], texts: Mapping[str, str] | None = None, **typed: str | bool
    ) -> Json:
        """Run a `knapper` command where the workspace is, and return its output.

        `texts` are the contents of the files that it names; `typed` are the API's fields about where it was typed.
        """
        shown = await self._call(
            on_workspace.command, words=[*words], texts=dict(texts or {}), **typed
        )
        return of_knapper(shown, "document", "lines", "hint", "code", "aside")

    async def aclose(self) -> None:
        """Close the connection and everything opened for it."""
        await self._wire.aclose()
        await self._resources.aclose()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _name(self, agent: str) -> str:
        """Return the name of an agent. The default agent's name is requested once."""
        if not agent:
            self._usual = agent = self._usual or str((await self.status())["agent"])
        return agent

    async def _of(self, agent: str, operation: ApiOperation, **values: Any) -> Json:  # Any: JSON
        """Call an operation on an agent and return its result."""
        return await self._call(operation, agent=await self._name(agent), **values)


async def connect(
    place: str | Path | Workspace,
    *,
    token: str = "",
    transport: httpx2.AsyncBaseTransport | None = None,
    **options: Any,  # Any: what `Workspace.open` takes
) -> Client:
    """Return a client of a workspace, given as its folder, its server's address (`https://…`), or an open `Workspace`.

    With a folder, the workspace runs in this process and `options` are those of `Workspace.open`. With an address,
    `token` authenticates you, and `transport` replaces the connection over a socket. Close the client with `aclose`, or
    use it in `async with`.

    Raises:
        WorkspaceError: the folder cannot be used.
        UsageError: the address or the token is none.
    """
    if isinstance(place, str) and _ADDRESS.match(place):
        return Client(HttpWire(place, token, transport))
    async with AsyncExitStack() as stack:
        if not isinstance(place, Workspace):
            place = await stack.enter_async_context(Workspace.open(place, **options))
        rooms = await stack.enter_async_context(opened_rooms(place, _GRACE_S))
        return Client(LocalWire(rooms), stack.pop_all())


# Events from a stream: frames are parsed into the same dataclasses that a turn in this process yields.

_MOST: Final = 64 << 20  # bytes in one frame


class FrameReader:
    """A parser for an event stream that can be resumed; `last` is the number up to which everything has been read.

    After a break, the server repeats text that is not on disk yet from its beginning; text already yielded is skipped.
    """

    def __init__(self, after: int) -> None:
        self.last = after
        self._rest = b""
        self._heard = ""  # text read that has no number yet
        self._again = ""

    def begin_again(self) -> None:
        """Prepare for a new stream that continues after the last number, because the stream broke."""
        self._rest, self._again, self._heard = b"", self._heard, ""

    def feed(self, part: bytes) -> Iterator[NumberedEvent]:
        """Add bytes to the buffer and yield the events in complete frames."""
        *frames, self._rest = (self._rest + part).split(b"\n\n")
        if len(self._rest) > _MOST:
            raise ValueError("a frame is too long")
        for frame in frames:
            fields = dict(line.partition(b":")[::2] for line in frame.split(b"\n"))
            id, event = fields.get(b"id", b"").strip(), event_of(fields.get(b"data", b""))
            number = int(id) if id.isdigit() else None
            if isinstance(event, events.Text):
                text = event.text
                if self._again:
                    again = self._again
                    known = (
                        len(text) if again.startswith(text) else len(again) * text.startswith(again)
                    )
                    text, self._again = text[known:], self._again[known:]
                self._heard += event.text
                event = (
                    events.Text(turn=event.turn, step=event.step, agent=event.agent, text=text)
                    if text
                    else None
                )
            if number is not None:
                self.last, self._heard, self._again = number, "", ""
            if number is not None or event is not None:
                yield NumberedEvent(number, event)


def event_of(text: bytes) -> Event | None:
    """Return the event of its published JSON, or None if this version does not know it."""
    try:
        data = read_json(text, LOOSE)
        return _kinds()[data["type"]].validate_python(data)
    except (Malformed, ValidationError, KeyError, TypeError):
        return None


@cache
def _kinds() -> dict[str, TypeAdapter[Event]]:
    return {kind.type: TypeAdapter(kind) for kind in get_args(Event)}


# A workspace in this process behind the same operations as a server's, with its agents running.

_GRACE_S: Final = 0.0  # a caller that closes the client needs no more events
_OWNER: Final = Identity("in-process", frozenset(SCOPES), window="library")


class LocalWire:
    """A `Wire` that calls the operations of a workspace in this process."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    async def ask(
        self, operation: ApiOperation, names: Names, query: Query, body: object
    ) -> Any:  # Any: JSON
        """Return the result of an operation."""
        content = b"" if body is None else json.dumps(body).encode("utf-8", "replace")
        result = await self._run(operation, names, query, content)
        return await asyncio.to_thread(
            lambda: read_json(json.dumps(to_json(result), default=str), LOOSE)
        )

    async def stream(
        self, operation: ApiOperation, names: Names, query: Query
    ) -> AsyncGenerator[bytes, None]:
        """Yield the frames of an event stream."""
        result = await self._run(operation, names, query, b"")
        assert isinstance(result, AsyncGenerator)
        async with aclosing(result) as frames:
            async for frame in frames:
                yield frame

    async def aclose(self) -> None:
        """Do nothing: the code that opened the workspace closes it."""

    async def _run(
        self, operation: ApiOperation, names: Names, query: Query, body: bytes
    ) -> object:
        texts = {key: str(value) for key, value in query.items()}
        try:
            return await operation.run(Asked(self._rooms, _OWNER), names, texts, body)
        except KnapperError as error:
            raise ApiRefusal.of(error) from error
