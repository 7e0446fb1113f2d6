"""The test kit: a scripted model behind real HTTP, and the rules that real endpoints hold requests to."""

from .play import ScriptedModel, ScriptError, scripted
from .steps import Ask, Cut, Expect, Fail, Raw, Repeat, Say, Script, Seen, Stall, Step, Wanted, contains, shows

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
