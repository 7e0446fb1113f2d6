"""Builds the agents of a workspace."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from agent_core.base.errors import SettingsError
from agent_core.base.records import dataclass, replace
from agent_core.context import BYTES_PER_TOKEN, FunctionNotes, Shown
from agent_core.memory.agent_memory import AgentMemory
from agent_core.memory.blocks import ALIASES, Alias
from agent_core.memory.classes import KNOWN, Memory, named, reasons
from agent_core.memory.vectors import TextVectors
from agent_core.runtime import host_functions
from agent_core.runtime.agent import Agent
from agent_core.runtime.allowed import ABOUT_HELPERS
from agent_core.runtime.client_calls import ClientFunctions
from agent_core.runtime.colleagues import Colleagues
from agent_core.runtime.dispatch import (
    ABOUT_AGENTS,
    Dispatcher,
    WorkspaceFunctions,
)
from agent_core.runtime.foreign_functions import ForeignFunctions
from agent_core.runtime.groups.loop import GroupLoop
from agent_core.runtime.host_functions import HostFunction, HostFunctions, MemoryFunctions
from agent_core.runtime.loop import AgentLoop
from agent_core.runtime.model_session import AgentModels, ModelSession
from agent_core.runtime.programs import Programs
from agent_core.runtime.session import OLD_NAMES, AgentSession, thread_limits
from agent_core.runtime.source import AgentFile, FunctionSight, ToolSource, ToolSources
from agent_core.storage import STATE, SaveAgent, agent_of
from agent_core.storage.picture_files import PictureFiles

from .agent_files import GroupSurroundings, is_group, read_group
from .deps import MAX_SHOWN_FUNCTIONS, WorkspaceDeps
from .helper_calls import HelperFunctions, HelperRunner
from .helper_changes import HelperDesk
from .presets import Preset, preset, text_of

if TYPE_CHECKING:
    from agent_core.base.settings import MemorySettings
    from agent_core.model.reply import OpenedModel
    from agent_core.runtime.agent import TurnLoop
    from agent_core.runtime.groups.plan import GroupPlan

_BEHIND: Final = "behind"
"""The key of the idle models of background agents. It cannot clash with a helper's key, which has a version."""
_ALIASES: Final[Mapping[str, Alias]] = {**ALIASES, **OLD_NAMES}


@dataclass(frozen=True, slots=True)
class _AgentParts:
    """The parts of one agent that its other parts are built from."""

    deps: WorkspaceDeps
    name: str
    preset: Preset
    memory: AgentMemory
    file: AgentFile
    session: AgentSession
    in_group: bool
    is_behind: bool

    def host(self) -> dict[str, HostFunction]:
        """Return the built-in functions that the preset includes."""
        functions = {
            **host_functions.meta_functions(),
            **host_functions.of_memory(self.memory.blocks),
        }
        withheld = frozenset() if self.deps.settings.helpers.create else ABOUT_HELPERS
        return {
            name: host
            for name, host in functions.items()
            if self.preset.has(name) and name not in withheld
        }

    def colleagues(self, host: Mapping[str, HostFunction]) -> Colleagues:
        """Return the other agents that this one can reach, by those of these functions that are for that."""
        functions = {name: one for name, one in host.items() if name in ABOUT_AGENTS}
        store, service = self.deps.store, self.deps.functions
        return Colleagues(
            self.name, self.file, self.deps.directory, store, self.session, functions, service
        )

    def sources(
        self,
        host: Mapping[str, HostFunction],
        colleagues: Colleagues,
        models: AgentModels,
        programs: Programs,
    ) -> tuple[ToolSource, ...]:
        """Return the sources of the functions that the agent's model can call: a name means the first that has it."""
        deps = self.deps
        of_memory = host_functions.of_memory(self.memory.blocks).keys() & host.keys()
        memory = MemoryFunctions(self.memory.blocks, of_memory, deps.functions)
        others = {*colleagues.pinned, *memory.pinned}
        own = {name: one for name, one in host.items() if name not in others}
        foreign = [
            ForeignFunctions(
                source, self.file.function_patterns, deps.functions.seen_results, self.name
            )
            for source in deps.foreign.by_file.values()
        ]
        return (
            HostFunctions(own, deps.functions, models.withheld, programs),
            memory,
            colleagues,
            HelperFunctions(deps.helpers, self.file.helper_patterns, HelperRunner(deps)),
            WorkspaceFunctions(
                deps.sandbox,
                deps.functions,
                deps.settings.turn.parallel,
                self.memory.blocks,
                self.name,
            ),
            *foreign,
        )

    def model_session(
        self, host: Mapping[str, HostFunction], models: AgentModels, tools: ToolSources
    ) -> ModelSession:
        """Return the session with the model, which sees these built-in functions."""
        turn, named = self.deps.settings.turn, self.preset.functions
        shown = Shown(
            [host_function.function for host_function in host.values()],
            MAX_SHOWN_FUNCTIONS,
            self.deps.functions.quarantine,
            frozenset(name for name in host if name in named),
            int(turn.function_tokens * BYTES_PER_TOKEN),
            FunctionNotes(
                self.deps.functions.ending,
                partial(self.deps.functions.seen_results.of, agent=self.name),
            ),
            # A small model in doubt takes the first choice, so the block about itself comes last.
            lambda: [
                block.label
                for block in reversed(self.memory.blocks.memory.blocks)
                if not block.read_only
            ],
        )
        shown.withhold(tools.withheld())
        return ModelSession(
            shown,
            self.deps.settings,
            models,
            self.session,
            tools,
            remembered=self.memory,
            compaction=self.preset.compaction,
            keep=None if self.in_group else self.memory,
            vectors=TextVectors(self.deps.function_embedder),
            pictures=PictureFiles(self.deps.root / STATE),
        )

    async def open_model(self, name: str | None) -> "OpenedModel":
        """Open a model by name; by default, that of the agent's file or the configured one.

        Background agents are opened and closed often, so they reuse one another's connections.
        """
        name = name or self.file.profile.model or None
        return await (
            self.deps.idle_models.take(_BEHIND, name)
            if self.is_behind
            else self.deps.open_model(name)
        )

    def models(self) -> AgentModels:
        """Return the agent's models, none of them open yet."""
        release = partial(self.deps.idle_models.give_back, _BEHIND) if self.is_behind else None
        return AgentModels(self.open_model, release, self.file.model)

    async def loop(self, host: Mapping[str, HostFunction], colleagues: Colleagues) -> "TurnLoop":
        """Return the loop that runs the agent's turns."""
        deps, service, models = self.deps, self.deps.functions, self.models()
        if self.in_group:
            await _group(deps, self.name)  # checks its file
            plan = partial(_group, deps, self.name)
            model_session = self.model_session(
                host,
                models,
                ToolSources(self.file, (colleagues,), ClientFunctions.of, self.session.turn_policy),
            )
            return GroupLoop(model_session, deps.store, service, plan, deps.open_agent)
        programs = Programs(deps.sandbox, service, deps.clock)
        sources = self.sources(host, colleagues, models, programs)
        tools = ToolSources(self.file, sources, ClientFunctions.of, self.session.turn_policy)
        turn = deps.settings.turn
        programs.dispatcher = Dispatcher(tools, turn, deps.clock, aliases=_ALIASES)
        own_set = self.session.own_set
        return AgentLoop(
            self.model_session(host, models, tools),
            programs.dispatcher,
            service,
            turn.max_steps,
            sees=FunctionSight(self.file.function_patterns, lambda: own_set.names).of,
            programs=programs,
        )


async def build_agent(
    deps: WorkspaceDeps,
    line: str,
    memory: Memory | None = None,
    *,
    verify: bool,
    resources: AsyncExitStack,
    is_behind: bool = False,
) -> Agent:
    """Build the agent of a conversation, ready to be restored. A new one starts from the settings or from `memory`.

    The agent closes `resources` when it is closed. A background agent (`is_behind`) borrows an idle model.
    """
    name = agent_of(line)
    in_group = is_group(deps.root, name)
    if not in_group:
        deps.directory.folder.must_hold(name)
    defaults = deps.settings.memory
    preset(deps.root, defaults.preset)  # a wrong name is an error whether or not the agent is new
    # What the agent is created with is stored and stays in force.
    stored = await deps.store.agent_settings(name) or {}
    settings = {
        "preset": "direct" if in_group else defaults.preset,  # each member of a group has its own
        "memory_class": "" if memory or in_group else defaults.class_name,
    } | stored
    if settings != stored:
        await deps.store.apply([SaveAgent(name, settings)])
    agent_preset = preset(deps.root, settings["preset"])
    if in_group:
        memory = Memory()
    elif memory is None:
        memory = _first_memory(deps, name, agent_preset, settings["memory_class"])
    remembered = deps.memory(line, memory)
    await remembered.load()
    await deps.functions.seen_results.load()
    style = replace(agent_preset.style, first_thought=deps.settings.turn.first_thought)
    session = AgentSession(
        name,
        deps.store,
        style,
        deps.settings.heartbeat,
        deps.clock,
        verify=verify,
        line=line,
        thread_limits=thread_limits(deps.settings.runner),
        policy=deps.settings.policy,
    )
    file = AgentFile(partial(deps.directory.profile, name), deps.directory.place)
    parts = _AgentParts(
        deps,
        name,
        agent_preset,
        remembered,
        file,
        session,
        in_group,
        is_behind,
    )
    host = parts.host()
    colleagues = parts.colleagues(host)
    agent = Agent(
        name,
        deps.store,
        deps.functions,
        await parts.loop(host, colleagues),
        deps.store.owner,
        session=session,
        memory=remembered,
        save=deps.save,
        resources=resources,
    )
    agent.colleagues = colleagues
    agent.helper_desk = HelperDesk(deps.helper_changes, agent)
    return agent


async def _group(deps: WorkspaceDeps, name: str) -> "GroupPlan":
    stored = dict.fromkeys(await deps.store.agent_names(), "")
    agents = {deps.settings.agent: "", **stored, **deps.directory.names()}
    functions = deps.functions.registry.snapshot().functions.keys()
    return read_group(deps.root, deps.groups, name, GroupSurroundings(agents, functions))


def _first_memory(
    deps: WorkspaceDeps, name: str, agent_preset: Preset, memory_class: str
) -> Memory:
    memory_settings: MemorySettings = deps.settings.memory
    # The state travels with the folder, so its memory class may run code only if the user's settings name it, too.
    if memory_class not in ("", *KNOWN, memory_settings.class_name):
        message = (
            f"This agent was made with the memory class `{memory_class}`, which runs code "
            f"when the agent is opened."
        )
        raise SettingsError(
            message, fix=f"If you trust it: export KNAPPER_MEMORY_CLASS_NAME={memory_class}"
        )
    kind = named(memory_class or memory_settings.class_name)
    labels = {block.label for block in kind.starts_with}
    values = {
        "persona": deps.directory.profile(name).persona
        or memory_settings.persona
        or agent_preset.persona,
        "human": memory_settings.human or agent_preset.human,
    }
    texts = {
        label: text_of(deps.root, label, values[label])
        for label in ("persona", "human")
        if label in labels
    }
    try:
        return kind(**texts)
    except ValidationError as error:
        where = "`memory.persona` and `memory.human`, the agent's file, or the preset"
        raise SettingsError(
            f"The agent's first memory does not fit: {reasons(error)}", fix=f"See {where}."
        ) from error
