"""How an agent talks: `direct`, or as MemGPT does, by `send_message`, with heartbeats and packed messages.

A value that the loop asks at the few places where the two differ. Direct gives back what it was given.
A model in constrained mode writes a thought and a reply at each step already: there the reply is the message, and
every call gives another step.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from .clock import shown_time
from .messages import SEND
from .model.reply import Mode
from .model.request import FunctionShown

StyleName: TypeAlias = Literal["direct", "memgpt"]
Line: TypeAlias = tuple[FunctionShown, ...]
_Schema: TypeAlias = dict[str, Any]  # Any: JSON Schema

HEARTBEAT: Final = "request_heartbeat"
_TIME: Final = "%Y-%m-%d %I:%M:%S %p %Z%z"
_MOST_KEPT: Final = 4_096
_ASKED: Final[_Schema] = {
    "type": "boolean",
    "description": "true: another step follows this call",
}


@dataclass(slots=True)
class _Kept:
    """What was made of functions before, held with what it was made of: the same object gives the same object."""

    line: Line | None = None
    mode: Mode = "native"
    shown: Line = ()
    functions: dict[int, tuple[FunctionShown, FunctionShown]] = field(default_factory=dict)
    schemas: dict[int, tuple[_Schema, _Schema]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Style:
    """A way to talk. `instructions` (empty: the usual ones) and `brief` (for small models) are the preset's.

    `preset` is where it is from. `verify` wants a thought and a message in an agent's first reply, and asks for it
    again up to `attempts` times.
    """

    name: StyleName = "direct"
    preset: str = "direct"
    instructions: str = ""
    brief: str = ""
    verify: bool = False
    attempts: int = 3
    _kept: _Kept = field(default_factory=_Kept, compare=False, repr=False)

    @property
    def packs(self) -> bool:
        """Whether messages and events are told as JSON with type and time."""
        return self.name == "memgpt"

    def by_function(self, mode: Mode) -> bool:
        """Whether the user is spoken to by `send_message`, text is inner, and another step has to be asked for."""
        return self.name == "memgpt" and mode == "native"

    def shown(self, line: Line, mode: Mode = "native") -> Line:
        """The functions as this style shows them; what did not change is the same object."""
        kept = self._kept
        if not self.packs:
            return line
        if line is not kept.line or mode != kept.mode:
            kept.functions = {id(each): kept.functions.get(id(each)) or _made_of(each) for each in line}
            kept.line, kept.mode = line, mode
            if mode == "constrained":
                kept.shown = tuple(each for each in line if each.name != SEND)
            else:
                kept.shown = tuple(kept.functions[id(each)][1] for each in line)
        return kept.shown

    def reading(self, parameters: _Schema) -> _Schema:
        """The schema by which a call's arguments are read: whatever stands for the heartbeat does not refuse it."""
        if not self.packs or HEARTBEAT in parameters.get("properties", {}):
            return parameters
        kept = self._kept.schemas.get(id(parameters))
        if kept is None or kept[0] is not parameters:
            if len(self._kept.schemas) >= _MOST_KEPT:
                self._kept.schemas.clear()
            properties = {**parameters.get("properties", {}), HEARTBEAT: {}}
            kept = self._kept.schemas[id(parameters)] = parameters, {**parameters, "properties": properties}
        return kept[1]

    def take_heartbeat(self, arguments: dict[str, Any], parameters: _Schema) -> bool:  # Any: JSON
        """Take the wish for another step out of a call's arguments; whether there was one."""
        if not self.packs or HEARTBEAT in parameters.get("properties", {}):
            return False
        asked = arguments.pop(HEARTBEAT, False)
        return str(asked).strip().lower() in {"true", "1", "yes"}

    def packs_user(self, text: str, now: float) -> str:
        """A user's message as the model reads it."""
        return self.event("user_message", {"message": text}, now) or text

    def event(self, kind: str, said: Mapping[str, Any], now: float) -> str:  # Any: JSON
        """What happened as the model reads it: user_message, heartbeat, login or system_alert; empty for direct."""
        if not self.packs:
            return ""
        return json.dumps({"type": kind, **said, "time": moment(now)}, ensure_ascii=False)


DIRECT: Final = Style()


def moment(at: float) -> str:
    """A time as packed messages tell it, in the zone of this machine."""
    return shown_time(at, _TIME)


def _made_of(function: FunctionShown) -> tuple[FunctionShown, FunctionShown]:
    """A function and what is shown of it; the first is held so that its identity is nobody else's."""
    return function, _with_heartbeat(function)


def _with_heartbeat(function: FunctionShown) -> FunctionShown:
    parameters = function.parameters
    properties = parameters.get("properties", {})
    if HEARTBEAT in properties:
        return function
    required = [*parameters.get("required", ()), HEARTBEAT]
    changed = {**parameters, "properties": {**properties, HEARTBEAT: _ASKED}, "required": required}
    return FunctionShown(function.name, function.description, changed)
