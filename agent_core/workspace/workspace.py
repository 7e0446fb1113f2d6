"""Builds a workspace and its agents from settings; the only module that knows all parts.

Starting is cheap: the sandbox and the model are opened when something needs them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_core.access.broker import Broker, RequestLog
from agent_core.access.grants import (
    AccessResolver,
    ApprovalQueue,
    Approver,
    Decision,
    GrantStore,
    PendingQuestion,
    Question,
)
from agent_core.access.grants.addresses import is_confirmed
from agent_core.access.packages import Environment
from agent_core.access.secrets import DISCLOSED, Secrets, shade_logs
from agent_core.base.clock import Clock
from agent_core.base.errors import NoWorkspace, SettingsError, UsageError, WorkspaceError
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.settings import FILE_NAME, ModelSettings, Settings, load
from agent_core.functions.debug import Debugger, Debugging
from agent_core.functions.gate import FIXES, Gate, Rules
from agent_core.functions.gate.reviewer import Reviewer
from agent_core.functions.sandbox_client import SandboxClient, guarded_in
from agent_core.functions.service import FunctionService
from agent_core.functions.service.change_executor import only_writer
from agent_core.functions.service.grant_service import GrantService
from agent_core.functions.service.package_grants import ImportTrials, PackageGrants
from agent_core.memory.classes import Memory
from agent_core.memory.embedding import Embedder, embedder
from agent_core.memory.source_catalog import Sources
from agent_core.model import Model
from agent_core.model.discover import DiscoveredModel, choose
from agent_core.registry.registry import Registry
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.watch import Watcher
from agent_core.runtime import host_functions
from agent_core.runtime.agent import Agent
from agent_core.runtime.model_session import OpenedModel
from agent_core.storage import Store, lock_agent, open_store, prepare_state_dir
from sandbox import Sandbox

from . import doctor, scaffold
from .agent_factory import OpenAgents, WorkspaceDeps, build_agent, sources_of
from .local_models import installed_models
from .portable import ImportOptions, KnownNames, Moves, read_file, reader_of_files, write_file
from .presets import presets


class Workspace:
    """An open folder with `functions/` and its state."""

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        root: Path,
        settings: Settings,
        store: Store,
        workshop: FunctionService,
        cage: SandboxClient,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.settings = settings
        self.workshop = workshop
        self.recovered: tuple[str, ...] = (store.recovered,) if store.recovered else ()
        self._store = store
        self._cage = cage
        self._clock = Clock()
        self._agents = OpenAgents()
        self._environment: Mapping[str, str] = own_environment() if environment is None else environment

    @property
    def debugging(self) -> Debugging:
        """The debugger of this workspace: what is armed, and who is attached."""
        return self._cage.debugging

    @classmethod
    @asynccontextmanager
    async def open(  # noqa: PLR0913 - what may differ from one program to another
        cls,
        root: Path | str,
        *,
        settings: Settings | None = None,
        flags: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        approver: Approver | None = None,
        debugger: Debugger | None = None,
        on_status: Callable[[str], None] | None = None,
        sandbox: Sandbox | None = None,
    ) -> AsyncIterator["Workspace"]:
        """Open a workspace: read its settings, its state and its functions, and watch the folder.

        Missing parts of the workspace are created. `environment` has keys and secrets, if not this process's own.
        `approver` asks the user about grants; without one the answer is what `grants.unattended` says. `debugger`
        handles stops, and `on_status` hears what takes long: a line when it begins, and an empty text when it is done.
        A `sandbox` that was started is used in place of one by the settings; the caller ends it, after the workspace.

        Raises:
            WorkspaceError: the folder is not there or cannot be used.
            SettingsError: a setting is wrong.
            StorageError: the state file cannot be used.
        """
        root = _folder(root)
        settings = settings or load(root, flags)
        async with AsyncExitStack() as stack:
            state = prepare_state_dir(root)
            store = open_store(state / "state.db", clock=Clock(), keep_calls=settings.standing.keep_calls)
            stack.push_async_callback(store.close)
            shade_logs()
            cage = _cage(root, state, settings, environment, debugger, sandbox=sandbox)
            stack.push_async_callback(cage.aclose)
            reviewer = _reviewer(settings.gate.reviewer, lambda name: workspace._open_model(name))
            if reviewer is not None:
                stack.push_async_callback(reviewer.aclose)
            workshop = _workshop(root, settings, store, cage, approver=approver, on_status=on_status, reviewer=reviewer)
            workspace = cls(root, settings, store, workshop, cage, environment=environment)
            stack.callback(workshop.granting.packing.environment.close)
            stack.push_async_callback(workspace._agents.aclose)
            await workspace.workshop.loader.start()
            await workspace.workshop.quarantine.refresh()
            await stack.enter_async_context(workspace.workshop.second_look.at_work())
            await stack.enter_async_context(workspace._watching())
            yield workspace

    @classmethod
    @asynccontextmanager
    async def in_memory(cls, **options: Any) -> AsyncIterator["Workspace"]:  # Any: what `open` takes
        """Open a new workspace that is gone afterwards, for tests and notebooks; `options` are those of `open`."""
        with TemporaryDirectory(prefix="toolwright-") as folder:
            async with cls.open(folder, **options) as workspace:
                yield workspace

    @staticmethod
    def find(root: Path) -> Path:
        """Return the folder if it is a workspace (it has `functions/` or a settings file); for callers that create
        nothing.

        Raises:
            NoWorkspace: it is none; the message says what makes it one.
        """
        if not (root / "functions").is_dir() and not (root / FILE_NAME).is_file():
            message = f"{root.resolve()} is not a workspace: it has neither functions/ nor {FILE_NAME}."
            raise NoWorkspace(message, fix=f"Next: toolwright init {root}")
        return root

    @classmethod
    def create(cls, root: Path | str) -> list[str]:
        """Create a workspace (`functions/` with the starters, and a settings file) and return what was created.

        Nothing that is there is overwritten.
        """
        return scaffold.create(Path(root))

    async def agent(self, name: str | None = None, *, memory: Memory | None = None, verify: bool = True) -> Agent:
        """Return an agent with its conversation and memory restored; a new one starts with `memory`.

        It is closed by `aclose`, at the end of an `async with` block on it, when nobody holds it any more, or with the
        workspace. `verify` false accepts a first reply as it comes, whatever the preset says.

        Raises:
            AgentBusy: it is open already, here or in another process.
            UsageError: the preset, persona or human that a new agent is to begin with is not there.
        """
        name = name or self.settings.agent
        await self._agents.close_unheld()
        async with AsyncExitStack() as stack:
            resources = await stack.enter_async_context(AsyncExitStack())
            resources.enter_context(lock_agent(prepare_state_dir(self.root), name))
            agent = await build_agent(self._ground(), name, memory, verify=verify, resources=resources)
            self._agents.hold(agent, resources)
            stack.pop_all()
        return agent

    async def export_agent(self, name: str | None = None) -> str:
        """Return an agent as one JSON document: its conversation, its memory and how it was made.

        Raises:
            NoAgent: there is none of that name.
        """
        async with self._moves() as moves:
            return await moves.export(name or self.settings.agent)

    async def import_agent(self, document: str, name: str = "") -> Agent:
        """Return the agent of a document of this program, MemGPT or Letta, under its own name or `name`.

        Nothing in the document is run.

        Raises:
            AgentFileError: the document is not as it must be.
            AgentExists: there is an agent of that name.
        """
        async with self._moves() as moves:
            reports = await moves.take_in(document, ImportOptions(name))
        return await self.agent(reports[0].name)

    async def load(self, path: Path | str, name: str = "") -> Agent:
        """Return the agent in a file, as `import_agent` does of its text."""
        return await self.import_agent(await asyncio.to_thread(read_file, path), name)

    async def _save(self, name: str, path: Path | str) -> None:
        await asyncio.to_thread(write_file, path, await self.export_agent(name))

    @asynccontextmanager
    async def _moves(self) -> AsyncIterator[Moves]:
        known = KnownNames({name for name, _ in presets(self.root)}, {"chat", self.settings.memory.class_name})
        async with reader_of_files() as reader:
            yield Moves(self._store, reader, known)

    async def questions(self) -> list[PendingQuestion]:
        """Return the questions about grants that wait for an answer in any process at this workspace, oldest first."""
        pending = []
        for row in await self._store.pending_questions():
            with suppress(TypeError, ValueError, KeyError):  # of another version of the program, which asks it itself
                question = Question.from_json(row.question)
                pending.append(PendingQuestion(question, row.agent, row.turn, row.asked_at))
        return pending

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a pending question by its id; the process that asks goes on with the answer.

        Raises:
            UsageError: no question of that id is pending: it was answered, or its turn has ended.
        """
        if not await self._store.answer_question(question, decision.to_json()):
            raise UsageError(f"No question {question} is pending: it was answered, or its turn has ended.")

    @staticmethod
    async def answered_by_id(question: Question) -> Decision:
        """Wait for an answer that is given by the question's id: the approver of a program without a prompt."""
        await asyncio.Event().wait()
        return Decision("no", by="unavailable")

    async def sources(self, name: str | None = None) -> Sources:
        """Return the sources that the user gave an agent; the agent may be running in another process.

        Raises:
            UsageError: no agent has that name, which is not the usual one's.
        """
        name = name or self.settings.agent
        if name != self.settings.agent and await self._store.agent_settings(name) is None:
            raise UsageError(f"There is no agent {name}.", fix="Type: toolwright agents list")
        return sources_of(self._ground(), name)

    def _ground(self) -> WorkspaceDeps:
        return WorkspaceDeps(
            self.root,
            self.settings,
            self._store,
            self.workshop,
            self._cage,
            self._clock,
            self._embedder(),
            self._open_model,
            self._save,
        )

    async def doctor(self) -> dict[str, Any]:  # Any: JSON
        """Return what this platform can do, in the published shape."""
        own = [host_function.function for host_function in host_functions.standard().values()]
        functions = [*own, *self.workshop.registry.snapshot().functions.values()]
        report = await doctor.examine(self.settings, self._cage, self._store, self._choose, functions)
        report["embedding"] = await doctor.embedding(self.settings.memory.embedding, self._embedder)
        return {**report, "packages": await self.workshop.granting.packing.health()}

    async def sandbox_level(self) -> str:
        """Return how far workers are confined: full, core, or none with an override."""
        return doctor.level(await self._cage.ready())

    def _embedder(self) -> Embedder | None:
        """Return the embedder that finds texts by meaning; until the user confirms the address it fails, and nothing is
        sent.
        """
        memory, environment = self.settings.memory, self._environment
        url = self.settings.model.base_url or environment.get("OPENAI_BASE_URL") or ""
        key, check = environment.get("OPENAI_API_KEY", ""), partial(doctor.check_texts, self.settings, environment)
        return embedder(memory.embedding, model=memory.embedding_model, url=url, key=key, check=check)

    async def _open_model(self, name: str | None) -> OpenedModel:
        doctor.check_address(self.settings, name, self._environment)
        settings = self.settings.model.model_copy(update={"name": name}) if name else self.settings.model
        # The SDK takes half a second to import: only a turn pays for it, and the prompt is not held up by it.
        await asyncio.to_thread(import_module, "agent_core.model.client")
        from agent_core.model.client import open_model  # noqa: PLC0415 - see above

        chosen = await self._choose(settings)
        model = await open_model(chosen, settings)
        return OpenedModel(model, chosen.why)

    async def _choose(self, settings: ModelSettings) -> DiscoveredModel:
        confirmed = partial(is_confirmed, self.root)
        return await choose(settings, self._environment, weights=_best_installed, confirmed=confirmed)

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        async with Watcher(self.root / "functions") as watcher:
            task = asyncio.create_task(self._follow(watcher))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _follow(self, watcher: Watcher) -> None:
        async for paths in watcher:
            await self.workshop.saved(paths)


def ask(message: str, workspace: Path | str = ".", *, agent: str | None = None) -> str:
    """Return the reply of a workspace's agent to one message, for programs that are not asynchronous.

    The conversation continues with the next call, also after a restart.

    Raises:
        ToolwrightError: the workspace, the model or the turn failed.
    """

    async def asked() -> str:
        async with Workspace.open(workspace) as opened:
            return await (await opened.agent(agent)).ask(message)

    return asyncio.run(asked())


def _folder(root: Path | str) -> Path:
    root = Path(root).resolve()
    if not root.is_dir():
        raise WorkspaceError(f"There is no folder {root}.", fix=f"Next: toolwright init {root}")
    try:
        (root / "functions").mkdir(exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"{root} cannot hold functions: {error.strerror}.", fix="Choose another folder."
        ) from error
    if not (root / "functions").resolve().is_relative_to(root):
        raise WorkspaceError(
            f"{root / 'functions'} is a link that leaves the workspace, so nothing is read or written there.",
            fix="Put the folder itself there.",
        )
    return root


def _cage(  # noqa: PLR0913 - what it is made of
    root: Path,
    state: Path,
    settings: Settings,
    environment: Mapping[str, str] | None,
    debugger: Debugger | None,
    *,
    sandbox: Sandbox | None = None,
) -> SandboxClient:
    return SandboxClient(
        settings.sandbox,
        settings.turn.parallel,
        guarded=guarded_in(root),
        secrets=Secrets(root, environment),
        broker=Broker(note=RequestLog(state, DISCLOSED.clean, Clock().now)),
        debugger=debugger,
        shared=sandbox,
    )


def _workshop(  # noqa: PLR0913 - what it is made of
    root: Path,
    settings: Settings,
    store: Store,
    cage: SandboxClient,
    *,
    approver: Approver | None = None,
    on_status: Callable[[str], None] | None = None,
    reviewer: Reviewer | None = None,
) -> FunctionService:
    hosted = host_functions.parameters()
    reserved = host_functions.reserved()
    registry = Registry(Snapshot.empty(reserved))
    rules = Rules(
        candidate_bytes=settings.gate.candidate_kib << 10,
        module_bytes=settings.gate.module_kib << 10,
        strict=settings.gate.strict,
        off=_fixes_off(settings),
        packages=settings.sandbox.packages,
        reserved=reserved,
    )
    alone = partial(only_writer, prepare_state_dir(root))
    listed, trials = settings.sandbox.packages, ImportTrials(cage, cage.limits)
    environment = Environment(root, alone, trials, listed, settings.grants.packages_mib, tell=on_status)
    packing = PackageGrants(environment, GrantStore(root, store, alone))
    reach, queue = AccessResolver(root, environment.folders, cage.secrets), ApprovalQueue(approver, store)
    granting = GrantService(packing, reach, settings.grants, cage.limits, listed, queue)
    return FunctionService(
        root,
        store,
        registry,
        Gate(cage, limits=cage.limits, rules=rules, shelf=store).reviewed_by(reviewer),
        cage,
        module_bytes=rules.module_bytes,
        rules=settings.standing,
        granting=granting,
        starters=scaffold.functions,
        hosted=hosted,
    )


def _reviewer(name: str, open_model: Callable[[str | None], Awaitable[OpenedModel]]) -> Reviewer | None:
    """Return the reviewer that the settings name, if any."""
    if name == "off":
        return None

    async def opened() -> Model:
        return (await open_model(None if name == "same" else name)).model

    return Reviewer(name, opened)


def _fixes_off(settings: Settings) -> frozenset[str]:
    unknown = sorted({*settings.gate.fixes_off} - FIXES)
    if unknown:
        fix = f"Known are: {', '.join(sorted(FIXES))}."
        raise SettingsError(f"`gate.fixes_off` names `{unknown[0]}`, which is not a fix.", fix=fix)
    return frozenset(settings.gate.fixes_off if settings.gate.fixes else "*")


def _best_installed() -> str | None:
    return next(iter(installed_models()), None)
