"""Makes one agent of a workspace: its preset, its memory, the functions of the host that it has, and its loop."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from . import hosted
from .agent import Agent
from .asking import Asker, OpenModel
from .cage import Cage
from .clock import Clock
from .context import Shown
from .dispatch import Alias, Dispatcher, HostFunction
from .embedding import Embedder
from .errors import SettingsError
from .memory.agent_memory import AgentMemory
from .memory.archival import Archival
from .memory.blocks import Blocks
from .memory.classes import KNOWN, Memory, named
from .memory.old_names import ALIASES
from .memory.recall import Recall
from .memory.sections import Sections
from .memory.sources import Sources
from .presets import Preset, preset, text_of
from .settings import MemorySettings, Settings
from .step import Stepper
from .storage import SaveAgent, Store
from .talk import OLD_NAMES, Talk
from .workshop import Workshop

_ALIASES: Final[Mapping[str, Alias]] = {**ALIASES, **OLD_NAMES}


@dataclass(frozen=True, slots=True)
class Ground:
    """What the agents of a workspace stand on."""

    root: Path
    settings: Settings
    store: Store
    workshop: Workshop
    cage: Cage
    clock: Clock
    embedder: Embedder | None
    open_model: OpenModel


async def recruit(ground: Ground, name: str, memory: Memory | None = None) -> Agent:
    """The agent of that name, taken up where it was left; a new one is made as the settings, or `memory`, say."""
    made = await _made(ground, name, memory)
    way = preset(ground.root, made["preset"])
    remembered = _memory(ground, name, memory or _first_memory(ground, way, made["memory_class"]))
    await remembered.load()
    host = _host(way, remembered)
    own = [each.function for each in host.values()]
    about_memory = frozenset(each for each in host if each in way.functions)
    turn, workshop = ground.settings.turn, ground.workshop
    shown = Shown(own, turn.shown_functions, workshop.quarantine, about_memory)
    dispatcher = Dispatcher(ground.cage, workshop, host, turn, ground.clock, aliases=_ALIASES, blocks=remembered.blocks)
    asker = Asker(shown, ground.settings, ground.open_model, remembered, way.style, compaction=way.compaction)
    stepper = Stepper(asker, dispatcher, workshop, turn.max_steps, remembered)
    talk = Talk(name, ground.store, way.style, ground.settings.heartbeat, ground.clock)
    agent = Agent(name, ground.store, workshop, stepper, f"process {os.getpid()}", talk=talk, memory=remembered)
    await agent.restore()
    return agent


async def _made(ground: Ground, name: str, memory: Memory | None) -> dict[str, Any]:  # Any: JSON
    """What the agent was made as; kept when it is first made, and from then on what it is."""
    wanted = ground.settings.memory
    kept = await ground.store.memory.agent_settings(name) or {}
    preset(ground.root, wanted.preset)  # a wrong name is an error whether or not the agent is new
    made = {"preset": wanted.preset, "memory_class": "" if memory else wanted.class_name} | kept
    if made != kept:
        await ground.store.apply([SaveAgent(name, made)])
    return made


def _first_memory(ground: Ground, way: Preset, memory_class: str) -> Memory:
    wanted: MemorySettings = ground.settings.memory
    if memory_class not in ("", *KNOWN, wanted.class_name):  # the state travels with the folder, as the file does
        what = f"This agent was made with the memory class `{memory_class}`, whose code is run when it is opened."
        raise SettingsError(what, mend=f"If you know it: export TOOLWRIGHT_MEMORY_CLASS_NAME={memory_class}")
    kind = named(memory_class or wanted.class_name)
    labels = {block.label for block in kind.starts_with}
    given = {"persona": wanted.persona or way.persona, "human": wanted.human or way.human}
    texts = {label: text_of(ground.root, label, given[label]) for label in ("persona", "human") if label in labels}
    return kind(**texts)


def sources_of(ground: Ground, name: str) -> Sources:
    """What a human gave an agent to know, without the agent: it may be at work elsewhere."""
    store, kept, clock = ground.store, ground.store.memory, ground.clock
    return Sources(store, kept, Archival(store, kept, name, ground.embedder, clock), name, clock)


def _memory(ground: Ground, name: str, first: Memory) -> AgentMemory:
    store, kept, clock = ground.store, ground.store.memory, ground.clock
    gap = ground.settings.memory.session_gap_minutes
    archival = Archival(store, kept, name, ground.embedder, clock)
    return AgentMemory(
        name,
        store,
        kept,
        Blocks(store, kept, name, first, clock),
        Sections(store, kept, name, clock),
        Recall(store, kept, name, ground.embedder, clock, gap_minutes=gap),
        archival,
        Sources(store, kept, archival, name, clock),
    )


def _host(way: Preset, memory: AgentMemory) -> dict[str, HostFunction]:
    found = hosted.standard() | hosted.of_memory(memory.blocks)
    return {name: host for name, host in found.items() if way.has(name)}
