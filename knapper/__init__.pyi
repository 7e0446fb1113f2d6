from agent_core import *  # noqa: F403
from agent_core import __version__ as __version__
