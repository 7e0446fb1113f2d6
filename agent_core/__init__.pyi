from agent_core.access.grants import Approver as Approver
from agent_core.access.grants import Decision as Decision
from agent_core.access.grants import Question as Question
from agent_core.base import events as events
from agent_core.base.errors import KnapperError as KnapperError
from agent_core.base.errors import TurnError as TurnError
from agent_core.base.events import Event as Event
from agent_core.base.settings import Settings as Settings
from agent_core.client.client import Client as Client
from agent_core.client.client import connect as connect
from agent_core.context import presentation as presentation
from agent_core.functions.service import Author as Author
from agent_core.functions.service import FunctionService as FunctionService
from agent_core.functions.service import PlannedChange as PlannedChange
from agent_core.memory.classes import Block as Block
from agent_core.memory.classes import ChatMemory as ChatMemory
from agent_core.memory.classes import Memory as Memory
from agent_core.runtime.agent import Agent as Agent
from agent_core.workspace.workspace import Workspace as Workspace
from agent_core.workspace.workspace import ask as ask

__version__: str
__all__: list[str]
