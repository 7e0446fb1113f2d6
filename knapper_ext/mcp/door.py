"""The MCP server of a workspace, for old and new protocol versions. It is imported when a client comes: `mcp` is slow.

Three tools are always offered, because many clients never reload the list: they find, describe and call any function
that is not quarantined. Calls are processed like all others, except that questions about grants wait elsewhere.

Clients of the versions with a handshake are notified on their connection, those of 2026 on the streams that they
opened. Each call runs in a separate task: when a client cancels or leaves, the call is canceled like one of a user,
and its cleanup is not cut off.
"""

import ast
import asyncio
import json
import math
import os
import stat
import time
import weakref
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, TypeAlias, TypeVar
from uuid import uuid4

import mcp_types as wire
from mcp.server import subscriptions
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from agent_core import __version__
from agent_core.access.grants import ApprovalQueue, Approvals, Decision, Question
from agent_core.access.grants.approval import QuestionChanged
from agent_core.access.grants.content import content_of
from agent_core.api.identity import OWNER, Identity
from agent_core.base import syntax
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.offload import aside, bulk
from agent_core.base.picture_formats import media_type_of
from agent_core.base.pictures import MAX_PICTURES, PictureFile
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import block, fence, one_line, shorten, visible
from agent_core.context import presentation
from agent_core.functions.answers import (
    CallReport,
    bad_arguments,
    show_value,
    without_pictures,
)
from agent_core.functions.service import USER, Author, FunctionService, PlannedChange
from agent_core.functions.service.change_texts import read_edits
from agent_core.functions.service.grant_service import GrantService
from agent_core.functions.worker_api import OnProgress
from agent_core.operations.operation import Scope
from agent_core.registry.arguments import read as read_arguments
from agent_core.registry.function import Function, reach_words
from agent_core.registry.registry import Registry, RegistryChange, Snapshot
from agent_core.registry.schema import read_methods
from agent_core.registry.validation import validator_for
from agent_core.workspace.workspace import Workspace
from sandbox.wire.large import Large
from sandbox.wire.values import decode, read_row

from .host_schemas import host_schema, own_arguments
from .wire import MOST_LINE, connect_pipes

Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

FIND: Final = "find_functions"
DESCRIBE: Final = "describe_function"
CALL: Final = "call_function"
LOOKING: Final = (FIND, DESCRIBE, CALL)
GROWING: Final = ("create_function", "edit_function", "run_program", "test_function")
LONGEST_DESCRIPTION: Final = 2_000  # characters
_PLAIN: Final = {"str": "string", "int": "integer", "bool": "boolean"}
_DEEPEST: Final = 8  # nesting levels of an annotation


@cache
def fixed_tools() -> Mapping[str, wire.Tool]:
    """Return the tools that are no functions of the workspace, by name: the methods of `FixedTools`."""
    functions, _ = read_methods(FixedTools)
    tools = {
        function.name: wire.Tool(
            name=function.name, description=function.description, input_schema=host_schema(function)
        )
        for function in functions
    }
    for name in (FIND, DESCRIBE):
        tools[name].annotations = wire.ToolAnnotations(read_only_hint=True)
    return tools


def function_tool(function: Function, ending: str) -> wire.Tool:
    """Return the tool for a workspace function. Its description always ends with `ending`, even if it is cut."""
    return wire.Tool(
        name=function.name,
        description=shorten(visible(function.description), LONGEST_DESCRIPTION) + visible(ending),
        input_schema=host_schema(function),
        output_schema=result_schema(function.returns),
    )


@lru_cache(maxsize=1024)
def result_schema(returns: str) -> Schema | None:
    """Return the schema of an object with a `result` of the annotated type, or None if the type is not fully known."""
    try:
        schema = _schema(syntax.parse(returns, mode="eval").body, 0)
    except SyntaxError:
        return None
    return schema and {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _schema(node: ast.expr, depth: int) -> Schema | None:
    match node:
        case ast.Name(id=name) if name in _PLAIN:
            return {"type": _PLAIN[name]}
        case ast.Constant(value=None):
            return {"type": "null"}
        case _ if depth > _DEEPEST:
            pass
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            return _around(inner, depth, lambda items: {"type": "array", "items": items})
        case ast.Subscript(
            value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), inner])
        ):
            return _around(
                inner, depth, lambda values: {"type": "object", "additionalProperties": values}
            )
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _around(
                left,
                depth,
                lambda one: _around(right, depth, lambda other: {"anyOf": [one, other]}),
            )
    return None


def _around(
    inner: ast.expr, depth: int, schema_of: Callable[[Schema], Schema | None]
) -> Schema | None:
    schema = _schema(inner, depth + 1)
    return None if schema is None else schema_of(schema)


_MOST_TEXT: Final = 100_000
_SEEN: Final[tuple[Scope, ...]] = ("read", "chat")
_NEEDS: Final[Mapping[str, tuple[Scope, ...]]] = {
    FIND: _SEEN,
    DESCRIBE: _SEEN,
    **dict.fromkeys(GROWING, ("edit",)),
}
_CALLS: Final[tuple[Scope, ...]] = ("chat", "edit")


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to a tool call; `value` is its result as JSON, if its schema is known."""

    text: str
    is_error: bool = False
    value: Mapping[str, Any] | None = None  # Any: JSON
    pictures: tuple[PictureFile, ...] = ()


class Offer:
    """The tools that a workspace offers."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._settings = workspace.settings.mcp
        self._chosen: list[str] = []  # the functions listed as tools, of one snapshot
        self._chosen_of: Snapshot | None = None
        self.questions = WaitingQuestions(
            workspace.functions.granting, workspace.functions.registry
        )
        self.hidden: frozenset[str] = frozenset()
        """Functions temporarily removed from the list, so that clients treat a new signature as a new tool."""
        self.listings = 0
        """The number of times that clients loaded the list."""
        self._loaded = asyncio.Event()

    @property
    def functions(self) -> FunctionService:
        """The functions of the workspace."""
        return self.workspace.functions

    async def tools(self, identity: Identity) -> list[wire.Tool]:
        """Return the tools that an identity sees: the fixed ones, and the most used functions by name.

        Raises:
            NotAllowed: the identity may not see tools.
        """
        identity.needs(*_SEEN)
        fixed, growing = fixed_tools(), GROWING if self._grows(identity) else ()
        self.listings += 1
        self._loaded.set()
        own = [function for function in await self.most_used() if function.name not in self.hidden]
        tools = [function_tool(function, self.functions.ending(function)) for function in own]
        return [*(fixed[name] for name in (*LOOKING, *growing)), *tools]

    async def listed(self, times: int, limit_s: float) -> None:
        """Wait until the list was loaded this many times in total, up to a time limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.listings < times:
                    self._loaded.clear()
                    await self._loaded.wait()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        identity: Identity,
        on_progress: OnProgress | None = None,
    ) -> ToolAnswer:
        """Call a tool. Errors become answers that say what to do."""
        tools = FixedTools(self, identity, on_progress)
        try:
            identity.needs(*_NEEDS.get(name, _CALLS))
            if name not in LOOKING and not (name in GROWING and self._grows(identity)):
                return await tools._answer(
                    name, own_arguments(await self.function(name), arguments)
                )
            text = json.dumps(arguments)
            schema = fixed_tools()[name].input_schema
            checked = await aside(len(text), read_arguments, text, schema)
            if not isinstance(checked, dict):
                return ToolAnswer(bad_arguments(name, checked), is_error=True)
            handler: Callable[..., Awaitable[ToolAnswer]] = getattr(tools, name)
            return await handler(**checked)
        except KnapperError as error:
            return ToolAnswer(visible(f"{error.message} {error.fix}".strip()), is_error=True)

    def _grows(self, identity: Identity) -> bool:
        can_grow = self._settings.grow and self.functions.granting.policy.grows
        return can_grow and "edit" in identity.scopes

    async def most_used(self) -> list[Function]:
        """Return the functions listed as tools: the most used ones with an allowed standing, sorted by name."""
        snapshot = self.functions.registry.snapshot()
        if self._chosen_of is not snapshot:
            listed = (await self.functions.list()).functions
            rows = [
                row
                for row in listed
                if row.standing in self._settings.standings and row.name not in fixed_tools()
            ]
            most_used = sorted(rows, key=lambda row: (-row.calls, row.name))[: self._settings.shown]
            self._chosen, self._chosen_of = sorted(row.name for row in most_used), snapshot
        functions = self.functions.registry.snapshot().functions
        return [functions[name] for name in self._chosen if name in functions]

    async def report(
        self,
        name: str,
        arguments: Mapping[str, Any],
        identity: Identity,
        on_progress: OnProgress | None = None,
    ) -> tuple[Function, CallReport]:
        """Call a function, and return it with the report.

        Raises:
            UsageError: the function is quarantined.
        """
        function = await self.function(name)
        if self.functions.quarantine.holds(function):
            owners = identity.agents or None  # not conversations: those have their own interfaces
            raise UsageError(await self.functions.quarantine.refusal(function, owners))
        author = USER  # only the grants file decides
        if self.workspace.settings.grants.unattended != "file":
            author = Author(approvals=self.questions.approvals())
        report = await self.functions.call(name, arguments, on_progress, author)
        if report.outcome != "refused":
            await self.questions.settle(name)
        if report.quarantined is not None:
            self._chosen_of = None
        return function, report

    async def function(self, name: str) -> Function:
        """Return a function by name.

        Raises:
            UsageError: there is no such function; the error suggests a replacement.
        """
        functions = self.functions.registry.snapshot().functions
        if name in functions:
            return functions[name]
        raise await self._missing(name)

    async def _missing(self, name: str) -> UsageError:
        """Return the error for a missing function. For a deleted one, it suggests a function with a similar purpose."""
        try:
            versions = await self.functions.history.versions(name)
        except UsageError as error:
            return UsageError(error.message, fix=f"Look for it: {FIND}.")
        last = next((version.source for version in reversed(versions) if version.source), "")
        purpose = ""  # the first line of its docstring
        with suppress(SyntaxError):
            nodes = [
                node
                for node in syntax.parse(last).body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            purpose = (ast.get_docstring(nodes[0]) or "").partition("\n")[0] if nodes else ""
        report = await self.functions.search(
            f"{name.replace('_', ' ')} {purpose}", 1, self.functions.foreign().keys()
        )
        best = next((f"`{match.function.name}`" for match in report.results), "")
        fix = (
            f"Use {best} in its place: read it with {DESCRIBE}."
            if best
            else f"Look for another: {FIND}."
        )
        return UsageError(f"The function `{name}` was deleted.", fix=fix)


@dataclass(frozen=True, slots=True)
class FixedTools:
    """The tools that are no functions of the workspace, for one call: each public method is one, with a schema from its
    text.
    """

    _offer: Offer
    _identity: Identity
    _on_progress: OnProgress | None

    async def find_functions(
        self, need: str, count: Annotated[int, Field(ge=1, le=50)] = 5
    ) -> ToolAnswer:
        """Find functions of this workspace by what is to be done. New ones may appear at any time.

        Args:
            need: What is to be done, in a few words.
            count: At most so many.
        """
        # Do not pass on tools of other servers: a client would use them under the approval given to our agents.
        foreign = self._offer.functions.foreign().keys()
        report = await self._offer.functions.search(need, count, foreign)
        lines = [
            f"- {match.function.name}: {fence(match.function.description.partition(chr(10))[0], 200)}"
            for match in report.results
        ]
        end = f"Read one with {DESCRIBE}, run it with {CALL}."
        return ToolAnswer("\n".join([*lines, end]) if lines else "No function serves this need.")

    async def describe_function(self, function_name: str) -> ToolAnswer:
        """Describe a function: what it does, its arguments as JSON Schema, its examples.

        Args:
            function_name: The name of the function.
        """
        function = await self._offer.function(function_name)
        rows = (await self._offer.functions.list(function.name)).functions
        row = next((row for row in rows if row.name == function.name), None)
        standing = row.standing if row else "draft"
        examples = [
            f"{example.call} → {example.expected or example.raises}"
            for example in function.examples[:5]
        ]
        lines = [
            f"{function.name} ({standing}), in {function.path}",
            block(function.description, LONGEST_DESCRIPTION),
            f"Arguments, as JSON Schema: {json.dumps(function.parameters, ensure_ascii=False)}",
            f"Returns: {function.returns or 'anything'}",
            *([f"Reaches: {one_line(reach_words(row.reach))}"] if row else []),
            *(f"Example: {fence(example)}" for example in examples),
        ]
        return ToolAnswer("\n".join(lines))

    async def call_function(
        self, function_name: str, arguments: dict[str, Any] | None = None
    ) -> ToolAnswer:
        """Call any function of this workspace by name, also one that is no tool of its own.

        Args:
            function_name: The name of the function.
            arguments: Its arguments, by name.
        """
        return replace(await self._answer(function_name, arguments or {}), value=None)

    async def create_function(
        self,
        function_name: str,
        function_code_with_docstring: str,
        module_name: str = "grown",
        reason: str = "",
    ) -> ToolAnswer:
        """Make a new Python function. It is tested in a sandbox, and can be called at once if it passes. It needs
        type hints, and a docstring with a description, `Args:` and two examples with different results.

        Args:
            function_name: The name of the function.
            function_code_with_docstring: The whole source: imports it needs, then one function.
            module_name: The module it joins, such as `text`.
            reason: Why, in a few words.
        """
        author, code = Author("agent"), function_code_with_docstring
        plan = await self._offer.functions.plan_create(
            function_name, code, module_name, reason, author
        )
        return await self._grown(plan, author)

    async def edit_function(
        self, function_name: str, changes: list[dict[str, str]], reason: str = ""
    ) -> ToolAnswer:
        """Change places in the source of a function, or of a candidate that was rejected. All of `changes` are made
        before it is judged.

        Args:
            function_name: The name of the function.
            changes: For each place {"old_text": …, "new_text": …}; the old text exactly as it is there, once.
            reason: Why, in a few words.
        """
        author = Author("agent")
        plan = await self._offer.functions.plans.edit(
            function_name, read_edits(changes), reason, author
        )
        return await self._grown(plan, author)

    async def run_program(self, code: str) -> ToolAnswer:
        """Run Python that calls functions of this workspace by name: many calls, loops, sums in one step. Its last
        value is returned; each(f, rows) calls f for each row.

        Args:
            code: Lines of Python.
        """

        async def call(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
            try:
                _, report = await self._offer.report(name, given, self._identity)
            except KnapperError as error:
                return {"failed": f"{error.message} {error.fix}".strip()}
            return (
                {"value": read_row(report.value)}
                if report.outcome == "returned"
                else {"failed": _failure(report)}
            )

        text, is_whole = await self._offer.workspace.run_program(code, call)
        return ToolAnswer(shorten(visible(text), _MOST_TEXT), is_error=not is_whole)

    async def test_function(
        self, function_name: str, arguments: dict[str, Any] | None = None
    ) -> ToolAnswer:
        """Run a function's examples or, with arguments, one call of it, off the record.

        Args:
            function_name: The name of the function.
            arguments: Its arguments, by name.
        """
        report = await self._offer.functions.test(function_name, arguments, Author("agent"))
        return ToolAnswer(presentation.tested(report))

    async def _grown(self, plan: PlannedChange, author: Author) -> ToolAnswer:
        done = await self._offer.functions.finish(plan, author)
        return ToolAnswer(done.text, is_error=done.outcome == "refused")

    async def _answer(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a function of the workspace."""
        function, report = await self._offer.report(
            name, arguments, self._identity, self._on_progress
        )
        return await aside(bulk(report.value), _answer, function, report)


def _answer(function: Function, report: CallReport) -> ToolAnswer:
    printed = f"\nIt printed:\n{block(report.output, 2_000)}" if report.output.strip() else ""
    if report.outcome != "returned":
        return ToolAnswer(_failure(report) + printed, is_error=True)
    if isinstance(large := read_row(report.value), Large):
        return ToolAnswer(
            f"It returned a {large.words}, which is too large to be given here.{printed}"
        )
    files = list[PictureFile]()
    shown = without_pictures(decode(report.value), files)
    if files:
        words = shorten(visible(show_value(shown)), _MOST_TEXT)
        return ToolAnswer(f"{words}{printed}", pictures=tuple(files))
    text = report.value if isinstance(report.value, str) else show_value(shown)
    schema, value = result_schema(function.returns), {"result": report.value}
    if schema is not None and not validator_for(schema).is_valid(value):
        wrong = f"`{function.name}` returned what its annotation `{function.returns}` excludes."
        return ToolAnswer(wrong, is_error=True)
    missing = f"\n{report.lacks}" if report.lacks else ""
    return ToolAnswer(
        shorten(visible(text), _MOST_TEXT) + printed + missing, value=value if schema else None
    )


def _failure(report: CallReport) -> str:
    error = report.error
    if report.outcome == "refused" and error is not None:
        return f"Not called: {visible(error.message)}"
    why = f": {fence(f'{error.type}: {error.message}', 1_000)}" if error is not None else ""
    return f"The function {report.outcome.replace('_', ' ')}{why}"


# Questions about grants that wait in the approvals after the call that raised them was answered.
# A program that calls a function cannot wait for the user. It gets instructions for the user, and the question remains:
# a yes gives the grant for the next call, but runs nothing. If what a yes would cover changes meanwhile, the question
# is replaced, and an answer to the earlier one is refused with the new one.

_MOST: Final = 20  # waiting questions
_HOW: Final = (
    "A human must say yes first: the question waits in the approvals. Or they type: "
    "{command} After that, call again."
)


_Standing: TypeAlias = tuple[str, str, str]
"""What a question stands for: a function, the moment, and what was missing as it ran."""


def _standing_of(question: Question) -> _Standing:
    return question.function, question.moment, question.command if question.moment == "run" else ""


@dataclass(slots=True)
class StandingApprovals(Approvals):
    """The questions about a call that was answered without them. A yes to code that has changed since is none.

    All have one occasion, that of the first, so that an answer to one that was replaced finds the new one.
    """

    registry: Registry = field(kw_only=True)
    first_occasion: str = field(default_factory=lambda: uuid4().hex)

    async def ask(self, question: Question) -> Decision:
        """Ask the user.

        Raises:
            QuestionChanged: what a yes would cover has changed.
        """
        decision = await Approvals.ask(self, replace(question, occasion=self.first_occasion))
        if decision.answer != "no" and self.has_changed(question):
            raise QuestionChanged(question)
        return decision

    def has_changed(self, question: Question) -> bool:
        """Check whether the code that a question is about is another one by now."""
        snapshot = self.registry.snapshot()
        function = snapshot.functions.get(question.function)
        return function is None or content_of(function, snapshot).digest != question.version

    async def wait_for_change(self, question: Question) -> Decision:
        """Wait until the question has to be replaced; the answer itself comes by its id.

        Raises:
            QuestionChanged: it has to be.
        """
        changed = asyncio.Event()
        end = self.registry.subscribe(lambda _: changed.set())
        try:
            while not self.has_changed(question):
                await changed.wait()
                changed.clear()
        finally:
            end()
        raise QuestionChanged(question)


class WaitingQuestions:
    """The waiting questions, each for a function and a missing grant."""

    def __init__(self, grants: GrantService, registry: Registry) -> None:
        self._grants = grants
        self._registry = registry
        self._waiting: dict[_Standing, asyncio.Task[None]] = {}

    def approvals(self) -> Approvals:
        """Return the approvals for a call; its questions wait."""
        policy = self._grants.queue.policy
        return Approvals(ApprovalQueue(self._defer_question, policy=policy))

    async def settle(self, function: str) -> None:
        """Cancel the waiting question before calls of a function that has now been called: it is no longer needed."""
        await _end(
            [
                task
                for (name, moment, _), task in self._waiting.items()
                if (name, moment) == (function, "call")
            ]
        )

    async def aclose(self) -> None:
        """Cancel all waiting questions."""
        await _end([*self._waiting.values()])

    async def _defer_question(self, question: Question) -> Decision:
        if question.moment not in ("call", "run"):
            return Decision("no", by="policy")
        key = _standing_of(question)
        if key not in self._waiting and len(self._waiting) < _MOST:
            task = asyncio.create_task(self._wait_for_answer(question))
            self._waiting[key] = task
            task.add_done_callback(lambda _: self._waiting.pop(key, None))
        return Decision("no", _HOW.format(command=question.command), by="unavailable")

    async def _wait_for_answer(self, question: Question) -> None:
        """Ask until the question is answered by its id, each time anew when the function or what it uses changed."""
        approvals = StandingApprovals(self._grants.queue.asking(None), registry=self._registry)
        approvals.queue.approver = approvals.wait_for_change
        granting = self._grants.during(approvals)
        while question.function in (snapshot := self._registry.snapshot()).functions:
            try:
                if question.moment == "call":
                    await granting.permit(
                        snapshot.functions[question.function], snapshot, question.caller
                    )
                else:
                    missing, folder = question.missing, question.folder
                    await granting.want_path(
                        question.function, snapshot, missing, folder, "", caller=question.caller
                    )
            except QuestionChanged:
                continue
            except KnapperError:
                return  # the grant is impossible; the next call reports that
            return


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:  # Any: their results
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


T = TypeVar("T")
Context = ServerRequestContext[Any, Any]  # Any: types of the transport
Identify = Callable[[Any], Identity]
"""Returns the identity of an HTTP request, which is None for a pipe."""

_INSTRUCTIONS: Final = (
    "Functions that were made and tested in a workspace, and run in a sandbox. More than the list shows can be found"
    " with find_functions and called with call_function; new ones may appear at any time."
    " What one reaches stands in [] at the end of its description; without that it only computes."
)
_SCHEME: Final = "knapper://functions/"
_PATIENCE_S: Final = 1.0  # timeout for a client that does not read its notices
_REFUSED: Final = -32001


class WorkspaceServer(Server[Any]):
    """The SDK's server; it declares to all clients, over both transports, that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of a handshake; over HTTP, the SDK calls this without arguments."""
        options = notification_options or NotificationOptions(
            tools_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's sessions over HTTP. When all are taken, the longest idle one is closed for a new one.

    Otherwise clients that left without closing their session would block new ones until the session expires.
    """

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        sessions = self._server_instances  # the SDK has no public access to them
        if self.max_sessions is not None and len(sessions) >= self.max_sessions:
            silent = {
                id: one.idle_scope for id, one in sessions.items() if one.idle_scope is not None
            }
            oldest = min(silent, key=lambda id: silent[id].deadline, default="")
            if oldest and math.isfinite(
                silent[oldest].deadline
            ):  # otherwise all sessions are in use
                silent[oldest].cancel()
                del sessions[oldest]
        return super()._admit_session(requestor)


class McpDoor:
    """A workspace as an MCP server; run the SDK's `server` on a transport while this is open."""

    def __init__(self, workspace: Workspace, identify: Identify) -> None:
        self._offer = Offer(workspace)
        self._identify = identify
        self._bus = subscriptions.InMemorySubscriptionBus()
        self._listening = subscriptions.ListenHandler(self._bus)
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._streams = 0
        self._running: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(workspace.settings.turn.parallel)
        self._announcer = Announcer(
            self._offer.functions.registry, self._offer, self._notify, lambda: self.clients
        )
        self.server = WorkspaceServer(
            "knapper",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listen,
        )
        self.server.middleware.append(self._remember)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Announce changes of functions while the block runs; then cancel the running calls."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._offer.questions.aclose)
            stack.push_async_callback(self._end_calls)
            await stack.enter_async_context(self._announcer.at_work())
            yield

    @property
    def clients(self) -> int:
        """The number of clients that are notified of changes, on their connection or on a stream."""
        return len(self._connections) + self._streams

    def end_streams(self) -> None:
        """End the streams of clients that listen for changes."""
        self._listening.close()

    async def _end_calls(self) -> None:
        await _end([*self._running])

    async def _remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._connections.add(ctx.session._connection)  # the SDK has no public access to it
        return await call_next(ctx)

    async def _notify(self, names: Sequence[str]) -> None:
        await self._bus.publish(subscriptions.ToolsListChanged())
        await self._bus.publish(subscriptions.ResourcesListChanged())
        for name in names:
            await self._bus.publish(subscriptions.ResourceUpdated(uri=f"{_SCHEME}{name}/source"))
        await asyncio.gather(*(_send_notices(connection) for connection in list(self._connections)))

    async def _listen(
        self, ctx: Context, params: wire.SubscriptionsListenRequestParams
    ) -> wire.SubscriptionsListenResult:
        with _refusals():
            self._identify(ctx.request).needs(*_SEEN)
        self._streams += 1
        try:
            return await self._listening(ctx, params)
        finally:
            self._streams -= 1

    async def _list_tools(
        self, ctx: Context, _: wire.PaginatedRequestParams | None
    ) -> wire.ListToolsResult:
        with _refusals():
            tools = await self._offer.tools(self._identify(ctx.request))
        return wire.ListToolsResult(tools=tools, ttl_ms=0)

    async def _call_tool(
        self, ctx: Context, params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        news = _Progress()
        identity = self._identify(ctx.request)

        async def call() -> ToolAnswer:
            async with self._slots:
                return await self._offer.call(
                    params.name, params.arguments or {}, identity, news.hear
                )

        answer = await self._apart(call(), news, ctx)
        content: list[wire.ContentBlock] = [wire.TextContent(type="text", text=answer.text)]
        for file in answer.pictures[:MAX_PICTURES]:
            data = b64encode(file.data).decode()
            kind = media_type_of(file.data)
            content.append(wire.ImageContent(type="image", data=data, mime_type=kind))
        value = None if answer.value is None else dict(answer.value)
        return wire.CallToolResult(
            content=content, structured_content=value, is_error=answer.is_error
        )

    async def _apart(self, work: Awaitable[T], news: "_Progress", ctx: Context) -> T:
        """Run work in a separate task and report its progress; if this is canceled, cancel the work, too."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: news.comes.set())
        try:
            while not task.done():
                await news.comes.wait()
                news.comes.clear()
                if (latest := news.take()) is not None:
                    await ctx.session.report_progress(*latest)
        finally:
            task.cancel()
        return await task

    async def _list_resources(
        self, ctx: Context, _: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        with _refusals():
            self._identify(ctx.request).needs(*_SEEN)
            functions = await self._offer.most_used()
        resources = [
            wire.Resource(
                uri=f"{_SCHEME}{function.name}/source",
                name=function.name,
                mime_type="text/x-python",
            )
            for function in functions
        ]
        return wire.ListResourcesResult(resources=resources, ttl_ms=0)

    async def _list_templates(
        self, _: Context, __: wire.PaginatedRequestParams | None
    ) -> wire.ListResourceTemplatesResult:
        parts = {"source": "The source of a function.", "history": "The versions of a function."}
        templates = [
            wire.ResourceTemplate(
                uri_template=f"{_SCHEME}{{name}}/{part}", name=part, description=about
            )
            for part, about in parts.items()
        ]
        return wire.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(
        self, ctx: Context, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        uri = str(params.uri)
        name, _, part = uri.removeprefix(_SCHEME).partition("/")
        with _refusals():
            self._identify(ctx.request).needs("read")
            service = self._offer.functions
            if uri.startswith(_SCHEME) and part == "source" and name in service.names():
                text, kind = service.source(name), "text/x-python"
            elif uri.startswith(_SCHEME) and part == "history":
                text, kind = presentation.history(await service.history.of(name)), "text/plain"
            else:
                raise MCPError(
                    wire.INVALID_PARAMS, f"There is no resource {uri[:200]}.", {"uri": uri[:200]}
                )
        contents: list[wire.TextResourceContents | wire.BlobResourceContents] = [
            wire.TextResourceContents(uri=params.uri, text=text, mime_type=kind)
        ]
        return wire.ReadResourceResult(contents=contents)


class _Progress:
    """The latest progress of a function that was not sent yet."""

    def __init__(self) -> None:
        self.comes = asyncio.Event()
        self._latest: tuple[float, float | None, str] | None = None
        self._sent = float("-inf")

    def hear(self, done: float, total: float | None, note: str) -> None:
        """Store the progress that a function reports."""
        self._latest = (done, total, note)
        self.comes.set()

    def take(self) -> tuple[float, float | None, str | None] | None:
        """Return the progress to send, or None if it did not increase since the last one sent."""
        latest, self._latest = self._latest, None
        if latest is None or latest[0] <= self._sent:
            return None
        self._sent = latest[0]
        return latest[0], latest[1], latest[2] or None


@contextmanager
def _refusals() -> Iterator[None]:
    """Convert our errors to protocol errors."""
    try:
        yield
    except KnapperError as error:
        raise MCPError(_REFUSED, f"{error.message} {error.fix}".strip()) from error


async def _send_notices(connection: Connection) -> None:
    """Send the notices to one client, with a timeout, so that a client that does not read them delays no other."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            await connection.send_tool_list_changed()
            await connection.send_resource_list_changed()


# Notifies connected clients of changed functions: soon, but not often, and a changed signature as a removal first.
# Some clients skip a tool with a name that they know. So a function with a changed signature is removed from the list
# for a moment: these clients are notified twice and load it again. Some clients drop the list that they are loading
# when they are notified again, so the second notice is delayed by the time that the first load took.

_SETTLING_S: Final = 0.03  # changes within this time share a notice
_BETWEEN_S: Final = 0.1  # from one notice to the next
_LOADING_S: Final = (
    2.0  # timeout until each client has loaded the list without the altered functions
)

Notify = Callable[[Sequence[str]], Awaitable[None]]
"""Notifies clients that the list and the named functions changed."""


class Announcer:
    """Announces changes of the registry to clients while `at_work` runs."""

    def __init__(
        self, registry: Registry, offer: Offer, notify: Notify, clients: Callable[[], int]
    ) -> None:
        """Create the announcer; `clients` returns the number of clients that are notified."""
        self._clients = clients
        self._registry = registry
        self._offer = offer
        self._notify = notify
        self._changed: set[str] = set()
        self._comes = asyncio.Event()
        self._known = registry.snapshot().functions  # at the last notice

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Announce changes while the block runs."""
        end = self._registry.subscribe(self._hear)
        work = asyncio.create_task(self._announce())
        try:
            yield
        finally:
            end()
            await _end([work])

    def _hear(self, change: RegistryChange) -> None:
        self._changed |= {*change.loaded, *change.changed, *change.removed}
        if self._changed:
            self._comes.set()

    async def _announce(self) -> None:
        async with asyncio.TaskGroup() as returning:
            while True:
                await self._comes.wait()
                await asyncio.sleep(_SETTLING_S)
                self._comes.clear()
                changed, self._changed = sorted(self._changed), set()
                old, self._known = self._known, self._registry.snapshot().functions
                both = old.keys() & self._known.keys()
                altered = frozenset(
                    name for name in both if old[name].parameters != self._known[name].parameters
                )
                self._offer.hidden |= altered
                if altered:
                    returning.create_task(self._return(altered, self._offer.listings))
                await self._notify(changed)
                await asyncio.sleep(_BETWEEN_S)

    async def _return(self, altered: frozenset[str], listings: int) -> None:
        """Put functions back into the list once clients have loaded it without them. Other changes do not wait."""
        told = time.monotonic()
        await asyncio.sleep(_BETWEEN_S)
        await self._offer.listed(listings + self._clients(), _LOADING_S)
        await asyncio.sleep(time.monotonic() - told)
        self._offer.hidden -= altered
        self._comes.set()  # the list has changed, although no function has


# The server on standard input and output, for the program that started it. Only messages go to standard output; all
# other output of this process goes to standard error.

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


async def serve_pipe(workspace: Workspace, stopping: asyncio.Event) -> None:
    """Serve until the other side closes the pipe, or `stopping` is set.

    Raises:
        UsageError: standard input or output is not a pipe.
    """
    if os.isatty(_INPUT):
        raise UsageError(
            "Standard input is a terminal.", fix="Let the MCP client start this command."
        )
    async with _standard_pipes() as (reader, writer):
        await serve_streams(workspace, reader, writer, stopping)


async def serve_streams(
    workspace: Workspace,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    stopping: asyncio.Event,
) -> None:
    """Serve the owner of the workspace, at the other end of these streams."""
    door = McpDoor(workspace, lambda _: OWNER)
    async with door.opened(), connect_pipes(reader, writer) as (arrived, leaving):
        server = door.server
        running = asyncio.create_task(
            server.run(arrived, leaving, server.create_initialization_options())
        )
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end([running, stopped])


@asynccontextmanager
async def _standard_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    source, sink = os.fdopen(os.dup(_INPUT), "rb", 0), os.fdopen(os.dup(_OUTPUT), "wb", 0)
    os.dup2(_ERRORS, _OUTPUT)
    reader = asyncio.StreamReader(MOST_LINE)
    incoming: asyncio.BaseTransport | None = None
    try:
        if _is_nothing(source):
            reader.feed_eof()
        else:
            incoming, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), source
            )
    except ValueError as error:
        source.close()
        sink.close()
        raise UsageError(
            "Standard input is no pipe.", fix="Let the MCP client start this command."
        ) from error
    try:
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    except ValueError as error:
        (incoming or source).close()
        sink.close()
        raise UsageError(
            "Standard output is no pipe.", fix="Let the MCP client start this command."
        ) from error
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield reader, writer
    finally:
        (incoming or source).close()
        if not transport.is_closing():  # it closes when its reader has gone
            transport.abort()


def _is_nothing(source: BinaryIO) -> bool:
    """Check whether this is /dev/null, which the event loop cannot wait for and which is at its end at once."""
    found, nothing = os.fstat(source.fileno()), Path(os.devnull).stat()
    return stat.S_ISCHR(found.st_mode) and os.path.samestat(found, nothing)
