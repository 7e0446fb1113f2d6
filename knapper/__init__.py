"""Knapper as a library: the public names of `agent_core`, loaded when they are first used."""

from typing import Any

import agent_core
from agent_core import __all__ as __all__
from agent_core import __version__ as __version__


def __getattr__(name: str) -> Any:  # Any: whatever `agent_core` has under that name
    return getattr(agent_core, name)


def __dir__() -> list[str]:
    return dir(agent_core)
