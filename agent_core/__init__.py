"""The public names of Toolwright as a library, and nothing else.

The names are loaded when they are first used, because `toolwright --version` and the prompt must
not wait for what a turn needs (ADR 0006).
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "Agent": "agent",
    "Approver": "grants",
    "Author": "workshop",
    "Block": "memory.block",
    "ChatMemory": "memory.classes",
    "Decision": "grants",
    "Event": "events",
    "Memory": "memory.classes",
    "PlannedChange": "workshop",
    "Question": "grants",
    "Settings": "settings",
    "ToolwrightError": "errors",
    "FunctionService": "workshop",
    "Workspace": "assemble",
}

__all__ = [
    "Agent",
    "Approver",
    "Author",
    "Block",
    "ChatMemory",
    "Decision",
    "Event",
    "FunctionService",
    "Memory",
    "PlannedChange",
    "Question",
    "Settings",
    "ToolwrightError",
    "Workspace",
    "present",
]


def __getattr__(name: str) -> Any:  # Any: whatever the room defines
    if name in _ROOMS:
        return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    if name == "present":
        return import_module(f"{__name__}.present")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
