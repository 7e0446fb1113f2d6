"""The public names of Knapper as a library, and nothing else.

The names are loaded when they are first used, because `knapper --version` and the prompt must
not wait for what a turn needs (ADR 0006).
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "Agent": "runtime.agent",
    "Approver": "access.grants",
    "Author": "functions.service",
    "Block": "memory.classes",
    "ChatMemory": "memory.classes",
    "Client": "client.client",
    "Decision": "access.grants",
    "Event": "base.events",
    "Memory": "memory.classes",
    "PlannedChange": "functions.service",
    "Question": "access.grants",
    "Settings": "base.settings",
    "KnapperError": "base.errors",
    "FunctionService": "functions.service",
    "TurnError": "base.errors",
    "Workspace": "workspace.workspace",
    "ask": "workspace.workspace",
    "connect": "client.client",
}
_MODULES = {"events": "base.events", "presentation": "context.presentation"}

__all__ = [
    "Agent",
    "Approver",
    "Author",
    "Block",
    "ChatMemory",
    "Client",
    "Decision",
    "Event",
    "FunctionService",
    "KnapperError",
    "Memory",
    "PlannedChange",
    "Question",
    "Settings",
    "TurnError",
    "Workspace",
    "ask",
    "connect",
    "events",
    "presentation",
]


def __getattr__(name: str) -> Any:  # Any: whatever the room defines
    if name in _ROOMS:
        return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
