"""The test kit: a scripted model behind real HTTP, and the request rules that real endpoints enforce."""

from .play import ScriptedModel, ScriptError, scripted
from .steps import (
    Ask,
    Cut,
    Expect,
    Fail,
    Raw,
    Repeat,
    Say,
    Script,
    Seen,
    Stall,
    Step,
    Wanted,
    contains,
    shows,
)

__all__ = [
    "Ask",
    "Cut",
    "Expect",
    "Fail",
    "Raw",
    "Repeat",
    "Say",
    "Script",
    "ScriptError",
    "ScriptedModel",
    "Seen",
    "Stall",
    "Step",
    "Wanted",
    "contains",
    "scripted",
    "shows",
]
