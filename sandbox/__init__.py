"""The sandbox: runs function code in confined workers. It uses only the standard library and imports nothing else.

`Sandbox.start()` finds the strongest level that this machine enforces, or refuses. Everything that a worker says is a
claim about a value; how a call ended is an `Outcome`. Names are loaded when they are first used, so that small uses
of this package do not wait for all of it.
"""

from importlib import import_module
from typing import Any

_ROOMS = {
    "Access": "access",
    "CallHooks": "processes.debugging",
    "Attempt": "job",
    "Attempts": "job",
    "CallEnded": "processes.debugging",
    "Code": "code",
    "Debug": "processes.debugging",
    "Evaluation": "job",
    "Failure": "outcome",
    "Frame": "outcome",
    "FunctionCall": "job",
    "Job": "job",
    "Killed": "outcome",
    "Limits": "policy",
    "ModuleImport": "job",
    "OneWall": "errors",
    "Outcome": "outcome",
    "Patient": "wire.requests",
    "Point": "processes.debugging",
    "ProgramJob": "job",
    "Raised": "outcome",
    "Refused": "outcome",
    "DebugControl": "processes.debugging",
    "RequestHandler": "wire.requests",
    "RequestRefused": "wire.requests",
    "Returned": "outcome",
    "Sandbox": "host",
    "SandboxError": "errors",
    "SandboxUnavailable": "errors",
    "SchemaRequest": "job",
    "Then": "job",
    "TimedOut": "outcome",
    "Work": "job",
    "agree_to_one_wall": "portable.level",
}

__all__ = [*_ROOMS]


def __getattr__(name: str) -> Any:  # Any: `__init__.pyi` says which
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value
