"""What all agents of a workspace share."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_core.base.records import dataclass
from agent_core.memory.agent_memory import AgentMemory
from agent_core.runtime.agent import SaveAgentFile
from agent_core.runtime.groups.loop import OpenMember
from agent_core.storage import Store, agent_of

from .helper_changes import HelperChanges
from .helper_library import HelperLibrary

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.settings import Settings
    from agent_core.functions.foreign import ForeignSources
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.functions.service import FunctionService
    from agent_core.memory.classes import Memory
    from agent_core.memory.embedding import Embedder
    from agent_core.model.reply import OpenModel

    from .agent_files import AgentFiles, GroupFolder
    from .model_opener import IdleModels

MAX_SHOWN_FUNCTIONS: Final = 128  # as many as endpoints take


@dataclass(frozen=True, slots=True)
class WorkspaceDeps:
    """The dependencies that all agents of a workspace share."""

    root: Path
    settings: "Settings"
    store: Store
    functions: "FunctionService"
    sandbox: "SandboxClient"
    clock: "Clock"
    embedder: "Embedder | None"
    function_embedder: "Embedder | None"
    open_model: "OpenModel"
    idle_models: "IdleModels"
    save: SaveAgentFile
    helpers: HelperLibrary
    helper_changes: HelperChanges
    directory: "AgentFiles"
    groups: "GroupFolder"
    open_agent: OpenMember
    foreign: "ForeignSources"

    def memory(self, line: str, first_memory: "Memory | None" = None) -> AgentMemory:
        """Return the memory of an agent in a conversation; a new agent starts with the blocks of `first_memory`."""
        agent = agent_of(line)
        return AgentMemory(
            agent, self.store, self.clock, self.embedder, memory=first_memory, line=line
        )
