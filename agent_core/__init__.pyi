from . import present as present
from .agent import Agent as Agent
from .assemble import Workspace as Workspace
from .errors import ToolwrightError as ToolwrightError
from .events import Event as Event
from .grants import Approver as Approver
from .grants import Decision as Decision
from .grants import Question as Question
from .memory.block import Block as Block
from .memory.classes import ChatMemory as ChatMemory
from .memory.classes import Memory as Memory
from .settings import Settings as Settings
from .workshop import Author as Author
from .workshop import FunctionService as FunctionService
from .workshop import PlannedChange as PlannedChange

__version__: str
__all__: list[str]
