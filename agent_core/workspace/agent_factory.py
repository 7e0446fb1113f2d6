"""Builds one agent of a workspace: its preset, its memory, its host functions, and its loop."""

import os
from collections.abc import Mapping
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
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import KNOWN, Memory, named
from agent_core.memory.embedding import Embedder
from agent_core.memory.old_names import ALIASES
from agent_core.memory.recall import Recall
from agent_core.memory.sections import Sections
from agent_core.memory.source_catalog import Sources
from agent_core.runtime import host_functions
from agent_core.runtime.agent import Agent
from agent_core.runtime.dispatch import Dispatcher, HostAlias, HostFunction
from agent_core.runtime.loop import AgentLoop
from agent_core.runtime.model_session import ModelSession, OpenModel
from agent_core.runtime.session import OLD_NAMES, AgentSession
from agent_core.storage import SaveAgent, Store

from .presets import Preset, preset, text_of

_ALIASES: Final[Mapping[str, HostAlias]] = {**ALIASES, **OLD_NAMES}


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


async def recruit(ground: WorkspaceDeps, name: str, memory: Memory | None = None) -> Agent:
    """Return the agent of that name with its state restored; a new one is built from the settings or `memory`."""
    agent_settings = await _agent_settings(ground, name, memory)
    agent_preset = preset(ground.root, agent_settings["preset"])
    remembered = _memory(ground, name, memory or _first_memory(ground, agent_preset, agent_settings["memory_class"]))
    await remembered.load()
    host = _host(agent_preset, remembered)
    own = [host_function.function for host_function in host.values()]
    about_memory = frozenset(function_name for function_name in host if function_name in agent_preset.functions)
    turn, workshop = ground.settings.turn, ground.workshop
    shown = Shown(own, turn.shown_functions, workshop.quarantine, about_memory)
    dispatcher = Dispatcher(ground.cage, workshop, host, turn, ground.clock, aliases=_ALIASES, blocks=remembered.blocks)
    asker = ModelSession(
        shown, ground.settings, ground.open_model, remembered, agent_preset.style, compaction=agent_preset.compaction
    )
    stepper = AgentLoop(asker, dispatcher, workshop, turn.max_steps, remembered)
    talk = AgentSession(name, ground.store, agent_preset.style, ground.settings.heartbeat, ground.clock)
    agent = Agent(name, ground.store, workshop, stepper, f"process {os.getpid()}", talk=talk, memory=remembered)
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
