from agent_core import present as present
from agent_core.agent import Agent as Agent
from agent_core.assemble import Workspace as Workspace
from agent_core.errors import ToolwrightError as ToolwrightError
from agent_core.events import Event as Event
from agent_core.grants import Approver as Approver
from agent_core.grants import Decision as Decision
from agent_core.grants import Question as Question
from agent_core.memory.block import Block as Block
from agent_core.memory.classes import ChatMemory as ChatMemory
from agent_core.memory.classes import Memory as Memory
from agent_core.settings import Settings as Settings
from agent_core.workshop import Author as Author
from agent_core.workshop import FunctionService as FunctionService
from agent_core.workshop import PlannedChange as PlannedChange

__version__: str
__all__: list[str]
