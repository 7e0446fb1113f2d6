"""Builds the agents of a workspace, and closes them when nobody holds them any more."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.errors import SettingsError
from agent_core.context import BYTES_PER_TOKEN, FunctionNotes, Shown
from agent_core.memory.agent_memory import AgentMemory
from agent_core.memory.blocks import ALIASES, Alias
from agent_core.memory.classes import KNOWN, Memory, named
from agent_core.runtime import host_functions
from agent_core.runtime.agent import Agent, SaveAgentFile
from agent_core.runtime.colleagues import Colleagues, FunctionSight
from agent_core.runtime.dispatch import Dispatcher, ForeignFunctions, ForeignSelection, WorkspaceFunctions
from agent_core.runtime.groups.loop import GroupLoop, OpenMember
from agent_core.runtime.helper_calls import ABOUT_HELPERS, HelperFunctions, Offers
from agent_core.runtime.host_functions import HostFunction, HostFunctions
from agent_core.runtime.loop import AgentLoop
from agent_core.runtime.model_session import ModelSession
from agent_core.runtime.programs import Programs
from agent_core.runtime.session import OLD_NAMES, AgentSession
from agent_core.storage import SaveAgent, Store

from .group_file import GroupFolder, GroupSurroundings, is_group, read_group
from .helper_changes import HelperChanges, HelperDesk
from .helper_library import HelperLibrary, HelperSelection
from .helper_runs import HelperRunner
from .presets import Preset, preset, text_of

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.settings import MemorySettings, Settings
    from agent_core.functions.foreign.library import ForeignLibrary
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.functions.service import FunctionService
    from agent_core.memory.embedding import Embedder
    from agent_core.runtime.agent_models import OpenedModel, OpenModel
    from agent_core.runtime.groups.plan import GroupPlan
    from agent_core.runtime.turn_runner import TurnLoop

    from .agent_files import AgentFiles
    from .model_opener import IdleModels

_PLAIN: Final = "direct"
"""The preset of a group: its members have each their own."""
_BEHIND: Final = "behind"
"""Whose idle models those are that agents behind have used: no helper has this name with a version."""
_ALIASES: Final[Mapping[str, Alias]] = {**ALIASES, **OLD_NAMES}


@dataclass(frozen=True, slots=True)
class WorkspaceDeps:
    """The dependencies that all agents of a workspace share."""

    root: Path
    settings: "Settings"
    store: Store
    workshop: "FunctionService"
    sandbox: "SandboxClient"
    clock: "Clock"
    embedder: "Embedder | None"
    open_model: "OpenModel"
    idle_models: "IdleModels"
    save: SaveAgentFile
    helpers: HelperLibrary
    helper_changes: HelperChanges
    directory: "AgentFiles"
    groups: GroupFolder
    open_agent: OpenMember
    foreign: "ForeignLibrary"


@dataclass(frozen=True, slots=True)
class _AgentParts:
    """The parts of one agent that others of its parts are made of."""

    deps: WorkspaceDeps
    name: str
    preset: Preset
    memory: AgentMemory
    colleagues: Colleagues
    helpers: HelperSelection
    session: AgentSession
    in_group: bool
    is_behind: bool

    def host(self) -> dict[str, HostFunction]:
        """Return the functions of the program that the preset has."""
        functions = {**host_functions.meta_functions(), **host_functions.of_memory(self.memory.blocks)}
        withheld = frozenset() if self.deps.settings.growth.create else host_functions.GROWING
        withheld |= frozenset() if self.deps.settings.helpers.create else ABOUT_HELPERS
        return {name: host for name, host in functions.items() if self.preset.has(name) and name not in withheld}

    def model_session(self, host: Mapping[str, HostFunction]) -> ModelSession:
        """Return the session with the model, which is shown these functions of the program."""
        turn, named = self.deps.settings.turn, self.preset.functions
        shown = Shown(
            [host_function.function for host_function in host.values()],
            turn.shown_functions,
            self.deps.workshop.quarantine,
            frozenset(name for name in host if name in named),
            int(turn.function_tokens * BYTES_PER_TOKEN),
            FunctionNotes(
                self.deps.workshop.ending, lambda function: self.deps.workshop.seen_results.of(function, self.name)
            ),
            # A small model takes the first choice where it does not know: the block about itself comes last.
            lambda: [block.label for block in reversed(self.memory.blocks.memory.blocks) if not block.read_only],
        )
        shown.withhold(self.colleagues.withheld())
        return ModelSession(
            shown,
            self.deps.settings,
            self.open_model,
            self.memory,
            self.session.style,
            compaction=self.preset.compaction,
            own_set=self.session.own_set,
            keep=None if self.in_group else self.memory,
            colleagues=self.colleagues,
            offers=Offers(self.helpers, self.foreign()),
            release=partial(self.deps.idle_models.give_back, _BEHIND) if self.is_behind else None,
        )

    async def open_model(self, name: str | None) -> "OpenedModel":
        """Return the agent's model: that of its file, unless another one is asked for.

        Agents that work behind come and go: one goes on with the connection of another.
        """
        name = name or self.colleagues.profile.model or None
        return await (self.deps.idle_models.take(_BEHIND, name) if self.is_behind else self.deps.open_model(name))

    def foreign(self) -> ForeignSelection:
        """Return the foreign functions that the agent may call."""
        return ForeignSelection(self.deps.foreign, lambda: self.colleagues.profile.functions)

    def dispatcher(self, host: Mapping[str, HostFunction], model: ModelSession, programs: Programs) -> Dispatcher:
        """Return what runs the calls of a turn, those of `programs` too."""
        deps, turn = self.deps, self.deps.settings.turn
        sources = (
            HostFunctions(host, deps.workshop, model.functions.withheld, programs),
            HelperFunctions(self.helpers, HelperRunner(deps, partial(_memory, deps)).run),
            WorkspaceFunctions(deps.sandbox, deps.workshop, turn.parallel, self.memory.blocks, self.name),
            ForeignFunctions(self.foreign(), deps.workshop.seen_results, self.name),
        )
        current = deps.workshop.registry.snapshot
        programs.dispatcher = Dispatcher(sources, current, turn, deps.clock, aliases=_ALIASES)
        return programs.dispatcher

    async def loop(self) -> "TurnLoop":
        """Return what runs the turns."""
        host, workshop = self.host(), self.deps.workshop
        model_session = self.model_session(host)
        if self.in_group:
            return await _group_loop(self.deps, self.name, model_session)
        sees = FunctionSight(lambda: self.colleagues.profile.functions, lambda: self.session.own_set.names).of
        most_steps = self.deps.settings.turn.max_steps
        programs = Programs(self.deps.sandbox, workshop, self.deps.clock)
        dispatcher = self.dispatcher(host, model_session, programs)
        return AgentLoop(model_session, dispatcher, workshop, most_steps, self.memory, sees=sees, programs=programs)


async def build_agent(
    deps: WorkspaceDeps,
    name: str,
    memory: Memory | None = None,
    *,
    verify: bool,
    resources: AsyncExitStack,
    is_behind: bool = False,
) -> Agent:
    """Return the agent of that name, to be restored; a new one is built from the settings or `memory`.

    With it, `resources` are closed. One that works `behind` takes an idle model, and gives it back.
    """
    in_group = is_group(deps.root, name)
    if not in_group:
        deps.directory.folder.must_hold(name)
    settings = await _agent_settings(deps, name, memory, in_group=in_group)
    agent_preset = preset(deps.root, settings["preset"])
    usual = partial(_first_memory, deps, name, agent_preset, settings["memory_class"])
    remembered = _memory(deps, name, Memory() if in_group else memory or usual())
    await remembered.load()
    colleagues = Colleagues(name, deps.store, deps.directory, deps.settings.runner, deps.clock)
    helpers = HelperSelection(deps.helpers, lambda: colleagues.profile.helpers)
    style = replace(agent_preset.style, first_thought=deps.settings.turn.first_thought)
    session = AgentSession(name, deps.store, style, deps.settings.heartbeat, deps.clock, verify=verify)
    parts = _AgentParts(deps, name, agent_preset, remembered, colleagues, helpers, session, in_group, is_behind)
    agent = Agent(
        name,
        deps.store,
        deps.workshop,
        await parts.loop(),
        deps.store.owner,
        session=session,
        memory=remembered,
        save=deps.save,
        colleagues=colleagues,
        resources=resources,
    )
    agent.desk = HelperDesk(deps.helper_changes, agent)
    return agent


async def _group_loop(deps: WorkspaceDeps, name: str, model: ModelSession) -> GroupLoop:
    """Return the loop of a group, after checking its file."""
    await _group(deps, name)
    return GroupLoop(model, deps.store, deps.workshop, partial(_group, deps, name), deps.open_agent)


async def _group(deps: WorkspaceDeps, name: str) -> "GroupPlan":
    stored = dict.fromkeys(await deps.store.agent_names(), "")
    agents = {deps.settings.agent: "", **stored, **deps.directory.names()}
    functions = deps.workshop.registry.snapshot().functions.keys()
    return read_group(deps.root, deps.groups, name, GroupSurroundings(agents, functions))


async def _agent_settings(
    deps: WorkspaceDeps, name: str, memory: Memory | None, *, in_group: bool
) -> dict[str, Any]:  # Any: JSON
    """Return the settings the agent was created with; they are stored on creation and stay in force."""
    defaults = deps.settings.memory
    stored = await deps.store.agent_settings(name) or {}
    preset(deps.root, defaults.preset)  # a wrong name is an error whether or not the agent is new
    settings = {
        "preset": _PLAIN if in_group else defaults.preset,
        "memory_class": "" if memory or in_group else defaults.class_name,
    } | stored
    if settings != stored:
        await deps.store.apply([SaveAgent(name, settings)])
    return settings


def _first_memory(deps: WorkspaceDeps, name: str, agent_preset: Preset, memory_class: str) -> Memory:
    memory_settings: MemorySettings = deps.settings.memory
    # The state travels with the folder, so it names a class that runs code only if the user's own settings do, too.
    if memory_class not in ("", *KNOWN, memory_settings.class_name):
        message = (
            f"This agent was made with the memory class `{memory_class}`, which runs code when the agent is opened."
        )
        raise SettingsError(message, fix=f"If you trust it: export KNAPPER_MEMORY_CLASS_NAME={memory_class}")
    kind = named(memory_class or memory_settings.class_name)
    labels = {block.label for block in kind.starts_with}
    values = {
        "persona": deps.directory.profile(name).persona or memory_settings.persona or agent_preset.persona,
        "human": memory_settings.human or agent_preset.human,
    }
    texts = {label: text_of(deps.root, label, values[label]) for label in ("persona", "human") if label in labels}
    return kind(**texts)


def _memory(deps: WorkspaceDeps, name: str, first_memory: Memory | None = None) -> AgentMemory:
    gap = deps.settings.memory.session_gap_minutes
    return AgentMemory(name, deps.store, deps.clock, deps.embedder, gap_minutes=gap, memory=first_memory)
