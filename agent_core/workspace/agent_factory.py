"""Builds one agent of a workspace: its preset, its memory, its host functions, and its loop."""

import asyncio
import os
import weakref
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_core.base.clock import Clock
from agent_core.base.errors import SettingsError
from agent_core.base.settings import MemorySettings, Settings
from agent_core.context import Shown
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import FunctionService
from agent_core.memory.agent_memory import AgentMemory
from agent_core.memory.archival import Archival
from agent_core.memory.block import Sections
from agent_core.memory.blocks import ALIASES, Blocks
from agent_core.memory.classes import KNOWN, Memory, named
from agent_core.memory.embedding import Embedder
from agent_core.memory.recall import Recall
from agent_core.memory.source_catalog import Sources
from agent_core.runtime import host_functions
from agent_core.runtime.agent import Agent, SaveAgentFile
from agent_core.runtime.dispatch import Dispatcher, HostAlias, WorkspaceFunctions
from agent_core.runtime.host_functions import HostFunction, HostFunctions
from agent_core.runtime.loop import AgentLoop
from agent_core.runtime.model_session import ModelSession, OpenModel
from agent_core.runtime.session import OLD_NAMES, AgentSession
from agent_core.storage import SaveAgent, Store

from .presets import Preset, preset, text_of

_ALIASES: Final[Mapping[str, HostAlias]] = {**ALIASES, **OLD_NAMES}


class OpenAgents:
    """The resources of the agents that are open: closed with each, when nobody holds it any more, or at the end."""

    def __init__(self) -> None:
        self._open: set[AsyncExitStack] = set()
        self._unheld: list[AsyncExitStack] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()

    def hold(self, agent: Agent, resources: AsyncExitStack) -> None:
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


@dataclass(frozen=True, slots=True)
class WorkspaceDeps:
    """The dependencies that all agents of a workspace share."""

    root: Path
    settings: Settings
    store: Store
    workshop: FunctionService
    cage: SandboxClient
    clock: Clock
    embedder: Embedder | None
    open_model: OpenModel
    save: SaveAgentFile


async def build_agent(
    ground: WorkspaceDeps, name: str, memory: Memory | None = None, *, verify: bool, resources: AsyncExitStack
) -> Agent:
    """Return the agent of that name with its state restored; a new one is built from the settings or `memory`.

    With it, `resources` are closed.
    """
    agent_settings = await _agent_settings(ground, name, memory)
    agent_preset = preset(ground.root, agent_settings["preset"])
    remembered = _memory(ground, name, memory or _first_memory(ground, agent_preset, agent_settings["memory_class"]))
    await remembered.load()
    host = _host(agent_preset, remembered)
    own = [host_function.function for host_function in host.values()]
    about_memory = frozenset(function_name for function_name in host if function_name in agent_preset.functions)
    turn, workshop = ground.settings.turn, ground.workshop
    shown = Shown(own, turn.shown_functions, workshop.quarantine, about_memory)
    sources = (
        HostFunctions(host, workshop),
        WorkspaceFunctions(ground.cage, workshop, turn.parallel, remembered.blocks),
    )
    dispatcher = Dispatcher(sources, workshop.registry.snapshot, turn, ground.clock, aliases=_ALIASES)
    style, heartbeat = agent_preset.style, ground.settings.heartbeat
    session = AgentSession(name, ground.store, style, heartbeat, ground.clock, verify=verify)
    asker = ModelSession(
        shown,
        ground.settings,
        ground.open_model,
        remembered,
        style,
        compaction=agent_preset.compaction,
        own_set=session.own_set,
    )
    loop = AgentLoop(asker, dispatcher, workshop, turn.max_steps, remembered)
    owner = f"process {os.getpid()}"
    agent = Agent(
        name,
        ground.store,
        workshop,
        loop,
        owner,
        talk=session,
        memory=remembered,
        save=ground.save,
        resources=resources,
    )
    await agent.restore()
    return agent


async def _agent_settings(ground: WorkspaceDeps, name: str, memory: Memory | None) -> dict[str, Any]:  # Any: JSON
    """Return the settings the agent was created with; they are stored on creation and stay in force."""
    defaults = ground.settings.memory
    stored = await ground.store.agent_settings(name) or {}
    preset(ground.root, defaults.preset)  # a wrong name is an error whether or not the agent is new
    settings = {"preset": defaults.preset, "memory_class": "" if memory else defaults.class_name} | stored
    if settings != stored:
        await ground.store.apply([SaveAgent(name, settings)])
    return settings


def _first_memory(ground: WorkspaceDeps, agent_preset: Preset, memory_class: str) -> Memory:
    memory_settings: MemorySettings = ground.settings.memory
    if memory_class not in (
        "",
        *KNOWN,
        memory_settings.class_name,
    ):  # the state travels with the folder, as the file does
        message = (
            f"This agent was made with the memory class `{memory_class}`, which runs code when the agent is opened."
        )
        raise SettingsError(message, fix=f"If you trust it: export TOOLWRIGHT_MEMORY_CLASS_NAME={memory_class}")
    kind = named(memory_class or memory_settings.class_name)
    labels = {block.label for block in kind.starts_with}
    values = {
        "persona": memory_settings.persona or agent_preset.persona,
        "human": memory_settings.human or agent_preset.human,
    }
    texts = {label: text_of(ground.root, label, values[label]) for label in ("persona", "human") if label in labels}
    return kind(**texts)


def sources_of(ground: WorkspaceDeps, name: str) -> Sources:
    """Return the sources that the user gave an agent, without the agent, which may be running elsewhere."""
    store, clock = ground.store, ground.clock
    return Sources(store, Archival(store, name, ground.embedder, clock), name, clock)


def _memory(ground: WorkspaceDeps, name: str, first: Memory) -> AgentMemory:
    store, clock = ground.store, ground.clock
    gap = ground.settings.memory.session_gap_minutes
    archival = Archival(store, name, ground.embedder, clock)
    return AgentMemory(
        name,
        store,
        Blocks(store, name, first, clock),
        Sections(store, name, clock),
        Recall(store, name, ground.embedder, clock, gap_minutes=gap),
        archival,
        Sources(store, archival, name, clock),
    )


def _host(agent_preset: Preset, memory: AgentMemory) -> dict[str, HostFunction]:
    functions = host_functions.standard() | host_functions.of_memory(memory.blocks)
    return {name: host for name, host in functions.items() if agent_preset.has(name)}
