from agent_core import *
from agent_core import __version__ as __version__
