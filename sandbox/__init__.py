"""The sandbox: runs function code in confined workers; standard library only, and alone.

`Sandbox.start()` finds the strongest level that this machine enforces, or refuses. Everything that
a worker says is a claim about a value; how a call ended is an `Outcome`.
"""

from .access import Access
from .attempt import Attempt, Then
from .code import Code, Evaluation
from .debugging import Around, CallEnded, Debug, Point, Reins
from .errors import SandboxError, SandboxUnavailable
from .host import Sandbox
from .outcome import Failure, Frame, Killed, Outcome, Raised, Refused, Returned, TimedOut
from .policy import Limits
from .requests import Patient, RequestHandler, RequestRefused

__all__ = [
    "Access",
    "Around",
    "Attempt",
    "CallEnded",
    "Code",
    "Debug",
    "Evaluation",
    "Failure",
    "Frame",
    "Killed",
    "Limits",
    "Outcome",
    "Patient",
    "Point",
    "Raised",
    "Refused",
    "Reins",
    "RequestHandler",
    "RequestRefused",
    "Returned",
    "Sandbox",
    "SandboxError",
    "SandboxUnavailable",
    "Then",
    "TimedOut",
]
