"""A workspace: an open folder, its agents and its functions; the factories build the parts.

Starting is cheap: the sandbox and the model are opened when something needs them.
"""

import asyncio
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agent_core.access.grants.desk import ApprovalQueue
from agent_core.base import old_name
from agent_core.base.clock import Clock
from agent_core.base.errors import AgentBusy, KnapperError, StorageError, UsageError, WorkspaceError
from agent_core.base.late import LateModule
from agent_core.base.messages import Assistant
from agent_core.base.settings import Settings, load
from agent_core.base.untrusted import one_line
from agent_core.functions.service.plan import Author
from agent_core.registry.loader_names import OF_THE_PROGRAM
from agent_core.storage import BETWEEN, FROM_USER, FUNCTIONS, SUMMARY, CallOwners, DropAgent, Store, prepare_state_dir
from agent_core.storage.agent_store import HELPER_RUN, PASSING

from . import scaffold
from .function_factory import function_service, sandbox_client
from .state_store import open_state

if TYPE_CHECKING:  # each part is imported when it is first asked for
    from agent_core.access.grants import Approver, Decision, Question, approval
    from agent_core.base.events import Event
    from agent_core.base.problem import Problem
    from agent_core.functions.debug import Debugger, Debugging
    from agent_core.functions.mcp.library import ForeignLibrary
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.memory import agent_memory, classes, source_catalog
    from agent_core.memory.agent_memory import AgentMemory
    from agent_core.memory.classes import Memory
    from agent_core.memory.source_catalog import Sources
    from agent_core.registry import watch
    from agent_core.runtime import host_functions, programs
    from agent_core.runtime.agent import Agent
    from sandbox import Sandbox, errors

    from . import (
        agent_factory,
        agent_files,
        doctor,
        group_file,
        helper_changes,
        helper_library,
        helper_proposals,
        model_opener,
        portable,
        runner,
    )
    from .agent_factory import WorkspaceDeps
    from .agent_files import AgentFiles
    from .group_file import GroupFolder
    from .helper_changes import HelperChanges, Proposal
    from .helper_library import HelperLibrary
    from .helper_proposals import HelperProposal
    from .model_opener import IdleModels, ModelOpener
    from .runner import AgentsBehind, Front, Runner
else:
    approval = LateModule("agent_core.access.grants.approval")
    agent_memory = LateModule("agent_core.memory.agent_memory")
    classes = LateModule("agent_core.memory.classes")
    host_functions = LateModule("agent_core.runtime.host_functions")
    programs = LateModule("agent_core.runtime.programs")
    source_catalog = LateModule("agent_core.memory.source_catalog")
    errors = LateModule("sandbox.errors")
    agent_factory = LateModule("agent_core.workspace.agent_factory")
    agent_files = LateModule("agent_core.workspace.agent_files")
    doctor = LateModule("agent_core.workspace.doctor")
    group_file = LateModule("agent_core.workspace.group_file")
    helper_changes = LateModule("agent_core.workspace.helper_changes")
    helper_library = LateModule("agent_core.workspace.helper_library")
    helper_proposals = LateModule("agent_core.workspace.helper_proposals")
    model_opener = LateModule("agent_core.workspace.model_opener")
    portable = LateModule("agent_core.workspace.portable")
    watch = LateModule("agent_core.registry.watch")
    runner = LateModule("agent_core.workspace.runner")

_LOOK_S = 5.0  # between looks for functions that were changed elsewhere, and not told
_MODEL_S = 3.0  # for an endpoint that is asked which models it has


class OpenAgents:
    """The resources of the agents that are open: closed with each, when nobody holds it any more, or at the end."""

    def __init__(self) -> None:
        self._open: set[AsyncExitStack] = set()
        self._unheld: list[AsyncExitStack] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._is_closed = False

    def must_be_open(self) -> None:
        """Do nothing while the workspace is open.

        Raises:
            WorkspaceError: it was closed.
        """
        if self._is_closed:
            raise WorkspaceError("The workspace is closed.", fix="Use it within its `async with`.")

    def hold(self, agent: "Agent", resources: AsyncExitStack) -> None:
        """Keep the resources of an agent open as long as somebody holds it."""
        self._open.add(resources)
        resources.callback(self._open.discard, resources)
        weakref.finalize(agent, self._let_go, resources, asyncio.get_running_loop()).atexit = False

    async def close_unheld(self) -> None:
        """Close what belongs to agents that nobody holds any more."""
        async with self._one_at_a_time:
            while self._unheld:
                await self._unheld.pop().aclose()

    async def aclose(self) -> None:
        """Close everything."""
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
    """An open folder with `functions/` and its state. Its parts are opened when they are first asked for."""

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
        queue = ApprovalQueue(approver, store, settings.grants.wait_minutes * 60)
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
        return agent_files.AgentFiles(self.root, self.settings.agent, partial(group_file.group_names, self.root))

    @cached_property
    def helpers(self) -> "HelperLibrary":
        """The helpers: narrow agents that are called."""
        return helper_library.HelperLibrary(self.root, self._store, self.functions)

    @cached_property
    def helper_changes(self) -> "HelperChanges":
        """The changes of helpers, planned."""
        return helper_changes.HelperChanges(self.helpers, self.functions)

    @cached_property
    def groups(self) -> "GroupFolder":
        """Its groups, as their files are."""
        return group_file.GroupFolder(self.root, group_file.FOLDER, group_file.GroupFile, looks=self.directory.names)

    def __repr__(self) -> str:
        """Return its folder and the number of its functions."""
        count = len(self.functions.names())
        return f"<Workspace {one_line(str(self.root), 200)}: {count} function{'' if count == 1 else 's'}>"

    @property
    def store(self) -> Store:
        """Its state on disk."""
        return self._store

    @property
    def debugging(self) -> "Debugging":
        """The debugger of this workspace: what is armed, and who is attached."""
        return self._sandbox.debugging

    @property
    def foreign(self) -> "ForeignLibrary":
        """The functions that other programs offer: tools of MCP servers."""
        assert self._sandbox.foreign is not None
        return self._sandbox.foreign

    @classmethod
    @asynccontextmanager
    async def open(  # noqa: PLR0913 - what may differ from one program to another
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
    ) -> AsyncIterator["Workspace"]:
        """Open a workspace: read its settings, its state and its functions, and watch the folder.

        Missing parts of the workspace are created. `environment` has keys and secrets, if not this process's own.
        `approver` asks the user about grants; without one the answer is what `grants.unattended` says. `debugger`
        handles stops, and `on_status` hears what takes long: a line when it begins, and an empty text when it is done.
        A `sandbox` that was started is used in place of one by the settings; the caller ends it, after the workspace.
        One that does not `follow` its files is for a look: what is saved while it is open is left to the next one.

        Raises:
            WorkspaceError: the folder is not there or cannot be used.
            SettingsError: a setting is wrong.
            StorageError: the state cannot be used.
        """
        old_name.tell_of_variables()
        root = scaffold.opened(root)
        old_name.move_home()
        given, settings = settings, settings or load(root, flags)
        async with AsyncExitStack() as stack:
            store = open_state(root, settings)
            stack.push_async_callback(store.close)
            open_sandbox = partial(sandbox_client, root, settings, environment, debugger, sandbox, on_status)
            is_typed = bool((flags or {}).get("model.name"))
            open_models = partial(
                _model_opener,
                root,
                settings,
                environment,
                None if given else partial(load, root, flags),
                is_typed=is_typed,
            )
            workspace = cls(root, settings, store, approver, open_sandbox, open_models, on_status)
            stack.push_async_callback(workspace._close_parts)
            await workspace.functions.start()
            await workspace.functions.quarantine.refresh()
            if follows:
                await stack.enter_async_context(workspace._following())
            yield workspace

    async def _close_parts(self) -> None:
        """Close the parts that were opened, those that use others first."""
        async with AsyncExitStack() as stack:
            for name in ("_sandbox", "_models", "_idle_models"):
                if name in vars(self):
                    stack.push_async_callback(vars(self)[name].aclose)
            stack.callback(self.functions.close)
            await self._agents.aclose()

    @classmethod
    @asynccontextmanager
    async def in_memory(cls, **options: Any) -> AsyncIterator["Workspace"]:  # Any: what `open` takes
        """Open a new workspace that is gone afterwards, for tests and notebooks; `options` are those of `open`."""
        with TemporaryDirectory(prefix="knapper-") as folder:
            async with cls.open(folder, **options) as workspace:
                yield workspace

    @staticmethod
    def find(root: Path | None = None) -> Path:
        """Return a folder that is a workspace: this one, or without a name the nearest around the current folder.

        It has `knapper.toml`, or had no settings file when it was made: then `.knapper/` is next to `functions/`.

        Raises:
            NoWorkspace: it is none, or not there; the message says what makes it one.
            WorkspaceError: it is no folder.
        """
        return scaffold.existing(root)

    @classmethod
    def create(cls, root: Path | str) -> list[str]:
        """Create a workspace (`functions/` with the starters, and a settings file) and return what was created.

        Nothing that is there is overwritten.
        """
        return scaffold.create(Path(root))

    async def agent(
        self, name: str | None = None, *, memory: "Memory | None" = None, verify: bool = True, answers: bool = False
    ) -> "Agent":
        """Return an agent with its conversation and memory restored; a new one starts with `memory`.

        It is closed by `aclose`, at the end of an `async with` block on it, when nobody holds it any more, or with the
        workspace. `verify` false accepts a first reply as it comes, whatever the preset says. One that `answers` leaves
        the messages that wait for it to its next turn; otherwise the user is notified of them.

        Raises:
            AgentBusy: it is open already, here or in another process.
            UsageError: the preset, persona or human that a new agent is to begin with is not there.
        """
        name = name or self.settings.agent
        if self._behind is not None:
            await self._behind.close(name)
        return await self._open_agent(name, memory=memory, verify=verify, answers=answers)

    async def _open_agent(
        self,
        name: str,
        *,
        memory: "Memory | None" = None,
        verify: bool = True,
        answers: bool = False,
        is_behind: bool = False,
    ) -> "Agent":
        self._agents.must_be_open()
        await self.helpers.load()
        await self._agents.close_unheld()
        async with AsyncExitStack() as stack:
            resources = await stack.enter_async_context(AsyncExitStack())
            await resources.enter_async_context(self._store.hold(prepare_state_dir(self.root), name))
            deps = self._deps()
            agent = await agent_factory.build_agent(
                deps, name, memory, verify=verify, resources=resources, is_behind=is_behind
            )
            agent.goes_on = answers and self._store.is_shared
            await agent.restore(answers=answers or self._store.is_shared)
            self._agents.hold(agent, resources)
            stack.pop_all()
        return agent

    @asynccontextmanager
    async def passing_agent(self, *, verify: bool = True) -> "AsyncIterator[Agent]":
        """Open a new agent for one question: nothing of its conversation and its memory is kept.

        What it makes and changes among the functions stays, like any agent's. What a killed process left of such an
        agent goes with the next one.
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
        """Return an agent as one JSON document: its conversation, its memory and how it was made.

        Raises:
            NoAgent: there is none of that name.
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
        """Return the agent of a document of this program, MemGPT or Letta, under its own name or `name`.

        Nothing in the document is run, and it holds no functions: those of a memory class come with `memory`. A warning
        names what the agent has called and cannot call here.

        Raises:
            AgentFileError: the document is not as it must be.
            AgentExists: there is an agent of that name.
        """
        async with portable.opened_moves(self._store, self.root, self.settings) as moves:
            reports = await moves.take_in(portable.text_of(document), portable.ImportOptions(name))
        agent = await self.agent(reports[0].name, memory=memory)
        if lacking := await self._lacking(agent):
            message = f"The agent {agent.name} has called functions that are not here: {', '.join(lacking)}."
            how = "Those of a memory class come with `memory=`, others with the folder `functions/`."
            warnings.warn(f"{message} {how}", stacklevel=2)
        return agent

    async def _lacking(self, agent: "Agent") -> list[str]:
        """Return the functions that an agent's conversation has calls of, and that it does not have."""
        replies = [message for message in await agent.history() if isinstance(message, Assistant)]
        called = {call.name for reply in replies for call in reply.calls if not call.name.startswith(HELPER_RUN)}
        own = {method.name for method in classes.methods_of(type(agent.memory.blocks.memory))}
        return sorted(called - own - OF_THE_PROGRAM - {*self.functions.names(), *self.functions.foreign()})

    async def load(self, path: Path | str, name: str = "", *, memory: "Memory | None" = None) -> "Agent":
        """Return the agent in a file, as `import_agent` does of its text."""
        return await self.import_agent(await asyncio.to_thread(portable.read_file, path), name, memory=memory)

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
        """Give the runner of this workspace's agents; `hear` gets the events of those that work behind.

        The turns of the agent in `front` are run there.
        """
        behind = runner.AgentsBehind(partial(self._open_agent, is_behind=True), hear)
        new_runner = partial(self._new_runner, slots=self.settings.runner.slots, on_fault=on_fault)
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
        """Give the runner of all agents at a store that is shared: of what users say to them, too.

        A turn that was cut off goes on. Questions about grants wait for an answer by their id.

        Raises:
            UsageError: the store is a file.
        """
        if not self._store.is_shared:
            fix = "Next: knapper agents run. For several machines, see docs/scale.md"
            raise UsageError("A worker needs a database that processes share, and the state is in a file.", fix=fix)
        opened = partial(self._open_agent, is_behind=True, answers=True)
        behind = runner.AgentsBehind(opened, hear, self.answered_by_id)
        kinds = (*BETWEEN, *FROM_USER, SUMMARY)
        new_runner = partial(self._new_runner, slots=slots, on_fault=on_fault, kinds=kinds, ends_with_store=True)
        warm = asyncio.create_task(self._sandbox.ready())  # the first call does not wait for all of the start
        try:
            async with self._at_work(behind, new_runner) as running:
                await self._store.offer_slots(slots)
                yield running
        finally:
            await warm

    @asynccontextmanager
    async def _at_work(
        self, behind: "AgentsBehind", new_runner: "Callable[..., Runner]", front: "Front | None" = None
    ) -> "AsyncIterator[Runner]":
        self._behind = behind
        async with behind.at_work(new_runner, self._store, prepare_state_dir(self.root), front) as runner:
            try:
                yield runner
            finally:
                self._behind = None

    def _new_runner(self, *parts: Any, **terms: Any) -> "Runner":  # Any: what `Runner` takes
        return runner.Runner(self._store, *parts, clock=self._clock, **terms)

    async def questions(self) -> list[approval.PendingQuestion]:
        """Return the questions about grants that wait for an answer in any process at this workspace, oldest first."""
        pending = []
        for row in await self._store.pending_questions():
            with suppress(TypeError, ValueError, KeyError):  # of another version of the program, which asks it itself
                question = approval.Question.from_json(row.question)
                pending.append(approval.PendingQuestion(question, row.agent, row.turn, row.asked_at))
        return pending

    async def answer(self, question: str, decision: "Decision") -> None:
        """Answer a pending question by its id; the process that asks goes on with the answer.

        Raises:
            UsageError: no question of that id is pending: it was answered, or its turn has ended.
        """
        if not await self._store.answer_question(question, decision.to_json()):
            raise UsageError(f"No question {question} is pending: it was answered, or its turn has ended.")

    async def run_program(
        self, code: str, call: Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
    ) -> tuple[str, bool]:
        """Run a program that is part of no conversation; see `run_apart`."""
        return await programs.run_apart(self._sandbox, self.functions, code, call)

    @staticmethod
    async def answered_by_id(question: "Question") -> "Decision":
        """Wait for an answer that is given by the question's id: the approver of a program without a prompt."""
        await asyncio.Event().wait()
        return approval.Decision("no", by="unavailable")

    async def sources(self, name: str | None = None) -> "Sources":
        """Return the sources that the user gave an agent; the agent may be running in another process.

        Raises:
            UsageError: no agent has that name, which is not the usual one's.
        """
        name = name or self.settings.agent
        if name != self.settings.agent and await self._store.agent_settings(name) is None:
            raise UsageError(f"There is no agent {name}.", fix="Type: knapper agents list")
        return self.memory(name).sources

    def loaded_sources(self) -> "Sources":
        """Return the sources that were loaded for all agents, to be attached to each."""
        return self.memory(source_catalog.LOADED).sources

    def memory(self, name: str) -> "AgentMemory":
        """Return the memory of an agent to search it, without the agent, which may be running in another process."""
        gap, embedder = self.settings.memory.session_gap_minutes, self._models.embedder
        return agent_memory.AgentMemory(name, self._store, self._clock, embedder, gap_minutes=gap)

    async def model_trouble(self) -> str:
        """Return why there is no model to ask, and what to do; "" if there is one, or its endpoint is slow to say."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MODEL_S):
                try:
                    await self._models.chosen()
                except KnapperError as error:
                    return f"No turn can be taken yet: {error.message}\n{error.fix}"
        return ""

    def _deps(self) -> "WorkspaceDeps":
        return agent_factory.WorkspaceDeps(
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
            self.agent,
            self.foreign,
        )

    async def agent_names(self) -> list[str]:
        """Return the agents and groups that can be talked to: the usual one, those on file, and those that have begun.

        Runs of helpers and questions that keep nothing are none.
        """
        begun = [name for name in await self._store.agent_names() if not name.startswith((HELPER_RUN, PASSING))]
        return sorted({self.settings.agent, *self.directory.names(), *self.groups.read(), *begun})

    async def can_be_talked_to(self, name: str) -> bool:
        """Check whether a name is among the `agent_names`, however many there are."""
        if name == self.settings.agent or name in self.directory.names() or name in self.groups.read():
            return True
        return not name.startswith((HELPER_RUN, PASSING)) and await self._store.has_agent(name)

    def rejected(self) -> tuple["Problem", ...]:
        """Return the problems that now keep functions and helpers out."""
        helpers = [problem for problem in self.helpers.problems if problem.severity == "refuses"]
        return (*self.functions.rejected(), *helpers)

    async def has_agent(self, name: str) -> bool:
        """Check whether there is an agent or a group of this name, or a run of a helper; another one would be new."""
        return (
            group_file.is_group(self.root, name)
            or await self._store.has_agent(name)
            or await self.can_be_talked_to(name)
        )

    async def helper_proposals(self) -> "list[HelperProposal]":
        """Return drafts of helpers for functions that recorded turns used together."""
        return await helper_proposals.proposals(self.helpers, self._store, self.functions.registry.snapshot())

    @staticmethod
    def by_user(reason: str = "") -> "Proposal":
        """Return the author of a change of helpers that the user makes themselves."""
        return helper_changes.Proposal(Author(), reason=reason)

    async def doctor(self, owners: CallOwners = None) -> dict[str, Any]:  # Any: JSON
        """Return what this platform can do, in the published shape; of agents, what is so of the `owners` or all."""
        own = [host_function.function for host_function in host_functions.standard().values()]
        functions = [*own, *self.functions.registry.snapshot().functions.values()]
        choose = self._models.choose
        report = await doctor.examine(self.settings, self._sandbox, self._store, choose, functions, owners)
        report["embedding"] = await doctor.embedding(self.settings.memory.embedding, lambda: self._models.embedder)
        return {**report, "packages": await self.functions.granting.packages.health()}

    async def one_wall(self) -> str:
        """Return what to ask the user of a level with one wall, "" if there is nothing to ask."""
        sandbox = await self._sandbox.ready()
        return str(sandbox) if isinstance(sandbox, errors.OneWall) and not sandbox.was_refused else ""

    def answer_one_wall(self, *, agrees: bool) -> None:
        """Keep this user's answer; after a yes, functions run here."""
        self._sandbox.answer_one_wall(agrees=agrees)

    async def sandbox_level(self) -> str:
        """Return how far workers are confined: full, apart, core, or none with an override."""
        return doctor.level(await self._sandbox.ready())

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        """Follow the files of functions and of helpers, and what other folders at the store change."""
        await self.helpers.reserve()
        async with self.functions.background_review.at_work(), self._watching(), self.helpers.followed():
            yield

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        async with watch.Watcher(self.root / "functions") as watcher:
            tasks = [asyncio.create_task(self._follow(watcher))]
            if self._store.is_shared:
                tasks.append(asyncio.create_task(self._follow_others()))
            if self.settings.tend.idle:
                tasks.append(asyncio.create_task(self.functions.tend_when_idle(self.settings.tend)))
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow_others(self) -> None:
        """Take what other folders at the store change: when it is told, and now and then by itself."""
        told = asyncio.Event()
        async with self._store.heard(lambda topic: told.set() if topic in ("", FUNCTIONS) else None):
            while True:
                with suppress(StorageError):  # the database is away: it is asked again
                    await self.functions.pull()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await told.wait()
                told.clear()

    async def _follow(self, watcher: "watch.Watcher") -> None:
        async for paths in watcher:
            await self.functions.saved(paths)


def _model_opener(*arguments: Any, **options: Any) -> "ModelOpener":  # Any: what `ModelOpener` takes
    return model_opener.ModelOpener(*arguments, **options)


def ask(message: str, workspace: Path | str = ".", *, agent: str | None = None) -> str:
    """Return the reply of a workspace's agent to one message, for programs that are not asynchronous.

    The conversation continues with the next call, also after a restart. In a notebook, or wherever an event loop runs
    in this thread, that loop waits.

    Raises:
        KnapperError: the workspace, the model or the turn failed.
    """

    async def asked() -> str:
        async with Workspace.open(workspace) as opened:
            return await (await opened.agent(agent)).ask(message)

    try:
        with ThreadPoolExecutor(1) if _runs_a_loop() else nullcontext() as aside:
            return aside.submit(asyncio.run, asked()).result() if aside else asyncio.run(asked())
    except KnapperError as error:  # its way through our frames says nothing to who called
        raise error.with_traceback(None) from error.__cause__


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
