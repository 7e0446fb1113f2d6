"""A workspace: an open folder with its agents and functions.

Opening is cheap: each part is imported and built on first use, so that commands that only read need just the store and
the registry.
"""

import asyncio
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar, overload

from agent_core.access.grants.approval import ApprovalQueue
from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy, KnapperError, UsageError, WorkspaceError
from agent_core.base.late import LateModule
from agent_core.base.messages import Assistant
from agent_core.base.offload import PER_ENTRY, aside, in_background
from agent_core.base.settings import Settings, load
from agent_core.base.untrusted import one_line
from agent_core.functions.service.function_service import FunctionService, ServiceParts
from agent_core.registry.registry import Registry, Snapshot
from agent_core.registry.source import MAX_MODULE_BYTES, OF_THE_PROGRAM
from agent_core.storage import (
    BETWEEN,
    FROM_USER,
    LOADED,
    MAIN,
    STATE,
    SUMMARY,
    AgentName,
    CallOwners,
    DropAgent,
    Line,
    Store,
    ValueFiles,
    agent_named,
    is_agent_name,
    only_writer,
    prepare_state_dir,
)
from agent_core.storage.agent_store import HELPER_RUN, PASSING
from agent_core.storage.folder import ring
from agent_core.storage.picture_files import PictureFiles

from . import scaffold
from .presence import is_anyone_else_here
from .state_store import open_state

if TYPE_CHECKING:  # each part is imported on first use
    from agent_core.access import broker
    from agent_core.access import grants as access_grants
    from agent_core.access import packages as environments
    from agent_core.access.grants import Approver, Decision, GrantStore, Question, approval
    from agent_core.access.secrets import session, source
    from agent_core.base.events import Event
    from agent_core.base.problem import Problem
    from agent_core.functions import foreign as foreign_functions
    from agent_core.functions import gate as gates
    from agent_core.functions import sandbox_client as clients
    from agent_core.functions import search as function_search
    from agent_core.functions.debug import Debugger, Debugging
    from agent_core.functions.foreign import ForeignFunction, ForeignSources
    from agent_core.functions.gate import Gate
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.functions.search import FunctionSearch
    from agent_core.functions.service import beside as functions_beside
    from agent_core.functions.service import grant_service
    from agent_core.functions.service.grant_service import GrantService
    from agent_core.memory import agent_memory, classes
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.memory.classes import Memory
    from agent_core.memory.source_catalog import Sources
    from agent_core.model import prices
    from agent_core.runtime import host_functions, ledger, programs
    from agent_core.runtime.agent import Agent, Origin
    from sandbox import Sandbox, errors

    from . import (
        agent_factory,
        agent_files,
        conversations,
        deps,
        doctor,
        helper_changes,
        helper_library,
        model_opener,
        portable,
        runner,
    )
    from .agent_files import AgentFiles, GroupFolder
    from .conversations import Conversations
    from .deps import WorkspaceDeps
    from .helper_changes import HelperChanges, HelperProposal, Proposal
    from .helper_library import HelperLibrary
    from .model_opener import IdleModels, ModelOpener
    from .runner import AgentsBehind, Front, Runner
else:
    broker = LateModule("agent_core.access.broker")
    access_grants = LateModule("agent_core.access.grants")
    approval = LateModule("agent_core.access.grants.approval")
    environments = LateModule("agent_core.access.packages")
    session = LateModule("agent_core.access.secrets.session")
    source = LateModule("agent_core.access.secrets.source")
    gates = LateModule("agent_core.functions.gate")
    foreign_functions = LateModule("agent_core.functions.foreign")
    clients = LateModule("agent_core.functions.sandbox_client")
    function_search = LateModule("agent_core.functions.search")
    functions_beside = LateModule("agent_core.functions.service.beside")
    grant_service = LateModule("agent_core.functions.service.grant_service")
    agent_memory = LateModule("agent_core.memory.agent_memory")
    classes = LateModule("agent_core.memory.classes")
    prices = LateModule("agent_core.model.prices")
    host_functions = LateModule("agent_core.runtime.host_functions")
    ledger = LateModule("agent_core.runtime.ledger")
    programs = LateModule("agent_core.runtime.programs")
    agent_factory = LateModule("agent_core.workspace.agent_factory")
    agent_files = LateModule("agent_core.workspace.agent_files")
    conversations = LateModule("agent_core.workspace.conversations")
    deps = LateModule("agent_core.workspace.deps")
    doctor = LateModule("agent_core.workspace.doctor")
    helper_changes = LateModule("agent_core.workspace.helper_changes")
    helper_library = LateModule("agent_core.workspace.helper_library")
    model_opener = LateModule("agent_core.workspace.model_opener")
    portable = LateModule("agent_core.workspace.portable")
    runner = LateModule("agent_core.workspace.runner")
    errors = LateModule("sandbox.errors")

T = TypeVar("T")

_MODEL_S = 3.0  # timeout for an endpoint's list of models


def sandbox_client(
    root: Path,
    settings: "Settings",
    environment: Mapping[str, str] | None,
    debugger: "Debugger | None",
    shared: "Sandbox | None",
    on_status: Callable[[str], None] | None = None,
) -> "SandboxClient":
    """Return the client of the sandbox, with the grants of calls; `shared` is a started sandbox. Logs hide secrets."""
    session.mask_logs()
    state = prepare_state_dir(root)
    secrets = source.Secrets(root, environment)
    return clients.SandboxClient(
        settings.sandbox,
        settings.turn.parallel,
        guarded=clients.guarded_in(root),
        secrets=secrets,
        foreign=foreign_functions.ForeignSources(root, secrets),
        values=ValueFiles(state),
        broker=broker.Broker(note=broker.RequestLog(state, session.REVEALED.clean, Clock().now)),
        debugger=debugger,
        shared=shared,
        on_status=on_status,
    )


def function_service(
    root: Path,
    settings: "Settings",
    store: Store,
    sandbox: "Callable[[], SandboxClient]",
    queue: "ApprovalQueue",
    models: "Callable[[], ModelOpener] | None" = None,
    on_status: Callable[[str], None] | None = None,
) -> FunctionService:
    """Return the function service of a workspace with its gate; `models` read functions and search them by meaning."""
    registry = Registry(Snapshot.empty(OF_THE_PROGRAM))
    alone = partial(only_writer, prepare_state_dir(root))

    @cache
    def book() -> "GrantStore":
        return access_grants.GrantStore(root, store, alone)

    @cache
    def grants() -> "GrantService":
        client, listed = sandbox(), settings.sandbox.packages
        trials = partial(grant_service.can_preload, client, client.limits)
        environment = environments.Environment(
            root, alone, trials, listed, settings.grants.packages_mib, tell=on_status
        )
        packages = grant_service.PackageGrants(environment, book())
        reach = access_grants.AccessResolver(root, environment.folders, client.secrets)
        return grant_service.GrantService(
            packages, store, reach, settings.grants, client, queue, scaffold.texts
        )

    def foreign() -> "Mapping[str, ForeignFunction]":
        if not foreign_functions.names_programs(root):
            return foreign_functions.NO_FUNCTIONS
        sources = sandbox().foreign
        return sources.functions() if sources else foreign_functions.NO_FUNCTIONS

    @cache
    def search() -> "FunctionSearch":
        embedder = models().function_embedder if models else None
        return function_search.FunctionSearch(embedder, store, registry.snapshot, foreign)

    @cache
    def gate() -> "Gate":
        client, reader = sandbox(), models().reader if models else None
        rules = gates.Rules(
            strict=settings.gate.strict,
            off=frozenset() if settings.gate.fixes else frozenset("*"),
            packages=settings.sandbox.packages,
        )
        return gates.Gate(client, limits=client.limits, rules=rules, reader=reader, search=search())

    parts = ServiceParts(
        book=book,
        foreign=foreign,
        gate=gate,
        grants=grants,
        hosted=lambda: host_functions.parameters(),
        open_model=None if models is None else lambda name: models().open_kept(name),
        writer=lambda service: (
            functions_beside.open_writer(service, settings) if settings.maker else None
        ),
        file_patterns=lambda: agent_files.patterns_in_files(root),
        sandbox=sandbox,
        search=search,
        starters=scaffold.functions,
    )
    return FunctionService(
        root,
        store,
        registry,
        parts,
        module_bytes=MAX_MODULE_BYTES,
        standing=settings.standing,
        pins_mine=settings.growth.pin == "mine",
    )


class OpenAgents:
    """The resources of open agents. They are closed with the agent, after its garbage collection, or at the end."""

    def __init__(self) -> None:
        self._open: set[AsyncExitStack] = set()
        self._unheld: list[AsyncExitStack] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._is_closed = False

    def must_be_open(self) -> None:
        """Check that the workspace is still open.

        Raises:
            WorkspaceError: it is closed.
        """
        if self._is_closed:
            raise WorkspaceError("The workspace is closed.", fix="Use it within its `async with`.")

    def hold(self, agent: "Agent", resources: AsyncExitStack) -> None:
        """Keep the resources of an agent open as long as the agent is referenced."""
        self._open.add(resources)
        resources.callback(self._open.discard, resources)
        weakref.finalize(agent, self._let_go, resources, asyncio.get_running_loop()).atexit = False

    async def close_unheld(self) -> None:
        """Close the resources of agents that are no longer referenced."""
        async with self._one_at_a_time:
            while self._unheld:
                await self._unheld.pop().aclose()

    async def aclose(self) -> None:
        """Close the resources of all agents."""
        self._is_closed = True
        await asyncio.gather(*self._closing)
        for resources in list(self._open):
            await resources.aclose()

    def _let_go(self, resources: AsyncExitStack, loop: asyncio.AbstractEventLoop) -> None:
        if resources in self._open and not loop.is_closed():
            self._unheld.append(resources)
            loop.call_soon_threadsafe(self._close_soon)

    def _close_soon(self) -> None:
        task = asyncio.get_running_loop().create_task(self.close_unheld())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Workspace:
    """An open folder with `functions/` and its state. Its parts are opened on first use."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        store: Store,
        approver: "Approver | None",
        open_sandbox: "Callable[[], SandboxClient]",
        open_models: "Callable[[], ModelOpener]",
        on_status: Callable[[str], None] | None = None,
    ) -> None:
        self.root = root
        self.settings = settings
        self.recovered: tuple[str, ...] = (store.recovered,) if store.recovered else ()
        self._store = store
        self._open_sandbox = open_sandbox
        self._open_models = open_models
        wait_s = settings.grants.wait_minutes * 60
        queue = ApprovalQueue(approver, store, wait_s, settings.policy)
        opened = (lambda: self._sandbox), queue, (lambda: self._models)
        self.functions = function_service(root, settings, store, *opened, on_status)
        self._clock = Clock()
        self._agents = OpenAgents()
        self._behind: AgentsBehind | None = None

    @cached_property
    def _sandbox(self) -> "SandboxClient":
        return self._open_sandbox()

    @cached_property
    def _models(self) -> "ModelOpener":
        return self._open_models()

    @cached_property
    def _idle_models(self) -> "IdleModels":
        return model_opener.IdleModels(self._models.open)

    @cached_property
    def directory(self) -> "AgentFiles":
        """The agents that have a file."""
        return agent_files.AgentFiles(
            self.root, self.settings.agent, partial(agent_files.group_names, self.root)
        )

    @cached_property
    def helpers(self) -> "HelperLibrary":
        """The helpers: specialized agents that are called like functions."""
        return helper_library.HelperLibrary(self.root, self._store, self.functions)

    @cached_property
    def helper_changes(self) -> "HelperChanges":
        """The verbs that change helpers."""
        return helper_changes.HelperChanges(self.helpers, self.functions)

    @cached_property
    def groups(self) -> "GroupFolder":
        """The groups, read from their files."""
        return agent_files.GroupFolder(
            self.root, agent_files.GROUPS, agent_files.GroupFile, looks=self.directory.names
        )

    def __repr__(self) -> str:
        """Return a text with the folder and the number of functions."""
        count = len(self.functions.names())
        return f"<Workspace {one_line(str(self.root), 200)}: {count} function{'' if count == 1 else 's'}>"

    @property
    def store(self) -> Store:
        """The store with the workspace's state."""
        return self._store

    @property
    def debugging(self) -> "Debugging":
        """The debugger of this workspace: its breakpoints and the attached user."""
        return self._sandbox.debugging

    @property
    def foreign(self) -> "ForeignSources":
        """The functions that other programs offer."""
        assert self._sandbox.foreign is not None
        return self._sandbox.foreign

    @classmethod
    @asynccontextmanager
    async def open(  # noqa: PLR0913 - the options of a program
        cls,
        root: Path | str,
        *,
        settings: Settings | None = None,
        flags: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        approver: "Approver | None" = None,
        debugger: "Debugger | None" = None,
        on_status: Callable[[str], None] | None = None,
        sandbox: "Sandbox | None" = None,
        follows: bool = True,
        clock: Clock | None = None,
    ) -> AsyncIterator["Workspace"]:
        """Open a workspace: read its settings, its state and its functions, and watch the folder.

        Missing parts of the workspace are created. `environment` has keys and secrets; by default, that of this
        process. `approver` asks the user about grants; without one, `grants.unattended` decides. `debugger` handles
        stops. `on_status` gets a line when a long operation starts, and "" when it ends. A started `sandbox` is used in
        place of the configured one; the caller must close it after the workspace. Without `follows`, files that are
        saved while the workspace is open are ignored until the next time. A `clock` replaces that of this machine.

        Raises:
            WorkspaceError: the folder does not exist or cannot be used.
            SettingsError: a setting is wrong.
            StorageError: the state cannot be used.
        """
        root = scaffold.opened(root)
        given, settings = settings, settings or load(root, flags)
        async with AsyncExitStack() as stack:
            store = open_state(root, settings, clock)
            stack.push_async_callback(store.close)
            open_sandbox = partial(
                sandbox_client, root, settings, environment, debugger, sandbox, on_status
            )
            is_typed = bool((flags or {}).get("model.name"))
            read_again = None if given else partial(load, root, flags)

            def open_models() -> "ModelOpener":
                known = prices.Prices(root, settings.models, settings.priced_in_file)
                book = ledger.Ledger(store, settings, known, clock)
                return model_opener.ModelOpener(
                    root, settings, environment, read_again, ledger=book, is_typed=is_typed
                )

            workspace = cls(root, settings, store, approver, open_sandbox, open_models, on_status)
            workspace._clock = clock or workspace._clock
            stack.push_async_callback(workspace._close_parts)
            await workspace.functions.start()
            await workspace.functions.quarantine.refresh()
            if follows:
                await workspace.helpers.reserve()
                work = functions_beside.upkeep(workspace.functions, settings)
                await stack.enter_async_context(workspace.functions.followed(work))
                await stack.enter_async_context(workspace.helpers.followed())
                await stack.enter_async_context(in_background(workspace._tidy_values()))
            yield workspace

    async def _tidy_values(self) -> None:
        """Remove large values that are old, and large values and pictures that nothing names any longer."""
        values = ValueFiles(self.root / STATE)
        named = (
            await self._store.named_values() if await asyncio.to_thread(values.has_old) else None
        )
        await asyncio.to_thread(values.tidy, named)
        pictures = PictureFiles(self.root / STATE)
        if await asyncio.to_thread(pictures.has_old):
            shown = await self._store.named_pictures()
            await asyncio.to_thread(pictures.tidy, shown)

    async def _close_parts(self) -> None:
        """Close the opened parts, dependent ones first."""
        async with AsyncExitStack() as stack:
            for name in ("_sandbox", "_models", "_idle_models"):
                if name in vars(self):
                    stack.push_async_callback(vars(self)[name].aclose)
            stack.callback(self.functions.close)
            await self._agents.aclose()

    @classmethod
    @asynccontextmanager
    async def in_memory(
        cls, **options: Any
    ) -> AsyncIterator["Workspace"]:  # Any: what `open` takes
        """Open a temporary workspace for tests and notebooks; `options` are those of `open`."""
        with TemporaryDirectory(prefix="knapper-") as folder:
            async with cls.open(folder, **options) as workspace:
                yield workspace

    @staticmethod
    def find(root: Path | None = None) -> Path:
        """Return the folder if it is a workspace; without `root`, the nearest one, from the current folder upward.

        A workspace has `knapper.toml` or, if it was created without a settings file, `.knapper/` next to `functions/`.

        Raises:
            NoWorkspace: the folder is not a workspace, or does not exist; the message says how to make it one.
            WorkspaceError: the path is not a folder.
        """
        return scaffold.existing(root)

    @classmethod
    def create(cls, root: Path | str) -> list[str]:
        """Create a workspace (`functions/` with the starters, and a settings file) and return the created paths.

        Existing files are not overwritten.
        """
        return scaffold.create(Path(root))

    async def agent(
        self,
        name: str | None = None,
        conversation: str = MAIN,
        *,
        memory: "Memory | None" = None,
        verify: bool = True,
        answers: bool = False,
        origin: "Origin | None" = None,
    ) -> "Agent":
        """Return an agent in one of its conversations, with its memory restored; a new one starts with `memory`.

        The conversation is named by its id or its name; `new` begins one. Each conversation of an agent is opened once,
        and several are open beside each other. Its messages come from the `origin`; by default, from this library.

        It is closed by `aclose`, at the end of an `async with` block, when it is no longer referenced, or with the
        workspace. With `verify` false, a first reply is accepted unchecked, whatever the preset says. If it `answers`,
        a turn that was cut off goes on with its next turn; otherwise the user is told of it. Messages that wait are
        answered in any case.

        Raises:
            AgentBusy: the conversation is already open, here or in another process.
            UsageError: the preset, persona or human for a new agent does not exist, or the conversation does not; or no
                agent can have this name.
        """
        line = await self._line(agent_named(name or self.settings.agent), conversation, origin)
        agent = await self.agent_at(line, memory=memory, verify=verify, answers=answers)
        agent.origin = origin or agent.origin
        return agent

    async def agent_at(
        self,
        line: str,
        *,
        memory: "Memory | None" = None,
        verify: bool = True,
        answers: bool = False,
    ) -> "Agent":
        """Return an agent in the conversation of a line of the store, as `agent` does, also in a deleted one."""
        if self._behind is not None:
            await self._behind.close(line)
        return await self._open_agent(line, memory=memory, verify=verify, answers=answers)

    async def _member(self, name: str) -> "Agent":
        """Open a member of a group, which is told if another process runs a turn of it."""
        if self._behind is not None:
            await self._behind.close(name)
        return await self._open_agent(name, may_wait=False)

    async def _line(self, name: AgentName, conversation: str, origin: "Origin | None") -> str:
        """Return the line of an agent's conversation; `new` begins one."""
        if conversation == MAIN:
            return name
        if conversation == conversations.NEW:
            return (await self.conversations(name).begin(origin)).line
        return (await self.conversations(name).find(conversation)).line

    def conversations(self, name: str | None = None, token: str | None = None) -> "Conversations":
        """Return the conversations of an agent, to list, begin, branch, rename and delete them.

        With the id of a `token`, only those that it may read.

        Raises:
            UsageError: no agent can have this name.
        """
        agent = agent_named(name or self.settings.agent)
        return conversations.Conversations(self._store, agent, token)

    async def _open_agent(
        self,
        line: str,
        *,
        memory: "Memory | None" = None,
        verify: bool = True,
        answers: bool = False,
        is_behind: bool = False,
        may_wait: bool = True,
    ) -> "Agent":
        self._agents.must_be_open()
        await self.helpers.load()
        await self._agents.close_unheld()
        async with AsyncExitStack() as stack:
            resources = await stack.enter_async_context(AsyncExitStack())
            folder = prepare_state_dir(self.root)
            await resources.enter_async_context(self._store.hold(folder, line, may_wait=may_wait))
            deps = self._deps()
            agent = await agent_factory.build_agent(
                deps, line, memory, verify=verify, resources=resources, is_behind=is_behind
            )
            agent.restarts = answers
            others = partial(is_anyone_else_here, folder)
            agent.on_turn(partial(ring, folder), others)
            await agent.restore()
            self._agents.hold(agent, resources)
            stack.pop_all()
        return agent

    @asynccontextmanager
    async def passing_agent(self, *, verify: bool = True) -> "AsyncIterator[Agent]":
        """Open a temporary agent for one question; its conversation and memory are deleted at the end.

        Its changes to functions stay, like those of any agent. If a process is killed, the remains of its temporary
        agent are deleted with the next one.
        """
        folder, name = prepare_state_dir(self.root), f"{PASSING}{self._clock.new_id()[-12:]}"
        agent = await self.agent(name, verify=verify)
        try:
            yield agent
        finally:
            await agent.aclose()
            for left in await self._store.agent_names():
                if left.startswith(PASSING):
                    with suppress(AgentBusy):
                        async with self._store.hold(folder, left):
                            await self._store.apply([DropAgent(left)])
                            (folder / "agents" / f"{left}.lock").unlink(missing_ok=True)

    async def export_agent(self, name: str | None = None) -> str:
        """Return an agent as one JSON document with its conversation, memory and settings.

        Raises:
            NoAgent: there is no agent with that name.
        """
        async with portable.opened_moves(self._store, self.root, self.settings) as moves:
            return await moves.export(name or self.settings.agent)

    async def import_agent(
        self,
        document: str | bytes | Mapping[str, Any],  # Any: JSON
        name: str = "",
        *,
        memory: "Memory | None" = None,
    ) -> "Agent":
        """Create an agent from a document of this program, MemGPT or Letta, under its name or `name`, and open it.

        Nothing in the document is run, and it has no functions: those of a memory class come with `memory`. A warning
        names the functions that the agent has called and that are missing here.

        Raises:
            AgentFileError: the document is invalid.
            AgentExists: an agent with that name exists.
        """
        async with portable.opened_moves(self._store, self.root, self.settings) as moves:
            reports = await moves.take_in(portable.text_of(document), portable.ImportOptions(name))
        agent = await self.agent(reports[0].name, memory=memory)
        replies = [message for message in await agent.history() if isinstance(message, Assistant)]
        called = {
            call.name
            for reply in replies
            for call in reply.calls
            if not call.name.startswith(HELPER_RUN)
        }
        own = {method.name for method in classes.methods_of(type(agent.memory.blocks.memory))}
        here = {*self.functions.names(), *self.functions.foreign()}
        if lacking := sorted(called - own - OF_THE_PROGRAM - here):
            message = f"The agent {agent.name} has called functions that are not here: {', '.join(lacking)}."
            how = (
                "Those of a memory class come with `memory=`, others with the folder `functions/`."
            )
            warnings.warn(f"{message} {how}", stacklevel=2)
        return agent

    async def load(
        self, path: Path | str, name: str = "", *, memory: "Memory | None" = None
    ) -> "Agent":
        """Create an agent from a file and open it; see `import_agent`."""
        return await self.import_agent(
            await asyncio.to_thread(portable.read_file, path), name, memory=memory
        )

    async def _save(self, name: str, path: Path | str) -> None:
        await asyncio.to_thread(portable.write_file, path, await self.export_agent(name))

    @asynccontextmanager
    async def runner(
        self,
        hear: "Callable[[Event], None]" = lambda _: None,
        *,
        front: "Front | None" = None,
        on_fault: Callable[[str, KnapperError], None] = lambda *_: None,
    ) -> "AsyncIterator[Runner]":
        """Yield the runner of this workspace's agents; `hear` gets the events of background agents.

        `front` runs the turns of its own agent.
        """
        behind = runner.AgentsBehind(partial(self._open_agent, is_behind=True), hear)
        slots = self.settings.runner.slots
        new_runner = partial(
            runner.Runner, self._store, clock=self._clock, slots=slots, on_fault=on_fault
        )
        async with self._at_work(behind, new_runner, front) as running:
            yield running

    @asynccontextmanager
    async def worker(
        self,
        hear: "Callable[[Event], None]" = lambda _: None,
        *,
        slots: int,
        on_fault: Callable[[str, KnapperError], None] = lambda *_: None,
    ) -> "AsyncIterator[Runner]":
        """Yield the runner of all agents at a shared store, which also handles messages from users.

        Turns that were cut off are resumed. Questions about grants wait for an answer by their id.

        Raises:
            UsageError: the store is a file.
        """
        if not self._store.is_shared:
            fix = "Next: knapper agents run. For several machines, see docs/scale.md"
            raise UsageError(
                "A worker needs a database that processes share, and the state is in a file.",
                fix=fix,
            )
        opened = partial(self._open_agent, is_behind=True, answers=True)
        behind = runner.AgentsBehind(opened, hear, self.answered_by_id)
        kinds = (*BETWEEN, *FROM_USER, SUMMARY)
        new_runner = partial(
            runner.Runner,
            self._store,
            clock=self._clock,
            slots=slots,
            on_fault=on_fault,
            kinds=kinds,
            ends_with_store=True,
        )
        warm = asyncio.create_task(self._sandbox.ready())  # so that the first call waits less
        try:
            async with self._at_work(behind, new_runner) as running:
                await self._store.offer_slots(slots)
                yield running
        finally:
            await warm

    @asynccontextmanager
    async def _at_work(
        self,
        behind: "AgentsBehind",
        new_runner: "Callable[..., Runner]",
        front: "Front | None" = None,
    ) -> "AsyncIterator[Runner]":
        self._behind = behind
        async with behind.at_work(
            new_runner, self._store, prepare_state_dir(self.root), front
        ) as runner:
            try:
                yield runner
            finally:
                self._behind = None

    async def questions(self) -> list[approval.PendingQuestion]:
        """Return the open questions about grants of all processes at this workspace, oldest first."""
        rows = await self._store.pending_questions()
        return await aside(PER_ENTRY * len(rows), approval.questions_of, rows)

    async def answer(self, question: str, decision: "Decision") -> None:
        """Answer a pending question by its id; the asking process continues with the answer.

        Raises:
            QuestionChanged: what it was about has changed; the error has the question that is pending now.
            UsageError: no question with that id is pending.
        """
        if not await self._store.answer_question(question, decision.to_json()):
            if row := approval.successor(question, await self.questions()):
                raise approval.QuestionChanged(row.question)
            raise UsageError(
                f"No question {question} is pending: it was answered, or its turn has ended."
            )

    async def run_program(
        self, code: str, call: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
    ) -> tuple[str, bool]:
        """Run a program outside of any conversation; see `run_apart`."""
        return await programs.run_apart(self._sandbox, self.functions, code, call)

    @staticmethod
    async def answered_by_id(question: "Question") -> "Decision":
        """Wait for an answer by the question's id; the approver of a program without a prompt."""
        await asyncio.Event().wait()
        return approval.Decision("no", by="unavailable")

    async def sources(self, name: str | None = None) -> "Sources":
        """Return the sources that the user gave an agent; the agent may be running in another process.

        Raises:
            UsageError: there is no agent with that name.
            ConfigError: the same, and its file is not valid.
        """
        name = name or self.settings.agent
        if name != self.settings.agent and await self._store.agent_settings(name) is None:
            self.directory.folder.must_hold(name)
            raise UsageError(f"There is no agent {name}.", fix="Type: knapper agents list")
        return self.memory(name).sources

    def loaded_sources(self) -> "Sources":
        """Return the sources that were loaded for all agents and can be attached to each."""
        return self.memory(LOADED).sources

    def memory(self, name: str, line: Line | None = None) -> "AgentMemory":
        """Return the memory of an agent for searching, as a conversation has it; by default, the main one.

        The agent may be running in another process.

        Raises:
            UsageError: no agent can have this name.
        """
        if name != LOADED:
            agent_named(name)
        return agent_memory.AgentMemory(
            name, self._store, self._clock, self._models.embedder, line=line or ""
        )

    async def model_trouble(self) -> str:
        """Return why no model is available and how to fix it; "" if there is one, or its endpoint is slow to answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MODEL_S):
                try:
                    await self._models.chosen()
                except KnapperError as error:
                    return f"No turn can be taken yet: {error.message}\n{error.fix}"
        return ""

    def _deps(self) -> "WorkspaceDeps":
        return deps.WorkspaceDeps(
            self.root,
            self.settings,
            self._store,
            self.functions,
            self._sandbox,
            self._clock,
            self._models.embedder,
            self._models.function_embedder,
            self._models.open,
            self._idle_models,
            self._save,
            self.helpers,
            self.helper_changes,
            self.directory,
            self.groups,
            self._member,
            self.foreign,
        )

    async def agent_names(self) -> list[str]:
        """Return the agents and groups that users can talk to: the default one, those with a file, and stored ones.

        Runs of helpers and temporary agents are excluded.
        """
        begun = [
            name
            for name in await self._store.agent_names()
            if not name.startswith((HELPER_RUN, PASSING))
        ]
        return sorted({self.settings.agent, *self.directory.names(), *self.groups.read(), *begun})

    async def can_be_talked_to(self, name: str) -> bool:
        """Check whether a name is among the `agent_names`, without listing all of them.

        Raises:
            ConfigError: it is not, but it has a file, which is not valid.
        """
        if not is_agent_name(name):
            return False
        if (
            name == self.settings.agent
            or name in self.directory.names()
            or name in self.groups.read()
        ):
            return True
        if not name.startswith((HELPER_RUN, PASSING)) and await self._store.has_agent(name):
            return True
        self.directory.folder.must_hold(name)
        return False

    def rejected(self) -> tuple["Problem", ...]:
        """Return the current problems for which functions and helpers are rejected."""
        helpers = [problem for problem in self.helpers.problems if problem.severity == "refuses"]
        return (*self.functions.rejected(), *helpers)

    async def has_agent(self, name: str) -> bool:
        """Check whether an agent, a group or a run of a helper has this name; raise an error as above."""
        return (
            agent_files.is_group(self.root, name)
            or await self._store.has_agent(name)
            or await self.can_be_talked_to(name)
        )

    async def helper_proposals(self) -> "list[HelperProposal]":
        """Return drafts of helpers for functions that were used in the same turns."""
        return await helper_changes.proposals(
            self.helpers, self._store, self.functions.registry.snapshot()
        )

    @staticmethod
    def by_user(reason: str = "") -> "Proposal":
        """Return the proposal for a change of helpers by the user."""
        return helper_changes.Proposal(reason=reason)

    async def doctor(self, owners: CallOwners = None) -> dict[str, Any]:  # Any: JSON
        """Return the `doctor` document; agents are limited to `owners`, if given."""
        own = [host_function.function for host_function in host_functions.standard().values()]
        functions = [*own, *self.functions.registry.snapshot().functions.values()]
        choose = self._models.choose
        report = await doctor.examine(
            self.settings, self._sandbox, self._store, choose, functions, owners
        )
        report["embedding"] = await doctor.embedding(
            self.settings.memory.embedding, lambda: self._models.embedder
        )
        return {**report, "packages": await self.functions.granting.packages.health()}

    async def one_wall(self) -> str:
        """Return the question to the user about a level with one wall, or "" if there is nothing to ask."""
        sandbox = await self._sandbox.ready()
        return (
            str(sandbox) if isinstance(sandbox, errors.OneWall) and not sandbox.was_refused else ""
        )

    def answer_one_wall(self, *, agrees: bool) -> None:
        """Store the user's answer; after a yes, functions can run."""
        self._sandbox.answer_one_wall(agrees=agrees)

    async def sandbox_level(self) -> str:
        """Return the sandbox level, such as `full` or `core`, or `none` with the override."""
        return doctor.level(await self._sandbox.ready())


@overload
def ask(
    message: str, workspace: Path | str = ".", *, agent: str | None = None, result: None = None
) -> str: ...
@overload
def ask(
    message: str, workspace: Path | str = ".", *, agent: str | None = None, result: type[T]
) -> T: ...
@overload
def ask(
    message: str, workspace: Path | str = ".", *, agent: str | None = None, result: object
) -> Any: ...  # Any: as the shape says


def ask(
    message: str, workspace: Path | str = ".", *, agent: str | None = None, result: object = None
) -> Any:
    """Return the reply of a workspace's agent to one message, for synchronous programs.

    The conversation continues with the next call, also after a restart. If an event loop is running in this thread, as
    in a notebook, the loop is blocked. `result` is the type of the reply, as in `Agent.ask`.

    Raises:
        KnapperError: the workspace, the model or the turn failed.
    """

    async def asked() -> Any:
        async with Workspace.open(workspace) as opened:
            return await (await opened.agent(agent)).ask(message, result=result)

    runs_a_loop = False
    with suppress(RuntimeError):  # there is none in this thread
        asyncio.get_running_loop()
        runs_a_loop = True
    try:
        with ThreadPoolExecutor(1) if runs_a_loop else nullcontext() as aside:
            return aside.submit(asyncio.run, asked()).result() if aside else asyncio.run(asked())
    except KnapperError as error:  # a traceback through our frames does not help the caller
        raise error.with_traceback(None) from error.__cause__
