"""The sandbox: runs function code in confined workers. It imports only the standard library.

`Sandbox.start()` finds the strongest level that this machine can enforce, or fails. Every value from a worker is an
unverified claim; the end of a call is an `Outcome`. Names are loaded on first use, so that importing a small part of
this package stays fast.
"""

from importlib import import_module
from typing import Any

_ROOMS = {
    "Access": "access",
    "CalleeFailed": "wire.requests",
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
    "agree_to_one_wall": "beside",
}

__all__ = [*_ROOMS]


def __getattr__(name: str) -> Any:  # Any: `__init__.pyi` has the types
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value
    return value
